# SPDX-License-Identifier: Apache-2.0
"""Signatures -> typed-memoryview functions for Cython code.

One function for each operator and each combination of its type variables' dtypes. Arrays are
C-contiguous memoryviews, so a group of dimensions (`...`, `*n`) becomes one dimension, or none
where an input has it beside others: T[...] is [::1], T[m, *row] is [::1], T[m, n] is [:, ::1].
"""

from __future__ import annotations

import itertools
import keyword
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from .signature import GROUP_KINDS, Parameter, Signature

# dtype -> the C type of its memoryviews. bool, and the dtypes of 8 and 16 bits that C does not
# have, have none.
ELEMENT_TYPES = {
    "int8": "int8_t",
    "int16": "int16_t",
    "int32": "int",
    "int64": "int64_t",
    "uint8": "uint8_t",
    "uint16": "uint16_t",
    "uint32": "uint32_t",
    "uint64": "uint64_t",
    "float32": "float",
    "float64": "double",
    "complex64": "float complex",
    "complex128": "double complex",
}
# The letters that a dtype begins with -> the C type of scalars, and what passes them to the core.
SCALAR_TYPES = {
    "bool": ("bint", "set_bool"),
    "int": ("int64_t", "set_int"),
    "uint": ("uint64_t", "set_uint"),
    "float": ("double", "set_float"),
    "bfloat": ("double", "set_float"),
    "complex": ("double complex", "set_complex"),
}
MAX_MEMORYVIEW_NDIM = 8
# fmt: off
RESERVED_WORDS = {
    "bint", "cdef", "char", "cimport", "complex", "const", "cpdef", "ctypedef", "cppclass",
    "double", "enum", "extern", "float", "fused", "gil", "include", "inline", "int", "long",
    "new", "nogil", "NULL", "object", "packed", "public", "readonly", "short", "signed",
    "sizeof", "struct", "union", "unsigned", "void", "volatile", "DEF", "IF", "ELIF", "ELSE",
    "INFINITY", "NAN", "arguments", "call",
    *ELEMENT_TYPES.values(),
}
# fmt: on
RESERVED_STARTS = ("__", "set_", "slot", "CUPLUG_")


@dataclass
class Argument:
    """One argument of a function: how it is declared, and how it is passed to the core."""

    declaration: str
    default: str | None  # as Cython text
    setter: str  # the call that fills arguments[{}]


@dataclass
class Function:
    """One typed function."""

    name: str
    operator: str  # "plugin.operator"
    signature: str
    arguments: list[Argument]  # in the order of the core: parameters, then outputs
    n_outputs: int

    def declaration(self, with_defaults: bool) -> str:
        """Return the head of the function; in a .pxd, defaults are written as `*`."""
        required = [a.declaration for a in self.arguments if a.default is None]
        optional = [
            f"{a.declaration}={a.default if with_defaults else '*'}"
            for a in self.arguments
            if a.default is not None
        ]
        return f"cdef int {self.name}({', '.join(required + optional)}) except -1 nogil"


@dataclass
class Module:
    """The functions of some plugins, and why some rows have none."""

    functions: list[Function] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)


def add_plugin(module: Module, plugin: str, signatures: Sequence[Signature]) -> None:
    """Add the functions for all rows of one plugin to a module.

    Parameters
    ----------
    module : Module
        Where they are added.
    plugin : str
        The plugin's name; the functions look for `plugin.operator`.
    signatures : sequence of Signature
        The signature of each row.
    """
    names = [row.name for row in signatures]
    taken = {function.name for function in module.functions}
    for row in signatures:
        reason = _why_not(row)
        if reason:
            module.skipped.append(f"{row.text}: {reason}")
            continue
        for function in _functions(plugin, row, is_overloaded=names.count(row.name) > 1):
            if function.name in taken:
                module.skipped.append(f"{row.text}: another row has given {function.name}")
            else:
                taken.add(function.name)
                module.functions.append(function)


def _why_not(row: Signature) -> str:
    """Say why a row can have no typed function; "" where it can."""
    if any(kind == "unknown" for array in row.arrays for kind, _ in array.dims):
        return "the size of an output is known only after the run"
    if max(array_ranks(row.arrays), default=0) > MAX_MEMORYVIEW_NDIM:
        return f"memoryviews have at most {MAX_MEMORYVIEW_NDIM} dimensions"
    for array in row.arrays:
        name, dtypes = row.variables[array.type_variable]
        if not ELEMENT_TYPES.keys() & set(dtypes):
            return f"no memoryview has the dtype {name or dtypes[0]}"
    return ""


def array_ranks(arrays: Sequence[Parameter]) -> list[int]:
    """Return the rank that each array of a row has as a memoryview.

    A group of dimensions is left out where some input has it beside other dimensions; else it
    counts as one.
    """
    left_out = {
        dim
        for array in arrays
        for dim in array.dims
        if array.kind != "output" and dim[0] in GROUP_KINDS and len(array.dims) > 1
    }
    return [sum(dim not in left_out for dim in array.dims) for array in arrays]


def _functions(plugin: str, row: Signature, is_overloaded: bool) -> Iterator[Function]:
    of_arrays = {array.type_variable for array in row.arrays}
    dtypes_of = [
        [dtype for dtype in dtypes if dtype in ELEMENT_TYPES] if k in of_arrays else dtypes[:1]
        for k, (_, dtypes) in enumerate(row.variables)
    ]
    ranks = array_ranks(row.arrays)
    for dtypes in itertools.product(*dtypes_of):
        in_name = [
            dtype
            for k, dtype in enumerate(dtypes)
            if row.variables[k][0] or (is_overloaded and k in of_arrays)
        ]
        yield Function(
            "_".join([row.name, *in_name]),
            f"{plugin}.{row.name}",
            row.text,
            _arguments(row, ranks, dtypes),
            len(row.outputs),
        )


def _arguments(row: Signature, ranks: list[int], dtypes: Sequence[str]) -> list[Argument]:
    rank = iter(ranks)
    arguments = [
        _array(x, _safe(x.name), next(rank), dtypes[x.type_variable])
        if x.is_array
        else _scalar(x, _safe(x.name), dtypes)
        for x in row.parameters
    ]
    for k, x in enumerate(row.outputs):
        name = _safe(x.name) or (f"out{k}" if len(row.outputs) > 1 else "out")
        arguments.append(_array(x, name, next(rank), dtypes[x.type_variable]))
    return arguments


def _safe(name: str) -> str:
    """Return a parameter's name as Cython takes it."""
    is_taken = keyword.iskeyword(name) or name in RESERVED_WORDS or name.startswith(RESERVED_STARTS)
    return f"{name}_" if is_taken else name


def _array(x: Parameter, name: str, rank: int, dtype: str) -> Argument:
    const = "const " if x.kind == "array" else ""
    element = f"{const}{ELEMENT_TYPES[dtype]}"
    constant = f"CUPLUG_{dtype.upper()}"
    if rank == 0:
        return Argument(
            f"{element} *{name}",
            "NULL" if x.has_default else None,
            f"set_array(&arguments[{{}}], {name} == NULL, {name}, NULL, 0, {constant})",
        )
    axes = ", ".join([":"] * (rank - 1) + ["::1"])
    first = ", ".join(["0"] * rank)
    return Argument(
        f"{element}[{axes}] {name}",
        "None" if x.has_default else None,
        f"set_array(&arguments[{{}}], {name} is None, &{name}[{first}], &{name}.shape[0], {rank}, "
        f"{constant})",
    )


def _scalar(x: Parameter, name: str, dtypes: Sequence[str]) -> Argument:
    default = _literal(x.default) if x.has_default else None
    if x.kind in ("string", "choice"):
        return Argument(f"const char *{name}", default, f"set_string(&arguments[{{}}], {name})")
    c_type, setter = _scalar_type(dtypes[x.type_variable])
    return Argument(f"{c_type} {name}", default, f"{setter}(&arguments[{{}}], {name})")


def _scalar_type(dtype: str) -> tuple[str, str]:
    letters = "".join(itertools.takewhile(str.isalpha, dtype))
    return SCALAR_TYPES[letters]


def _literal(value: bool | int | float | str) -> str:
    """Return a default as Cython text that needs no Python object."""
    if isinstance(value, str):
        return repr(value.encode())
    if isinstance(value, float) and not math.isfinite(value):
        return "NAN" if math.isnan(value) else "INFINITY" if value > 0 else "-INFINITY"
    return repr(value)


def _cimports(module: Module) -> list[str]:
    text = " ".join(function.declaration(with_defaults=False) for function in module.functions)
    words = sorted(set(re.findall(r"\bu?int\d+_t\b", text)))
    return [f"from libc.stdint cimport {', '.join(words)}"] if words else []


def _comment(text: str) -> str:
    """Return text on one line: a string in a signature may hold any character."""
    return text.encode("unicode_escape").decode()


def write_pxd(module: Module, title: str) -> str:
    """Return the text of the module's declarations file."""
    lines = ["# SPDX-License-Identifier: Apache-2.0", f"# {title}", "", *_cimports(module)]
    signature = ""
    for function in module.functions:
        if function.signature != signature:
            signature = function.signature
            lines += ["", f"# {_comment(signature)}"]
        lines.append(function.declaration(with_defaults=False))
    if module.skipped:
        lines += [
            "",
            "# Without a typed function:",
            *(f"#   {_comment(text)}" for text in module.skipped),
        ]
    return "\n".join(lines) + "\n"


def write_pyx(module: Module, title: str) -> str:
    """Return the text of the module's code."""
    lines = [
        "# SPDX-License-Identifier: Apache-2.0",
        "# cython: language_level=3, boundscheck=False, wraparound=False",
        "# cython: initializedcheck=False, cdivision=True",
        f'"""{title}"""',
        "",
        "from libc.math cimport INFINITY, NAN",
        "from cuplug._memoryviews cimport *",
    ]
    operators = dict.fromkeys(function.operator for function in module.functions)
    slots = {operator: f"slot{k}" for k, operator in enumerate(operators)}
    for operator, slot in slots.items():
        lines += ["", f"cdef cuplug_operator *{slot} = NULL  # {operator}"]
    for function in module.functions:
        lines += ["", "", *_body(function, slots[function.operator])]
    return "\n".join(lines) + "\n"


def _body(function: Function, slot: str) -> Iterator[str]:
    n = len(function.arguments)
    yield f"{function.declaration(with_defaults=True)}:"
    if n:
        yield f"    cdef cuplug_argument arguments[{n}]"
    for k, argument in enumerate(function.arguments):
        yield f"    {argument.setter.format(k)}"
    operator, arguments = repr(function.operator.encode()), "arguments" if n else "NULL"
    counts = f"{n - function.n_outputs}, {function.n_outputs}"
    yield f"    return call(&{slot}, {operator}, {arguments}, {counts})"
