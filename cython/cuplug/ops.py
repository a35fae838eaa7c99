# SPDX-License-Identifier: Apache-2.0
"""All operators on the search path: `from cuplug.ops import gather`."""

# Names without an underscore would hide operators.
import sys as _sys
from typing import Any as _Any

import numpy as _numpy  # noqa: F401  (first: see cuplug/__init__.py)

from cuplug._engine.lookup.attribute import OperatorModule as _OperatorModule
from cuplug._engine.lookup.attribute import operator_attribute as _operator_attribute
from cuplug._engine.lookup.find import plugins as _plugins

_sys.modules[__name__].__class__ = _OperatorModule


def __getattr__(name: str) -> _Any:
    if name == "__all__":
        return __dir__()
    return _operator_attribute(__name__, name)


def __dir__() -> list[str]:
    return sorted({name for file in _plugins() if file.state == "ok" for name in file.operators})
