# SPDX-License-Identifier: Apache-2.0
"""Calls of one adopted function: their memory, their rows, and the use of the result."""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from cuplug._engine import provider
from cuplug._engine.adoption.adopted import Adopted
from cuplug._engine.adoption.opaque import Opaque
from cuplug._engine.adoption.programs import accept, set_function, set_thunk
from cuplug._engine.adoption.prototypes import LETTERS, fits, is_signed, members
from cuplug._engine.adoption.scratch import UnknownOutput, make_scratch, size_of
from cuplug._engine.adoption.watching import Watching, raise_pending
from cuplug._engine.adoption.ways import SYMBOL, find_way
from cuplug._engine.base.dtypes import DTYPES
from cuplug._engine.signature import formula
from cuplug.errors import CompileError, CudaError, PluginError

ALIGNMENT = 64  # of copies, as for memory of cuplug
Array = tuple[int, int, tuple[int, ...]]  # address, number of elements, shape


class AdoptedCall(Adopted):
    """One function, which can be called after `bind` has received the functions of the library."""

    program_at = 0  # the program of calls without Python, once compiled

    def bind(self, functions: dict[str, Any], library: str) -> None:
        """Call functions of a library from now on."""
        self.functions, self.library = functions, library
        if self.program_at:
            set_function(self.program_at, self._address())

    def _address(self) -> int:
        return int(self.ffi.cast("uintptr_t", self.functions[self.function]))

    def compile(self, program_at: int) -> None:
        """Make calls without Python from now on, if that is possible and a compiler exists."""
        way = find_way(self)
        if way is None:
            return
        compiler: Any = provider("host compiler")
        try:
            thunk = compiler.compile_host(way.text, SYMBOL, {self.name: ""})
        except (CompileError, OSError):
            return
        self.program_at = program_at
        set_function(program_at, self._address())
        set_thunk(program_at, thunk, way)

    def call(self, arrays: list[Array], scalars: list[Any], numbers: list[int], stream: int) -> Any:
        """Call the function; return the object for a handle, or outputs of unknown sizes.

        It is not called for empty outputs, which need no work.
        """
        if self.written and not self.unknown and not any(arrays[at][1] for at in self.written):
            return ()
        self._check_floats(scalars)
        addresses = [address for address, _, _ in arrays]
        kept = [self._copy(addresses, at, arrays[at][1]) for at in self.copied if addresses[at]]
        sources = {"scalar": scalars, "number": numbers, "stream": [stream], "constant": self.kept}
        left = iter(numbers[self.n_arguments :])
        sources["handle"], sources["array"] = scalars, addresses
        if self.scratch:
            sources["scratch"] = self._make_scratch(left)
            kept.append(self._fill_scratch(sources))
        if self.made:
            sources["made"] = [self._make_place()]
        with self.lock or nullcontext(), Watching():
            for row in self._rows(addresses, arrays):
                with self._in_columns(row, arrays) as addresses:
                    sources["array"] = addresses
                    self._call_row(self._ask(sources) if self.queries else sources)
        if self.made:
            return self._opaque(sources, kept)
        return [self._output(x, sources, left) for x in self.unknown]

    def _make_place(self) -> Any:
        """Make the memory of a pointer that becomes a handle, or of a handle's structure."""
        kind = self.made_type
        return self.ffi.new(kind if self.is_in_place else self.ffi.getctype(kind, "[1]"))

    def _opaque(self, sources: dict[str, list[Any]], kept: list[Any]) -> Opaque:
        """Return the handle's object, with all arguments of the function."""
        place = sources["made"][0]
        pointer = place if self.is_in_place else place[0]
        if not pointer:
            raise PluginError(f"{self.name}: got NULL from the function, expected a handle")
        destroy, lock = self.functions[self.destroy], self.lock
        wanted = self.ffi.typeof(destroy).args[0]
        given = pointer if fits(self.made_type, wanted) else self.ffi.new(wanted, pointer)

        def close() -> None:
            with lock or nullcontext():
                destroy(given)

        uses = [x for x in sources["scalar"] if isinstance(x, Opaque)]
        kept += [sources.get("scratch"), place]
        return Opaque(self.ffi, pointer, self.library, close, kept, uses)

    def _output(
        self, x: UnknownOutput, sources: dict[str, list[Any]], left: Iterator[int]
    ) -> tuple[int, tuple[int, ...], int, Any]:
        """Return the number, shape and address of an output of unknown size, and its owner."""
        pairs = zip(self.scratch, sources["scratch"], strict=True)
        places = {own.name: place for own, place in pairs}
        shape = tuple(
            size_of(size, places) if isinstance(size, str) else next(left) for size in x.sizes
        )
        source, what = places[x.source], f"{self.name}: {self.arrays[x.at].name}"
        if self.scratch[self.scratch_at[x.source]].is_made:
            source = source[0]
            if not source:
                raise PluginError(f"{what}: got NULL in {x.source}, expected memory")
            if self.free:
                source = self.ffi.gc(source, self.functions[self.free])
        elif math.prod(shape) > len(source):
            room = f"at most {len(source)} elements in {x.source}"
            raise PluginError(f"{what}: got shape {shape}, expected {room}")
        if min(shape) < 0:
            raise PluginError(f"{what}: got shape {shape}, expected sizes of 0 or more")
        return x.at, shape, int(self.ffi.cast("uintptr_t", source)), source

    def _make_scratch(self, sizes: Iterator[int]) -> list[Any]:
        """Make the function's workspace, or one element if the function reports the size."""
        counts = [1 if x.term is None else next(sizes) for x in self.scratch]
        pairs = zip(self.scratch, counts, strict=True)
        return [make_scratch(self.ffi, x, n) for x, n in pairs]

    def _fill_scratch(self, sources: dict[str, list[Any]]) -> list[Any]:
        """Set the values of scratch before the call; return the objects that they refer to."""
        kept: list[Any] = []
        for at, given in enumerate(self.filled):
            kind, memory = self.scratch_types[at], sources["scratch"][at]
            kinds = members(kind) if kind.kind == "struct" else [kind]
            values = [
                self._value(source, k, own, sources, kept)
                for (source, k), own in zip(given, kinds, strict=bool(given))
            ]
            kept += values
            if given:
                memory[0] = values if kind.kind == "struct" else values[0]
        return kept

    def _ask(self, sources: dict[str, list[Any]]) -> dict[str, list[Any]]:
        """Call the function for the sizes of its scratch, as LAPACK does with -1."""
        asked = {**sources, "query": [-1] * len(self.scratch)}
        self._call_row(asked)
        pairs = zip(self.scratch, asked["scratch"], strict=True)
        counts = [int(memory[0].real) if x.query else 0 for x, memory in pairs]
        made = [
            make_scratch(self.ffi, x, n) if x.query else memory
            for x, n, memory in zip(self.scratch, counts, sources["scratch"], strict=True)
        ]
        return {**sources, "query": counts, "scratch": made}

    @contextmanager
    def _in_columns(self, row: list[int], arrays: list[Array]) -> Iterator[list[int]]:
        """Yield the addresses of copies in Fortran order, and copy outputs back."""
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
        """Return the NumPy array of one row; None if it has less than two dimensions."""
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
        """Yield the addresses of each row, or of the arrays if one call computes all rows."""
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
        """Replace an address by the address of a copy; return the copy's owner."""
        n_bytes = n_elements * DTYPES[self.dtype(self.arrays[at])].n_bytes
        memory = self.ffi.new("char[]", n_bytes + ALIGNMENT)
        start = -int(self.ffi.cast("uintptr_t", memory)) % ALIGNMENT
        self.ffi.memmove(memory + start, self.ffi.cast("char *", addresses[at]), n_bytes)
        addresses[at] = int(self.ffi.cast("uintptr_t", memory + start))
        return memory

    def _check_floats(self, scalars: list[Any]) -> None:
        """Check that no finite number becomes infinite if a parameter is a float."""
        for at in self.floats:
            if scalars[at] is not None:
                try:
                    struct.pack("<f", scalars[at])  # its native form does not check
                except OverflowError:
                    name = list(self.scope.scalars)[at]
                    raise ValueError(
                        f"{self.name}: {name}: got {scalars[at]}, expected a number that a float "
                        "of C can hold"
                    ) from None

    def _call_row(self, sources: dict[str, list[Any]]) -> None:
        kept: list[Any] = []
        values = [
            self._value(source, at, kind, sources, kept)
            for (source, at), kind in zip(self.given, self.type.args, strict=True)
        ]
        self.ffi.errno = 0
        result = self.functions[self.function](*values)
        errno = self.ffi.errno
        raise_pending()
        if ("status", 0) in self.given:
            status = values[self.given.index(("status", 0))]
            return self.check_result(self._number(status[0]), errno)
        if self.value is None:
            return self.check_result(self._number(result), errno)
        self._keep_result(result, *self.value, sources)

    def _keep_result(
        self, result: Any, source: str, at: int, dtype: str, sources: dict[str, list[Any]]
    ) -> None:
        """Store the function's result in its destination."""
        if source == "array":
            stored = DTYPES[dtype].stored
            place = self.ffi.cast(f"{stored} *", sources["array"][at])
            place[0] = self._number(result, stored)
        elif result == self.ffi.NULL:
            raise PluginError(f"{self.name}: result: got NULL, expected a pointer")
        else:
            sources[source][at][0] = result

    def _value(
        self, source: str, at: int, kind: Any, sources: dict[str, list[Any]], kept: list[Any]
    ) -> Any:
        """Return one parameter in cffi's form; memory of its own is added to the list."""
        if source == "value":  # a structure
            return sources["scratch"][at][0]
        value = None if source == "status" else sources[source][at]
        if source == "constant":
            return value
        if source == "handle":
            return self._pointer(value, kind, at)
        if source in ("scratch", "made"):
            return self.ffi.cast(kind, value)
        if source == "scalar" and self.members[at] == "s":
            value = self.ffi.NULL if value is None else self.ffi.new("char[]", value)
            kept.append(value)
            return self.ffi.cast(kind, value) if value else value
        if source == "status" or (
            kind.kind == "pointer" and source in ("scalar", "number", "query")
        ):
            kept.append(self.ffi.new(kind) if value is None else self.ffi.new(kind, value))
            return kept[-1]
        if kind.kind == "pointer" or kind.cname in LETTERS:
            return self.ffi.cast(kind, value)
        return value

    def _pointer(self, value: Opaque | None, kind: Any, at: int) -> Any:
        """Return the pointer of a handle, which must be of the same code and type."""
        if value is None:
            return self.ffi.NULL
        if value.library not in ("", self.library) or not fits(
            self.ffi.typeof(value.pointer), kind
        ):
            raise TypeError(
                f"{self.name}: {list(self.scope.scalars)[at]}: got a handle of "
                f"{self.ffi.typeof(value.pointer).cname} of {value.library}, expected one of "
                f"{kind.cname} of {self.library}; make another one"
            )
        accept(self.program_at, at, value.type, value.library)
        return self.ffi.cast(kind, value.pointer)

    def _number(self, result: Any, stored: str = "") -> Any:
        """Return a function's result; cffi represents letters as text."""
        if not isinstance(result, bytes | str):
            return result
        sign = "" if is_signed(self.ffi, self.type.result) else "u"
        own = f"{sign}int{8 * self.ffi.sizeof(self.type.result)}_t"
        return int(self.ffi.cast(stored or own, ord(result)))

    def check_result(self, result: int | None, errno: int) -> None:
        """Raise the exception that the function's result requires."""
        if result is None or self.returns == "ignored":
            return
        if self.returns == "nonzero" and not result:
            raise PluginError(f"{self.name}: result: got 0, expected another number")
        if self.returns == "nonnegative" and result < 0:
            raise PluginError(f"{self.name}: result: got {result}, expected 0 or more")
        if self.returns == "one" and result != 1:
            raise PluginError(f"{self.name}: result: got {result}, expected 1")
        if self.returns == "cuda" and result:
            raise CudaError(f"{self.name}: CUDA error {result}", result)
        if self.returns == "errno" and result < 0:
            # -1 mostly means that errno has the reason.
            number = errno if result == -1 and errno else -result
            raise OSError(number, f"{self.name}: {os.strerror(number)}")
        if self.returns == "zero" and result:
            raise PluginError(f"{self.name}: result: got {result}, expected 0")
