# SPDX-License-Identifier: Apache-2.0
from typing import Any, NamedTuple

class Device(NamedTuple):
    id: int
    name: str
    compute_capability: int
    memory_bytes: int
    driver_version: int

def devices() -> list[Device]: ...
def available_devices() -> list[Device]: ...
def driver_version() -> int: ...
def synchronize(device: Any = None) -> None: ...
