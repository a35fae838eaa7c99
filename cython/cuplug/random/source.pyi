# SPDX-License-Identifier: Apache-2.0
from typing import Any

from cuplug._engine.array.array import Array
from cuplug._engine.call.operator import Operator

class Source:
    position: int
    def __init__(self, key: int, sequence: int) -> None: ...
    def draw(
        self, operator: Operator, shape: Any, dtype: Any, device: Any, first: Any, second: Any
    ) -> Array: ...
    def fill(self, operator: Operator, x: Any, n: int, first: Any, second: Any) -> None: ...
    def order(self, operator: Operator, n: int, device: Any) -> Array: ...
