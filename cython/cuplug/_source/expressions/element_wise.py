# SPDX-License-Identifier: Apache-2.0
"""Element-wise operators from an expression."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import cache

from cuplug._engine.base.public import PublicCall, public
from cuplug._engine.base.validate import as_str_tuple, check_strings
from cuplug._engine.call.operator import Operator
from cuplug._engine.signature import signature as signatures
from cuplug._engine.signature.formula import Scope, Term, read_scope
from cuplug._engine.signature.short_form import expand
from cuplug._engine.signature.steps import COUNT
from cuplug._engine.signature.steps import SIZE as SIZE_STEP
from cuplug._engine.signature.variant import Variant
from cuplug._source.compilers.host_compiler import EXPRESSION, compile_host
from cuplug._source.expressions.cuda_compiler import compile_cuda
from cuplug._source.expressions.definitions import define_elementwise
from cuplug._source.expressions.element_wise_code import OF_BITS, OF_GROUPS, SIZE, Elementwise
from cuplug._source.expressions.element_wise_loops import cuda_code, host_code
from cuplug._source.expressions.expression import Names, nonblocking, read_names, uses

UNNAMED = "cuplug_value"  # the name of an unnamed output in generated code


@public
def elementwise(
    signature: str,
    expression: str,
    *,
    preamble: str = "",
    doc: str = "",
    options: Sequence[str] = (),
) -> Operator:
    """Make an element-wise operator from an expression in C, for the CPU and the GPU.

    It is compiled at the first call with each combination of dtypes, and cached on disk.

    Parameters
    ----------
    signature : str
        "leaky_relu(x: T, slope: T) -> T": each parameter is an array or a number, and arrays
        broadcast. Or with brackets, for arrays only: "axpy(a: T, x: T[...], y: T[...]) -> T[...]";
        inputs of other dimensions, "w: T[k]", are read at any index, "w[0]". Without arrays:
        "arange(n: int) -> float32[n]".
    expression : str
        The value of the single output, "x > 0 ? x : slope * x". If outputs have names, or arrays
        are changed in place: statements that assign them, "y = 2 * x; z = y + 1". The variable `i`
        is the number of the element in C order, `n` is the number of elements. Names of dimensions,
        and `size(x)` and `size(x, -1)`, are sizes.
    preamble : str, optional
        Functions that the expression uses: "__device__ T half(T x) { return x / 2; }".
    doc : str, optional
        The documentation, one line.
    options : sequence of str, optional
        More options for NVRTC.

    Returns
    -------
    Operator
        The same object for the same source.

    Raises
    ------
    ValueError
        If the signature is wrong.
    CompileError
        At a call, if the expression does not compile.

    Examples
    --------
    >>> leaky_relu = cuplug.elementwise("leaky_relu(x: T, slope: T) -> T", "x > 0 ? x : slope * x")
    >>> leaky_relu(numpy.array([-2.0, 3.0]), 0.1)
    array([-0.2,  3. ])
    """
    given = as_str_tuple("elementwise", "options", options)
    check_strings(
        "elementwise",
        {"signature": signature, "expression": expression, "preamble": preamble, "doc": doc},
    )
    return _elementwise(signature, expression, preamble, inspect.cleandoc(doc), given)


@cache
def _elementwise(
    signature: str, expression: str, preamble: str, doc: str, options: tuple[str, ...]
) -> Operator:
    rows = expand(signature)
    ops = [_read(row, expression, preamble) for row in rows]
    made = PublicCall(
        elementwise, signature, expression, preamble=preamble, doc=doc, options=options
    )
    overloads = [
        (row, _compiler(op, options), op.raw, list(op.sizes.values()), op.work)
        for row, op in zip(rows, ops, strict=True)
    ]
    doc = doc or expression_line(expression)
    counts = any(op.counts for op in ops)
    is_whole = counts or any(map(_uses_loop_sizes, ops, map(signatures.parse, rows)))
    is_short = nonblocking(expression, preamble)
    return define_elementwise(overloads, doc, counts, is_whole, is_short, made)


def expression_line(text: str) -> str:
    """Return a doc line that shows an expression."""
    return " ".join(text.split())


def _read(row: str, expression: str, preamble: str) -> Elementwise:
    names = read_names(row, UNNAMED, takes_raw=True)
    if not names.outputs:
        raise ValueError(f"{names.operator}: got no output, expected one or an inout array")
    if not expression.strip():
        raise ValueError(f"{names.operator}: expression: got no text, expected one")
    is_value = [x.name for x in names.outputs] == [UNNAMED]
    sizes = _sizes(read_scope(signatures.parse(row)), names, expression)
    return Elementwise(names, expression, is_value, preamble, sizes)


def _sizes(scope: Scope, names: Names, expression: str) -> dict[str, Term]:
    """Return the sizes in an expression, as it spells them: "n", "size(x, 0)"."""
    inputs = [x for x in scope.signature.parameters if not x.has_default]
    texts = [
        name
        for k, name in enumerate(scope.signature.dim_names)
        if uses(expression, name) and any(("named", k) in x.dims for x in inputs)
    ]
    found = SIZE.finditer(expression) if "size" not in names.words else ()
    texts += dict.fromkeys(each[0] for each in found if each[1] in scope.arrays)
    where = f"{names.operator}: expression"
    return {text: scope.number(text, where) for text in texts}


def _uses_loop_sizes(op: Elementwise, signature: signatures.Signature) -> bool:
    """Return whether the expression uses sizes of loop dimensions, which may be split."""
    steps = [step for size in op.sizes.values() for step in size.steps]
    numbers = {at for kind, at, _ in steps if kind in (SIZE_STEP, COUNT)}
    return any(("loop", 0) in x.dims for k, x in enumerate(signature.arrays) if k in numbers)


def _compiler(op: Elementwise, options: tuple[str, ...]) -> Callable[[Variant], tuple[int, int]]:
    texts = {op.names.operator: op.text, f"{op.names.operator} preamble": op.preamble}

    def compile_variant(variant: Variant) -> tuple[int, int]:
        if variant.on_host:
            bits = op.of_bits(variant)
            code = host_code(*(bits or (op, variant)))
            wants = OF_BITS if bits or op.converts(variant) else 0
            wants |= OF_GROUPS if not bits and op.wants_groups(variant) else 0
            return compile_host(code, "cuplug_function", texts, EXPRESSION), wants
        name = op.names.operator
        code = cuda_code(op, variant)
        functions = compile_cuda(code, ["cuplug_kernel"], variant.device, name, texts, options)
        return functions[0], 0

    return compile_variant
