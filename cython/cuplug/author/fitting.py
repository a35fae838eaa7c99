# SPDX-License-Identifier: Apache-2.0
"""Whether arguments fit an operator's signature, as the core says before any entry runs."""

from __future__ import annotations

from typing import Any

from cuplug.call.operator import Operator

__all__ = ["misfit"]


def misfit(operator: Operator, arguments: dict[str, Any]) -> str:
    """Return the sentence by which the core refuses arguments; "" where they fit.

    No entry is run.
    """
    try:
        operator.infer(**arguments)
    except (TypeError, ValueError, IndexError, MemoryError) as error:
        return str(error)
    return ""
