# SPDX-License-Identifier: Apache-2.0
"""One adopted function: its arguments, checked against its prototype."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cuplug._engine.adoption.arguments import CONSTANT, Arguments
from cuplug._engine.adoption.description import RETURNS
from cuplug._engine.adoption.prototypes import (
    Prototypes,
    fits,
    is_element,
    is_float,
    is_integer,
    is_signed,
    members,
)
from cuplug._engine.adoption.scratch import Scratch, stored_type
from cuplug._engine.base.dtypes import DTYPES
from cuplug._engine.signature import formula
from cuplug._engine.signature.signature import Parameter


class Adopted(Arguments):
    """One function: its arguments and its result.

    `name`, `text` (of the signature), `place`, `members` (of the union of each scalar),
    `takes_stream` and `numbers` (computed by the core: a term, and the id of its type) are read by
    the callers. Without `functions`, it is only described.
    """

    def __init__(self, name: str, description: Mapping[str, str], prototypes: Prototypes) -> None:
        super().__init__(name, description)
        self.prototypes = prototypes
        self.function = description.get("function", name)
        self.destroy, self.free = description.get("destroy", ""), description.get("free", "")
        self.functions: dict[str, Any] = {}  # of the library, by their names
        self.library = ""  # whose functions these are
        declared = prototypes.function(self.function, name)
        self.ffi, self.type, self.const = declared
        self.scratch_types = [self._scratch_type(x) for x in self.scratch]
        self.value = self._read_value()
        self.numbers: list[tuple[formula.Term, int]] = []
        self.kept: list[Any] = []  # constants, as passed to the function
        own = (*self.scope.signature.parameters, *self.scope.signature.outputs)
        self.names = {*(x.name for x in own), *self.scope.signature.dim_names}
        self.queries = {x.query: k for k, x in enumerate(self.scratch) if x.query}
        self._check_type()
        self.given = self._match(self.terms, self.type.args, "arguments", self.type.cname)
        self.filled = [self._match_values(k) for k in range(len(self.scratch))]
        self.made_type = self._read_made_type()
        self.n_arguments = len(self.numbers)  # the others are sizes of scratch and outputs
        self._add_sizes()
        self.written = [at for at, x in enumerate(self.arrays) if x.kind in ("inout", "output")]
        self._check_outputs()
        self.copied = self._not_const()
        self.by_rows = self._goes_by_rows()
        self.needs_shapes = self.by_rows or self.by_columns
        self.lock: Any = None
        self.floats = self._find_floats()

    def _scratch_type(self, x: Scratch) -> Any:
        """Return the type of one element."""
        try:
            kind = self.ffi.typeof(stored_type(x.type))
            self.ffi.sizeof(kind)
            return kind
        except Exception as error:
            raise ValueError(
                f"{self.name}: scratch: {x.name}: got {x.type}, expected a dtype, or a complete "
                f"type that the prototypes declare: {error}"
            ) from None

    def _add_sizes(self) -> None:
        """Let the core compute the sizes that are known before a call."""
        terms = [x.term for x in self.scratch if x.term is not None]
        terms += [size for x in self.unknown for size in x.sizes if isinstance(size, formula.Term)]
        self.numbers += [(term, DTYPES["int64"].id) for term in terms]

    def _read_value(self) -> tuple[str, int, str] | None:
        """Return the result's destination: an array or scratch with its number, or a handle."""
        if self.returns in RETURNS:
            return None
        result = self.type.result
        if self.returns == self.made:
            fits, found = result.kind == "pointer", ("made", 0, "")
        elif self.returns in self.scratch_at:
            at = self.scratch_at[self.returns]
            x = self.scratch[at]
            found = ("scratch", at, "")
            fits = result.kind == "pointer" if x.is_made else is_integer(result)
            fits = fits and (x.is_made or (not x.is_array and is_integer(self.scratch_types[at])))
        else:
            return self._read_output()
        if not fits:
            raise ValueError(
                f"{self.name}: returns: got {result.cname} for {self.returns}, expected a pointer "
                "for a handle or memory that the function makes, or an integer"
            )
        return found

    def _read_output(self) -> tuple[str, int, str]:
        x, result = self.scope.parameter(self.returns), self.type.result
        dtype = self.dtype(x)
        fits = result.kind in ("primitive", "enum") and is_element(self.ffi, result, dtype)
        if any(kind != "loop" for kind, _ in x.dims) or self.place != "host" or not fits:
            output = f"{dtype}[{self.scope.signature.shape(x)}]"
            raise ValueError(
                f"{self.name}: returns: got {result.cname} for {output}, expected the same type, "
                "an output without dimensions, and a function for the host"
            )
        return "array", self.scope.arrays[x.name], dtype

    def _read_made_type(self) -> Any:
        """Return the type of the pointer in the handle; None if the operator creates no handle."""
        if not self.made:
            return None
        kinds = [
            kind
            for (source, _), kind in zip(self.given, self.type.args, strict=True)
            if source == "made"
        ]
        if (self.value is not None and self.value[0] == "made") == bool(kinds):
            raise ValueError(
                f"{self.name}: arguments: got {self.made} {'twice' if kinds else 'nowhere'}, "
                "expected it among them, or as the result"
            )
        self.is_in_place = bool(kinds) and kinds[0].item.kind == "struct"
        made = kinds[0] if kinds else self.type.result
        made = made.item if kinds and not self.is_in_place else made
        args = self.prototypes.function(self.destroy, self.name).type.args
        if len(args) != 1 or not (
            fits(made, args[0]) or fits(made, getattr(args[0], "item", None))
        ):
            raise ValueError(
                f"{self.name}: destroy: got {self.destroy}, expected a function of {made.cname}"
            )
        return made

    def _check_type(self) -> None:
        """Check that the function can be called."""
        result = self.type.result
        is_status = result.kind == "void" or is_integer(result)
        if self.type.ellipsis or not (is_status or self.value or self.returns == "ignored"):
            raise ValueError(
                f"{self.name}: got {self.type.cname}, expected int or void, or an output that "
                "`returns` names, and no ..."
            )

    def _match(
        self, terms: list[formula.Term], kinds: Sequence[Any], what: str, whole: str
    ) -> list[tuple[str, int]]:
        """Return the source of each parameter or member, and its number there."""
        if len(terms) != len(kinds):
            n, expected = len(terms), f"{len(kinds)} for {whole}"
            raise ValueError(f"{self.name}: {what}: got {n}, expected {expected}")
        given = []
        for term, kind in zip(terms, kinds, strict=True):
            found = self._source(term, kind)
            if found is None:
                raise ValueError(f"{self.name}: {what}: got {term.text}, expected {kind.cname}")
            given.append(found)
        return given

    def _match_values(self, at: int) -> list[tuple[str, int]]:
        """Return the sources of the values that scratch holds before a call."""
        x, kind = self.scratch[at], self.scratch_types[at]
        kinds = members(kind) if kind.kind == "struct" else [kind]
        what = f"scratch: {x.name}"
        return self._match(self.values[at], kinds, what, kind.cname) if x.values else []

    def _source(self, term: formula.Term, kind: Any) -> tuple[str, int] | None:
        """Return the source of a parameter; None if it does not fit."""
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
            return self._scratch_source(self.scratch_at[name], kind)
        if name == self.made:
            is_place = kind.kind == "pointer" and (
                kind.item.kind == "pointer" or bool(getattr(kind.item, "fields", None))
            )
            return ("made", 0) if is_place else None
        if name in self.scope.scalars and self.members[self.scope.scalars[name]] == "h":
            found = kind.kind in ("pointer", "function")
            return ("handle", self.scope.scalars[name]) if found else None
        if name in self.scope.arrays:
            fits = kind.kind == "pointer" and self._is_element(self.scope.parameter(name), kind)
            return ("array", self.scope.arrays[name]) if fits else None
        if name in self.scope.scalars and self.members[self.scope.scalars[name]] == "s":
            return ("scalar", self.scope.scalars[name]) if _is_text(kind) else None
        kind = _target(kind)  # Fortran receives numbers by address
        if self.is_float(name):
            return ("scalar", self.scope.scalars[name]) if is_float(kind) else None
        if not is_integer(kind):
            return None
        type = self._integer(kind)
        is_unsigned = name in self.scope.scalars and self.members[self.scope.scalars[name]] == "u"
        if is_unsigned and type == DTYPES["uint64"].id:  # whose values cannot occur in formulas
            return "scalar", self.scope.scalars[name]
        self.numbers.append((term, type))
        return "number", len(self.numbers) - 1

    def _scratch_source(self, at: int, kind: Any) -> tuple[str, int] | None:
        x, own = self.scratch[at], self.scratch_types[at]
        if kind == own:
            return "value", at
        if kind.kind != "pointer":
            return None
        item = kind.item
        if x.is_made:
            is_place = item.kind == "pointer" and is_element(self.ffi, item.item, x.type)
            return ("scratch", at) if is_place else None
        is_own = item == own or (x.type in DTYPES and is_element(self.ffi, item, x.type))
        return ("scratch", at) if is_own or item.kind == "void" else None

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
        """Return the memory of a text, a fraction, NULL or a value of an enum."""
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
        """Return a number, or memory that contains it for a pointer."""
        return self.ffi.new(kind, value) if kind.kind == "pointer" else value

    def _integer(self, kind: Any) -> int:
        """Return the id of an integer type."""
        if kind.cname == "_Bool":
            return DTYPES["bool"].id
        sign = "" if is_signed(self.ffi, kind) else "u"
        return DTYPES[f"{sign}int{8 * self.ffi.sizeof(kind)}"].id

    def _check_outputs(self) -> None:
        """Check that every output has a parameter, and no array is written through const."""
        unknown = {x.at for x in self.unknown}
        for at, x in enumerate(self.arrays):
            if at in unknown:
                continue
            is_value = self.value is not None and self.value[:2] == ("array", at)
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
        """Return the host inputs to copy, which the function could write or retain."""
        pairs = zip(self.given, self.const, strict=True)
        given = {at for (source, at), const in pairs if source == "array" and not const}
        # The pointers of a structure do not show const.
        given |= {at for values in self.filled for source, at in values if source == "array"}
        given |= set(range(len(self.arrays))) if self.made else set()
        return sorted(given.difference(self.written)) if self.place == "host" else []

    def _find_floats(self) -> list[int]:
        """Return the scalars that the function receives as a `float`, whose range is smaller."""
        pairs = list(zip(self.given, self.type.args, strict=True))
        for given, own in zip(self.filled, self.scratch_types, strict=True):
            kinds = members(own) if own.kind == "struct" else [own]
            pairs += zip(given, kinds, strict=bool(given))
        found = [at for (x, at), kind in pairs if x == "scalar" and _target(kind).cname == "float"]
        return list(dict.fromkeys(found))

    def _goes_by_rows(self) -> bool:
        """Return whether the function is called once for each row of the loop dimensions.

        If it receives the number of rows or elements, it is called once for all.
        """
        looped = [x for x in self.arrays if formula.n_behind_loops(x) is not None]
        if not looped or self.unknown or self.made or formula.counts_loops(self.terms, self.scope):
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


def _target(kind: Any) -> Any:
    """Return the type of a number, also if it is passed by address."""
    return kind.item if kind.kind == "pointer" else kind


def _is_text(kind: Any) -> bool:
    return bool(kind.kind == "pointer" and kind.item.cname in ("char", "void"))
