# SPDX-License-Identifier: Apache-2.0
"""Functions of rows as operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

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

_operators: dict[Any, Operator] = {}  # by their code; they live until the process exits


class RowStep:
    """One operator that computes all results of a function, row by row.

    Attributes
    ----------
    arrays, numbers, bounded, fixed
        As in `Step`.
    call : Operator
    """

    def __init__(self, name: str, rows: Rows) -> None:
        self.arrays, self.numbers = rows.arrays, rows.numbers
        self.fixed: dict[str, object] = {}
        self._read = {frozenset(x.given for x in rows.read_by(each)) for each in rows.results}
        code = Rowwise(name, rows, program_of(rows, True), program_of(rows, False))
        self.bounded = code.keeping.bounded
        self.call = _operator_of(code)

    def has_one_shape(self, args: Sequence[Any]) -> bool:
        """Return whether all results have the same rows and depend on different arguments."""
        if len(self._read) == 1:
            return True
        shapes = {
            np.broadcast_shapes(*(tuple(args[k].shape)[:-1] for k in read)) for read in self._read
        }
        return len(shapes) == 1


def row_step(name: str, results: Sequence[Symbol]) -> RowStep | None:
    """Return the operator that computes results row by row; None if they cannot be."""
    rows = rows_of(results)
    return None if rows is None else RowStep(name, rows)


def row_operator(name: str, results: Sequence[Symbol]) -> Operator:
    """Return the operator that computes results row by row.

    Pickles refer to it by these results.
    """
    step = row_step(name, results)
    assert step is not None
    return step.call


def _operator_of(code: Rowwise) -> Operator:
    signatures = code.rows.signatures(code.name)
    dtypes = [x.type.name for x in code.rows.arrays] + [x.dtype.name for x in code.rows.results]
    key = (*signatures, code.code(Variant(device=-1, types=tuple(dtypes))))
    if key not in _operators:
        reduced = [x.given[0] for phase in code.rows.phases for x in phase.reduced]
        _operators[key] = define_rows(
            signatures,
            f"{code.name}, fused.",
            _compiler(code),
            len(code.rows.results),
            not {*reduced} & {"max", "min"},
            PublicCall(row_operator, code.name, code.rows.results),
        )
    return _operators[key]


def _compiler(code: Rowwise) -> Callable[[Variant], tuple[int, int]]:
    def compile_variant(variant: Variant) -> tuple[int, int]:
        text, name = code.code(variant), code.name
        texts = {f"{name} preamble": ""}
        if variant.on_host:
            return compile_host(text, "cuplug_function", texts, EXPRESSION), 0
        return compile_cuda(text, ["cuplug_kernel"], variant.device, name, texts, ())[0], 0

    return compile_variant
