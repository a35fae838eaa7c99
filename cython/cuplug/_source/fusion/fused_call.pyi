# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

_T = TypeVar("_T")

OPTIONS: frozenset[str]

def called_at_once(cls: type[_T]) -> type[_T]: ...

class FusedCall:
    def __init__(self, *args: Any) -> None: ...
    def __call__(self, *args: Any, **keywords: Any) -> Any: ...
    def remember(
        self,
        args: Sequence[Any],
        operator: Callable[..., Any],
        order: tuple[int, ...],
        fixed: dict[str, Any],
        otherwise: Callable[..., Any],
    ) -> None: ...
