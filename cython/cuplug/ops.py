# SPDX-License-Identifier: Apache-2.0
"""All operators on the search path: `from cuplug.ops import gather`."""

# Names without an underscore would hide operators.
import opcode as _opcode
import sys as _sys
from typing import Any as _Any

import numpy as _numpy  # noqa: F401  (first: see cuplug/__init__.py)

from cuplug.errors import NotFoundError as _NotFoundError
from cuplug.errors import OperatorAttributeError as _OperatorAttributeError
from cuplug.errors import OperatorImportError as _OperatorImportError
from cuplug.lookup.find import find as _find
from cuplug.lookup.find import plugins as _plugins


def __getattr__(name: str) -> _Any:
    if name == "__all__":
        return __dir__()
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return _find(name)
    except _NotFoundError as error:
        is_import = _is_import(_sys._getframe(1))
        exception = _OperatorImportError if is_import else _OperatorAttributeError
        raise exception(str(error)) from None


def _is_import(frame: _Any) -> bool:
    """Say whether a frame is at `from cuplug.ops import name`.

    Python replaces the text of an AttributeError there; that of an ImportError reaches the user.
    """
    return frame.f_code.co_code[frame.f_lasti] == _opcode.opmap["IMPORT_FROM"]


def __dir__() -> list[str]:
    return sorted({name for file in _plugins() if file.state == "ok" for name in file.operators})
