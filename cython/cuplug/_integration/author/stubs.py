# SPDX-License-Identifier: Apache-2.0
"""Generation of type stubs from signatures, for `cuplug.ops` and for modules of packages.

Outputs are arrays of the same type as the inputs; optional ones may be None. Outputs with the dtype
of the first array therefore have its type, and others are Any. Types of NumPy arrays include
shapes. If the number of dimensions may differ, the output's type has any shape.
"""

from __future__ import annotations

import keyword
import math
from collections.abc import Sequence
from typing import Any

from cuplug._engine.base.dtypes import DTYPES
from cuplug._engine.signature.signature import GROUP_KINDS, Parameter, Signature
from cuplug._engine.signature.steps import Extent

HEAD = """\
# mypy: disable-error-code="override, overload-cannot-match"
# {title}
from collections.abc import Sequence
from typing import Any, Generic, Literal, NamedTuple, TypeVar, overload

from cuplug import Handle, Operator
from numpy import dtype, ndarray

_Array = TypeVar("_Array")
_Dtype = TypeVar("_Dtype", bound=dtype[Any])
"""
# Names of `cuplug.ops` besides the operators that are known when it is built.
OTHERS = """
def __getattr__(name: str) -> Operator: ...
def __dir__() -> list[str]: ...
"""

Row = tuple[Signature, str]  # and its doc line
ARRAY = "_Array"
OF_ANY_SHAPE = "ndarray[Any, _Dtype]"


def write_stubs(plugins: Sequence[Sequence[Row]], title: str, others: str = "") -> str:
    """Return the text of a .pyi file for the overloads of some plugins, in search order.

    If several plugins have an operator of the same name, the first is used, as in a search.
    """
    operators: dict[str, list[Row]] = {}
    for rows in plugins:
        own: dict[str, list[Row]] = {}
        for row in rows:
            own.setdefault(row[0].name, []).append(row)
        operators = own | operators
    names = sorted(name for name in operators if not keyword.iskeyword(name))
    texts = (_operator(name, operators[name]) for name in names)
    return HEAD.format(title=title) + others + "".join(texts)


def _operator(name: str, rows: Sequence[Row]) -> str:
    results: list[str] = []
    calls: dict[str, None] = {}
    for row in rows:
        result = _named_result(row[0])
        if result and result not in results:
            results.append(result)
        # Overloads that differ only in dtypes look the same to a type checker.
        for call in _calls(*row):
            calls[_numbered(call, results, result)] = None
    overload = "    @overload\n" if len(calls) > 1 else ""
    body = "".join(overload + call for call in calls)
    classes = "".join(_numbered(result, results, result) for result in results)
    return f"{classes}\nclass _{name}(Operator):\n{body}\n{name}: _{name}\n"


def _numbered(text: str, results: list[str], result: str) -> str:
    """Return a text with another name for a result, if an earlier one has the same name.

    Overloads may have outputs with the same names and different types.
    """
    if not result:
        return text
    head = result.partition("(")[0]  # "class _name"
    n = sum(f"{head}(" in earlier for earlier in results[: results.index(result)])
    name = head.removeprefix("\nclass ")
    return text.replace(name, f"{name}_{n + 1}") if n else text


def _kinds(signature: Signature) -> list[str]:
    """Return the types of the outputs."""
    first = _first_array(signature)
    variable = first.type_variable if first else None
    kinds = [ARRAY if x.type_variable == variable else "Any" for x in signature.outputs]
    pairs = zip(signature.outputs, kinds, strict=True)
    return ["Any | None" if x.has_default else kind for x, kind in pairs]


def _result_name(signature: Signature) -> str:
    """Return the name of the named tuple that an operator returns, or ""."""
    names = [x.name for x in signature.outputs]
    is_plain = len(names) < 2 or any(not x or x[0] == "_" or keyword.iskeyword(x) for x in names)
    return "" if is_plain else f"_{signature.name}_{'_'.join(names)}"


def _named_result(signature: Signature) -> str:
    """Return the class of several named outputs."""
    name = _result_name(signature)
    generic = ", Generic[_Array]" if ARRAY in _kinds(signature) else ""
    fields = zip(signature.outputs, _kinds(signature), strict=True)
    body = "".join(f"    {x.name}: {kind}\n" for x, kind in fields)
    return f"\nclass {name}(NamedTuple{generic}):\n{body}" if name else ""


def _calls(signature: Signature, doc: str) -> list[str]:
    kinds = [OF_ANY_SHAPE, ARRAY] if _changes_rank(signature) else [ARRAY]
    return [_call(signature, doc, kind) for kind in kinds]


def _call(signature: Signature, doc: str, kind: str) -> str:
    lines = [
        "    def __call__(",
        "        self,",
        *(f"        {text}," for text in _parameters(signature, kind)),
        f"    ) -> {_result(signature, kind)}:",
        f"        {_docstring(doc)}",
        "",
    ]
    return "\n".join(lines)


def _changes_rank(signature: Signature) -> bool:
    """Return whether an output of the first array's type may have another number of dimensions."""
    first = _first_array(signature)
    outputs = zip(signature.outputs, _kinds(signature), strict=True)
    alike = [x for x, kind in outputs if kind == ARRAY]
    given = [x for x in signature.arrays if x.kind != "output"]
    broadcasts = sum(any(kind == "loop" for kind, _ in x.dims) for x in given) > 1
    return first is not None and any(broadcasts or _rank(x) != _rank(first) for x in alike)


def _rank(x: Parameter) -> tuple[int, list[tuple[str, Extent]]]:
    """Return the number of single dimensions, and the groups of dimensions."""
    groups = [dim for dim in x.dims if dim[0] in (*GROUP_KINDS, "slice", "listed")]
    return len(x.dims) - len(groups), sorted(groups, key=str)


def _docstring(doc: str) -> str:
    first, *more = doc.replace("\\", "\\\\").replace('"', '\\"').split("\n")
    lines = [f"{' ' * 8 * bool(x)}{x}" for x in more]
    return '"""' + "\n".join([first, *lines, *([" " * 8] if more else [])]) + '"""'


def _first_array(signature: Signature) -> Parameter | None:
    given = (x for x in signature.parameters if x.is_array and not x.has_default)
    return next((x for x in given if not x.is_on_host), None)


def _parameters(signature: Signature, array: str) -> list[str]:
    first = _first_array(signature) if ARRAY in _kinds(signature) else None
    texts = []
    for x in signature.parameters:
        name = f"{x.name}_" if keyword.iskeyword(x.name) else x.name
        kind = array if x is first else _type(signature, x)
        if x.has_default and x.default is None and not x.is_array:
            kind += " | None"
        texts.append(f"{name}: {kind}" + (f" = {_default(x.default)}" if x.has_default else ""))
    texts += ["*", *(f"return_{x.name}: bool = False" for x in signature.outputs if x.has_default)]
    return [*texts, "out: Any = None", "device: Any = None", "stream: Any = None"]


def _type(signature: Signature, x: Parameter) -> str:
    if x.is_array:
        return "Any | None" if x.has_default else "Any"
    if x.kind == "dtype":  # a library's dtype, or its name
        return "Any"
    if x.kind == "arrays":
        return "Sequence[Any]"
    if x.kind == "handle":
        return "Handle"
    if x.kind == "string":
        return "str"
    if x.kind == "choice":
        return f"Literal[{', '.join(_string(choice) for choice in x.choices)}]"
    _, dtypes = signature.variables[x.type_variable]
    wanted = {DTYPES[dtype].scalar for dtype in dtypes}
    number = next(x.__name__ for x in (complex, float, int, bool) if x in wanted)
    return f"Sequence[{number}]" if x.kind == "list" else number


def _string(text: str) -> str:
    quoted = repr(text)
    return f'"{quoted[1:-1]}"' if quoted[0] == "'" and '"' not in quoted else quoted


def _default(value: Any) -> str:
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, float) and not math.isfinite(value):
        return "..."
    return repr(value)


def _result(signature: Signature, array: str) -> str:
    own = _kinds(signature)
    kinds = [array if kind == ARRAY else kind for kind in own]
    if name := _result_name(signature):
        return f"{name}[{array}]" if ARRAY in own else name
    if len(kinds) > 1:
        return f"tuple[{', '.join(kinds)}]"
    return kinds[0] if kinds else "Handle" if signature.made else "None"
