# SPDX-License-Identifier: Apache-2.0
from typing import Any

from cuplug._engine.signature.steps import Condition

def parse_fields(
    text: str,
) -> tuple[str, Any, Any, Any, tuple[str, ...], tuple[Condition, ...], Any, tuple[int, ...]]: ...
def parse_short(
    text: str,
) -> tuple[
    list[tuple[str, str, bool, int]], list[tuple[str, str, bool, int]], int, list[str], bool
]: ...

SPACES: dict[int, str]
