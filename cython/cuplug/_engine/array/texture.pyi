# SPDX-License-Identifier: Apache-2.0
from typing import Any, final

import numpy

from cuplug._engine.cuda.placement import Device

@final
class Texture:
    handle: int
    surface: int
    shape: tuple[int, ...]
    dtype: numpy.dtype[Any]
    device: Device
    def __init__(
        self,
        values: Any,
        *,
        channels: bool = False,
        filter: str = "nearest",
        address: str = "clamp",
        normalized: bool = False,
        floats: bool = False,
        device: Any = None,
    ) -> None: ...
    def __index__(self) -> int: ...
    def set(self, values: Any) -> None: ...
    def numpy(self) -> numpy.ndarray[Any, Any]: ...
