# SPDX-License-Identifier: Apache-2.0
from collections.abc import Iterable
from typing import Any

from cuplug._engine.call.operator import Operator

def prepare(operators: Operator | str | Iterable[Operator | str], device: Any = None) -> None: ...
