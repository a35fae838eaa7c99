# SPDX-License-Identifier: Apache-2.0
from typing import Any, NamedTuple

class MemoryInfo(NamedTuple):
    total_bytes: int
    free_bytes: int
    reserved_bytes: int
    used_bytes: int
    most_used_bytes: int
    pinned_bytes: int

def memory_info(device: Any = "cuda") -> MemoryInfo: ...
def trim(device: Any = None) -> int: ...
