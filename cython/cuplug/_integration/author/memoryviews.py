# SPDX-License-Identifier: Apache-2.0
"""Generation of typed functions for Cython code from signatures.

Each operator has one function. Arrays are views, created from typed memoryviews or pointers by
`view` and `at`, which determine the dtype from the element type when the code is compiled.
Overloads with the same parameters share the function. Others get one with a number.
"""

from __future__ import annotations

import keyword
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from cuplug._engine.base.dtypes import DTYPES
from cuplug._engine.signature.signature import Parameter, Signature

# Kinds of dtypes -> the C type of scalars, and the function that creates an argument from one.
SCALAR_TYPES = {
    "bool": ("bint", "boolean({})"),
    "int": ("int64_t", "signed_number({})"),
    "uint": ("uint64_t", "unsigned_number({})"),
    "float": ("double", "real_number({})"),
    "complex": ("double complex", "complex_number({0}.real, {0}.imag)"),
    "storage": ("double", "real_number({})"),
}
# Kinds of lists -> the C type of their items, and the function that creates an argument from a
# pointer to them.
LIST_TYPES = {
    "arrays": ("_cuplug.View", "views({0}, {1})"),
    "int": ("int64_t", "ints({0}, {1})"),
    "float": ("double", "floats({0}, {1})"),
}
NUMBER = "_views.Number"  # a fused type: the kind depends on the dtype of an array
# Dtypes that a memoryview's elements represent if the operator does not accept their own dtype.
STAND_INS = {"uint8": ("bool",), "uint16": ("float16", "bfloat16")}
SHARED_NAMES = (
    *("BFLOAT16", "BOOL", "FLOAT16", "View", "at", "close_handle", "cuplug_handle", "free_view"),
    *("current_stream", "no_view", "on_gpu", "on_stream", "view_as"),
)
VIEW_NAMES = (*SHARED_NAMES, "view")
CIMPORTS = (
    f"from cuplug._memoryviews cimport {', '.join(SHARED_NAMES)}",
    "from cuplug._views cimport view",
)
# fmt: off
RESERVED_WORDS = {
    "bint", "cdef", "char", "cimport", "complex", "const", "cpdef", "ctypedef", "cppclass",
    "double", "enum", "extern", "float", "fused", "gil", "include", "inline", "int", "long",
    "new", "nogil", "NULL", "object", "packed", "public", "readonly", "short", "signed",
    "sizeof", "struct", "union", "unsigned", "void", "volatile", "DEF", "IF", "ELIF", "ELSE",
    "_cuplug", "_views", "_math", "_arguments", "_shapes", "int64_t", "uint32_t", "uint64_t",
    # Macros of C, which replace the names of Cython's arguments with defaults.
    "bool", "errno", "false", "linux", "true", "unix", "EOF", "I", "INFINITY", "NAN",
}
# fmt: on


@dataclass(frozen=True)
class Argument:
    """One argument of a function: its declaration, and the argument for the core."""

    name: str
    declaration: str
    default: str | None  # as Cython text
    value: str  # creates the argument from its name, {}; "" for a view
    dtypes: frozenset[str] = field(default=frozenset(), compare=False)  # options of a view
    is_list: bool = False
    may_be_none: bool = False  # a number, passed by pointer
    choices: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class Enum:
    """The choices of a parameter: names of enum members -> their texts."""

    name: str
    members: dict[str, str]

    def names(self) -> list[str]:
        """Return all names that it defines."""
        return [self.name, f"{self.name}_text", *self.members]

    def code(self) -> Iterator[str]:
        """Yield its lines: the enum, and the function that returns the text of a member."""
        yield from ("", "", f"cdef enum {self.name}:", *(f"    {x}" for x in self.members))
        head = f"cdef inline const char *{self.name}_text({self.name} value) noexcept nogil:"
        yield from ("", "", head)
        for member, text in self.members.items():
            yield from (f"    if value == {member}:", f"        return {text.encode()!r}")
        yield f"    return b'no {self.name}'"


@dataclass
class Function:
    """One typed function."""

    name: str
    operator: str
    plugin: str
    signatures: list[str]  # the overloads that it calls; the first one names the operator
    arguments: list[Argument]  # in the core's order: parameters, then outputs
    n_outputs: int

    def declaration(self) -> str:
        """Return the head of the function."""
        required = [a.declaration for a in self.arguments if a.default is None]
        optional = [f"{a.declaration}={a.default}" for a in self.arguments if a.default is not None]
        arguments = ", ".join(required + optional)
        return f"cdef inline int {self.name}({arguments}) except -1 nogil"


@dataclass
class Module:
    """The functions of some plugins."""

    functions: list[Function] = field(default_factory=list)


def add_plugin(
    module: Module, plugin: str, signatures: Sequence[Signature], only: Sequence[str] = ()
) -> None:
    """Add the functions for the overloads of one plugin to a module.

    Parameters
    ----------
    module : Module
        Receives the functions.
    plugin : str
        The plugin's name. The functions find `plugin.operator`.
    signatures : sequence of Signature
        The signature of each overload.
    only : sequence of str, optional
        The operators that get functions. The default is all.
    """
    for row in signatures:
        if only and row.name not in only:
            continue
        arguments = _arguments(row)
        own = [x for x in module.functions if (x.plugin, x.operator) == (plugin, row.name)]
        same = next((x for x in own if x.arguments == arguments), None)
        if same:
            same.signatures.append(row.text)
            same.arguments = [_joined(x, y) for x, y in zip(same.arguments, arguments, strict=True)]
            continue
        name = f"{row.name}_{len(own) + 1}" if own else row.name
        n_outputs = len(row.outputs) + (row.made is not None)
        name = _safe(name, VIEW_NAMES)
        function = Function(name, row.name, plugin, [row.text], arguments, n_outputs)
        module.functions.append(function)


def _joined(x: Argument, y: Argument) -> Argument:
    choices = tuple(dict.fromkeys(x.choices + y.choices))
    return replace(x, dtypes=x.dtypes | y.dtypes, choices=choices)


def _arguments(row: Signature) -> list[Argument]:
    arguments = [
        _array(row, x, _safe(x.name)) if x.is_array else _other(row, x, _safe(x.name))
        for x in row.parameters
    ]
    for k, x in enumerate(row.outputs):
        name = _safe(x.name) or (f"out{k}" if len(row.outputs) > 1 else "out")
        if any(kind == "unknown" for kind, _ in x.dims):
            arguments.append(Argument(name, f"_cuplug.View *{name}", None, "new_view({})"))
        else:
            arguments.append(_array(row, x, name))
    if row.made:
        name = _safe(row.made.name) or "out"
        declaration = f"_cuplug.cuplug_handle **{name}"
        arguments.append(Argument(name, declaration, None, "new_handle({})"))
    return arguments


def is_reserved(name: str) -> bool:
    """Return whether Cython or the generated code uses a name otherwise."""
    return keyword.iskeyword(name) or name in RESERVED_WORDS or name.startswith("__")


def _safe(name: str, taken: Sequence[str] = ()) -> str:
    """Return a name from the table in a form that Cython accepts."""
    return f"{name}_" if is_reserved(name) or name in taken else name


def _array(row: Signature, x: Parameter, name: str) -> Argument:
    default = "_cuplug.no_view()" if x.has_default else None
    dtypes = frozenset(row.variables[x.type_variable][1])
    return Argument(name, f"_cuplug.View {name}", default, "", dtypes)


def _number_type(row: Signature, x: Parameter) -> str:
    kinds = {DTYPES[dtype].kind for dtype in row.variables[x.type_variable][1]}
    types = {SCALAR_TYPES[kind][0] for kind in kinds}
    return types.pop() if len(types) == 1 else NUMBER


def _list(row: Signature, x: Parameter, name: str) -> Argument:
    kind = x.kind if x.kind == "arrays" else DTYPES[row.variables[x.type_variable][1][0]].kind
    c_type, value = LIST_TYPES[kind]
    count = _safe(f"n_{name}", [y.name for y in (*row.parameters, *row.outputs)])
    pointer = f"const {c_type} *{name}{'=NULL' if x.has_default else ''}"
    default = "0" if x.has_default else None
    value = value.format("{}", count)
    return Argument(name, f"{pointer}, uint32_t {count}", default, value, is_list=True)


def _other(row: Signature, x: Parameter, name: str) -> Argument:
    if x.kind in ("list", "arrays"):
        return _list(row, x, name)
    default = _literal(x.default) if x.has_default else None
    if x.kind == "handle":
        return Argument(name, f"_cuplug.cuplug_handle *{name}", default, "handle({})")
    if x.kind in ("string", "choice", "dtype"):
        return Argument(name, f"const char *{name}", default, "string({})", choices=x.choices)
    c_type = _number_type(row, x)
    may_be_none = default == "NULL"
    declaration = f"const {c_type} *{name}" if may_be_none else f"{c_type} {name}"
    if c_type == NUMBER:
        # A fused type has no default, and every kind of number can be written as this one.
        return Argument(name, declaration, None, NUMBER, may_be_none=may_be_none)
    value = next(value for known, value in SCALAR_TYPES.values() if known == c_type)
    return Argument(name, declaration, default, value, may_be_none=may_be_none)


def _literal(value: bool | int | float | str | None) -> str:
    """Return a default as Cython code that needs no Python object."""
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return repr(value.encode())
    if isinstance(value, float) and not math.isfinite(value):
        sign = "-" if value < 0 else ""
        return "_math.NAN" if math.isnan(value) else f"{sign}_math.INFINITY"
    return repr(value)


def _comment(text: str) -> str:
    """Return text on one line. A string in a signature may contain any character."""
    return text.encode("unicode_escape").decode()


def write(module: Module, title: str) -> str:
    """Return the text of the module, a .pxd.

    Its functions become part of the modules that use them.
    """
    enums = [enum for found in _enums(module.functions).values() for enum in found]
    makers = [*(enum.code() for enum in enums), *(_code(x) for x in module.functions)]
    functions = [line for lines in makers for line in lines]
    lines = [
        "# SPDX-License-Identifier: Apache-2.0",
        "# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False",
        f"# {title}",
        "",
        *(["cimport libc.math as _math"] if any("_math." in x for x in functions) else []),
        "from libc.stdint cimport int64_t, uint32_t, uint64_t",
        "",
        "cimport cuplug._memoryviews as _cuplug",
        *(["cimport cuplug._views as _views"] if any(NUMBER in x for x in functions) else []),
        *CIMPORTS,
        *functions,
    ]
    return "\n".join(lines) + "\n"


def _enums(functions: Sequence[Function]) -> dict[str, list[Enum]]:
    """Return the enums of each operator, except for those with a name that is used otherwise."""
    choices: dict[tuple[str, str], dict[str, None]] = {}  # in order
    for function in functions:
        for x in function.arguments:
            if x.choices:
                choices.setdefault((function.operator, x.name), {}).update(dict.fromkeys(x.choices))
    taken = {function.name for function in functions}
    found: dict[str, list[Enum]] = {}
    for (operator, parameter), texts in choices.items():
        name = f"{operator}_{parameter}"
        enum = Enum(name, {f"{name}_{re.sub('[^0-9A-Za-z_]', '_', x)}": x for x in texts})
        names = set(enum.names())
        if len(names) == 2 + len(texts) and taken.isdisjoint(names):
            taken |= names
            found.setdefault(operator, []).append(enum)
    return found


def _code(function: Function) -> Iterator[str]:
    n = len(function.arguments)
    yield from ("", "", *(f"# {_comment(text)}" for text in function.signatures))
    yield f"{function.declaration()}:"
    if n:
        yield f"    cdef _cuplug.cuplug_argument _arguments[{n}]"
    if any(not argument.value for argument in function.arguments):
        yield f"    cdef _cuplug.Shape _shapes[{n}]"
    for k, argument in enumerate(function.arguments):
        yield from _set(argument, k)
    operator = repr(f"{function.plugin}.{function.signatures[0]}".encode())
    arguments = "_arguments" if n else "NULL"
    call = "call_with_lists" if any(x.is_list for x in function.arguments) else "call_on_stream"
    streams = [f"{x.name}.stream" for x in function.arguments if not x.value]
    counts = f"{n - function.n_outputs}, {function.n_outputs}, {' or '.join(streams) or 'NULL'}"
    yield f"    return _cuplug.{call}(_cuplug.NEW_SLOT, {operator}, {arguments}, {counts})"


def _made(argument: Argument, value: str) -> str:
    """Return an expression that creates an argument from a value or a nullable pointer."""
    if not argument.may_be_none:
        return f"_cuplug.{value.format(argument.name)}"
    made = value.format(f"{argument.name}[0]")
    return f"_cuplug.{made} if {argument.name} != NULL else _cuplug.none()"


def _set(argument: Argument, k: int) -> Iterator[str]:
    name, place = argument.name, f"_arguments[{k}]"
    if argument.value == NUMBER:
        branch = "if"
        for c_type, value in (SCALAR_TYPES[x] for x in ("int", "uint", "float")):
            yield f"    {branch} {NUMBER} is {c_type}:"
            yield f"        {place} = {_made(argument, value)}"
            branch = "elif"
        yield "    else:"
        yield f"        {place} = {_made(argument, SCALAR_TYPES['complex'][1])}"
    elif argument.value:
        yield f"    {place} = {_made(argument, argument.value)}"
    else:
        for dtype, meant in STAND_INS.items():
            found = [x for x in meant if x in argument.dtypes]
            if dtype not in argument.dtypes and len(found) == 1:
                pair = f"_cuplug.{dtype.upper()}, _cuplug.{found[0].upper()}"
                yield f"    _cuplug.stand_in(&{name}, {pair})"
        yield f"    _cuplug.set_view(&{place}, {name}, &_shapes[{k}])"
