# SPDX-License-Identifier: Apache-2.0
from collections.abc import Sequence
from typing import Any

from cuplug._engine.array.array import Array

def empty(shape: int | Sequence[int], dtype: Any = None, device: Any = None) -> Array: ...
def from_pointer(
    pointer: int,
    shape: int | Sequence[int],
    dtype: Any,
    device: Any = "cuda",
    owner: Any = None,
) -> Array: ...
