# SPDX-License-Identifier: Apache-2.0
"""What the description of one adopted function says, apart from its prototype."""

from __future__ import annotations

from collections.abc import Mapping

from cuplug._engine.adoption.description import RETURNS
from cuplug._engine.base.dtypes import DTYPES
from cuplug._engine.signature import formula
from cuplug._engine.signature import signature as signatures
from cuplug._engine.signature.signature import Parameter


class Arguments:
    """The signature and the arguments of one function; wrong ones raise ValueError."""

    def __init__(self, name: str, description: Mapping[str, str]) -> None:
        self.name, self.text = name, description["signature"]
        self.place = description.get("place", "host")
        self.returns = description.get("returns", "zero")
        self.scope = formula.read_scope(signatures.parse(self.text))
        if self.scope.signature.name != name:
            raise ValueError(f"{name}: signature: seen {self.scope.signature.name}, wanted {name}")
        self.arrays = self.scope.signature.arrays
        if any(kind == "unknown" for x in self.arrays for kind, _ in x.dims):
            raise ValueError(f"{name}: signature: seen ?, wanted sizes that are known")
        for x in self.arrays:
            self.dtype(x)
        # The members of the union that each scalar is in.
        scalars = [self.scope.parameter(x) for x in self.scope.scalars]
        self.members = [DTYPES[self._scalar_dtype(x)].member for x in scalars]
        self._check_returns()
        self.terms = self.scope.terms(description["arguments"], f"{name}: arguments", ("stream",))
        self.takes_stream = any(x.text == "stream" for x in self.terms)

    def dtype(self, x: Parameter) -> str:
        """Return the only dtype of an array or a scalar."""
        dtypes = self.scope.signature.dtypes(x)
        if not dtypes and x.kind == "choice":
            return "int64"
        if len(dtypes) != 1 or (dtypes[0].startswith("complex") and not x.is_array):
            seen = ", ".join(dtypes) or x.kind
            raise ValueError(f"{self.name}: {x.name}: seen {seen}, wanted one real dtype")
        return dtypes[0]

    def is_float(self, name: str) -> bool:
        """Return whether a name is that of a scalar with a fraction."""
        return name in self.scope.scalars and self.members[self.scope.scalars[name]] == "f"

    def _scalar_dtype(self, x: Parameter) -> str:
        if x.has_default and x.default is None:
            raise ValueError(
                f"{self.name}: {x.name}: got the default None, expected a number: C has no None"
            )
        return self.dtype(x)

    def _check_returns(self) -> None:
        outputs = [x.name for x in self.scope.signature.outputs if x.name]
        if self.returns not in (*RETURNS, *outputs):
            known = " or ".join(map(repr, [*RETURNS, *outputs]))
            raise ValueError(f"{self.name}: returns: seen {self.returns!r}, wanted {known}")
