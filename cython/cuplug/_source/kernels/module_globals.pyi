# SPDX-License-Identifier: Apache-2.0
from typing import Any

import numpy

class Global:
    name: str
    data_ptr: int
    device: int
    dtype: numpy.dtype[Any]
    shape: tuple[int, ...]
    def __init__(
        self,
        name: str,
        data_ptr: int,
        device: int,
        dtype: numpy.dtype[Any],
        shape: tuple[int, ...],
    ) -> None: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...
    def set(self, values: Any) -> None: ...
    def numpy(self) -> numpy.ndarray[Any, Any]: ...
