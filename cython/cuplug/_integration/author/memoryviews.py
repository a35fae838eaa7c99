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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from cuplug._engine.base.dtypes import DTYPES
from cuplug._engine.signature.signature import GROUP_KINDS, Parameter, Signature

# dtype -> the C type of its memoryviews. bool, and the dtypes that C does not have, have none.
_IN_CYTHON = {"int32": "int", "complex64": "float complex", "complex128": "double complex"}
ELEMENT_TYPES = {
    x.name: _IN_CYTHON.get(x.name, x.stored)
    for x in DTYPES.values()
    if x.kind not in ("bool", "storage") and not x.is_narrow
}
# The kinds of dtypes -> the C type of scalars, and what passes them to the core.
SCALAR_TYPES = {
    "bool": ("bint", "set_bool"),
    "int": ("int64_t", "set_int"),
    "uint": ("uint64_t", "set_uint"),
    "float": ("double", "set_float"),
    "complex": ("double complex", "set_complex"),
    "storage": ("double", "set_float"),
}
MAX_MEMORYVIEW_NDIM = 8
# fmt: off
RESERVED_WORDS = {
    "bint", "cdef", "char", "cimport", "complex", "const", "cpdef", "ctypedef", "cppclass",
    "double", "enum", "extern", "float", "fused", "gil", "include", "inline", "int", "long",
    "new", "nogil", "NULL", "object", "packed", "public", "readonly", "short", "signed",
    "sizeof", "struct", "union", "unsigned", "void", "volatile", "DEF", "IF", "ELIF", "ELSE",
    "_cuplug", "_math", "_arguments", "_sizes",
    *ELEMENT_TYPES.values(),
}
# fmt: on


@dataclass
class Argument:
    """One argument of a function: how it is declared, and how it is passed to the core."""

    name: str
    declaration: str
    default: str | None  # as Cython text
    setter: str  # what fills an argument, with how it is told the value
    rank: int = 0  # of a memoryview


@dataclass
class Function:
    """One typed function."""

    name: str
    plugin: str
    signature: str
    arguments: list[Argument]  # in the order of the core: parameters, then outputs
    n_outputs: int

    def declaration(self) -> str:
        """Return the head of the function."""
        required = [a.declaration for a in self.arguments if a.default is None]
        optional = [f"{a.declaration}={a.default}" for a in self.arguments if a.default is not None]
        arguments = ", ".join(required + optional)
        return f"cdef inline int {self.name}({arguments}) except -1 nogil"


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
    for x in row.parameters:
        if x.kind in ("list", "arrays"):
            return f"{x.name}: a list has no type in C"
        if x.has_default and x.default is None and not x.is_array:
            return f"{x.name}: it may be None, which no type in C says"
    if any(kind == "listed" for array in row.arrays for kind, _ in array.dims):
        return "the number of an output's dimensions is known only in a call"
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
    counts as one, of which a slice takes none.
    """
    left_out = {
        dim
        for array in arrays
        for dim in array.dims
        if array.kind != "output" and dim[0] in GROUP_KINDS and len(array.dims) > 1
    }
    return [
        sum(dim not in left_out and dim[0] != "slice" for dim in array.dims) for array in arrays
    ]


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
            _safe("_".join([row.name, *in_name])),
            plugin,
            row.text,
            _arguments(row, ranks, dtypes),
            len(row.outputs) + (row.made is not None),
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
    if row.made:
        name = _safe(row.made.name) or "out"
        declaration = f"_cuplug.cuplug_handle **{name}"
        arguments.append(Argument(name, declaration, None, f"set_new_handle({{}}, {name})"))
    return arguments


def is_reserved(name: str) -> bool:
    """Whether Cython, or what is written here, has another use for a name."""
    return keyword.iskeyword(name) or name in RESERVED_WORDS or name.startswith("__")


def _safe(name: str) -> str:
    """Return a name of the table's as Cython takes it."""
    return f"{name}_" if is_reserved(name) else name


def _array(x: Parameter, name: str, rank: int, dtype: str) -> Argument:
    const, fill = ("const ", "set_const_array") if x.kind == "array" else ("", "set_array")
    element = f"{const}{ELEMENT_TYPES[dtype]}"
    last = f"{rank}, _cuplug.CUPLUG_{dtype.upper()}"
    if rank == 0:
        default = "NULL" if x.has_default else None
        setter = f"{fill}({{}}, {name} == NULL, {name}, NULL, {last})"
        return Argument(name, f"{element} *{name}", default, setter)
    axes, first = ", ".join([":"] * (rank - 1) + ["::1"]), ", ".join(["0"] * rank)
    default = "None" if x.has_default else None
    setter = f"{fill}({{}}, {name} is None, &{name}[{first}], {{}}, {last})"
    return Argument(name, f"{element}[{axes}] {name}", default, setter, rank)


def _scalar(x: Parameter, name: str, dtypes: Sequence[str]) -> Argument:
    default = _literal(x.default) if x.has_default else None
    c_type, setter = "const char *", "set_string"
    if x.kind == "handle":
        c_type, setter = "_cuplug.cuplug_handle *", "set_handle"
    elif x.kind not in ("string", "choice"):
        c_type, setter = SCALAR_TYPES[DTYPES[dtypes[x.type_variable]].kind]
    space = "" if c_type.endswith("*") else " "
    return Argument(name, f"{c_type}{space}{name}", default, f"{setter}({{}}, {name})")


def _literal(value: bool | int | float | str) -> str:
    """Return a default as Cython text that needs no Python object."""
    if isinstance(value, str):
        return repr(value.encode())
    if isinstance(value, float) and not math.isfinite(value):
        sign = "-" if value < 0 else ""
        return "_math.NAN" if math.isnan(value) else f"{sign}_math.INFINITY"
    return repr(value)


def _comment(text: str) -> str:
    """Return text on one line: a string in a signature may hold any character."""
    return text.encode("unicode_escape").decode()


def write(module: Module, title: str) -> str:
    """Return the text of the module, a .pxd: its functions become part of whoever calls them."""
    lines = [
        "# SPDX-License-Identifier: Apache-2.0",
        "# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False",
        f"# {title}",
        "",
        "cimport libc.math as _math",
        "from libc.stdint cimport *",
        "",
        "cimport cuplug._memoryviews as _cuplug",
    ]
    signature = ""
    for function in module.functions:
        if function.signature != signature:
            signature = function.signature
            lines += ["", "", f"# {_comment(signature)}"]
        else:
            lines += [""]
        lines += _code(function)
    if module.skipped:
        lines += [
            "",
            "",
            "# Without a typed function:",
            *(f"#   {_comment(text)}" for text in module.skipped),
        ]
    return "\n".join(lines) + "\n"


def _code(function: Function) -> Iterator[str]:
    """Sizes are copied, so that memoryviews need no address, and the C compiler no copy of them."""
    n, n_sizes = len(function.arguments), 0
    yield f"{function.declaration()}:"
    if n:
        yield f"    cdef _cuplug.cuplug_argument _arguments[{n}]"
    if total := sum(argument.rank for argument in function.arguments):
        yield f"    cdef Py_ssize_t _sizes[{total}]"
    for k, argument in enumerate(function.arguments):
        for axis in range(argument.rank):
            yield f"    _sizes[{n_sizes + axis}] = {argument.name}.shape[{axis}]"
        places = f"&_arguments[{k}]", f"&_sizes[{n_sizes}]"
        yield f"    _cuplug.{argument.setter.format(*places)}"
        n_sizes += argument.rank
    operator = repr(f"{function.plugin}.{function.signature}".encode())
    arguments = "_arguments" if n else "NULL"
    counts = f"{n - function.n_outputs}, {function.n_outputs}"
    yield f"    return _cuplug.call(_cuplug.NEW_SLOT, {operator}, {arguments}, {counts})"
