# SPDX-License-Identifier: Apache-2.0
"""Functions of libraries that know nothing of cuplug as operators, by their C prototypes."""

from __future__ import annotations

import ast
import os
from collections.abc import Mapping
from functools import cache
from types import SimpleNamespace
from typing import Any

from cuplug.adoption.description import (
    RETURNS,
    Items,
    check_description,
    plugin_name,
    read_sidecar,
)
from cuplug.adoption.entry import define_adopted
from cuplug.base.checks import absolute
from cuplug.base.dtypes import DTYPES
from cuplug.base.public import PublicCall, public
from cuplug.call.operator import Operator
from cuplug.call.pickled import PickledOperator
from cuplug.discovery.fields import check_trust
from cuplug.errors import CudaError, NotFoundError, PluginError
from cuplug.signature import formula
from cuplug.signature import signature as signatures
from cuplug.signature.signature import Parameter

# What prototypes may use without saying what it is.
KNOWN_TYPES = """
typedef struct CUstream_st *cudaStream_t;
typedef cudaStream_t CUstream;
typedef int cudaError_t;
"""

loaded: set[str] = set()  # libraries in the process


@public
def adopt(
    path: str | os.PathLike[str], description: Mapping[str, Any] | None = None
) -> SimpleNamespace:
    """Make operators of functions in a shared library that was not written for cuplug.

    The library is loaded at once and stays loaded. Nothing can tell whether a prototype is that of
    the function: a wrong one reads or overwrites memory, or ends the process.

    Parameters
    ----------
    path : str or path
        The library; a name that is no file here, "libm.so.6", is the dynamic linker's to find.
    description : mapping, optional
        Without one it is read from the file beside the library, lib<name>.cuplug.toml. It has
        `prototypes`, C declarations, and for each operator a mapping by the operator's name:

        - `signature`: as in a plugin; each array has one dtype.
        - `arguments`: what the function is given, in its order: names of arrays, scalars and
          dimensions, `stream`, and integers by `+ - * // %`, `min`, `max`, `size(x)`.
        - `function`: its name, the operator's without.
        - `place`: "host" (without) or "cuda", where arrays must be.
        - `returns`: of an integer: "zero" (without) is success; "one" is; "cuda", a cudaError_t;
          "errno", a negative errno; "ignored". Or the name of an output without dimensions, which
          is what the function returns. A function may also return void.
        - `doc`: one line.

    Returns
    -------
    SimpleNamespace
        The operators, by name.

    Raises
    ------
    ValueError
        The description is wrong, or does not fit the prototypes.
    PluginError
        The library is refused, cannot be loaded, or does not have a function; or cffi is not
        installed.
    """
    place = absolute("adopt", path)
    if not (os.path.dirname(os.fsdecode(path)) or os.path.exists(place)):
        place = os.fsdecode(path)
    if description is None:
        description = read_sidecar(place)
    prototypes, operators = check_description(os.fsdecode(path), description)
    return SimpleNamespace(
        **{name: _adopt(place, prototypes, name, items) for name, items in operators.items()}
    )


@cache
def _adopt(path: str, prototypes: str, name: str, items: Items) -> Operator:
    adopted = Adopted(name, dict(items), *_load(path, prototypes))
    described = {"prototypes": prototypes, name: dict(items)}
    made = PublicCall(PickledOperator, adopt, (path, described), name)
    return define_adopted(adopted, plugin_name(path), path, dict(items).get("doc", ""), made)


@cache
def _load(path: str, prototypes: str) -> tuple[Any, Any]:
    try:
        import cffi
    except ImportError:
        raise PluginError("adopt: cffi is not installed, wanted: pip install cffi") from None
    ffi = cffi.FFI()
    ffi.cdef(KNOWN_TYPES)
    try:
        ffi.cdef(prototypes, override=True)
    except (cffi.CDefError, cffi.FFIError) as error:
        raise ValueError(f"{path}: prototypes: {error}") from None
    place = os.path.realpath(path) if os.sep in path else path  # the dynamic linker's to find
    try:
        if os.sep in path:
            check_trust(place)
        opened = ffi.dlopen(place)
    except (NotFoundError, OSError, PluginError) as error:
        raise PluginError(f"{path}: {error}") from None
    loaded.add(path)
    return ffi, opened


class Adopted:
    """One function: what it is given and what it returns.

    `name`, `text` (of the signature), `place`, `members` (of the union of each scalar),
    `takes_stream` and `numbers` (that the core works out: a term, and the id of its type) are read
    by whoever calls `call`.
    """

    def __init__(self, name: str, description: dict[str, str], ffi: Any, library: Any) -> None:
        self.name, self.text = name, description["signature"]
        self.place = description.get("place", "host")
        self.returns = description.get("returns", "zero")
        self.scope = formula.read_scope(signatures.parse(self.text))
        if self.scope.signature.name != name:
            raise ValueError(f"{name}: signature: seen {self.scope.signature.name}, wanted {name}")
        self.ffi = ffi
        self.function = _find(library, description.get("function", name), name)
        self.type = ffi.typeof(self.function)
        scalars = [self.scope.parameter(x) for x in self.scope.scalars]
        self.members = [DTYPES[self._dtype(x)].member for x in scalars]
        self.value = self._read_value()
        self.numbers: list[tuple[formula.Term, int]] = []
        self.terms_at = 0
        self._check()
        nodes = formula.parse(description["arguments"], f"{name}: arguments")
        self.takes_stream = any(_name(x) == "stream" for x in nodes)
        self.given = self._match(nodes)

    def _dtype(self, x: Parameter) -> str:
        """Return the only dtype of an array or a scalar."""
        dtypes = self.scope.signature.dtypes(x)
        if not dtypes and x.kind == "choice":
            return "int64"
        if len(dtypes) != 1 or (dtypes[0].startswith("complex") and not x.is_array):
            seen = ", ".join(dtypes) or x.kind
            raise ValueError(f"{self.name}: {x.name}: seen {seen}, wanted one real dtype")
        return dtypes[0]

    def _read_value(self) -> tuple[int, str] | None:
        """Return the number and the dtype of the output that the function returns."""
        outputs = {x.name: x for x in self.scope.signature.outputs if x.name}
        if self.returns in RETURNS:
            return None
        if self.returns not in outputs:
            known = " or ".join(map(repr, [*RETURNS, *outputs]))
            raise ValueError(f"{self.name}: returns: seen {self.returns!r}, wanted {known}")
        x = outputs[self.returns]
        dtype, result = self._dtype(x), self.type.result
        fits = result.kind == "primitive" and _is_element(self.ffi, result, dtype)
        if x.dims or self.place != "host" or not fits:
            seen = f"seen {result.cname} for {dtype}[{self.scope.signature.shape(x)}]"
            raise ValueError(
                f"{self.name}: returns: {seen}, wanted the same type, an output without "
                "dimensions, and a function for the host"
            )
        return self.scope.arrays[x.name], dtype

    def _check(self) -> None:
        """See that the function can be called at all."""
        if any(kind == "unknown" for x in self.scope.signature.arrays for kind, _ in x.dims):
            raise ValueError(f"{self.name}: signature: seen ?, wanted sizes that are known")
        result = self.type.result
        is_status = result.kind == "void" or (result.kind == "primitive" and not _is_float(result))
        if self.type.ellipsis or not (is_status or self.value or self.returns == "ignored"):
            raise ValueError(
                f"{self.name}: seen {self.type.cname}, wanted int or void, or an output that "
                "`returns` names, and no ..."
            )

    def _match(self, nodes: list[ast.expr]) -> list[tuple[str, int]]:
        """Return where each parameter is given from, and its number there."""
        wanted = len(self.type.args)
        if len(nodes) != wanted:
            seen = f"seen {len(nodes)}, wanted {wanted} for {self.type.cname}"
            raise ValueError(f"{self.name}: arguments: {seen}")
        given = []
        for node, kind in zip(nodes, self.type.args, strict=True):
            found = self._source(node, kind)
            if found is None:
                text = ast.unparse(node)
                raise ValueError(f"{self.name}: arguments: seen {text}, wanted {kind.cname}")
            given.append(found)
        for at, x in enumerate(self.scope.signature.arrays):
            is_value = self.value is not None and self.value[0] == at
            if x.kind == "output" and (("array", at) in given) == is_value:
                name = x.name or "output with a name"
                text = f"seen no {name}, wanted every output among them"
                if is_value:
                    text = f"seen {name}, wanted it left out: it is returned"
                raise ValueError(f"{self.name}: arguments: {text}")
        return given

    def _source(self, node: ast.expr, kind: Any) -> tuple[str, int] | None:
        """Return what a parameter is given; None where it does not fit."""
        name = _name(node)
        if name == "stream":
            fits = self.place == "cuda" and kind.kind == "pointer"
            return ("stream", 0) if fits else None
        if name in self.scope.arrays:
            dtype = self._dtype(self.scope.parameter(name))
            fits = kind.kind == "pointer" and _is_element(self.ffi, kind.item, dtype)
            return ("array", self.scope.arrays[name]) if fits else None
        if name in self.scope.scalars and self.members[self.scope.scalars[name]] == "f":
            return ("scalar", self.scope.scalars[name]) if _is_float(kind) else None
        made = formula.term(node, self.scope, f"{self.name}: arguments")
        if kind.kind != "primitive" or _is_float(kind):
            return None
        type = self._integer(kind)
        is_unsigned = name in self.scope.scalars and self.members[self.scope.scalars[name]] == "u"
        if is_unsigned and type == DTYPES["uint64"].id:  # whose values no formula may have
            return "scalar", self.scope.scalars[name]
        self.numbers.append((made, type))
        return "number", len(self.numbers) - 1

    def _integer(self, kind: Any) -> int:
        """Return the id of an integer type."""
        if kind.cname == "_Bool":
            return DTYPES["bool"].id
        sign = "" if _is_signed(self.ffi, kind) else "u"
        return DTYPES[f"{sign}int{8 * self.ffi.sizeof(kind)}"].id

    def call(self, arrays: list[Any], scalars: list[Any], numbers: list[int], stream: int) -> None:
        """Call the function; not for empty outputs, as what there is to do has been done."""
        own = self.scope.signature.arrays
        written = [at for at, x in enumerate(own) if x.kind in ("inout", "output")]
        if written and not any(arrays[at][1] for at in written):
            return
        addresses = [address for address, _ in arrays]
        sources = {"array": addresses, "scalar": scalars, "number": numbers, "stream": [stream]}
        values = [
            self.ffi.cast(kind, sources[source][at])
            if kind.kind == "pointer"
            else sources[source][at]
            for (source, at), kind in zip(self.given, self.type.args, strict=True)
        ]
        result = self.function(*values)
        if self.value is None:
            self._check_result(result)
        else:
            at, dtype = self.value
            self.ffi.cast(f"{DTYPES[dtype].stored} *", addresses[at])[0] = result

    def _check_result(self, result: int | None) -> None:
        if result is None or self.returns == "ignored":
            return
        if self.returns == "one" and result != 1:
            raise PluginError(f"{self.name}: the function returned {result}, wanted 1")
        if self.returns == "cuda" and result:
            raise CudaError(f"{self.name}: CUDA error {result}", result)
        if self.returns == "errno" and result < 0:
            raise OSError(-result, f"{self.name}: {os.strerror(-result)}")
        if self.returns == "zero" and result:
            raise PluginError(f"{self.name}: the function returned {result}, wanted 0")


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def _find(library: Any, function: str, name: str) -> Any:
    try:
        return getattr(library, function)
    except AttributeError as error:
        raise PluginError(f"{name}: {function}: {error}") from None


def _is_element(ffi: Any, item: Any, dtype: str) -> bool:
    """Whether a pointer to `item` may point to elements of a dtype."""
    if item.kind == "void":
        return True
    if item.kind != "primitive" or dtype.startswith(("complex", "float8")):
        return False
    wanted = ffi.typeof(DTYPES[dtype].stored)
    return bool(
        ffi.sizeof(item) == ffi.sizeof(wanted)
        and _is_float(item) == _is_float(wanted)
        and (dtype == "bool" or _is_signed(ffi, item) == _is_signed(ffi, wanted))
    )


def _is_float(kind: Any) -> bool:
    return kind.cname in ("float", "double", "long double")


def _is_signed(ffi: Any, kind: Any) -> bool:
    return _is_float(kind) or int(ffi.cast(kind, -1)) < 0
