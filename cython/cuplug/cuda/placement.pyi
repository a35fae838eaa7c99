# SPDX-License-Identifier: Apache-2.0
from types import TracebackType
from typing import Any

def gpu_number(function: str, device: Any) -> int: ...

class Placement:
    type: str
    index: int
    def __init__(self, type: str, index: int) -> None: ...

class device:
    def __init__(self, name: Any) -> None: ...
    def __enter__(self) -> device: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...
