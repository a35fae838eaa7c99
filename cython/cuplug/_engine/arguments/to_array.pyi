# SPDX-License-Identifier: Apache-2.0
from typing import Any

from cuplug._engine.array.array import Array

def to_array(x: Any, dtype: Any, device: Any, copy: bool | None) -> Array: ...
