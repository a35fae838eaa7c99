# SPDX-License-Identifier: Apache-2.0
from typing import Any, final

from cuplug.kernels.function import Function

@final
class Launch:
    def __init__(self, kernel: Function, configuration: tuple[Any, ...]) -> None: ...
    def __call__(self, *args: Any) -> None: ...
