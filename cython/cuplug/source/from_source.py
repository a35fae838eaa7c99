# SPDX-License-Identifier: Apache-2.0
"""Whole operators from source: a kernel for the GPU, a function for the CPU."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from cuplug.base import flags
from cuplug.base.checks import check_texts, texts_of
from cuplug.base.dtypes import DTYPES, Dtype
from cuplug.base.public import PublicCall, public
from cuplug.call.operator import Operator
from cuplug.compilers import kernel_types
from cuplug.compilers.host_compiler import compile_host
from cuplug.compilers.jit import compile_to_binary
from cuplug.compilers.program import architecture_of
from cuplug.signature import formula
from cuplug.signature import signature as signatures
from cuplug.signature.variant import Variant
from cuplug.source.cuda_compiler import OPTIONS
from cuplug.source.definitions import define_function, load_functions, make_plan

BLOCK = 256
Sizes = str | int | tuple[str | int, ...] | None

_HOST_HEAD = """#include <cuplug/fault.h>
#include <cuplug/format.h>
typedef float _Complex complex64_t;
typedef double _Complex complex128_t;
static __attribute__((unused)) void cuplug_fault_index(cuplug_fault *fault, uint32_t tensor,
    int64_t position, int64_t value, int64_t low, int64_t high) {
  if (__atomic_exchange_n(&fault->claimed, 1u, __ATOMIC_RELAXED)) return;
  fault->tensor = tensor, fault->position = position, fault->value = value;
  fault->low = low, fault->high = high;
  __atomic_store_n(&fault->status, CUPLUG_ERROR_INDEX, __ATOMIC_RELEASE);
}
"""

_CUDA_HEAD = """
typedef long cuplug_int64;
struct cuplug_fault {
  unsigned claimed;
  int status;
  unsigned tensor, reserved;
  cuplug_int64 position, value, low, high;
  unsigned *summary;
  cuplug_int64 reserved_tail;
};
__device__ inline void cuplug_fault_index(cuplug_fault *fault, unsigned tensor,
    cuplug_int64 position, cuplug_int64 value, cuplug_int64 low, cuplug_int64 high) {
  if (atomicCAS(&fault->claimed, 0u, 1u) != 0u) return;
  fault->tensor = tensor, fault->position = position, fault->value = value;
  fault->low = low, fault->high = high;
  __threadfence_system();
  *(volatile int *)&fault->status = 300;
  *(volatile unsigned *)fault->summary = 1u;
}
"""


@dataclass(frozen=True)
class Plan:
    """What an operator is made of."""

    scope: formula.Scope
    arguments: str
    cuda: str | None
    host: str | None
    kernel: str
    function: str
    grid: tuple[str, ...]
    block: tuple[str, ...]
    shared: str
    per_thread: bool
    options: tuple[str, ...]

    @property
    def name(self) -> str:
        """The operator's name."""
        return self.scope.signature.name

    def dtypes(self, variant: Variant) -> tuple[dict[str, Dtype], dict[str, Dtype]]:
        """Return the dtype of each type variable, and of each array and scalar."""
        signature = self.scope.signature
        of_arrays = [DTYPES[dtype] for dtype in variant.types]
        own = dict(zip([x.type_variable for x in signature.arrays], of_arrays, strict=True))
        by_name = {}
        for x in (*signature.parameters, *signature.outputs):
            if x.type_variable >= 0:
                fixed = signature.variables[x.type_variable][1]
                by_name[x.name] = own.get(x.type_variable, DTYPES[fixed[0]])
        variables = {signature.variables[k][0]: dtype for k, dtype in own.items()}
        return {name: dtype for name, dtype in variables.items() if name}, by_name


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
    """Make an operator of a kernel in CUDA C++, a function in C, or both.

    They are compiled at the first call with each combination of dtypes, and kept on disk. Type
    variables of the signature are types in the source.

    Parameters
    ----------
    signature : str
        As in a plugin: "gather(x: T[n], index: int64[m]) -> y: T[m] where T: any".
    arguments : str
        What the kernel and the function are given, in their order: "x, index, y, n, m, fault".
        Names are arrays (pointers), scalars, dimensions (64 bits, or what the kernel declares),
        `fault` (for `cuplug_fault_index`); numbers are worked out by + - * // %, min, max, size(x).
    cuda, host : str
        The sources.
    kernel, function : str, optional
        Their names, "scale<T>" for a template; the operator's name without.
    threads : str or int
        How many threads, "n * m", in blocks of `block`. Or
    grid, block : str, int or tuple
        How many blocks, and threads in each: ("(n + 31) // 32", "m"), (32, 8).
    shared : str or int, optional
        Bytes of shared memory of a block.
    doc : str, optional
        One line.
    options : sequence of str, optional
        More options for NVRTC.

    Returns
    -------
    Operator
        The same for the same texts.

    Raises
    ------
    ValueError
        The signature, the arguments or the grid are wrong.
    CompileError
        At a call: a source does not compile, or is not there for the side that is to run.
    """
    check_texts(
        "operator",
        {"signature": signature, "arguments": arguments, "doc": doc},
        {"cuda": cuda, "host": host, "kernel": kernel, "function": function},
    )
    sizes = (threads, _sizes(grid), _sizes(block) or (str(BLOCK),), str(shared))
    texts = (arguments, cuda, host, kernel, function)
    given = texts_of("operator", "options", options)
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
        raise ValueError(f"{name}: seen no source, wanted cuda, host or both")
    if cuda is not None and (threads is None) == (not grid):
        raise ValueError(f"{name}: wanted threads, or grid, for the kernel's launch")
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
    """See that every formula can be worked out, before any call."""
    for what, texts in (("grid", plan.grid), ("block", plan.block), ("shared", (plan.shared,))):
        if len(texts) > 3:
            raise ValueError(f"{plan.name}: {what}: seen {len(texts)} sizes, wanted at most 3")
        for text in texts:
            _formula(plan, text, what)
    every = {x.name: DTYPES["float32"] for x in plan.scope.signature.arrays}
    every |= dict.fromkeys(plan.scope.scalars, DTYPES["float32"])
    for node in formula.parse(plan.arguments, f"{plan.name}: arguments"):
        formula.c_text(node, plan.scope, every, f"{plan.name}: arguments")


def _formula(plan: Plan, text: str, what: str) -> tuple[formula.Step, ...]:
    nodes = formula.parse(text, f"{plan.name}: {what}")
    if len(nodes) != 1:
        raise ValueError(f"{plan.name}: {what}: seen {text!r}, wanted one number")
    return formula.steps(nodes[0], plan.scope, f"{plan.name}: {what}")


def _host_compiler(plan: Plan) -> Callable[[Variant], tuple[int, int]]:
    def compile_variant(variant: Variant) -> tuple[int, int]:
        name = f"{plan.name} host"
        include = (f"-I{flags.get_include()}",)
        code = _host_code(plan, variant, name)
        return compile_host(code, "cuplug_function", {name: plan.host or ""}, include), 0

    return compile_variant


def _host_code(plan: Plan, variant: Variant, name: str) -> str:
    variables, dtypes = plan.dtypes(variant)
    types = "\n".join(f"typedef {dtype.stored} {v};" for v, dtype in variables.items())
    nodes = formula.parse(plan.arguments, name)
    values = ", ".join(formula.c_text(node, plan.scope, dtypes, name) for node in nodes)
    call = f"{plan.function}({values})"
    arrays = ", ".join(f'"{x.name or "output"}"' for x in plan.scope.signature.arrays)
    return f"""{_HOST_HEAD}
{types}
#line 1 "{name}"
{plan.host}
#line 1 "generated code"
int cuplug_function(const cuplug_call *call) {{
  static const char *const cuplug_names[] = {{{arrays or '""'}}};
  cuplug_fault cuplug_record = {{0}};
  const int status = __builtin_choose_expr(
      __builtin_types_compatible_p(__typeof__({call}), void), ({call}, CUPLUG_OK), {call});
  if (status || !cuplug_record.status) return status;
  return cuplug_failf(call, CUPLUG_ERROR_INDEX,
                     "%s: index %lld at position %lld is out of bounds for size %lld",
                     cuplug_names[cuplug_record.tensor], (long long)cuplug_record.value,
                     (long long)cuplug_record.position, (long long)cuplug_record.high);
}}
"""


def _cuda_compiler(plan: Plan) -> Callable[[Variant], tuple[int, int]]:
    def compile_variant(variant: Variant) -> tuple[int, int]:
        name = f"{plan.name} cuda"
        variables, dtypes = plan.dtypes(variant)
        code = _cuda_code(plan, variables, name)
        binary = compile_to_binary(
            code,
            names=[plan.kernel],
            options=[*OPTIONS, *plan.options],
            architecture=architecture_of(variant.device),
            name=f"{plan.name}.cu",
            headers={name: plan.cuda or ""},
        )
        passes = _passes(plan, dtypes, binary.types[plan.kernel])
        symbol = binary.lowered[plan.kernel]
        function = load_functions(binary.image, plan.name, [symbol], variant.device)[0]
        grid = [_formula(plan, text, "grid") for text in plan.grid]
        block = [_formula(plan, text, "block") for text in plan.block]
        shared = _formula(plan, plan.shared, "shared")
        return function, make_plan(grid, block, shared, passes, plan.per_thread)

    return compile_variant


def _cuda_code(plan: Plan, variables: dict[str, Dtype], name: str) -> str:
    headers = dict.fromkeys(dtype.cuda_header for dtype in variables.values())
    lines = [f"#include <{header}>" for header in headers if header]
    lines += ["typedef unsigned char uint8_t;", "typedef signed char int8_t;"]
    lines += ["typedef unsigned short uint16_t;", "typedef short int16_t;"]
    lines += ["typedef unsigned int uint32_t;", "typedef int int32_t;"]
    lines += ["typedef unsigned long uint64_t;", "typedef long int64_t;"]
    lines += [f"typedef {dtype.cuda} {v};" for v, dtype in variables.items()]
    head = "\n".join(lines)
    return f'{head}\n{_CUDA_HEAD}\n#line 1 "{name}"\n{plan.cuda}\n'


ARRAY, SCALAR, NUMBER, FAULT = range(4)  # kinds of `cuplug_pass` in <cuplug/host.h>
Pass = tuple[int, int, str, tuple[formula.Step, ...]]  # kind, operand, dtype, formula


def _passes(plan: Plan, dtypes: dict[str, Dtype], codes: Sequence[int]) -> list[Pass]:
    """Match the arguments with the parameters that the compiler has found in the kernel."""
    nodes = formula.parse(plan.arguments, plan.name)
    if len(nodes) != len(codes):
        raise TypeError(
            f"{plan.name}: arguments: seen {len(nodes)}, wanted {len(codes)} as {plan.kernel} has "
            "parameters"
        )
    return [_pass(plan, dtypes, node, code) for node, code in zip(nodes, codes, strict=True)]


def _pass(plan: Plan, dtypes: dict[str, Dtype], node: ast.expr, code: int) -> Pass:
    kind, bits = code & 15, (code >> 16 & 0xFFFFFF) * 8
    name = node.id if isinstance(node, ast.Name) else ""
    is_pointer = kind == kernel_types.POINTER
    if name == "fault" and is_pointer:
        return FAULT, 0, "uint64", ()
    if name in plan.scope.arrays and is_pointer:
        return ARRAY, plan.scope.arrays[name], "uint64", ()
    is_float = name in dtypes and dtypes[name].kind == "float"
    if kind == kernel_types.FLOAT and bits >= 32 and is_float and name in plan.scope.scalars:
        return SCALAR, plan.scope.scalars[name], f"float{bits}", ()
    is_integer = kind in (kernel_types.INT, kernel_types.UINT, kernel_types.BOOL)
    if is_integer and name not in plan.scope.arrays and name != "fault" and not is_float:
        steps = formula.steps(node, plan.scope, f"{plan.name}: arguments")
        return NUMBER, 0, f"{'u' if kind == kernel_types.UINT else ''}int{bits}", steps
    raise TypeError(
        f"{plan.name}: arguments: seen {ast.unparse(node)}, wanted {kernel_types.describe(code)} "
        f"as {plan.kernel} has it"
    )
