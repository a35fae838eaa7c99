# SPDX-License-Identifier: Apache-2.0
"""Scans from expressions: running sums and similar operations."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from functools import cache
from typing import Any

from cuplug._engine.base.public import PublicCall, public
from cuplug._engine.base.validate import as_str_tuple, check_strings
from cuplug._engine.call.operator import Operator
from cuplug._engine.signature.short_form import add_parameters, expand
from cuplug._source.expressions.definitions import define_scan
from cuplug._source.expressions.element_wise import UNNAMED, expression_line
from cuplug._source.expressions.expression import read_names
from cuplug._source.expressions.reduction_code import Reduction as Code
from cuplug._source.expressions.reductions import FIELD_BYTES, check_names, compiler, with_defaults


@public
def scan(
    signature: str,
    *,
    reduce: str,
    map: str | None = None,
    post: str | None = None,
    identity: str | None = None,
    exclusive: bool = False,
    accumulate: str | None = None,
    preamble: str = "",
    doc: str = "",
    options: Sequence[str] = (),
) -> Operator:
    """Make a scan from expressions in C, for the CPU and the GPU: outputs have the inputs' shape.

    Parameters
    ----------
    signature : str
        "running(x: T) -> T", with the same options as for `reduction`.
    reduce : str
        The combination of two values: "a + b", where `a` precedes `b`. It must be associative.
    map, accumulate : str, optional
        As for `reduction`. The variable `i` is the number of the element along the axis.
    post : str, optional
        Applied to each value: "a / n" with the number of elements that it combines.
    identity : str, optional
        The value before the first element: required with `exclusive`.
    exclusive : bool
        If True, an output combines only the elements before it, without its own.
    preamble, doc, options
        As for `elementwise`.

    Returns
    -------
    Operator
        Takes arrays and `axis`, a number; the default is the last axis.

    Raises
    ------
    ValueError
        If the signature is wrong, or an expression has an unknown name; at a call, if `axis` is
        wrong.
    CompileError
        At a call, if an expression does not compile.

    Examples
    --------
    >>> running = cuplug.scan("running(x: T) -> T", reduce="a + b")
    >>> running(numpy.array([1, 2, 3]))
    array([1, 3, 6])
    """
    given = as_str_tuple("scan", "options", options)
    check_strings(
        "scan",
        {"signature": signature, "reduce": reduce, "preamble": preamble, "doc": doc},
        {"map": map, "post": post, "identity": identity, "accumulate": accumulate},
    )
    texts = (reduce, map, post, identity, accumulate, preamble)
    return _scan(signature, texts, bool(exclusive), inspect.cleandoc(doc), given)


@cache
def _scan(
    signature: str, texts: tuple[Any, ...], exclusive: bool, doc: str, options: tuple[str, ...]
) -> Operator:
    reduce, map, post, identity, accumulate, preamble = texts
    row, code = code_of_scan(signature, texts, exclusive)
    made = PublicCall(
        scan,
        signature,
        **{"reduce": reduce, "map": map, "post": post, "identity": identity},
        **{"exclusive": exclusive, "accumulate": accumulate, "preamble": preamble},
        **{"doc": doc, "options": options},
    )
    shown = expression_line(f"{code.post} of {reduce} of {code.map}, on the way")
    n_bytes = FIELD_BYTES * max(1, len(code.fields))
    return define_scan(row, doc or shown, compiler(code, options), len(code.outputs), n_bytes, made)


def code_of_scan(signature: str, texts: Sequence[Any], exclusive: bool) -> tuple[str, Code]:
    """Return the signature with brackets and all parameters, and the computation.

    `texts` are reduce, map, post, identity, accumulate and preamble.
    """
    reduce, map, post, identity, accumulate, preamble = texts
    row = add_parameters(expand(signature)[0], "axis: int = -1")
    names = read_names(row, UNNAMED, ignored=("axis",))
    given = Code(names, map or "", reduce, post or "", identity, preamble, accumulate, None)
    check_names(given, signature)
    if exclusive and identity is None:
        raise ValueError(f"{names.operator}: exclusive: got no identity, expected the first result")
    return row, with_defaults(given, map, post)._replace(exclusive=exclusive)
