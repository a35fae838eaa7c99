# SPDX-License-Identifier: Apache-2.0
"""Write type stubs: stubs.py FOLDER

FOLDER gets a .pyi for each Cython module without one in the sources, and for the packages that
import their names at the first use. Types are the annotations of the .pyx, else the C types.
Parameters without either are Any; so are results, unless no statement returns a value. An
annotation of a named tuple is the tuple of its fields' types.
"""

import ast
import builtins
import collections.abc
import re
import runpy
import sys
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from Cython.Compiler import ExprNodes, Nodes
from Cython.Compiler.AutoDocTransforms import AnnotationWriter
from Cython.Compiler.TreeFragment import parse_from_strings
from Cython.Compiler.Visitor import TreeVisitor

SOURCES = Path("cython")
CUPLUG = SOURCES / "cuplug"
TYPES = {"bint": "bool", "object": "Any", "double": "float", "tuple": "tuple[Any, ...]"}
TYPES |= {"list": "list[Any]", "set": "set[Any]", "dict": "dict[Any, Any]"}
INTEGER = re.compile(r"(char|short|int|long|\w+_t|Py_ssize_t)$")
ATTRIBUTES = {"dtype": "np.dtype[Any]", "shape": "tuple[int, ...]"}  # C declares them as objects
RESULTS = {"__enter__": "Self", "__len__": "int", "__index__": "int", "__int__": "int"}
RESULTS |= {"__bool__": "bool", "__contains__": "bool", "__float__": "float"}
RESULTS |= {"__complex__": "complex"}
OMITTED = {*dir(object), "__module__", "__dealloc__", "__getbuffer__"} - {"__init__"}
IMPORTS = {
    "NDArray": "from numpy.typing import NDArray",
    "ModuleType": "from types import ModuleType",
    "TracebackType": "from types import TracebackType",
    "np": "import numpy as np",
    "os": "import os",
    "_T": 'from typing import TypeVar\n_T = TypeVar("_T")',
}
CLASS = re.compile(r"^(?:cdef )?class (\w+)|^(\w+): TypeAlias", re.M)
FROM = re.compile(r"^from (cuplug\.[\w.]+) c?import (\([^)]*|[^(\n]*)", re.M)


def module_of(path: Path) -> str:
    """Return the name of a module."""
    return ".".join(path.relative_to(SOURCES).with_suffix("").parts)


def index() -> dict[str, str]:
    """Return the modules of the package's classes, by names that only one class has."""
    found: dict[str, list[str]] = {}
    for path in [path for path in CUPLUG.rglob("*.py*") if path.suffix in (".py", ".pyx")]:
        for name in CLASS.findall(path.read_text()):
            found.setdefault("".join(name), []).append(module_of(path))
    return {name: modules[0] for name, modules in found.items() if len(modules) == 1}


def text_of(path: Path) -> str:
    """Return the text of a file; an empty one of a file that does not exist."""
    return path.read_text() if path.exists() else ""


def imports(stub: list[str], path: Path, classes: dict[str, str]) -> list[str]:
    """Return the imports of the names in a stub's types."""
    text = "\n".join(line for line in stub if not line.startswith("from "))
    own = {*re.findall(r"^(?:class |def )?(\w+)", text, re.M), *dir(builtins)}
    homes = dict(classes)
    for module, names in FROM.findall(text_of(path) + text_of(path.with_suffix(".pxd"))):
        homes |= dict.fromkeys(re.findall(r"\w+", names), module)
    lines = set()
    for name in {*re.findall(r"(?<![\w.'])[A-Za-z_]\w*", text)} - own:
        if name in IMPORTS:
            lines |= {*IMPORTS[name].splitlines()}
        elif name in collections.abc.__all__:
            lines.add(f"from collections.abc import {name}")
        elif name in typing.__all__:
            lines.add(f"from typing import {name}")
        elif name in homes:
            lines.add(f"from {homes[name]} import {name}")
    return sorted(lines, key=lambda line: (line.startswith("_"), line))


class Results(TreeVisitor):
    """Finds whether a function returns or yields a value."""

    found = False

    def visit_ReturnStatNode(self, node: Any) -> None:
        self.found |= node.value is not None

    def visit_YieldExprNode(self, _node: Any) -> None:
        self.found = True

    def visit_FuncDefNode(self, _node: Any) -> None:
        """Functions inside have results of their own."""

    def visit_Node(self, node: Any) -> None:
        self.visitchildren(node)


def written(node: Any) -> str:
    """Return the text of an expression."""
    return str(AnnotationWriter().write(node)) if node else ""


def evaluated(text: str, otherwise: Any) -> Any:
    """Return the value of an expression without names."""
    try:
        return eval(text, {"__builtins__": {}})
    except (NameError, SyntaxError):
        return otherwise


def annotated(node: Any, otherwise: str) -> str:
    """Return the annotation of a parameter or a variable."""
    return str(node.annotation.string.value) if node.annotation else otherwise


def c_type(base: Any) -> str:
    """Return the type of a C declaration."""
    name = base.name or "object"
    return "int" if INTEGER.match(name) else TYPES.get(name, name)


def parameter(arg: Any) -> str:
    """Return a parameter of a stub."""
    name = arg.declarator.name or arg.base_type.name
    if name == "self":
        return "self"
    is_typed = bool(arg.declarator.name and arg.base_type.name)
    default = written(arg.default) if arg.default else ""
    inferred = "bool" if default in ("True", "False") else "Any"
    kind = annotated(arg, c_type(arg.base_type) if is_typed else inferred)
    is_optional = default == "None" and is_typed and kind != "Any"
    end = f"{' | None' if is_optional else ''} = {default}" if default else ""
    return f"{name}: {kind}{end}"


def parameters(node: Any, args: list[Any]) -> str:
    """Return the parameters of a function."""
    star, others = getattr(node, "star_arg", None), getattr(node, "starstar_arg", None)
    n_only = getattr(node, "num_posonly_args", 0)
    n_named = len(args) - getattr(node, "num_kwonly_args", 0)
    given = [x for x in map(parameter, args) if not x.startswith("modulo:")]  # as of `__pow__`
    parts = [*given[:n_only], *(["/"] if n_only else []), *given[n_only:n_named]]
    if star:
        parts.append(f"*{star.name}: {annotated(star, 'Any')}")
    elif n_named < len(args):
        parts.append("*")
    parts += given[n_named:]
    return ", ".join([*parts, f"**{others.name}: Any"] if others else parts)


def function(node: Any) -> list[str]:
    """Return the stub of a function; nothing if it is as of any object."""
    if isinstance(node, Nodes.CFuncDefNode):
        name, args = node.declarator.base.name, node.declarator.args
        return [f"def {name}({parameters(node, args)}) -> {c_type(node.base_type)}: ..."]
    name, annotation = node.name.replace("__cinit__", "__init__"), node.return_type_annotation
    if name in OMITTED and not annotation:
        return []
    results = Results()
    results.visit(node.body)
    result = RESULTS.get(name, "Any" if results.found else "None")
    result = annotation.string.value if annotation else result
    marks = [written(x.decorator) for x in node.decorators or []]
    kept = [f"@{mark}" for mark in marks if mark == "property" or mark.endswith(".setter")]
    ignored = "  # type: ignore[override]" if name in ("__eq__", "__ne__") else ""
    return [*kept, f"def {name}({parameters(node, node.args)}) -> {result}: ...{ignored}"]


def attributes(node: Any) -> dict[str, list[str]]:
    """Return the stubs of attributes that are declared in C, by name."""
    found = {}
    for name in [x.name for x in node.declarators] if node.visibility != "private" else []:
        kind = ATTRIBUTES.get(name, c_type(node.base_type))
        fixed = ["@property", f"def {name}(self) -> {kind}: ..."]
        found[name] = fixed if node.visibility == "readonly" else [f"{name}: {kind}"]
    return found


def members(*bodies: Any) -> list[str]:
    """Return the declarations of a class as lines; setters are next to their properties."""
    found: dict[str, list[str]] = {}
    for node in (node for body in bodies for node in statements(body)):
        if isinstance(node, Nodes.DefNode):
            found.setdefault(node.name, []).extend(function(node))
        elif isinstance(node, Nodes.CVarDefNode):
            found |= attributes(node)
        elif made := re.match(r"[A-Z]\w*(?=\()", written(getattr(node, "rhs", None))):
            found[node.lhs.name] = [f"{node.lhs.name}: {made[0]}"]  # a descriptor
        elif getattr(getattr(node, "expr", None), "annotation", None):
            found[node.expr.name] = [f"{node.expr.name}: {annotated(node.expr, '')}"]
    return [line for lines in found.values() for line in lines]


def class_stub(node: Any, declared: dict[str, tuple[Any]]) -> list[str]:
    """Return the stub of a class; `declared` has the bodies of its .pxd."""
    name = getattr(node, "class_name", None) or node.name
    bases = f"({', '.join(x.name for x in node.bases.args)})" if node.bases else ""
    lines = members(*declared.get(name, ()), node.body)
    marks = [written(x.decorator) for x in node.decorators or []]
    is_final = "cython.final" in marks and name != "Operator"  # whose subclasses stubs declare
    final = ["@final"] if is_final else []
    return [*final, f"class {name}{bases}:", *(f"    {line}" for line in lines or ["..."])]


def variable(node: Any) -> list[str]:
    """Return the stub of a variable of a module, or of a named tuple."""
    name, text = node.lhs.name, written(node.rhs)
    value = evaluated(text, None)
    is_names = isinstance(value, tuple) and all(isinstance(x, str) for x in value)
    inferred = type(value).__name__ if isinstance(value, (int, str)) else "Any"
    kind = annotated(node.lhs, "tuple[str, ...]" if is_names else inferred)
    if found := re.search(r"namedtuple\(u?'\w+', u?'(.*?)'", text):
        fields, types = found[1].split(), re.findall(r"[^, ]+", kind[len("tuple[") : -1])
        types = types[:1] * len(fields) if "..." in types else types
        pairs = zip(fields, types, strict=True)
        return [f"class {name}(NamedTuple):", *(f"    {field}: {x}" for field, x in pairs)]
    is_seen = not name.startswith("_") and not isinstance(node.rhs, ExprNodes.ImportNode)
    return [f"{name}: {kind}"] if is_seen else []


def statements(node: Any) -> Iterator[Any]:
    """Yield the statements of a body."""
    for child in getattr(node, "stats", [node]):
        yield from statements(child) if isinstance(child, Nodes.StatListNode) else (child,)


def name_of(declarator: Any) -> str:
    """Return the name in a C declarator, which may be a pointer or a function."""
    return str(declarator.name) if hasattr(declarator, "name") else name_of(declarator.base)


def parsed(path: Path) -> list[Any]:
    """Return the statements of a module or of its declarations; none of a missing file."""
    text = text_of(path).replace("=*", "=None")  # defaults in declarations
    return [*statements(parse_from_strings("stub", text).body)]


def module_stub(path: Path) -> list[str]:
    """Return the stub of a Cython module."""
    lines, declarations, body = [], parsed(path.with_suffix(".pxd")), parsed(path)
    every = [*declarations, *body]
    every += [y for x in every if isinstance(x, Nodes.CDefExternNode) for y in statements(x.body)]
    of_c = [x for x in every if isinstance(x, Nodes.CVarDefNode)]
    hidden = {name_of(declarator) for x in of_c for declarator in x.declarators}
    classes = [x for x in declarations if isinstance(x, Nodes.CClassDefNode)]
    declared = {x.class_name: (x.body,) for x in classes if x.body}
    for node in body:
        if isinstance(node, (Nodes.CClassDefNode, Nodes.PyClassDefNode)):
            lines += class_stub(node, declared)
        elif isinstance(node, Nodes.DefNode):
            lines += [] if node.name.startswith("_") else function(node)
        elif isinstance(node, Nodes.CFuncDefNode):
            lines += function(node) if node.overridable else []
        elif isinstance(getattr(node, "lhs", None), ExprNodes.NameNode):
            lines += variable(node) if node.lhs.name not in hidden else []
    return lines


def assigned(path: Path, name: str) -> Any:
    """Return the value of a variable of a Python module; values that dicts look up are 0.0."""
    value: Any = {}
    for node in ast.parse(path.read_text()).body:
        target = getattr(node, "target", None) or getattr(node, "targets", [None])[0]
        if not isinstance(target, ast.Name) or target.id != name:
            continue
        if not isinstance(node.value, ast.Dict):
            return evaluated(ast.unparse(node.value), ())
        pairs = zip(node.value.keys, node.value.values, strict=True)
        value |= {evaluated(ast.unparse(k), k): evaluated(ast.unparse(x), 0.0) for k, x in pairs}
    return value


def package_stub(path: Path) -> list[str]:
    """Return the imports of a package whose `_MODULES` has the names that it imports later."""
    lines = []
    for module, names in assigned(path, "_MODULES").items():
        package = module_of(path.parent)
        home = package if names == module else f"{package}.{module}"
        lines += [f"from {home} import {name} as {name}" for name in names.split()]
    return lines


def functions_stub(path: Path) -> list[str]:
    """Return the stub of array_api: functions of elements are made from a table."""
    docs = runpy.run_path(str(path.with_name("elementwise_docs.py")))
    examples = {x[0]: x[3] for x in docs["_ENTRY"].findall(docs["_TEXT"])}
    lines = [line for line in package_stub(path) if line.rpartition(" ")[2] not in examples]
    lines += [f"from cuplug.array_api import {x} as {x}" for x in assigned(path, "_EXTENSIONS")]
    for name, more in examples.items():
        lines.append(f"def {name}({'x1: Any, x2: Any' if more else 'x: Any'}, /) -> Array: ...")
    dtypes = [*assigned(path.with_name("dtypes.py"), "NAMES"), *assigned(path, "_HALVES")]
    lines += [f"{name}: Final[np.dtype[Any]]" for name in dtypes]
    constants = assigned(path, "_CONSTANTS").items()
    lines += [f"{name}: Final[{'None' if x is None else 'float'}]" for name, x in constants]
    return [*lines, "__array_api_version__: Final[str]", "__all__: list[str]"]


def stubs() -> Iterator[tuple[Path, list[str]]]:
    """Yield the files of modules, and the lines of their stubs."""
    yield (path := CUPLUG / "__init__.py"), [*package_stub(path), "__version__: str"]
    yield (path := CUPLUG / "array_api" / "__init__.py"), functions_stub(path)
    for path in CUPLUG.rglob("*.pyx"):
        if not path.with_suffix(".pyi").exists():
            yield path, module_stub(path)


def main() -> None:
    """Write all stubs, and remove the stubs of deleted modules."""
    folder, classes, made = Path(sys.argv[1]), index(), {Path(sys.argv[1], "cuplug", "ops.pyi")}
    for path, lines in stubs():
        target = folder / path.relative_to(SOURCES).with_suffix(".pyi")
        text = [*imports(lines, path, classes), *lines]
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("\n".join(["# SPDX-License-Identifier: Apache-2.0", *text, ""]))
        made.add(target)
    for path in folder.rglob("*.pyi"):
        if path not in made and not path.is_symlink():
            path.unlink()


if __name__ == "__main__":
    main()
