# SPDX-License-Identifier: Apache-2.0
"""Signatures -> type stubs, for `from cuplug.ops import gather`.

Outputs are arrays of the kind that went in. So outputs that have the dtype of the first array have
its type; of the others the stubs say Any.
"""

from __future__ import annotations

import keyword
import math
from collections.abc import Sequence
from typing import Any

from cuplug.base.dtypes import DTYPES
from cuplug.signature.signature import Parameter, Signature

HEAD = """\
# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="override"
# Written from the symbol tables of the stock plugins at build time.
from collections.abc import Sequence
from typing import Any, Generic, Literal, NamedTuple, TypeVar, overload

from cuplug import Operator

_Array = TypeVar("_Array")

def __getattr__(name: str) -> Operator: ...
def __dir__() -> list[str]: ...
"""

Row = tuple[Signature, str]  # and the doc line


def write_stubs(plugins: Sequence[Sequence[Row]]) -> str:
    """Return the text of ops.pyi for the rows of some plugins, in search order.

    Of operators of one name in several plugins the first counts, as it does in a search.
    """
    operators: dict[str, list[Row]] = {}
    for rows in plugins:
        own: dict[str, list[Row]] = {}
        for row in rows:
            own.setdefault(row[0].name, []).append(row)
        operators = own | operators
    names = sorted(name for name in operators if not keyword.iskeyword(name))
    return HEAD + "".join(_operator(name, operators[name]) for name in names)


def _operator(name: str, rows: Sequence[Row]) -> str:
    # Rows that differ in nothing but dtypes look alike to a type checker.
    calls = list(dict.fromkeys(_call(*row) for row in rows))
    overload = "    @overload\n" if len(calls) > 1 else ""
    body = "".join(overload + call for call in calls)
    results = dict.fromkeys(text for row in rows if (text := _named_result(row[0])))
    return f"{''.join(results)}\nclass _{name}(Operator):\n{body}\n{name}: _{name}\n"


def _kinds(signature: Signature) -> list[str]:
    """Return the types of the outputs."""
    first = _first_array(signature)
    variable = first.type_variable if first else None
    return ["_Array" if x.type_variable == variable else "Any" for x in signature.outputs]


def _result_name(signature: Signature) -> str:
    """Return the name of the named tuple that an operator returns; "" where it returns none."""
    names = [x.name for x in signature.outputs]
    is_plain = len(names) < 2 or any(not x or x[0] == "_" or keyword.iskeyword(x) for x in names)
    return "" if is_plain else f"_{signature.name}_{'_'.join(names)}"


def _named_result(signature: Signature) -> str:
    """Return the class of several outputs that have names."""
    name = _result_name(signature)
    generic = ", Generic[_Array]" if "_Array" in _kinds(signature) else ""
    fields = zip(signature.outputs, _kinds(signature), strict=True)
    body = "".join(f"    {x.name}: {kind}\n" for x, kind in fields)
    return f"\nclass {name}(NamedTuple{generic}):\n{body}" if name else ""


def _call(signature: Signature, doc: str) -> str:
    lines = [
        "    def __call__(",
        "        self,",
        *(f"        {text}," for text in _parameters(signature)),
        f"    ) -> {_result(signature)}:",
        f"        {_docstring(doc)}",
        "",
    ]
    return "\n".join(lines)


def _docstring(doc: str) -> str:
    return '"""' + doc.replace("\\", "\\\\").replace('"', '\\"') + '"""'


def _first_array(signature: Signature) -> Parameter | None:
    given = (x for x in signature.parameters if x.is_array and not x.has_default)
    return next(given, None)


def _parameters(signature: Signature) -> list[str]:
    first = _first_array(signature) if "_Array" in _result(signature) else None
    texts = []
    for x in signature.parameters:
        name = f"{x.name}_" if keyword.iskeyword(x.name) else x.name
        kind = "_Array" if x is first else _type(signature, x)
        if x.has_default and x.default is None and not x.is_array:
            kind += " | None"
        texts.append(f"{name}: {kind}" + (f" = {_default(x.default)}" if x.has_default else ""))
    return [*texts, "*", "out: Any = None", "device: Any = None", "stream: Any = None"]


def _type(signature: Signature, x: Parameter) -> str:
    if x.is_array:
        return "Any | None" if x.has_default else "Any"
    if x.kind == "arrays":
        return "Sequence[Any]"
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


def _result(signature: Signature) -> str:
    kinds = _kinds(signature)
    if name := _result_name(signature):
        return f"{name}[_Array]" if "_Array" in kinds else name
    if len(kinds) > 1:
        return f"tuple[{', '.join(kinds)}]"
    return kinds[0] if kinds else "None"
