# SPDX-License-Identifier: Apache-2.0
"""All operators on the search path: `from cuplug.ops import gather`."""

from __future__ import annotations

import opcode
import sys
from collections.abc import Callable
from typing import Any

from cuplug.errors import NotFoundError, OperatorAttributeError, OperatorImportError
from cuplug.lookup.find import find, plugins


def __getattr__(name: str) -> Callable[..., Any]:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return find(name)
    except NotFoundError as error:
        exception = OperatorImportError if _is_import(sys._getframe(1)) else OperatorAttributeError
        raise exception(str(error)) from None


def _is_import(frame: Any) -> bool:
    """Say whether a frame is at `from cuplug.ops import name`.

    Python replaces the text of an AttributeError there; that of an ImportError reaches the user.
    """
    return frame.f_code.co_code[frame.f_lasti] == opcode.opmap["IMPORT_FROM"]


def __dir__() -> list[str]:
    return sorted({name for file in plugins() if file.state == "ok" for name in file.operators})
