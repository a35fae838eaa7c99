# SPDX-License-Identifier: Apache-2.0
from typing import Any, final

from cuplug.kernels.function import Function
from cuplug.kernels.launch import Launch

@final
class Kernel(Function):
    def prepare(self, signature: str) -> Kernel: ...
    def __getitem__(self, configuration: tuple[Any, ...]) -> Launch: ...
    def configure(
        self,
        grid: int | tuple[int, ...],
        block: int | tuple[int, ...],
        shared: int = 0,
        stream: Any = None,
        *,
        cooperative: bool = False,
        cluster: int | tuple[int, ...] | None = None,
        overlapping: bool = False,
    ) -> Launch: ...
