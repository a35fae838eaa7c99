# SPDX-License-Identifier: Apache-2.0
from typing import Any

class ModuleFunction:
    name: str
    plugin: str
    path: str
    version: str
    def __init__(
        self, name: str, plugin: str, path: str, handle: int, call: int, made: tuple[Any, ...]
    ) -> None: ...
    def __call__(self, *args: Any) -> Any: ...
    def _rebind(self, handle: int, call: int) -> None: ...
