# SPDX-License-Identifier: Apache-2.0
from typing import final

@final
class Image:
    def __init__(self, code: bytes, name: str) -> None: ...
    def find_global(self, symbol: str, name: str, device: int) -> tuple[int, int]: ...
