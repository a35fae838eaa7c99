# SPDX-License-Identifier: Apache-2.0
"""Which overload a call by name is of, where overloads give names to other places.

Calls of operators whose overloads agree, and calls by position, are of the first that fits: that is
asked when the program is traced, and again when it runs.
"""

from __future__ import annotations

from typing import Any

import jax

from cuplug.call.operator import Operator
from cuplug.frameworks.jax_arguments import Call, read_call, read_values, rows_of, texts_of
from cuplug.frameworks.jax_shapes import infer
from cuplug.signature.call_signature import are_alike, by_name

__all__ = ["read"]


def read(
    operator: Operator, args: tuple[Any, ...], keywords: dict[str, Any]
) -> tuple[Call, list[Any]]:
    """Return what a call is, and its operands.

    Raises
    ------
    TypeError, ValueError
        No overload takes the arguments under these names.
    """
    if not keywords or are_alike(texts_of(operator)):
        return read_call(operator, args, keywords)
    error: Exception | None = None
    for row, signature in enumerate(rows_of(operator)):
        given = by_name(signature, args, keywords)
        if given is None:
            continue
        try:
            call, operands = read_values(operator, row, given)
            infer(call, [jax.typeof(x) for x in operands])
        except (TypeError, ValueError) as refusal:
            error = error or refusal
        else:
            return call, operands
    if error is not None:
        raise error
    return read_call(operator, args, keywords)  # it says what is wrong, or that nothing takes them
