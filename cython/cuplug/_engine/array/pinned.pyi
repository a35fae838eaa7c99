# SPDX-License-Identifier: Apache-2.0
from typing import Any

import numpy
from numpy.typing import NDArray

from cuplug._engine.array.array import Array

def empty_pinned(
    shape: int | tuple[int, ...], dtype: str | numpy.dtype[Any] = "float64", device: Any = None
) -> NDArray[Any]: ...
def empty_managed(
    shape: int | tuple[int, ...], dtype: str | numpy.dtype[Any] = "float64", device: Any = None
) -> Array: ...
