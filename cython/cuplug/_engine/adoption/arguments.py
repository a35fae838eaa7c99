# SPDX-License-Identifier: Apache-2.0
"""The description of one adopted function, without its prototype."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

from cuplug._engine.adoption.description import RETURNS
from cuplug._engine.adoption.scratch import read_outputs, read_scratch
from cuplug._engine.base.dtypes import DTYPES
from cuplug._engine.signature import formula
from cuplug._engine.signature import signature as signatures
from cuplug._engine.signature.gradient import has_gradients, linear_names
from cuplug._engine.signature.signature import Parameter

TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')
REAL = re.compile(r"(?<![\w.])-?\d+(?:\.\d*(?:[eE][-+]?\d+)?|[eE][-+]?\d+)(?![\w.])")
CONSTANT = re.compile(r"\b[A-Z]\w*\b")  # of an enum in the prototypes, or NULL


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
        for x in self.arrays:
            self.dtype(x)
        # The members of the union that each scalar is in.
        scalars = [self.scope.parameter(x) for x in self.scope.scalars]
        self.members = [
            {"string": "s", "handle": "h"}.get(x.kind) or DTYPES[self._scalar_dtype(x)].member
            for x in scalars
        ]
        self._check_linear(description.get("linear"))
        self.made = self._read_made(description)
        self.makes_handle = bool(self.made)
        self.scratch = read_scratch(name, description.get("scratch", ""), self.scope)
        self.scratch_at = {x.name: k for k, x in enumerate(self.scratch)}
        self.unknown = read_outputs(name, description.get("outputs", ""), self.scope, self.scratch)
        self._check_returns()
        self.by_columns = description.get("order") == "fortran"
        self.is_locked = description.get("lock") == "library"
        self.constants: dict[str, str | float] = {}  # by the names that represent them in terms
        self.terms = self._read_terms(description["arguments"], "arguments")
        self.values = [self._read_values(x.values, x.name) for x in self.scratch]
        self.takes_stream = any(x.text == "stream" for x in self.terms)

    def _check_linear(self, linear: str | None) -> None:
        """Check that the names belong to arrays that may have a gradient."""
        signature = self.scope.signature
        known = [x.name for x in signature.parameters if has_gradients(signature, x)]
        for x in linear_names(linear):
            if x not in known:
                wanted = f"one of {', '.join(known)}" if known else "none"
                raise ValueError(f"{self.name}: linear: got {x!r}, expected {wanted}")

    def _read_made(self, description: Mapping[str, str]) -> str:
        """Return the name of the handle that the function creates, "" for none."""
        made = self.scope.signature.made
        if bool(made) != ("destroy" in description):
            seen = f"handle[{made.tag}] without `destroy`" if made else "`destroy`"
            raise ValueError(
                f"{self.name}: got {seen}, expected `destroy`, the function that destroys "
                "what a handle holds, with each signature that makes one, and no other"
            )
        return (made.name or made.tag) if made else ""

    def _read_values(self, text: str, name: str) -> list[formula.Term]:
        inner = text[1:-1] if text.startswith("{") and text.endswith("}") else text
        return self._read_terms(inner, f"scratch: {name}") if inner.strip() else []

    def _read_terms(self, text: str, what: str) -> list[formula.Term]:
        """Read the arguments; a name represents each text, fraction and constant of C."""

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
        made = [self.made] if self.made else []
        own = ("stream", "status", *constants, *self.constants, *queried, *self.scratch_at, *made)
        return self.scope.terms(text, f"{self.name}: {what}", tuple(dict.fromkeys(own)))

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
        """Return whether a name belongs to a scalar with a fraction."""
        return name in self.scope.scalars and self.members[self.scope.scalars[name]] == "f"

    def _scalar_dtype(self, x: Parameter) -> str:
        if x.has_default and x.default is None:
            raise ValueError(
                f"{self.name}: {x.name}: got the default None, expected a number: C has no None"
            )
        return self.dtype(x)

    def _check_returns(self) -> None:
        outputs = [x.name for x in self.scope.signature.outputs if x.name]
        outputs += [*self.scratch_at, *([self.made] if self.made else [])]
        if self.returns not in (*RETURNS, *outputs):
            known = " or ".join(map(repr, [*RETURNS, *outputs]))
            raise ValueError(f"{self.name}: returns: got {self.returns!r}, expected {known}")
