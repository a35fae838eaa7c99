# SPDX-License-Identifier: Apache-2.0
"""Functions of rows as operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from cuplug._engine.base.public import PublicCall
from cuplug._engine.call.operator import Operator
from cuplug._engine.signature.variant import Variant
from cuplug._source.compilers.host_compiler import EXPRESSION, compile_host
from cuplug._source.expressions.cuda_compiler import compile_cuda
from cuplug._source.expressions.definitions import define_rows
from cuplug._source.fusion.rows import Rows, rows_of
from cuplug._source.fusion.rows_code import Rowwise
from cuplug._source.fusion.rows_program import program_of
from cuplug._source.fusion.symbol import Symbol


class RowStep:
    """One operator that computes all results of a function, row by row.

    Attributes
    ----------
    arrays, numbers, bounded, fixed
        As of `Step`.
    call : Operator
    """

    def __init__(self, name: str, rows: Rows) -> None:
        self.arrays, self.numbers = rows.arrays, rows.numbers
        self.fixed: dict[str, object] = {}
        self._read = {frozenset(x.given for x in rows.read_by(each)) for each in rows.results}
        code = Rowwise(name, rows, program_of(rows, True), program_of(rows, False))
        self.bounded = code.keeping.bounded
        has_identity = not any(
            x.given[0] in ("max", "min") for phase in rows.phases for x in phase.reduced
        )
        self.call: Operator = define_rows(
            rows.signatures(name),
            f"{name}, fused.",
            _compiler(code),
            len(rows.results),
            has_identity,
            PublicCall(_refuse, name),
        )

    def has_one_shape(self, args: Sequence[Any]) -> bool:
        """Say whether all results have the same rows, which depend on different arguments."""
        if len(self._read) == 1:
            return True
        return (
            len(
                {
                    np.broadcast_shapes(*(tuple(args[k].shape)[:-1] for k in read))
                    for read in self._read
                }
            )
            == 1
        )


def row_step(name: str, results: Sequence[Symbol]) -> RowStep | None:
    """Return the operator of results that are computed row by row; None: they are not."""
    rows = rows_of(results)
    return None if rows is None else RowStep(name, rows)


def _refuse(name: str) -> NoReturn:
    raise TypeError(f"{name}: got an operator inside of a fused function; pickle the function")


def _compiler(code: Rowwise) -> Callable[[Variant], tuple[int, int]]:
    def compile_variant(variant: Variant) -> tuple[int, int]:
        text, name = code.code(variant), code.name
        texts = {f"{name} preamble": ""}
        if variant.on_host:
            return compile_host(text, "cuplug_function", texts, EXPRESSION), 0
        return compile_cuda(text, ["cuplug_kernel"], variant.device, name, texts, ())[0], 0

    return compile_variant
