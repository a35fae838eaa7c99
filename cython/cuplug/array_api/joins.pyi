# SPDX-License-Identifier: Apache-2.0
from typing import Any

from cuplug.array.array import Array

def concat(arrays: Any, /, *, axis: int | None = 0) -> Array: ...
def stack(arrays: Any, /, *, axis: int = 0) -> Array: ...
