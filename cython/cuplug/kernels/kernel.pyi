# SPDX-License-Identifier: Apache-2.0
from typing import Any, final

from cuplug.kernels.function import Function
from cuplug.kernels.launch import Launch

@final
class Kernel(Function):
    def prepare(self, signature: str) -> Kernel: ...
    def __getitem__(self, configuration: tuple[Any, ...]) -> Launch: ...
