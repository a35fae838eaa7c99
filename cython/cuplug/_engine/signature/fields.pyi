# SPDX-License-Identifier: Apache-2.0
from typing import Any

def parse_fields(
    text: str,
) -> tuple[str, Any, Any, Any, tuple[str, ...], tuple[str, ...], Any, tuple[int, ...]]: ...
