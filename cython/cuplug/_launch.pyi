# SPDX-License-Identifier: Apache-2.0
from typing import Any, final

from ._kernel import Kernel

@final
class Launch:
    def __init__(self, kernel: Kernel, configuration: tuple[Any, ...]) -> None: ...
    def __call__(self, *args: Any) -> None: ...
