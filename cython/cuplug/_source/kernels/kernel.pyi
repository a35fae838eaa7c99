# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable, Sequence
from typing import Any, final

from cuplug._source.kernels.function import Function
from cuplug._source.kernels.launch import Launch

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
    def tune(
        self,
        threads: int | Callable[[int], Any],
        *arguments: Any,
        blocks: Sequence[int] = (64, 128, 256, 512, 1024),
        shared: int = 0,
        device: Any = None,
    ) -> Launch: ...
