# SPDX-License-Identifier: Apache-2.0
"""Arguments of kernels and functions, as text: `x, index, y, n, size(x) // 2`.

A name is an array, a scalar, a dimension of the signature, or a name that the caller adds, such as
`fault`, the call's fault record. The core parses the text and computes the numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cuplug._engine.signature.signature import Parameter, Signature
from cuplug._engine.signature.steps import COUNT, SIZE
from cuplug._engine.signature.terms import parse_terms


class Term(NamedTuple):
    """A number with its text; a name that is not an integer has no steps."""

    steps: tuple[tuple[int, int, int], ...]  # kind, operand, value
    text: str


class Scope(NamedTuple):
    """The names of a signature, with their positions in a call."""

    signature: Signature
    arrays: dict[str, int]
    scalars: dict[str, int]

    def parameter(self, name: str) -> Parameter:
        """Return the array or scalar of a name."""
        own = (*self.signature.parameters, *self.signature.outputs)
        return next(x for x in own if x.name == name)

    def terms(self, text: str, what: str, own: Sequence[str] | None = ()) -> list[Term]:
        """Return the numbers and names of a text with commas.

        Parameters
        ----------
        text : str
        what : str
            The name of the text in errors: "f: arguments".
        own : sequence of str, optional
            Names that the caller adds. None: all terms must be numbers.

        Raises
        ------
        SignatureError
            The text is ill-formed, or has unknown names.
        """
        return [Term(*fields) for fields in parse_terms(self.signature.text, text, what, own)]

    def number(self, text: str, what: str) -> Term:
        """Return the only number of a text."""
        found = self.terms(text, what, None)
        if len(found) != 1:
            raise ValueError(f"{what}: got {text!r}, expected one number")
        return found[0]


def read_scope(signature: Signature) -> Scope:
    """Find the names of a signature."""
    arrays = {x.name: k for k, x in enumerate(signature.arrays) if x.name}
    own = [x.name for x in signature.parameters if not x.is_array]
    return Scope(signature, arrays, {name: k for k, name in enumerate(own)})


def n_behind_loops(x: Parameter) -> int | None:
    """Return how many dimensions an array has besides its loop dimensions; None without these."""
    return len(x.dims) - 1 if any(kind == "loop" for kind, _ in x.dims) else None


def counts_loops(terms: Sequence[Term], scope: Scope) -> bool:
    """Return whether terms give the number of elements of the loop dimensions.

    They do if one is the size of an array with loop dimensions, or of one of these dimensions.
    """
    steps = [step for term in terms for step in term.steps if step[0] in (SIZE, COUNT)]
    arrays = scope.signature.arrays
    return any(at >= 0 and _counts(arrays[at], kind, value) for kind, at, value in steps)


def _counts(x: Parameter, kind: int, value: int) -> bool:
    """Return whether the size of an array, or of one dimension, includes its loop dimensions."""
    kinds = [kind for kind, _ in x.dims]
    if "loop" not in kinds:
        return False
    at = kinds.index("loop")
    return kind == COUNT or not at - len(kinds) < value < at
