# SPDX-License-Identifier: Apache-2.0
from typing import Any

STATES: tuple[str, ...]
TAKES_STRIDES: int
OWN_FIELDS: tuple[str, ...]

def inspect_fields(path: str) -> tuple[str, str, str, str, tuple[int, ...], int, Any]: ...
def check_trust(path: str) -> None: ...
def check_owner(path: str) -> None: ...
