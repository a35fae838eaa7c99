# SPDX-License-Identifier: Apache-2.0
"""Operators as attributes of modules: `from cuplug.ops import gather`."""

from __future__ import annotations

import importlib
import opcode
import sys
from types import ModuleType

from cuplug._engine.call.operator import Operator
from cuplug._engine.lookup.find import find, operator_or_attribute
from cuplug.errors import NotFoundError, OperatorAttributeError, OperatorImportError

__all__ = ["OperatorModule", "operator_attribute"]


class OperatorModule(ModuleType):
    """A module whose missing attributes are operators."""

    __getattribute__ = operator_or_attribute

    def __reduce__(self) -> tuple:
        """Return the pickled form: copies of functions that use the module have it as a global."""
        return importlib.import_module, (self.__name__,)


def operator_attribute(module: str, name: str) -> Operator:
    """Find an operator for a module's `__getattr__`, the caller.

    Raises
    ------
    AttributeError
        If the name is reserved by Python, or no operator has it.
    ImportError
        If no operator has it, in a `from ... import`, where Python replaces the text of an
        AttributeError.
    """
    if name.startswith("__"):
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    try:
        return find(name)
    except ValueError as error:  # of names that no operator can have
        text = f"module {module!r} has no attribute {name[:100]!r}"
        raise AttributeError(f"{text}: {str(error)[:200]}") from None
    except NotFoundError as error:
        user = sys._getframe(2)
        is_import = user.f_code.co_code[user.f_lasti] == opcode.opmap["IMPORT_FROM"]
        exception = OperatorImportError if is_import else OperatorAttributeError
        raise exception(str(error)) from None
