# SPDX-License-Identifier: Apache-2.0
"""Operators as attributes of modules: `from cuplug.ops import gather`."""

from __future__ import annotations

import opcode
import sys

from cuplug.call.operator import Operator
from cuplug.errors import NotFoundError, OperatorAttributeError, OperatorImportError
from cuplug.lookup.find import find

__all__ = ["operator_attribute"]


def operator_attribute(module: str, name: str) -> Operator:
    """Find an operator for a module's `__getattr__`, the caller.

    Raises
    ------
    AttributeError
        The name is one of Python's own, or of no operator.
    ImportError
        Of no operator, in a `from ... import`: there Python replaces the text of an AttributeError.
    """
    if name.startswith("__"):
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    try:
        return find(name)
    except NotFoundError as error:
        user = sys._getframe(2)
        is_import = user.f_code.co_code[user.f_lasti] == opcode.opmap["IMPORT_FROM"]
        exception = OperatorImportError if is_import else OperatorAttributeError
        raise exception(str(error)) from None
