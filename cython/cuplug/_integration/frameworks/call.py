# SPDX-License-Identifier: Apache-2.0
"""A call without elements, for libraries that trace, compile or defer computations.

PyTorch, JAX and Dask need the same facts about a call: its overload and outputs, the dimensions
along which it may be split, and the operator for its gradient. They differ in how they represent
unknown sizes, which a subclass of `Symbols` compares.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from cuplug._engine.call.operator import Operator
from cuplug._engine.lookup.gradient import find_gradient
from cuplug._engine.signature.call_signature import by_name
from cuplug._engine.signature.evaluate import ARRAYS, LOOP
from cuplug._engine.signature.gradient import Gradient
from cuplug._engine.signature.parallel_dims import along, dimension_name, independent, loop_axes
from cuplug._engine.signature.signature import GROUP_KINDS, Parameter, Signature
from cuplug._engine.signature.spec import ArraySpec
from cuplug._engine.signature.steps import Extent, Formula, Slice
from cuplug._engine.signature.symbolic import NoMatch, Sizes, walk

__all__ = ["Call", "Label", "Symbols", "Unknown", "gradient_of", "match"]

# a dimension along which arrays may be split: its name, and its number in a group
Label = tuple[str, int]


# ---- Unknown sizes and numbers -------------------------------------------------------------------


class Unknown:
    """An unknown size or number: results of arithmetic on it are unknown, and any comparison holds.

    The run repeats the comparisons.
    """

    def _same(self, *_: Any) -> Unknown:
        return self

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __neg__ = _same
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _same

    def __eq__(self, other: object) -> bool:
        return True

    def _holds(self, _: Any) -> bool:
        return True

    __lt__ = __le__ = __gt__ = __ge__ = __ne__ = _holds  # type: ignore[assignment]
    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return "unknown"


class Symbols(Sizes):
    """Sizes that are numbers or unknown. Subclasses add a framework's own symbols."""

    types: tuple[type, ...] = (Unknown,)  # numbers that the core does not accept

    def is_open(self, x: Any) -> bool:
        """Check if only symbols express some sizes, or a value, in an argument."""
        if isinstance(x, (list, tuple)):
            return any(map(self.is_open, x))
        if isinstance(x, ArraySpec):
            return not all(isinstance(size, int) for size in x.shape)
        return isinstance(x, self.types)

    def broadcast(self, a: Any, b: Any) -> Any:
        """Return the size that is not 1, or is known. Other sizes are compared."""
        for size, other in ((a, b), (b, a)):
            if (isinstance(size, int) and size == 1) or isinstance(size, Unknown):
                return size if isinstance(other, int) and other == 1 else other
        return super().broadcast(a, b)


# ---- Calls ---------------------------------------------------------------------------------------


class Call:
    """One overload and the arguments of a call, arrays as `ArraySpec`.

    Attributes
    ----------
    operator : Operator
    row : int
        The number of the overload.
    signature : Signature
    given : dict
        The arguments by name.
    outputs : tuple of ArraySpec
    """

    def __init__(
        self,
        operator: Operator,
        row: int,
        signature: Signature,
        given: dict[str, Any],
        symbols: Symbols,
        outputs: tuple[ArraySpec, ...] | None = None,
    ) -> None:
        self.operator, self.row, self.signature, self.given = operator, row, signature, given
        self._symbols = symbols
        if outputs is None:
            walked = self._walk()
            self.names, self.outputs = walked.names, walked.outputs
        else:
            self.outputs = tuple(_resolved(x, symbols) for x in outputs)

    def _walk(self) -> Any:
        """Match the overload.

        If all sizes were known, the core returned the outputs, but no names.
        """
        values = [self._value(x) for x in self.signature.parameters]
        return walk([self.signature], values, self._symbols)

    def _value(self, x: Parameter) -> Any:
        """Return an argument or its default. An array without dimensions may be a number."""
        if x.name not in self.given and not x.has_default:
            raise NoMatch(f"{self.operator.name}: {x.name}: it is missing")
        value = self.given.get(x.name, x.default)
        if x.kind in ARRAYS or not isinstance(value, ArraySpec) or value.shape:
            return value
        return True if value.dtype == "bool" else Unknown()

    @cached_property
    def names(self) -> Mapping[str, Any]:
        """Values by name: sizes, sizes of groups and of `...`, and parameters."""
        return self._walk().names

    @property
    def properties(self) -> Mapping[str, str | None]:
        """The properties of the overload."""
        return self.operator.properties[self.row]

    @property
    def results(self) -> list[tuple[Parameter, ArraySpec]]:
        """The in-out arrays that were passed, then the outputs."""
        inouts = [
            x for x in self.signature.parameters if x.kind == "inout" and x.name in self.given
        ]
        outputs = zip(self.signature.outputs, self.outputs, strict=True)
        return [*((x, self.given[x.name]) for x in inouts), *outputs]

    # ---- Dimensions ----

    @cached_property
    def whole(self) -> set[int] | None:
        """The axes of a reduction or scan, as loop dimensions; None for other operators."""
        return loop_axes(self.signature, self.names)

    @cached_property
    def split(self) -> set[str]:
        """The names of dimensions along which arrays may be split. `...` represents the loop's."""
        if any(x.is_each for x in self.signature.parameters):  # names with a value for each item
            return set()
        if self.whole is not None:
            return {LOOP}
        return independent(self.signature, self.properties)

    def labels(self, x: Parameter, ndim: int) -> list[Label | None]:
        """Return a label for each dimension of an array: None if it must not be split.

        Dimensions with equal labels are split at the same positions. If all arrays broadcast, the
        dimensions of a group are counted from its end, as -1.
        """
        if name := along(self.properties):
            axis, known = self.names[name], range(-ndim, ndim)
            at = axis % ndim if isinstance(axis, int) and axis in known else None
            return [None if at in (None, k) else (name, k) for k in range(ndim)]
        return [
            self._label(dimension_name(self.signature, kind, value), at)
            for kind, value, at in self._dims(x, ndim)
        ]

    def shape(self, x: Parameter, spec: ArraySpec) -> tuple[Any, ...]:
        """Return the shape of an output. Formulas of unknown sizes are unknown.

        min(n, 4) of an unknown n may be 4 or smaller.
        """
        pairs = zip(self._dims(x, spec.ndim), spec.shape, strict=True)
        return tuple(
            Unknown() if isinstance(value, Formula) and self._reads_unknown(value) else size
            for (_, value, _), size in pairs
        )

    def _reads_unknown(self, formula: Formula) -> bool:
        values = [self.names.get(name) for name in formula.names]
        groups = [value if isinstance(value, tuple) else (value,) for value in values]
        return any(isinstance(size, Unknown) for group in groups for size in group)

    def _dims(self, x: Parameter, ndim: int) -> list[tuple[str, Extent, int]]:
        """Return the signature's dimension, and the number in its group, for each dimension."""
        if x.kind == "output" and self.signature.reduces:
            return [("loop", 0, k) for k in self._kept_loop()]
        pairs = [(dim, self._length(x, *dim, ndim)) for dim in x.dims]
        return [(*dim, at) for dim, n in pairs for at in range(-n, 0)]

    def _label(self, name: str, at: int) -> Label | None:
        is_whole = name == LOOP and at + len(self.names[LOOP]) in (self.whole or ())
        return None if name not in self.split or is_whole else (name, at)

    def _kept_loop(self) -> list[int]:
        """Return the loop dimensions that a reduction's outputs have."""
        n = len(self.names[LOOP])
        kept = [k for k in range(n) if self.names["keepdims"] or k not in (self.whole or ())]
        return [k - n for k in kept]

    def _length(self, x: Parameter, kind: str, value: Extent, ndim: int) -> int:
        """Return the number of an array's dimensions for one of the signature."""
        if isinstance(value, Slice):
            return len(value.value(self.names))
        if kind not in GROUP_KINDS:
            return 1
        if x.kind == "output":
            return len(self.names[dimension_name(self.signature, kind, value)])
        return ndim - (len(x.dims) - 1)


def _resolved(x: ArraySpec, symbols: Symbols) -> ArraySpec:
    if all(size >= 0 for size in x.shape):
        return x
    return ArraySpec(x.dtype, tuple(symbols.unknown() if size < 0 else size for size in x.shape))


def match(
    operator: Operator,
    rows: Sequence[Signature],
    args: Sequence[Any],
    keywords: Mapping[str, Any],
    symbols: Symbols,
    row: int = -1,
) -> Call:
    """Return the call for the first overload that accepts the arguments.

    Parameters
    ----------
    operator : Operator
    rows : sequence of Signature
        Its overloads.
    args, keywords : sequence, mapping
        The arguments, arrays as `ArraySpec`.
    symbols : Symbols
        Compares sizes. If all sizes are known, the core matches the arguments.
    row : int, optional
        The only allowed overload.

    Raises
    ------
    TypeError, ValueError
        As in a call that rejects its arguments.
    """
    if not symbols.is_open([*args, *keywords.values()]):
        number, outputs = operator.infer(*args, **keywords)
        if row not in (-1, number):
            raise TypeError(f"{operator.name}: another overload takes these arguments")
        known = by_name(rows[number], args, keywords) or {}
        return Call(operator, number, rows[number], known, symbols, outputs)
    refusal = NoMatch(f"{operator.name}: got arguments that no overload has")
    for number, signature in enumerate(rows):
        given = by_name(signature, args, keywords) if row in (-1, number) else None
        if given is None:
            continue
        try:
            return Call(operator, number, signature, given, symbols)
        except NoMatch as misfit:
            refusal = misfit
    raise refusal


def gradient_of(operator: Operator, row: int, remedy: str = "") -> tuple[Operator, Gradient]:
    """Return the operator that computes the gradient of an overload, and its arguments.

    Raises
    ------
    NotImplementedError
        The plugin names none. `remedy` ends the message.
    """
    found = find_gradient(operator, row)
    if found is None:
        raise NotImplementedError(
            f"{operator.name}: it has no gradient: the plugin {operator.plugin} names no "
            f"operator that computes one of {operator.signatures[row]}{remedy}"
        )
    return found
