# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable
from typing import Any, final

@final
class ArrayFunction:
    __name__: str
    __qualname__: str
    def __init__(
        self,
        function: Callable[..., Any],
        find: Callable[..., Any] | None = None,
        in_place: bool = False,
        again: bool = False,
        is_ordered: bool = False,
        along: bool = False,
        convert: Callable[..., Any] | None = None,
    ) -> None: ...
    def __call__(self, *args: Any, **keywords: Any) -> Any: ...

def of_all(
    find: Callable[[Any], Any], along: bool = False
) -> Callable[[Callable[..., Any]], ArrayFunction]: ...
