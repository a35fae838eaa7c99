# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable
from typing import Any, TypeVar

_Named = TypeVar("_Named")

def public(x: _Named) -> _Named: ...

class PublicCall:
    def __init__(self, function: Callable[..., Any], /, *args: Any, **keywords: Any) -> None: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
