# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable
from typing import Any, Generic, ParamSpec, Protocol, TypeVar, final

from cuplug._engine.call.operator import Operator

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")

@final
class ArrayFunction(Generic[_Arguments, _Result]):
    __name__: str
    __qualname__: str
    def __init__(
        self,
        function: Callable[_Arguments, _Result],
        find: Callable[..., Any] | None = None,
        in_place: bool = False,
        again: bool = False,
        is_ordered: bool = False,
        along: bool = False,
        convert: Callable[..., Any] | None = None,
    ) -> None: ...
    def __call__(self, *args: _Arguments.args, **keywords: _Arguments.kwargs) -> _Result: ...

class _Decorator(Protocol):  # generic in its call, as the function that it takes
    def __call__(
        self, function: Callable[_Arguments, _Result], /
    ) -> ArrayFunction[_Arguments, _Result]: ...

def of_all(find: Callable[[Any], Any], along: bool = False) -> _Decorator: ...
def stock(name: str) -> Operator: ...
