# SPDX-License-Identifier: Apache-2.0
"""The program of an adopted function's calls without Python, and the C text of the call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from cuplug._engine.adoption.direct import CHECKED, MAX_BYTES, MAX_MANY, TYPES
from cuplug._engine.adoption.prototypes import is_float, is_integer, is_signed
from cuplug._engine.base.dtypes import DTYPES
from cuplug._engine.signature import formula

if TYPE_CHECKING:
    from cuplug._engine.adoption.adopted import Adopted

# A kind, its number, the type of its target, and a constant.
Source = tuple[str, int, str, int | float]
NOWHERE: Source = ("nowhere", 0, "", 0)
SYMBOL = "cuplug_function"


class Way(NamedTuple):
    """The steps of a call of one function."""

    text: str  # C text, the same for all functions of this type
    parameters: list[Source]
    once: list[tuple[int, Source]]  # numbers that memory holds before a call, by their offset
    each: list[tuple[int, Source]]  # and before each row
    blocks: list[tuple[int, int, int]]  # an array or -1, the number of its size, bytes of each
    n_bytes: int  # of the memory
    status: int  # the status's offset in it; -1: the function returns it
    status_type: str
    result_type: str  # "" for void
    value: Source  # the destination of the result
    returns: str
    n_own: list[int]  # of each array: dimensions after the loop dimensions, or -1
    written: list[int]
    by_rows: bool
    lock: Any


class _ByPython(Exception):
    """The call requires Python."""


def find_way(x: Adopted) -> Way | None:
    """Return the steps of a call without Python; None if it requires Python."""
    is_ordered = x.place == "cuda" and not x.takes_stream
    if x.made or x.unknown or x.queries or x.by_columns or is_ordered or not _are_few(x):
        return None
    try:
        return _Maker(x).make()
    except _ByPython:
        return None


def _are_few(x: Adopted) -> bool:
    handles = [at for values in (x.given, *x.filled) for kind, at in values if kind == "handle"]
    many = max(len(x.arrays), len(x.given), len(x.members), len(x.copied) + len(x.scratch))
    return many <= MAX_MANY and len(x.numbers) <= MAX_MANY and len(handles) == len(set(handles))


class _Maker:
    """Creates the way of one function."""

    def __init__(self, x: Adopted) -> None:
        self.x, self.n_bytes = x, 0
        self.blocks = [(at, -1, DTYPES[x.dtype(x.arrays[at])].n_bytes) for at in x.copied]
        self.each: list[tuple[int, Source]] = []
        self.places: list[Source] = []  # of scratch
        n_sizes = x.n_arguments
        for own, kind in zip(x.scratch, x.scratch_types, strict=True):
            if own.is_made:
                raise _ByPython
            if own.is_array:
                self.places.append(("block", len(self.blocks), "", 0))
                self.blocks.append((-1, n_sizes, x.ffi.sizeof(kind)))
                n_sizes += 1
            else:
                self.places.append(("memory", self.take(x.ffi.sizeof(kind)), "", 0))

    def make(self) -> Way:
        x = self.x
        once = []
        for at, given in enumerate(x.filled):
            kind = x.scratch_types[at]
            fields = kind.fields or () if kind.kind == "struct" else ()
            places = [(field.offset, field.type) for _, field in fields] or [(0, kind)]
            for (source, k), (offset, own) in zip(given, places, strict=bool(given)):
                once.append((self.places[at][1] + offset, self.value(source, k, own, False)))
        pairs = zip(x.given, x.type.args, x.const, strict=True)
        parameters = [self.value(*source, kind, const) for source, kind, const in pairs]
        result = x.type.result
        status = x.given.index(("status", 0)) if ("status", 0) in x.given else None
        kind = None if status is None else x.type.args[status].item
        result_type = "" if result.kind == "void" else self.type(result)
        if self.n_bytes > MAX_BYTES or (is_float(result) and x.returns in CHECKED):
            raise _ByPython
        n_own = [formula.n_behind_loops(own) for own in x.arrays]
        return Way(
            text=self.text(result_type),
            parameters=parameters,
            once=once,
            each=self.each,
            blocks=self.blocks,
            n_bytes=self.n_bytes,
            status=-1 if status is None else parameters[status][1],
            status_type="" if kind is None else self.type(kind),
            result_type=result_type,
            value=self.result(),
            returns=x.returns,
            n_own=[-1 if n is None else n for n in n_own],
            written=x.written,
            by_rows=x.by_rows,
            lock=x.lock,
        )

    def take(self, n_bytes: int) -> int:
        """Return the offset of memory of the call."""
        offset = (self.n_bytes + 15) // 16 * 16
        self.n_bytes = offset + n_bytes
        return offset

    def type(self, kind: Any) -> str:
        """Return the type of a stored number or pointer."""
        if kind.kind in ("pointer", "function"):
            return "void *"
        if kind.cname in ("float", "double"):
            return str(kind.cname)
        if not is_integer(kind):
            raise _ByPython
        sign = "" if is_signed(self.x.ffi, kind) else "u"
        return f"{sign}int{8 * self.x.ffi.sizeof(kind)}_t"

    def value(self, source: str, at: int, kind: Any, const: bool) -> Source:
        """Return the source of a parameter or a member of a structure."""
        x = self.x
        if source in ("array", "stream", "handle"):
            return source, at, "void *", 0
        if source == "scratch":
            return self.places[at]
        if source == "constant":
            kept = x.kept[at]
            is_number = isinstance(kept, int | float)
            value = kept if is_number else int(x.ffi.cast("uintptr_t", kept))
            return "constant", 0, self.type(kind), float(value) if is_float(kind) else value
        if source == "scalar" and x.members[at] == "s":
            if not const:  # of a copy
                raise _ByPython
            return "text", at, "void *", 0
        target = kind.item if kind.kind == "pointer" else kind
        if source == "status":
            return "memory", self.take(x.ffi.sizeof(target)), "", 0
        if source not in ("scalar", "number"):
            raise _ByPython
        own = "number"
        if source == "scalar":
            own = "float" if x.members[at] == "f" else "integer"
        given: Source = (own, at, self.type(target), 0)
        if target is kind:
            return given
        offset = self.take(x.ffi.sizeof(target))  # a number by its address
        self.each.append((offset, given))
        return "memory", offset, "", 0

    def result(self) -> Source:
        """Return the destination of the result."""
        x = self.x
        if x.value is None:
            return NOWHERE
        source, at, dtype = x.value
        if source == "array":
            return "array", at, self.stored(dtype), 0
        return "memory", self.places[at][1], self.type(x.scratch_types[at]), 0

    def stored(self, dtype: str) -> str:
        stored = "uint8_t" if dtype == "bool" else DTYPES[dtype].stored
        if stored not in TYPES:
            raise _ByPython
        return stored

    def text(self, result_type: str) -> str:
        types = [self.type(kind) for kind in self.x.type.args]
        given = ", ".join(_cast(x, f"x[{k}]") for k, x in enumerate(types))
        kind = f"{result_type or 'void'} (*)({', '.join(types) or 'void'})"
        to = f"result->{_member(result_type)} = " if result_type else ""
        return (
            "#include <stdint.h>\nunion slot { int64_t i; double f; void *p; };\n"
            f"void {SYMBOL}(void *function, const union slot *x, union slot *result) {{\n"
            f"  (void)x, (void)result;\n  {to}(({kind})function)({given});\n}}\n"
        )


def _member(type: str) -> str:
    return {"void *": "p", "float": "f", "double": "f"}.get(type, "i")


def _cast(type: str, slot: str) -> str:
    value = f"{slot}.{_member(type)}"
    return value if type == "void *" else f"({type}){value}"
