# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")

def on_large_stack(function: Callable[..., _T], *args: object) -> _T: ...
