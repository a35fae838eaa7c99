# SPDX-License-Identifier: Apache-2.0
"""Functions of libraries that know nothing of cuplug as operators, by their C prototypes."""

from __future__ import annotations

import ast
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from math import prod
from types import SimpleNamespace
from typing import Any

from cuplug.adoption.description import Items, check_description, plugin_name, read_sidecar
from cuplug.adoption.entry import define_adopted
from cuplug.base.checks import absolute
from cuplug.base.dtypes import DTYPES
from cuplug.base.public import PublicCall, public
from cuplug.call.operator import Operator
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
        The library.
    description : mapping, optional
        Without one it is read from the file beside the library, lib<name>.cuplug.toml. It has
        `prototypes`, C declarations, and for each operator a mapping by the operator's name:

        signature : as in a plugin; each array has one dtype.
        arguments : what the function is given, in its order: names of arrays, scalars and
            dimensions, `stream`, and integers by + - * // %, min, max, size(x).
        function : its name, the operator's without.
        place : "host" (without) or "cuda", where arrays must be.
        returns : of an integer: "zero" (without) is success; "cuda", a cudaError_t; "errno", a
            negative errno; "ignored". A function may also return void.
        doc : one line.

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
    if description is None:
        description = read_sidecar(place)
    prototypes, operators = check_description(os.fsdecode(path), description)
    return SimpleNamespace(
        **{name: _adopt(place, prototypes, name, items) for name, items in operators.items()}
    )


@cache
def _adopt(path: str, prototypes: str, name: str, items: Items) -> Operator:
    adopted = Adopted(name, dict(items), *_load(path, prototypes))
    again = PublicCall(adopt, path, {"prototypes": prototypes, name: dict(items)})
    made = PublicCall(getattr, again, name)
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
    place = os.path.realpath(path)
    try:
        check_trust(place)
        opened = ffi.dlopen(place)
    except (NotFoundError, OSError, PluginError) as error:
        raise PluginError(f"{path}: {error}") from None
    loaded.add(path)
    return ffi, opened


class Adopted:
    """One function: what it is given and what it returns.

    `name`, `text` (of the signature), `place`, `members` (of the union of each scalar) and
    `takes_stream` are read by whoever calls `call`.
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
        self.arguments = formula.parse(description["arguments"], f"{name}: arguments")
        self.takes_stream = any(_name(x) == "stream" for x in self.arguments)
        self._check()
        self.values = [
            compile(ast.fix_missing_locations(ast.Expression(x)), "<arguments>", "eval")
            for x in self.arguments
        ]

    def _dtype(self, x: Parameter) -> str:
        """Return the only dtype of an array or a scalar."""
        dtypes = self.scope.signature.dtypes(x)
        if not dtypes and x.kind == "choice":
            return "int64"
        if len(dtypes) != 1 or (dtypes[0].startswith("complex") and not x.is_array):
            seen = ", ".join(dtypes) or x.kind
            raise ValueError(f"{self.name}: {x.name}: seen {seen}, wanted one real dtype")
        return dtypes[0]

    def _check(self) -> None:
        """See that each argument fits the prototype's parameter."""
        if any(kind == "unknown" for x in self.scope.signature.arrays for kind, _ in x.dims):
            raise ValueError(f"{self.name}: signature: seen ?, wanted sizes that are known")
        if self.type.ellipsis or self.type.result.kind not in ("void", "primitive"):
            raise ValueError(f"{self.name}: seen {self.type.cname}, wanted int or void, and no ...")
        wanted = len(self.type.args)
        if len(self.arguments) != wanted:
            seen = f"seen {len(self.arguments)}, wanted {wanted} for {self.type.cname}"
            raise ValueError(f"{self.name}: arguments: {seen}")
        for node, kind in zip(self.arguments, self.type.args, strict=True):
            if not self._fits(node, kind):
                text = ast.unparse(node)
                raise ValueError(f"{self.name}: arguments: seen {text}, wanted {kind.cname}")

    def _fits(self, node: ast.expr, kind: Any) -> bool:
        name = _name(node)
        if name == "stream":
            return self.place == "cuda" and kind.kind == "pointer"
        if name in self.scope.arrays:
            dtype = self._dtype(self.scope.parameter(name))
            return kind.kind == "pointer" and _is_element(self.ffi, kind.item, dtype)
        is_float = kind.kind == "primitive" and kind.cname in ("float", "double")
        if name in self.scope.scalars and self.members[self.scope.scalars[name]] == "f":
            return is_float
        formula.steps(node, self.scope, f"{self.name}: arguments")
        return kind.kind == "primitive" and not is_float

    def call(self, arrays: list[Any], scalars: list[Any], stream: int) -> None:
        """Call the function; not for empty outputs, as what there is to do has been done."""
        own = self.scope.signature.arrays
        written = [at for at, x in enumerate(own) if x.kind in ("inout", "output")]
        if written and all(0 in arrays[at][1] for at in written):
            return
        known: dict[str, Any] = {"min": min, "max": max, "stream": stream, "size": _size}
        known |= {name: arrays[at][1][d] for name, (at, d) in self.scope.sizes.items()}
        known |= {name: scalars[at] for name, at in self.scope.scalars.items()}
        known |= {name: Array(*arrays[at]) for name, at in self.scope.arrays.items()}
        values = [self._value(k, eval(code, known)) for k, code in enumerate(self.values)]
        try:
            result = self.function(*values)
        except OverflowError as error:
            raise ValueError(f"{self.name}: {error}") from None
        self._check_result(result)

    def _value(self, k: int, value: Any) -> Any:
        kind = self.type.args[k]
        if kind.kind == "pointer":
            return self.ffi.cast(kind, value.address if isinstance(value, Array) else value)
        return value

    def _check_result(self, result: int | None) -> None:
        if not result or self.returns == "ignored":
            return
        if self.returns == "cuda":
            raise CudaError(f"{self.name}: CUDA error {result}", result)
        if self.returns == "errno" and result < 0:
            raise OSError(-result, f"{self.name}: {os.strerror(-result)}")
        if self.returns == "zero":
            raise PluginError(f"{self.name}: the function returned {result}, wanted 0")


@dataclass(frozen=True)
class Array:
    """Where an array of a call lies."""

    address: int
    shape: tuple[int, ...]


def _size(x: Array, dimension: int | None = None) -> int:
    return prod(x.shape) if dimension is None else x.shape[dimension]


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
        and (item.cname in ("float", "double")) == (wanted.cname in ("float", "double"))
        and (dtype == "bool" or _is_signed(ffi, item) == _is_signed(ffi, wanted))
    )


def _is_signed(ffi: Any, kind: Any) -> bool:
    return kind.cname in ("float", "double") or int(ffi.cast(kind, -1)) < 0
