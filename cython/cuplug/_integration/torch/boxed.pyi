# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable
from typing import Any

from cuplug._engine.call.operator import Operator

def implement(
    name: str,
    key: str,
    operator: Operator,
    kinds: str,
    optional: list[bool],
    n_outputs: int,
    plain: Callable[..., Any],
) -> bool: ...
