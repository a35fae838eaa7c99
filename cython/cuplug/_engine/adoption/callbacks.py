# SPDX-License-Identifier: Apache-2.0
"""Functions that a library calls back, in Python or compiled from C text."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, cast

from cuplug._engine import provider
from cuplug._engine.adoption.entry import define_adopted
from cuplug._engine.adoption.opaque import Opaque
from cuplug._engine.adoption.prototypes import Prototypes, is_element, is_float, is_integer
from cuplug._engine.adoption.watching import keep_error
from cuplug._engine.base.dtypes import DTYPES
from cuplug._engine.base.public import PublicCall
from cuplug._engine.signature import formula
from cuplug._engine.signature import signature as signatures
from cuplug._engine.signature.signature import Parameter

HEADERS = "#include <complex.h>\n#include <math.h>\n#include <stddef.h>\n#include <stdint.h>\n"
FAILED = {"zero": -1, "one": 0, "nonzero": 0, "nonnegative": -1, "ignored": 0}
SUCCESS = {"one": 1, "nonzero": 1}
NOT_USED = "_"  # represents a parameter that the Python function does not receive


class CallbackType:
    """Makes handles of functions that a library calls.

    Call it with a Python function, or with C text: an expression of the parameters, or
    statements. Sizes that the library does not pass are keywords.
    """

    def __init__(self, name: str, description: Mapping[str, str], prototypes: Prototypes) -> None:
        self.name = self.__name__ = name
        self.__doc__ = description.get("doc") or type(self).__doc__
        self.ffi, self.returns = prototypes.ffi, description.get("returns", "zero")
        self.scope = formula.read_scope(signatures.parse(description["signature"]))
        self.type = self._read_type(description["callback"])
        self.arguments = [x.strip() for x in description["arguments"].split(",") if x.strip()]
        self.arrays = {x.name: x for x in self.scope.signature.arrays}
        self._check()
        self.numbers: list[Any] = []
        self._wrapped: dict[int, Any] = {}  # functions that are getting a handle
        self.text = f"{self.name}(number: int) -> handle[{self.name}]"

    def _read_type(self, text: str) -> Any:
        try:
            kind = self.ffi.typeof(text)
        except Exception as error:
            raise ValueError(f"{self.name}: callback: {error}") from None
        if kind.kind != "function" or kind.ellipsis:
            raise ValueError(
                f"{self.name}: callback: got {text}, expected a pointer to a function: "
                "double (*)(double, void *)"
            )
        return kind

    def _check(self) -> None:
        """Compare the names of the arguments with the function's type."""
        if len(self.arguments) != len(self.type.args):
            n, expected = len(self.arguments), f"{len(self.type.args)} for {self.type.cname}"
            raise ValueError(f"{self.name}: arguments: got {n}, expected {expected}")
        for name, kind in zip(self.arguments, self.type.args, strict=True):
            if not self._fits(name, kind):
                raise ValueError(
                    f"{self.name}: arguments: got {name}, expected {kind.cname}, or _ for a "
                    "parameter that is not passed on"
                )
        given = {*self.arguments, self.returns}
        for x in (*self.scope.signature.parameters, *self.scope.signature.outputs):
            if x.name not in given:
                raise ValueError(f"{self.name}: arguments: got no {x.name}, expected it among them")
            if x.is_array and any(kind not in ("named", "fixed") for kind, _ in x.dims):
                shape = self.scope.signature.shape(x)
                raise ValueError(f"{self.name}: {x.name}: got [{shape}], expected names or numbers")

    def _fits(self, name: str, kind: Any) -> bool:
        if name == NOT_USED:
            return True
        if name in self.arrays:
            dtypes = self.scope.signature.dtypes(self.arrays[name])
            return kind.kind == "pointer" and is_element(self.ffi, kind.item, dtypes[0])
        is_known = name in self.scope.scalars or name in self.scope.signature.dim_names
        return is_known and (is_float(kind) or is_integer(kind))

    # The attributes of a function that `define_adopted` reads: a call makes the handle of the
    # number.
    place, members, takes_stream, needs_shapes, makes_handle = "host", ["i"], False, False, True

    def define(self, plugin: str, path: str, made: PublicCall) -> None:
        """Define the operator that makes the handles, with the pickled form of both."""
        self.operator, self._pickled = define_adopted(self, plugin, path, "", made), made

    def call(self, arrays: Any, scalars: list[int], numbers: Any, stream: int) -> Opaque:
        """Return the object for the handle of a function that was stored."""
        return Opaque(self.ffi, self._wrapped.pop(scalars[0]), "", lambda: None)

    def __call__(self, function: Callable[..., Any] | str, /, **sizes: int) -> Any:
        """Make a handle of a function of Python, or of C as text."""
        wanted = set(self.scope.signature.dim_names).difference(self.arguments)
        if set(sizes) != wanted:
            raise TypeError(
                f"{self.name}: got sizes {sorted(sizes)}, expected {sorted(wanted)}, which the "
                "library does not pass"
            )
        if isinstance(function, str):
            pointer = self._compile(function, sizes)
        elif callable(function):
            pointer = self._wrap(function, sizes)
        else:
            seen = type(function).__name__
            raise TypeError(f"{self.name}: got {seen}, expected a function, or C as text")
        self._wrapped[id(pointer)] = pointer
        return self.operator(id(pointer))

    def compile(self, program_at: int) -> None:
        """Make a handle, in Python."""

    def _wrap(self, function: Callable[..., Any], sizes: Mapping[str, int]) -> Any:
        """Return a C function that calls a Python function."""
        given = [x.name for x in self.scope.signature.parameters]
        outputs = [x for x in self.scope.signature.outputs if x.name in self.arguments]
        dims = self.scope.signature.dim_names

        def called(*values: Any) -> Any:
            named = dict(zip(self.arguments, values, strict=True))
            known = {**sizes, **{x: int(named[x]) for x in dims if x in named}}
            found = [self._given(x, named, known) for x in given]
            result = function(*found)
            if self.returns not in FAILED:
                return result
            places = [self._view(x, named[x.name], known) for x in outputs]
            answers = (result,) if len(outputs) == 1 else tuple(result or ())
            for place, answer in zip(places, answers, strict=True):
                place[...] = answer
            return None if self.type.result.kind == "void" else SUCCESS.get(self.returns, 0)

        failed = FAILED.get(self.returns, float("nan") if is_float(self.type.result) else 0)
        error = {} if self.type.result.kind == "void" else {"error": failed}
        return self.ffi.callback(self.type, called, onerror=keep_error, **error)

    def _given(self, name: str, named: Mapping[str, Any], known: Mapping[str, int]) -> Any:
        return (
            self._view(self.arrays[name], named[name], known)
            if name in self.arrays
            else named[name]
        )

    def _view(self, x: Parameter, pointer: Any, known: Mapping[str, int]) -> Any:
        """Return the library's memory as a NumPy array; inputs are read-only."""
        import numpy

        names = self.scope.signature.dim_names
        dims = [(kind, cast(int, value)) for kind, value in x.dims]
        shape = [known[names[value]] if kind == "named" else value for kind, value in dims]
        dtype = self.scope.signature.dtypes(x)[0]
        n_bytes = DTYPES[dtype].n_bytes * math.prod(shape)
        view = numpy.frombuffer(self.ffi.buffer(pointer, n_bytes), dtype).reshape(shape)
        view.flags.writeable = x.kind != "array"
        return view

    def _compile(self, text: str, sizes: Mapping[str, int]) -> Any:
        """Return a C function that computes an expression, or runs statements."""
        result = self.type.result
        if ";" in text:
            value = f"\nreturn {SUCCESS.get(self.returns, 0)};"
            body = text + ("" if result.kind == "void" or self.returns not in FAILED else value)
        else:
            body = f"return {text.strip()};"
        parameters = ", ".join(
            self._declare(kind, name if name != NOT_USED else f"unused_{k}")
            for k, (name, kind) in enumerate(zip(self.arguments, self.type.args, strict=True))
        )
        own = "".join(f"enum {{ {name} = {int(size)} }};\n" for name, size in sizes.items())
        declared = self._declare(result, f"cuplug_callback({parameters or 'void'})")
        source = f'{HEADERS}{own}{declared} {{\n#line 1 "{self.name}"\n{body}\n}}\n'
        compiler: Any = provider("host compiler")
        address = compiler.compile_host(source, "cuplug_callback", {self.name: text})
        return self.ffi.cast(self.type, address)

    def _declare(self, kind: Any, name: str) -> str:
        """Declare a parameter; the text cannot use types of the prototypes."""
        is_known = kind.kind != "pointer" or kind.item.kind == "primitive"
        return str(self.ffi.getctype(kind, name)) if is_known else f"void *{name}"

    def __reduce__(self) -> Any:
        return self._pickled.__reduce__()
