# SPDX-License-Identifier: Apache-2.0
"""Reductions from expressions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from cuplug._engine.base.dtypes import DTYPES
from cuplug._engine.base.public import PublicCall, public
from cuplug._engine.base.validate import as_str_tuple, check_strings
from cuplug._engine.call.operator import Operator
from cuplug._engine.signature.short_form import add_parameters, expand
from cuplug._engine.signature.variant import Variant
from cuplug._source.compilers.host_compiler import EXPRESSION, compile_host
from cuplug._source.expressions.cuda_compiler import compile_cuda
from cuplug._source.expressions.definitions import define_reduction
from cuplug._source.expressions.element_wise import UNNAMED, expression_line
from cuplug._source.expressions.expression import nonblocking, read_names, unknown_name
from cuplug._source.expressions.reduction_code import Reduction as Code
from cuplug._source.expressions.reduction_loops import cuda_code, host_code

OWN = ("a", "b", "n")  # names in expressions: the combined values, and their number
FIELD_BYTES = 16  # limits for any reduction
SHORT = 32  # elements of rows that the host processes together


@public
def reduction(
    signature: str,
    *,
    reduce: str | None = None,
    choose: str | None = None,
    map: str | None = None,
    post: str | None = None,
    identity: str | None = None,
    accumulate: str | None = None,
    stop: str | None = None,
    preamble: str = "",
    doc: str = "",
    options: Sequence[str] = (),
) -> Operator:
    """Make a reduction from expressions in C, for the CPU and the GPU.

    Parameters
    ----------
    signature : str
        "norm(x: T) -> T", or with brackets. Several arrays broadcast. Parameters with defaults are
        numbers, as are parameters of a plain dtype next to arrays in brackets. Several outputs have
        names: "minmax(x: T) -> (low: T, high: T)".
    reduce : str
        The combination of two values: "a + b". It must be associative and commutative; the order is
        the same each time. Or
    choose : str
        Whether `b` replaces `a`: "b > a", false if both are equally good. One element is chosen,
        the first of the best; `a` is its value in `post`, `i` its number.
    map : str, optional
        Applied to each element first: "x * x". The default is the first array's element. The
        variable `i` is the element's number in C order among the reduced elements.
    post : str, optional
        Applied to the result: "sqrt(a)", or "a / n" with the number of elements.
    identity : str, optional
        The result for no elements: "0". If omitted, an empty reduction raises ValueError.
    accumulate : str, optional
        The dtype of `a` and `b`. The default is float32 for float16 and bfloat16, 64 bits for bool
        and integers, otherwise the output's dtype. Or several named values, "value: T, index:
        int64", which several outputs also are combined in. Expressions then assign them, "value =
        x; index = i", or choose: "b.value > a.value ? b : a".
    stop : str, optional
        True if no further value changes `a`: the CPU then does not read the rest. It is derived for
        "a || b" and "a && b".
    preamble, doc, options
        As for `elementwise`.

    Returns
    -------
    Operator
        Takes arrays, `axis` (a number, several, or None for all) and `keepdims`.

    Raises
    ------
    ValueError
        If the signature is wrong, or an expression has an unknown name; at a call, if `axis` is
        wrong.
    CompileError
        At a call, if an expression does not compile.

    Examples
    --------
    >>> norm = cuplug.reduction(
    ...     "norm(x: T) -> T", map="x * x", reduce="a + b", identity="0", post="sqrt(a)"
    ... )
    >>> norm(numpy.array([3.0, 4.0]))
    array(5.)
    """
    given = as_str_tuple("reduction", "options", options)
    optional = {"map": map, "post": post, "identity": identity, "accumulate": accumulate}
    one = {"choose": choose} if reduce is None and choose is not None else {"reduce": reduce}
    check_strings(
        "reduction",
        {"signature": signature, **one, "preamble": preamble, "doc": doc},
        optional | {"choose": choose, "stop": stop},
    )
    texts = (reduce, choose, map, post, identity, accumulate, stop, preamble)
    return _reduction(signature, texts, inspect.cleandoc(doc), given)


@cache
def _reduction(
    signature: str, texts: tuple[Any, ...], doc: str, options: tuple[str, ...]
) -> Operator:
    reduce, choose, map, post, identity, accumulate, stop, preamble = texts
    row, code = code_of_reduction(signature, texts)
    made = PublicCall(
        reduction,
        signature,
        **{"reduce": reduce, "choose": choose, "map": map, "post": post, "identity": identity},
        **{"accumulate": accumulate, "stop": stop, "preamble": preamble},
        **{"doc": doc, "options": options},
    )
    shown = expression_line(f"{code.post} of {choose or reduce} of {code.map}")
    return define_reduction(
        row,
        doc or shown,
        compiler(code, options),
        code.counts,
        len(code.outputs),
        FIELD_BYTES * max(1, len(code.fields)),
        identity is not None,
        SHORT,
        nonblocking(*texts),
        made,
    )


def code_of_reduction(signature: str, texts: Sequence[Any]) -> tuple[str, Code]:
    """Return the signature with brackets and all parameters, and the computation.

    `texts` are reduce, choose, map, post, identity, accumulate, stop and preamble.
    """
    reduce, choose, map, post, identity, accumulate, stop, preamble = texts
    row = add_parameters(expand(signature)[0], "axis: int[] = None, keepdims: bool = False")
    names = read_names(row, UNNAMED, ignored=("axis", "keepdims"))
    code = Code(
        names, map or "", reduce or "", post or "", identity, preamble, accumulate, stop, choose
    )
    check_names(code, signature)
    if reduce is not None and choose is not None:
        raise ValueError(f"{names.operator}: got reduce and choose, expected one of them")
    return row, with_defaults(code, map, post)


def with_defaults(op: Code, map: str | None, post: str | None) -> Code:
    """Return the reduction with the default texts: the first array, and the combined values."""
    first, fields = op.names.arrays[0].name, () if op.choose else op.fields
    mapped = "; ".join([f"{field} = {first}" for field in fields]) or first
    made_of = "; ".join([f"{x.name} = a.{x.name}" for x in op.outputs]) if fields else "a"
    return op._replace(map=map or mapped, post=post or made_of)


def check_names(op: Code, signature: str) -> None:
    """Check that each name has one meaning, and that there are elements to reduce."""
    names, operator = op.names, op.names.operator
    if any(x.kind == "inout" for x in names.outputs) or not op.inputs or not op.outputs:
        raise ValueError(f"{operator}: got {signature!r}, expected arrays and outputs")
    if not (op.choose or op.reduce).strip():
        raise ValueError(f"{operator}: reduce: got no expression, expected one")
    given = [x.name for x in (*names.arrays, *names.scalars)]
    if own := [name for name in given if name in OWN]:
        raise ValueError(f"{operator}: {own[0]}: the expressions use a, b and n themselves")
    try:
        fields = op.fields
    except ValueError as error:
        raise ValueError(f"{operator}: {error}") from None
    inputs = {x.name for x in (*op.inputs, *names.scalars)}
    if twice := [name for name in fields if name in inputs]:
        raise ValueError(f"{operator}: accumulate: {twice[0]}: got twice, expected another name")
    kinds = {*DTYPES, *(x.variable for x in names.arrays), ""}
    wanted = [op.accumulate] if op.accumulate and not fields else fields.values()
    if unknown := [kind for kind in wanted if kind not in kinds]:
        raise ValueError(f"{operator}: accumulate: got {unknown[0]!r}, expected a dtype")
    _check_texts(op)


def _check_texts(op: Code) -> None:
    """Check that the texts use known names; a preamble may define any."""
    if op.preamble:
        return
    names = [*op.names.words, *OWN, "i", *op.fields, *DTYPES]
    for what in ("map", "reduce", "choose", "post", "identity", "stop"):
        if word := unknown_name(getattr(op, what) or "", names):
            wanted = ", ".join([*[x.name for x in (*op.inputs, *op.names.scalars)], *OWN])
            raise ValueError(f"{op.names.operator}: {what}: got {word!r}, expected {wanted} or i")


def compiler(op: Code, options: tuple[str, ...]) -> Callable[[Variant], tuple[int, int]]:
    """Return the function that compiles the code of a variant."""

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
