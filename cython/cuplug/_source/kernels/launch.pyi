# SPDX-License-Identifier: Apache-2.0
from typing import Any, final

from cuplug._source.kernels.function import Function

@final
class Launch:
    def __init__(
        self,
        kernel: Function,
        configuration: tuple[Any, ...],
        cluster: Any = None,
        is_cooperative: bool = False,
        is_overlapping: bool = False,
    ) -> None: ...
    def __call__(self, *args: Any) -> None: ...
