# SPDX-License-Identifier: Apache-2.0
"""Operators of a kernel and a function: their parts, and the surrounding code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from cuplug._engine.base.dtypes import DTYPES, Dtype
from cuplug._engine.signature.formula import Scope, Term
from cuplug._engine.signature.variant import Variant
from cuplug._source.compilers import kernel_types
from cuplug._source.expressions.kernel_arguments import (
    ARRAY,
    CALL,
    FAULT,
    RECORDS,
    SCALAR,
    Pass,
    element_type,
)

_HOST_HEAD = """#include <cuplug/fault.h>
#include <cuplug/format.h>
#include <stdbool.h>
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
typedef long long cuplug_int64;
struct cuplug_fault {
  unsigned claimed;
  int status;
  unsigned tensor, text;
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


class Plan(NamedTuple):
    """The parts of an operator."""

    scope: Scope
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
    def terms(self) -> list[Term]:
        """The arguments."""
        return self.scope.terms(self.arguments, f"{self.name}: arguments", tuple(RECORDS))

    @property
    def name(self) -> str:
        """The operator's name."""
        return self.scope.signature.name

    def dtypes(self, variant: Variant) -> tuple[dict[str, Dtype], dict[str, Dtype]]:
        """Return the dtype of each type variable, and of each array and scalar."""
        signature = self.scope.signature
        pairs = zip(signature.arrays, variant.types, strict=True)
        own = {x.type_variable: DTYPES[dtype] for x, dtype in pairs if dtype}
        by_name = {}
        for x in (*signature.parameters, *signature.outputs):
            if x.type_variable >= 0:
                fixed = signature.variables[x.type_variable][1]
                by_name[x.name] = own.get(x.type_variable, DTYPES[fixed[0]])
        variables = {signature.variables[k][0]: dtype for k, dtype in own.items()}
        return {name: dtype for name, dtype in variables.items() if name}, by_name


def host_text(plan: Plan, variables: dict[str, Dtype], name: str) -> str:
    """Return the C with the user's function."""
    types = "\n".join(f"typedef {element_type(dtype, True)} {v};" for v, dtype in variables.items())
    return f"""{_HOST_HEAD}
{types}
#line 1 "{name}"
{plan.host}
#line 1 "generated code"
"""


def check_returned(plan: Plan, code: int) -> None:
    """Check that a function returns nothing, or a status.

    Raises
    ------
    TypeError
        The function has another return type.
    """
    is_integer = code & 15 in (kernel_types.INT, kernel_types.UINT) and code >> 16 <= 4
    if not is_integer and code & 15 != kernel_types.VOID:
        seen = kernel_types.describe(code)
        raise TypeError(
            f"{plan.name}: {plan.function}: got that it returns {seen}, expected void or int"
        )


def host_call(
    plan: Plan, passes: Sequence[Pass], dtypes: Mapping[str, Dtype], returned: int
) -> str:
    """Return the cuplug_host_function, cuplug_function, that calls the user's function."""
    values = ", ".join(_value(k, each, dtypes) for k, each in enumerate(passes))
    is_void = returned & 15 == kernel_types.VOID
    call = f"{plan.function}({values})"
    arrays = ", ".join(f'"{x.name}"' for x in plan.scope.signature.arrays)
    return f"""
static const char *const cuplug_names[] = {{{arrays or '""'}}};
static int cuplug_check(const cuplug_call *call, const cuplug_fault *record, int status) {{
  char array[24];
  if (status || !record->status) return status;
  snprintf(array, sizeof array, "array %u", record->tensor);
  return cuplug_failf(call, CUPLUG_ERROR_INDEX,
                     "%s: index %lld at position %lld is out of bounds for size %lld",
                     record->tensor < call->n_tensors && *cuplug_names[record->tensor]
                         ? cuplug_names[record->tensor] : array,
                     (long long)record->value, (long long)record->position,
                     (long long)record->high);
}}
int cuplug_function(const cuplug_call *cuplug_given, const int64_t *cuplug_numbers) {{
  cuplug_fault cuplug_record = {{0}};
  {call + "; const int cuplug_status = 0" if is_void else f"const int cuplug_status = {call}"};
  return cuplug_check(cuplug_given, &cuplug_record, cuplug_status);
}}
"""


def _value(k: int, given: Pass, dtypes: Mapping[str, Dtype]) -> str:
    """Return an argument of a host function as C. It is converted to the parameter's type."""
    if given.kind == FAULT:
        return "&cuplug_record"
    if given.kind == CALL:
        return "cuplug_given"
    if given.kind == ARRAY:
        return f"cuplug_given->tensors[{given.operand}].data"
    if given.kind != SCALAR:
        return f"cuplug_numbers[{k}]"
    place = f"cuplug_given->scalars[{given.operand}]"
    member = dtypes[given.term.text].member if given.type else "s"
    return (
        f"__builtin_complex({place}.c[0], {place}.c[1])" if member == "c" else f"{place}.{member}"
    )


def cuda_text(plan: Plan, variables: dict[str, Dtype], name: str) -> str:
    """Return the CUDA C++ with the user's kernel."""
    headers = dict.fromkeys(dtype.cuda_header for dtype in variables.values())
    lines = [f"#include <{header}>" for header in (*headers, "stdint.h") if header]
    lines += [f"typedef {dtype.cuda} {v};" for v, dtype in variables.items()]
    head = "\n".join(lines)
    return f'{head}\n{_CUDA_HEAD}\n#line 1 "{name}"\n{plan.cuda}\n'
