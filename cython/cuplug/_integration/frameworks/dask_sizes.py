# SPDX-License-Identifier: Apache-2.0
"""Sizes that are not known before the blocks of a dask array are there."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from cuplug._engine.signature.evaluate import shape_of
from cuplug._engine.signature.signature import Parameter, Signature
from cuplug._engine.signature.spec import ArraySpec
from cuplug._engine.signature.steps import Extent, Formula
from cuplug._engine.signature.symbolic import Sizes

__all__ = ["BlockSizes", "Unknown", "output_sizes", "to_size"]


class Unknown:
    """A size, or a number: what is worked out of it is unknown, and any comparison holds.

    The call on the blocks compares again.
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


class BlockSizes(Sizes):
    """Sizes of dask arrays."""

    def broadcast(self, a: Any, b: Any) -> Any:
        """Return the one that is known, unless it is 1."""
        if isinstance(a, Unknown):
            return a if isinstance(b, Unknown) or b == 1 else b
        if isinstance(b, Unknown):
            return b if a == 1 else a
        return super().broadcast(a, b)

    def unknown(self) -> Any:
        """Return a size that only the run finds."""
        return Unknown()


def to_size(size: float) -> Any:
    """Return a size of a dask array, which is not a number where it is unknown."""
    return Unknown() if math.isnan(size) else int(size)


def _known_or_nan(size: Any) -> float:
    return math.nan if isinstance(size, Unknown) else int(size)


def output_sizes(
    signature: Signature, output: Parameter, names: Mapping[str, Any], whole: ArraySpec
) -> list[tuple[str, Extent, list[float]]]:
    """Return the dimensions of an output as they are written, each with the sizes it comes to.

    Parameters
    ----------
    signature, output : Signature, Parameter
        The row that takes the call, and one of its outputs.
    names : mapping
        Sizes by their names.
    whole : ArraySpec
        The output of the call.
    """
    if signature.reduces:  # not all of its dimensions as they are written
        return [("reduced", 0, list(map(_known_or_nan, whole.shape)))]
    found: list[tuple[str, Extent, list[float]]] = []
    for kind, value in output.dims:
        sizes = shape_of(signature, output._replace(dims=((kind, value),)), names, Unknown())
        is_unknown = isinstance(value, Formula) and _reads_unknown(
            value, names
        )  # min(n, 4) is 4 or 3
        found.append((kind, value, [math.nan] if is_unknown else list(map(_known_or_nan, sizes))))
    return found


def _reads_unknown(formula: Formula, names: Mapping[str, Any]) -> bool:
    values = [names.get(name) for name in formula.names]
    groups = [value if isinstance(value, tuple) else (value,) for value in values]
    return any(isinstance(size, Unknown) for group in groups for size in group)
