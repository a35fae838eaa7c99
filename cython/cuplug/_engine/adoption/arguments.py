# SPDX-License-Identifier: Apache-2.0
"""What the description of one adopted function says, apart from its prototype."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import NamedTuple

from cuplug._engine.adoption.description import RETURNS
from cuplug._engine.base.dtypes import DTYPES
from cuplug._engine.signature import formula
from cuplug._engine.signature import signature as signatures
from cuplug._engine.signature.signature import Parameter

TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')
REAL = re.compile(r"(?<![\w.])-?\d+\.\d*(?:[eE][-+]?\d+)?(?![\w.])")
CONSTANT = re.compile(r"\b[A-Z]\w*\b")  # of an enum in the prototypes, or NULL
SCRATCH = re.compile(r"\s*([a-z]\w*)\s*:\s*(\w+)\s*\[(.*)\]\s*", re.S)


class Scratch(NamedTuple):
    """Memory that the function works in and that nobody reads."""

    name: str
    dtype: str
    term: formula.Term | None  # its number of elements; None: the function says it
    query: str  # the name of the argument by which it is asked, "" if `term` is known


class Arguments:
    """The signature and the arguments of one function; wrong ones raise ValueError."""

    def __init__(self, name: str, description: Mapping[str, str]) -> None:
        self.name, self.text = name, description["signature"]
        self.place = description.get("place", "host")
        self.returns = description.get("returns", "zero")
        self.scope = formula.read_scope(signatures.parse(self.text))
        if self.scope.signature.name != name:
            raise ValueError(f"{name}: signature: got {self.scope.signature.name}, expected {name}")
        self.arrays = self.scope.signature.arrays
        if any(kind == "unknown" for x in self.arrays for kind, _ in x.dims):
            raise ValueError(f"{name}: signature: got ?, expected sizes that are known")
        for x in self.arrays:
            self.dtype(x)
        # The members of the union that each scalar is in.
        scalars = [self.scope.parameter(x) for x in self.scope.scalars]
        self.members = [
            "s" if x.kind == "string" else DTYPES[self._scalar_dtype(x)].member for x in scalars
        ]
        self._check_returns()
        self.by_columns = description.get("order") == "fortran"
        self.is_locked = description.get("lock") == "library"
        self.constants: dict[str, str | float] = {}  # by the names that stand for them in terms
        self.scratch = self._read_scratch(description.get("scratch", ""))
        self.terms = self._read_terms(description["arguments"])
        self.takes_stream = any(x.text == "stream" for x in self.terms)

    def _read_terms(self, text: str) -> list[formula.Term]:
        """Read the arguments; a name stands for each text, fraction and constant of C."""

        def put(value: str | float) -> str:
            name = f"literal_{len(self.constants)}"
            self.constants[name] = value
            return name

        text = TEXT.sub(lambda found: put(ast.literal_eval(found[0])), text)
        text = REAL.sub(lambda found: put(float(found[0])), text)
        names = {x.name for x in (*self.scope.signature.parameters, *self.scope.signature.outputs)}
        known = {*names, *self.scope.signature.dim_names}
        constants = [x for x in CONSTANT.findall(text) if x not in known]
        queried = [x.query for x in self.scratch if x.query]
        scratch = [x.name for x in self.scratch]
        own = ("stream", "status", *constants, *self.constants, *queried, *scratch)
        return self.scope.terms(text, f"{self.name}: arguments", tuple(dict.fromkeys(own)))

    def _read_scratch(self, text: str) -> list[Scratch]:
        """Read `work: float64[3 * n]; more: int32[n]`."""
        found = []
        for part in text.split(";") if text.strip() else ():
            match = SCRATCH.fullmatch(part)
            if match is None or match[2] not in DTYPES:
                raise ValueError(
                    f"{self.name}: scratch: got {part.strip()!r}, expected name: dtype[size]"
                )
            name, dtype, size = match[1], match[2], match[3].strip()
            known = {*self.scope.signature.dim_names, *self.scope.scalars}
            if size.isidentifier() and size not in known:
                found.append(Scratch(name, dtype, None, size))
            else:
                term = self.scope.number(size, f"{self.name}: scratch: {name}")
                found.append(Scratch(name, dtype, term, ""))
        return found

    def dtype(self, x: Parameter) -> str:
        """Return the only dtype of an array or a scalar."""
        dtypes = self.scope.signature.dtypes(x)
        if not dtypes and x.kind == "choice":
            return "int64"
        if (
            len(dtypes) != 1
            or x.kind == "dtype"
            or (dtypes[0].startswith("complex") and not x.is_array)
        ):
            seen = x.kind if x.kind == "dtype" else ", ".join(dtypes) or x.kind
            raise ValueError(f"{self.name}: {x.name}: got {seen}, expected one real dtype")
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
            raise ValueError(f"{self.name}: returns: got {self.returns!r}, expected {known}")
