# SPDX-License-Identifier: Apache-2.0
from typing import Any

from cuplug._engine.call.operator import Operator

PROCESS: int
CPU: dict[str, Any]
CUDA: dict[str, Any]
CUDA_WAITING: dict[str, Any]

def address_of(operator: Operator) -> int: ...
def takes_strides(operator: Operator, row: int) -> bool: ...
