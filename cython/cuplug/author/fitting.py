# SPDX-License-Identifier: Apache-2.0
"""Whether arguments fit an operator's signature, as the core says before any entry runs."""

from __future__ import annotations

from typing import Any

from cuplug.call.operator import Operator

__all__ = ["misfit"]


class _FitsError(Exception):
    """The arguments fit: the call has come to the question where it is to run."""


class _Nowhere:
    """A device that no call runs on; which one is meant is asked once the arguments fit."""

    @property
    def type(self) -> str:
        raise _FitsError


def misfit(operator: Operator, arguments: dict[str, Any]) -> str:
    """Return the sentence by which the core refuses arguments; "" where they fit.

    No entry is run.
    """
    try:
        operator(**arguments, device=_Nowhere())
    except _FitsError:
        return ""
    except (TypeError, ValueError, IndexError, MemoryError) as error:
        return str(error)
    raise AssertionError("a call ran nowhere")
