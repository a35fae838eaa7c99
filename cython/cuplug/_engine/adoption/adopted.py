# SPDX-License-Identifier: Apache-2.0
"""One adopted function: its arguments held against its prototype, and its calls."""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

from cuplug._engine.adoption.arguments import CONSTANT, Arguments
from cuplug._engine.adoption.description import RETURNS
from cuplug._engine.adoption.prototypes import (
    LETTERS,
    Prototypes,
    is_element,
    is_float,
    is_integer,
    is_signed,
)
from cuplug._engine.base.dtypes import DTYPES
from cuplug._engine.signature import formula
from cuplug._engine.signature.signature import Parameter
from cuplug.errors import CudaError, PluginError

ALIGNMENT = 64  # of copies, as of memory that cuplug makes
Array = tuple[int, int, tuple[int, ...]]  # address, number of elements, shape


class Adopted(Arguments):
    """One function: what it is given and what it returns.

    `name`, `text` (of the signature), `place`, `members` (of the union of each scalar),
    `takes_stream` and `numbers` (that the core works out: a term, and the id of its type) are read
    by whoever calls `call`. Without a `function`, it is only described.
    """

    def __init__(self, name: str, description: Mapping[str, str], prototypes: Prototypes) -> None:
        super().__init__(name, description)
        self.prototypes = prototypes
        declared = prototypes.function(description.get("function", name), name)
        self.ffi, self.type, self.const = declared
        self.function: Any = None
        self.library = ""  # whose function that is
        self.value = self._read_value()
        self.numbers: list[tuple[formula.Term, int]] = []
        self.terms_at = 0
        self.kept: list[Any] = []  # constants, as the function is given them
        own = (*self.scope.signature.parameters, *self.scope.signature.outputs)
        self.names = {*(x.name for x in own), *self.scope.signature.dim_names}
        self.scratch_at = {x.name: k for k, x in enumerate(self.scratch)}
        self.queries = {x.query: k for k, x in enumerate(self.scratch) if x.query}
        self._check_type()
        self.given = self._match()
        self.n_arguments = len(self.numbers)  # the others are sizes of scratch
        int64 = DTYPES["int64"].id
        self.numbers += [(x.term, int64) for x in self.scratch if x.term is not None]
        self.written = [at for at, x in enumerate(self.arrays) if x.kind in ("inout", "output")]
        self._check_outputs()
        self.copied = self._not_const()
        self.by_rows = self._goes_by_rows()
        self.needs_shapes = self.by_rows or self.by_columns
        self.lock: Any = nullcontext()

    def _read_value(self) -> tuple[int, str] | None:
        """Return the number and the dtype of the output that the function returns."""
        if self.returns in RETURNS:
            return None
        x, result = self.scope.parameter(self.returns), self.type.result
        dtype = self.dtype(x)
        fits = result.kind in ("primitive", "enum") and is_element(self.ffi, result, dtype)
        if any(kind != "loop" for kind, _ in x.dims) or self.place != "host" or not fits:
            seen = f"got {result.cname} for {dtype}[{self.scope.signature.shape(x)}]"
            raise ValueError(
                f"{self.name}: returns: {seen}, expected the same type, an output without "
                "dimensions, and a function for the host"
            )
        return self.scope.arrays[x.name], dtype

    def _check_type(self) -> None:
        """See that the function can be called at all."""
        result = self.type.result
        is_status = result.kind == "void" or is_integer(result)
        if self.type.ellipsis or not (is_status or self.value or self.returns == "ignored"):
            raise ValueError(
                f"{self.name}: got {self.type.cname}, expected int or void, or an output that "
                "`returns` names, and no ..."
            )

    def _match(self) -> list[tuple[str, int]]:
        """Return where each parameter is given from, and its number there."""
        terms, wanted = self.terms, len(self.type.args)
        if len(terms) != wanted:
            seen = f"got {len(terms)}, expected {wanted} for {self.type.cname}"
            raise ValueError(f"{self.name}: arguments: {seen}")
        given = []
        for term, kind in zip(terms, self.type.args, strict=True):
            found = self._source(term, kind)
            if found is None:
                raise ValueError(f"{self.name}: arguments: got {term.text}, expected {kind.cname}")
            given.append(found)
        return given

    def _source(self, term: formula.Term, kind: Any) -> tuple[str, int] | None:
        """Return what a parameter is given; None where it does not fit."""
        name = term.text
        if name == "stream":
            fits = self.place == "cuda" and kind.kind == "pointer"
            return ("stream", 0) if fits else None
        if name == "status":
            return ("status", 0) if kind.kind == "pointer" and is_integer(kind.item) else None
        if name in self.constants or (name not in self.names and CONSTANT.fullmatch(name)):
            return self._constant(name, kind)
        if name in self.queries:
            return ("query", self.queries[name]) if is_integer(_target(kind)) else None
        if name in self.scratch_at:
            fits = kind.kind == "pointer" and is_element(
                self.ffi, kind.item, self.scratch[self.scratch_at[name]].dtype
            )
            return ("scratch", self.scratch_at[name]) if fits else None
        if name in self.scope.arrays:
            fits = kind.kind == "pointer" and self._is_element(self.scope.parameter(name), kind)
            return ("array", self.scope.arrays[name]) if fits else None
        if name in self.scope.scalars and self.members[self.scope.scalars[name]] == "s":
            return ("scalar", self.scope.scalars[name]) if _is_text(kind) else None
        kind = _target(kind)  # Fortran takes numbers by their address
        if self.is_float(name):
            return ("scalar", self.scope.scalars[name]) if is_float(kind) else None
        if not is_integer(kind):
            return None
        type = self._integer(kind)
        is_unsigned = name in self.scope.scalars and self.members[self.scope.scalars[name]] == "u"
        if is_unsigned and type == DTYPES["uint64"].id:  # whose values no formula may have
            return "scalar", self.scope.scalars[name]
        self.numbers.append((term, type))
        return "number", len(self.numbers) - 1

    def _is_element(self, x: Parameter, kind: Any) -> bool:
        """Return whether a pointer fits an array, whose last dimension counts members."""
        dtype = self.dtype(x)
        if not is_element(self.ffi, kind.item, dtype):
            return False
        if kind.item.kind not in ("array", "struct"):
            return True
        n_parts = self.ffi.sizeof(kind.item) // DTYPES[dtype].n_bytes
        return n_parts == 1 or x.dims[-1:] == (("fixed", n_parts),)

    def _constant(self, name: str, kind: Any) -> tuple[str, int] | None:
        """Return where a text, a fraction, NULL or a value of an enum is kept."""
        value: Any = self.constants.get(name)
        if isinstance(value, str):
            found = self.ffi.new("char[]", value.encode()) if _is_text(kind) else None
        elif value is not None:
            found = self._at_address(kind, value) if is_float(_target(kind)) else None
        elif name == "NULL":
            found = self.ffi.NULL if kind.kind == "pointer" else None
        else:
            known = self.prototypes.constants
            if name not in known:
                raise ValueError(
                    f"{self.name}: arguments: got {name}, expected a name of the signature, NULL "
                    "or a constant that the prototypes declare"
                )
            found = self._at_address(kind, known[name]) if is_integer(_target(kind)) else None
        if found is None:
            return None
        self.kept.append(found)
        return "constant", len(self.kept) - 1

    def _at_address(self, kind: Any, value: Any) -> Any:
        """Return a number, or for a pointer memory that has it."""
        return self.ffi.new(kind, value) if kind.kind == "pointer" else value

    def _integer(self, kind: Any) -> int:
        """Return the id of an integer type."""
        if kind.cname == "_Bool":
            return DTYPES["bool"].id
        sign = "" if is_signed(self.ffi, kind) else "u"
        return DTYPES[f"{sign}int{8 * self.ffi.sizeof(kind)}"].id

    def _check_outputs(self) -> None:
        """See that all that is written has a parameter, and none that must not be written."""
        for at, x in enumerate(self.arrays):
            is_value = self.value is not None and self.value[0] == at
            if x.kind == "output" and (("array", at) in self.given) == is_value:
                name = x.name or "output with a name"
                text = f"got no {name}, expected every output among them"
                if is_value:
                    text = f"got {name}, expected it left out: it is returned"
                raise ValueError(f"{self.name}: arguments: {text}")
            const = [self.const[k] for k, given in enumerate(self.given) if given == ("array", at)]
            if at in self.written and const and all(const):
                raise ValueError(
                    f"{self.name}: arguments: got {x.name} for a pointer to const, expected one "
                    f"that is not const: {x.name} is written; correct the prototype or the "
                    "signature"
                )

    def _not_const(self) -> list[int]:
        """Return the inputs on the host that the function could write: it is given copies."""
        pairs = zip(self.given, self.const, strict=True)
        given = {at for (source, at), const in pairs if source == "array" and not const}
        return sorted(given.difference(self.written)) if self.place == "host" else []

    def _goes_by_rows(self) -> bool:
        """Return whether the function is called once for each row of the loop dimensions.

        One that is told how many rows there are, or elements, is called once for all.
        """
        looped = [x for x in self.arrays if formula.n_behind_loops(x) is not None]
        if not looped or formula.counts_loops(self.terms, self.scope):
            return False
        is_leading = all(x.dims[0][0] == "loop" for x in looped)
        if is_leading and all(
            formula.n_behind_loops(self.arrays[at]) is not None for at in self.written
        ):
            return True
        raise ValueError(
            f"{self.name}: signature: got loop dimensions that the arguments do not count, "
            "expected size(x) of an array that has them among the arguments, or `...` first in "
            "all arrays that have it, with every output among these"
        )

    def call(
        self, arrays: list[Array], scalars: list[Any], numbers: list[int], stream: int
    ) -> None:
        """Call the function; not for empty outputs, as what there is to do has been done."""
        if self.written and not any(arrays[at][1] for at in self.written):
            return
        self._check_floats(scalars)
        addresses = [address for address, _, _ in arrays]
        kept = [self._copy(addresses, at, arrays[at][1]) for at in self.copied if addresses[at]]
        sources = {"scalar": scalars, "number": numbers, "stream": [stream], "constant": self.kept}
        sources["scratch"] = self._make_scratch(numbers[self.n_arguments :])
        with self.lock:
            for row in self._rows(addresses, arrays):
                with self._in_columns(row, arrays) as addresses:
                    sources["array"] = addresses
                    self._call_row(self._ask(sources) if self.queries else sources)
        del kept

    def _make_scratch(self, sizes: list[int]) -> list[Any]:
        """Make the memory that the function works in; one element where it is to say the size."""
        left = iter(sizes)
        counts = [1 if x.term is None else max(next(left), 1) for x in self.scratch]
        pairs = zip(self.scratch, counts, strict=True)
        return [self.ffi.new(f"{DTYPES[x.dtype].stored}[]", n) for x, n in pairs]

    def _ask(self, sources: dict[str, list[Any]]) -> dict[str, list[Any]]:
        """Call the function for the sizes of its scratch, as LAPACK does with -1."""
        asked = {**sources, "query": [-1] * len(self.scratch)}
        self._call_row(asked)
        counts = [int(x[0].real) for x in asked["scratch"]]
        made = [
            self.ffi.new(f"{DTYPES[x.dtype].stored}[]", max(n, 1)) if x.query else memory
            for x, n, memory in zip(self.scratch, counts, sources["scratch"], strict=True)
        ]
        return {**sources, "query": counts, "scratch": made}

    @contextmanager
    def _in_columns(self, row: list[int], arrays: list[Array]) -> Iterator[list[int]]:
        """Give addresses of copies in Fortran's order, and copy what is written back."""
        if not self.by_columns:
            yield row
            return
        views = [self._view(at, row[at], arrays[at][2]) for at in range(len(row))]
        turned = {at: view.T.copy() for at, view in enumerate(views) if view is not None}
        yield [turned[at].ctypes.data if at in turned else x for at, x in enumerate(row)]
        for at in self.written:
            if at in turned:
                views[at][...] = turned[at].T

    def _view(self, at: int, address: int, shape: tuple[int, ...]) -> Any:
        """Return the array of one row in NumPy; None with less than two dimensions."""
        n_own = formula.n_behind_loops(self.arrays[at]) if self.by_rows else None
        own = shape if n_own is None else shape[len(shape) - n_own :]
        if len(own) < 2 or not address or 0 in own:
            return None
        import numpy

        dtype = DTYPES[self.dtype(self.arrays[at])]
        n_bytes = math.prod(own) * dtype.n_bytes
        memory = self.ffi.buffer(self.ffi.cast("char *", address), n_bytes)
        return numpy.frombuffer(memory, f"V{dtype.n_bytes}").reshape(own)

    def _rows(self, addresses: list[int], arrays: list[Array]) -> Iterator[list[int]]:
        """Yield the addresses of each row; with one for all, those of the arrays."""
        if not self.by_rows:
            yield addresses
            return
        steps, n_rows = [0] * len(arrays), 1
        for at, (x, (_, _, shape)) in enumerate(zip(self.arrays, arrays, strict=True)):
            n_own = formula.n_behind_loops(x)
            if n_own is None or not addresses[at]:
                continue
            steps[at] = math.prod(shape[len(shape) - n_own :]) * DTYPES[self.dtype(x)].n_bytes
            n_rows = math.prod(shape[: len(shape) - n_own])
        for row in range(n_rows):
            yield [address + row * step for address, step in zip(addresses, steps, strict=True)]

    def _copy(self, addresses: list[int], at: int, n_elements: int) -> Any:
        """Let an address be that of a copy; return who owns it."""
        n_bytes = n_elements * DTYPES[self.dtype(self.arrays[at])].n_bytes
        memory = self.ffi.new("char[]", n_bytes + ALIGNMENT)
        start = -int(self.ffi.cast("uintptr_t", memory)) % ALIGNMENT
        self.ffi.memmove(memory + start, self.ffi.cast("char *", addresses[at]), n_bytes)
        addresses[at] = int(self.ffi.cast("uintptr_t", memory + start))
        return memory

    def _check_floats(self, scalars: list[Any]) -> None:
        """See that no finite number becomes infinite where a parameter is a float."""
        for (source, at), kind in zip(self.given, self.type.args, strict=True):
            if source == "scalar" and kind.cname == "float":
                try:
                    struct.pack("<f", scalars[at])  # its native form does not check
                except OverflowError:
                    name = list(self.scope.scalars)[at]
                    raise ValueError(
                        f"{self.name}: {name}: got {scalars[at]}, expected a number that a float "
                        "of C can hold"
                    ) from None

    def _call_row(self, sources: dict[str, list[Any]]) -> None:
        status: list[Any] = []
        values = [
            self._value(source, at, kind, sources, status)
            for (source, at), kind in zip(self.given, self.type.args, strict=True)
        ]
        self.ffi.errno = 0
        result = self.function(*values)
        errno = self.ffi.errno
        if status:
            self._check_result(self._number(status[0][0]), errno)
        elif self.value is None:
            self._check_result(self._number(result), errno)
        else:
            at, dtype = self.value
            stored = DTYPES[dtype].stored
            place = self.ffi.cast(f"{stored} *", sources["array"][at])
            place[0] = self._number(result, stored)

    def _value(
        self, source: str, at: int, kind: Any, sources: dict[str, list[Any]], status: list[Any]
    ) -> Any:
        """Return one parameter as cffi takes it; memory for a status is added to the list."""
        if source == "status":
            status.append(self.ffi.new(kind))
            return status[0]
        value = sources[source][at]
        if source == "constant":
            return value
        if source == "scratch":
            return self.ffi.cast(kind, value)
        if source == "scalar" and self.members[at] == "s":
            return self.ffi.NULL if value is None else self.ffi.new("char[]", value)
        if kind.kind == "pointer" and source in ("scalar", "number", "query"):
            return self.ffi.new(kind, value)
        if kind.kind == "pointer" or kind.cname in LETTERS:
            return self.ffi.cast(kind, value)
        return value

    def _number(self, result: Any, stored: str = "") -> Any:
        """Return what a function returned; cffi has letters as text."""
        if not isinstance(result, bytes | str):
            return result
        sign = "" if is_signed(self.ffi, self.type.result) else "u"
        own = f"{sign}int{8 * self.ffi.sizeof(self.type.result)}_t"
        return int(self.ffi.cast(stored or own, ord(result)))

    def _check_result(self, result: int | None, errno: int) -> None:
        if result is None or self.returns == "ignored":
            return
        if self.returns == "nonzero" and not result:
            raise PluginError(f"{self.name}: the function returned 0, expected another number")
        if self.returns == "nonnegative" and result < 0:
            raise PluginError(f"{self.name}: the function returned {result}, expected 0 or more")
        if self.returns == "one" and result != 1:
            raise PluginError(f"{self.name}: the function returned {result}, expected 1")
        if self.returns == "cuda" and result:
            raise CudaError(f"{self.name}: CUDA error {result}", result)
        if self.returns == "errno" and result < 0:
            # -1 mostly says that errno does.
            number = errno if result == -1 and errno else -result
            raise OSError(number, f"{self.name}: {os.strerror(number)}")
        if self.returns == "zero" and result:
            raise PluginError(f"{self.name}: the function returned {result}, expected 0")


def _target(kind: Any) -> Any:
    """Return the type of a number, also of one that is passed by its address."""
    return kind.item if kind.kind == "pointer" else kind


def _is_text(kind: Any) -> bool:
    return bool(kind.kind == "pointer" and kind.item.cname in ("char", "void"))
