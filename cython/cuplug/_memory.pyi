# SPDX-License-Identifier: Apache-2.0
from collections.abc import Iterable
from typing import Any, NamedTuple

from ._operator import Operator

class MemoryInfo(NamedTuple):
    total_bytes: int
    free_bytes: int
    reserved_bytes: int
    used_bytes: int
    most_used_bytes: int
    pinned_bytes: int

def memory_info(device: Any = "cuda") -> MemoryInfo: ...
def trim(device: Any = None) -> int: ...
def prepare(operators: Operator | str | Iterable[Operator | str], device: Any = None) -> None: ...
