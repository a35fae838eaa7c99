# SPDX-License-Identifier: Apache-2.0
"""Reductions from expressions."""

from __future__ import annotations

import inspect
import operator as operators
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from cuplug.base.checks import check_texts, texts_of
from cuplug.base.dtypes import DTYPES
from cuplug.base.public import PublicCall, public
from cuplug.call.operator import Operator
from cuplug.compilers.host_compiler import EXPRESSION, compile_host
from cuplug.signature.short_form import add_parameters, expand
from cuplug.signature.variant import Variant
from cuplug.source.cuda_compiler import compile_cuda
from cuplug.source.definitions import define_reduction
from cuplug.source.element_wise import UNNAMED, expression_line
from cuplug.source.expression import read_names
from cuplug.source.reduction_code import Reduction as Code
from cuplug.source.reduction_code import cuda_code, host_code

OWN = ("a", "b", "n")  # what expressions call the values put together, and their number
ACCUMULATOR_BYTES = 16  # room for any


@public
class Reduction:
    """An operator that reduces axes: called like NumPy's `sum`.

    `operator` is the `Operator` behind it, whose argument `axis` is text.
    """

    def __init__(self, operator: Operator) -> None:
        self.operator = operator
        self.__name__ = self.__qualname__ = operator.name
        self.__doc__ = operator.__doc__

    def __call__(
        self,
        *arrays: Any,
        axis: int | tuple[int, ...] | None = None,
        keepdims: bool = False,
        **keywords: Any,
    ) -> Any:
        """Reduce arrays along `axis`: a number, a tuple of them, or None for all.

        With `keepdims` the output has the reduced dimensions with size 1. Other keywords are those
        of the signature, `out` and `device`.
        """
        try:
            text = _axis_text(axis)
        except TypeError:
            wanted = "an int, a tuple of them or None"
            raise TypeError(f"{self.__name__}: axis: seen {axis!r}, wanted {wanted}") from None
        return self.operator(*arrays, axis=text, keepdims=keepdims, **keywords)

    def __repr__(self) -> str:
        return repr(self.operator).replace("<operator", "<reduction", 1)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reduction) and self.operator == other.operator

    def __hash__(self) -> int:
        return hash(self.operator)

    def __reduce__(self) -> tuple[Any, ...]:
        return Reduction, (self.operator,)


def _axis_text(axis: Any) -> str:
    if axis is None:
        return "all"
    numbers = axis if isinstance(axis, tuple) else (axis,)
    return ",".join([str(operators.index(number)) for number in numbers])


@public
def reduction(
    signature: str,
    *,
    reduce: str,
    map: str | None = None,
    post: str = "a",
    identity: str | None = None,
    accumulate: str | None = None,
    preamble: str = "",
    doc: str = "",
    options: Sequence[str] = (),
) -> Reduction:
    """Make a reduction of expressions in C, for the CPU and the GPU.

    Parameters
    ----------
    signature : str
        "norm(x: T) -> T", or with brackets. Several arrays broadcast; parameters with defaults and
        those of dtypes beside arrays in brackets are numbers.
    reduce : str
        Two values put together: "a + b". It must be associative; the order is the same each time.
    map : str, optional
        What is made of each element first: "x * x". The first array's element without.
    post : str, optional
        What is made of the value in the end: "sqrt(a)", or "a / n" with the number of elements.
    identity : str, optional
        The value of nothing: "0". Without, reducing nothing is an error.
    accumulate : str, optional
        The dtype of `a` and `b`. Without: float32 for float16 and bfloat16, 64 bits for bool and
        integers, else that of the output.
    preamble, doc, options
        As for `elementwise`.

    Returns
    -------
    Reduction
        Called with arrays, `axis` and `keepdims`.

    Raises
    ------
    ValueError
        The signature is wrong; at a call: `axis` is.
    CompileError
        At a call: an expression does not compile.
    """
    given = texts_of("reduction", "options", options)
    check_texts(
        "reduction",
        {"signature": signature, "reduce": reduce, "post": post, "preamble": preamble, "doc": doc},
        {"map": map, "identity": identity, "accumulate": accumulate},
    )
    texts = (reduce, map, post, identity, accumulate, preamble)
    return Reduction(_reduction(signature, texts, inspect.cleandoc(doc), given))


@cache
def _reduction(
    signature: str, texts: tuple[Any, ...], doc: str, options: tuple[str, ...]
) -> Operator:
    reduce, map, post, identity, accumulate, preamble = texts
    row = _row(signature)
    names = read_names(row, UNNAMED, ignored=("axis", "keepdims"))
    if [x.kind for x in names.outputs] != ["output"] or len(names.arrays) < 2:
        raise ValueError(f"{names.operator}: seen {signature!r}, wanted arrays and one output")
    if own := [x.name for x in (*names.arrays, *names.scalars) if x.name in OWN]:
        raise ValueError(f"{names.operator}: {own[0]}: the expressions use a, b and n themselves")
    if accumulate is not None and accumulate not in DTYPES:
        raise ValueError(f"{names.operator}: accumulate: seen {accumulate!r}, wanted a dtype")
    code = Code(names, map or names.arrays[0].name, reduce, post, identity, preamble, accumulate)
    again = PublicCall(
        reduction,
        signature,
        **{"reduce": reduce, "map": map, "post": post, "identity": identity},
        **{"accumulate": accumulate, "preamble": preamble, "doc": doc, "options": options},
    )
    made = PublicCall(getattr, again, "operator")
    compiler = _compiler(code, options)
    shown = expression_line(f"{code.post} of {code.reduce} of {code.map}")
    return define_reduction(
        row, doc or shown, compiler, ACCUMULATOR_BYTES, identity is not None, made
    )


def _row(signature: str) -> str:
    """Return the signature with brackets and the parameters of reductions."""
    arrays = expand(signature)[0]
    return add_parameters(arrays, 'axis: str = "all", keepdims: bool = False')


def _compiler(op: Code, options: tuple[str, ...]) -> Callable[[Variant], tuple[int, int]]:
    def compile_variant(variant: Variant) -> tuple[int, int]:
        if variant.on_host:
            code = host_code(op, variant)
            return compile_host(code, "cuplug_function", op.texts(), EXPRESSION), 0
        name = op.names.operator
        code = cuda_code(op, variant)
        symbols = ["cuplug_kernel", "cuplug_finish"]
        kernel, finish = compile_cuda(code, symbols, variant.device, name, op.texts(), options)
        return kernel, finish

    return compile_variant
