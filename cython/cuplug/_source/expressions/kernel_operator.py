# SPDX-License-Identifier: Apache-2.0
"""Operators from source: a kernel for the GPU, a function for the CPU."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from cuplug._engine.base import flags
from cuplug._engine.base.public import PublicCall, public
from cuplug._engine.base.validate import as_str_tuple, check_strings
from cuplug._engine.call.operator import Operator
from cuplug._engine.signature import formula
from cuplug._engine.signature import signature as signatures
from cuplug._engine.signature.variant import Variant
from cuplug._source.compilers.host_compiler import LIBRARY_OPTIONS, compile_host
from cuplug._source.compilers.host_types import types_of
from cuplug._source.compilers.jit import compile_to_binary
from cuplug._source.compilers.program import architecture_of
from cuplug._source.expressions.cuda_compiler import OPTIONS
from cuplug._source.expressions.definitions import (
    MAX_PASSES,
    define_function,
    load_functions,
    make_plan,
)
from cuplug._source.expressions.kernel_arguments import Target, check_arguments
from cuplug._source.expressions.plan import Plan, check_returned, cuda_text, host_call, host_text

BLOCK = 256
SHARED = ("-D", "-I", "-U")  # every compiler accepts these
Sizes = str | int | tuple[str | int, ...] | None


@public
def operator(
    signature: str,
    *,
    arguments: str,
    cuda: str | None = None,
    host: str | None = None,
    kernel: str | None = None,
    function: str | None = None,
    threads: str | int | None = None,
    grid: Sizes = None,
    block: Sizes = BLOCK,
    shared: str | int = 0,
    doc: str = "",
    options: Sequence[str] = (),
) -> Operator:
    """Make an operator from a kernel in CUDA C++, a function in C, or both.

    Both are compiled at the first call with each combination of dtypes, and cached on disk. Type
    variables of the signature are types in the source.

    Parameters
    ----------
    signature : str
        As in a plugin: "gather(x: T[n], index: int64[m]) -> y: T[m] where T: any".
    arguments : str
        The arguments of the kernel and of the function, in order: "x, index, y, n, m, fault". Names
        are arrays (pointers), scalars, dimensions (64 bits, or the type that the kernel declares),
        `fault` (for `cuplug_fault_index`), `call` (only in the function, for `cuplug_parallel` and
        `cuplug_fail`); numbers are computed by + - * // %, min, max, size(x).
    cuda, host : str
        The sources.
    kernel, function : str, optional
        Their names, "scale<T>" for a template; the default is the operator's name.
    threads : str or int
        The number of threads, "n * m", in blocks of `block`. Or
    grid, block : str, int or tuple
        The number of blocks, and of threads in each: ("(n + 31) // 32", "m"), (32, 8).
    shared : str or int, optional
        The bytes of shared memory of a block.
    doc : str, optional
        The documentation, one line.
    options : sequence of str, optional
        More options for the compilers. `-l`, `-L` and `-Wl,` are for the host's linker, and `-D`,
        `-I` and `-U` for both compilers. Others are for NVRTC if `cuda` is given, else for the
        host's compiler.

    Returns
    -------
    Operator
        The same object for the same source.

    Raises
    ------
    ValueError
        If the signature, the arguments or the grid are wrong.
    CompileError
        At a call, if a source does not compile, or is missing for the device of the call.

    Examples
    --------
    >>> twice = cuplug.operator(
    ...     "twice(x: float32[n]) -> y: float32[n]",
    ...     arguments="x, y, n",
    ...     host="int twice(const float *x, float *y, int64_t n)"
    ...     "{ for (int64_t i = 0; i < n; i++) y[i] = 2 * x[i]; return 0; }",
    ... )
    >>> twice(numpy.ones(2, "float32"))
    array([2., 2.], dtype=float32)
    """
    check_strings(
        "operator",
        {"signature": signature, "arguments": arguments, "doc": doc},
        {"cuda": cuda, "host": host, "kernel": kernel, "function": function},
    )
    sizes = (threads, _sizes(grid), _sizes(block) or (str(BLOCK),), str(shared))
    texts = (arguments, cuda, host, kernel, function)
    given = as_str_tuple("operator", "options", options)
    return _operator(signature, texts, sizes, inspect.cleandoc(doc), given)


def _sizes(given: Sizes) -> tuple[str, ...]:
    if given is None:
        return ()
    return tuple(str(size) for size in given) if isinstance(given, tuple) else (str(given),)


@cache
def _operator(
    signature: str,
    texts: tuple[Any, ...],
    sizes: tuple[Any, ...],
    doc: str,
    options: tuple[str, ...],
) -> Operator:
    arguments, cuda, host, kernel, function = texts
    threads, grid, block, shared = sizes
    scope = formula.read_scope(signatures.parse(signature))
    name = scope.signature.name
    if cuda is None and host is None:
        raise ValueError(f"{name}: got no source, expected cuda, host or both")
    if cuda is not None and (threads is None) == (not grid):
        raise ValueError(
            f"{name}: got {'both threads and grid' if grid else 'no threads or grid'}, expected one"
        )
    plan = Plan(
        *(scope, arguments, cuda, host, kernel or name, function or name),
        *(
            grid if threads is None else (str(threads),),
            block,
            shared,
            threads is not None,
            options,
        ),
    )
    _check(plan)
    made = PublicCall(
        operator,
        signature,
        **{"arguments": arguments, "cuda": cuda, "host": host},
        **{"kernel": kernel, "function": function, "threads": threads},
        **{"grid": grid, "block": block, "shared": shared, "doc": doc, "options": options},
    )
    compile_host_variant = None if host is None else _host_compiler(plan)
    compile_cuda_variant = None if cuda is None else _cuda_compiler(plan)
    return define_function(signature, doc, compile_host_variant, compile_cuda_variant, made)


def _check(plan: Plan) -> None:
    """Check that every formula can be evaluated, before any call."""
    for what, texts in (("grid", plan.grid), ("block", plan.block), ("shared", (plan.shared,))):
        if len(texts) > 3:
            raise ValueError(f"{plan.name}: {what}: got {len(texts)} sizes, expected at most 3")
        for text in texts:
            _term(plan, text, what)
    terms = plan.terms
    check_arguments(terms, plan.scope, plan.name, MAX_PASSES)
    if plan.host is not None and all(x.text != "call" for x in terms):
        _check_loops(plan, terms)
    if plan.cuda is not None:
        _check_loops(plan, [*terms, *(_term(plan, text, "grid") for text in plan.grid)])


def _check_loops(plan: Plan, told: Sequence[formula.Term]) -> None:
    """Check that a function knows the number of its rows, since one call processes all of them."""
    looped = [x for x in plan.scope.signature.arrays if formula.n_behind_loops(x) is not None]
    is_written = any(x.kind in ("inout", "output") for x in looped)
    if is_written and not formula.counts_loops(told, plan.scope):
        raise ValueError(
            f"{plan.name}: arguments: got none that says how many elements {looped[0].name} has, "
            f"expected size({looped[0].name}) among them: the loop dimensions (...) may be any"
        )


def _term(plan: Plan, text: str, what: str) -> formula.Term:
    return plan.scope.number(text, f"{plan.name}: {what}")


def _starting(options: Sequence[str], *starts: str) -> tuple[str, ...]:
    return tuple(option for option in options if option.startswith(starts))


def _host_compiler(plan: Plan) -> Callable[[Variant], tuple[int, int]]:
    options = (
        plan.options if plan.cuda is None else _starting(plan.options, *LIBRARY_OPTIONS, *SHARED)
    )
    include = (f"-I{flags.get_include()}", *options)
    name = f"{plan.name} host"
    texts = {name: plan.host or ""}

    def compile_variant(variant: Variant) -> tuple[int, int]:
        variables, dtypes = plan.dtypes(variant)
        code = host_text(plan, variables, name)
        returned, *codes = types_of(code, plan.function, texts, include)
        check_returned(plan, returned)
        passes = Target(plan.name, plan.function, True, plan.scope, dtypes).match(plan.terms, codes)
        code += host_call(plan, passes, dtypes, returned)
        function = compile_host(code, "cuplug_function", texts, include)
        return function, make_plan([], [], None, passes, False)

    return compile_variant


def _cuda_compiler(plan: Plan) -> Callable[[Variant], tuple[int, int]]:
    name = f"{plan.name} cuda"

    def compile_variant(variant: Variant) -> tuple[int, int]:
        variables, dtypes = plan.dtypes(variant)
        binary = compile_to_binary(
            cuda_text(plan, variables, name),
            names=[plan.kernel],
            options=[*OPTIONS, *(x for x in plan.options if not x.startswith(LIBRARY_OPTIONS))],
            architecture=architecture_of(variant.device),
            name=f"{plan.name}.cu",
            headers={name: plan.cuda or ""},
        )
        target = Target(plan.name, plan.kernel, False, plan.scope, dtypes)
        passes = target.match(plan.terms, binary.types[plan.kernel])
        symbol = binary.lowered[plan.kernel]
        function = load_functions(binary.image, plan.name, [symbol], variant.device)[0]
        grid = [_term(plan, text, "threads" if plan.per_thread else "grid") for text in plan.grid]
        block = [_term(plan, text, "block") for text in plan.block]
        shared = _term(plan, plan.shared, "shared")
        return function, make_plan(grid, block, shared, passes, plan.per_thread)

    return compile_variant
