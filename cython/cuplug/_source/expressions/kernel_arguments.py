# SPDX-License-Identifier: Apache-2.0
"""The arguments of a kernel or a function, checked against the types of its parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from cuplug._engine.base.dtypes import DTYPES, Dtype
from cuplug._engine.signature.formula import Scope, Term
from cuplug._engine.signature.steps import SCALAR as SCALAR_STEP
from cuplug._source.compilers import kernel_types
from cuplug._source.compilers.kernel_types import (
    BOOL,
    COMPLEX,
    FLOAT,
    INT,
    OPAQUE,
    POINTER,
    UINT,
    VOID,
)

# `cuplug_kernel_argument_kind` in <runtime/expressions.h>
ARRAY, SCALAR, NUMBER, FAULT, CALL = range(5)
# Parameters that are not in the signature: kind, type, size of the type.
RECORDS = {
    "fault": (FAULT, "cuplug_fault *", 64),
    "call": (CALL, "const cuplug_call *", 120),
}


class Pass(NamedTuple):
    """The argument for one parameter, with the fields of `cuplug_kernel_argument`."""

    kind: int
    operand: int
    type: int  # the parameter's type, an id; 0: an array's
    term: Term
    unit_bytes: int = 0
    unit_alignment: int = 1


class Target(NamedTuple):
    """A kernel or function that receives arguments."""

    operator: str
    name: str
    on_host: bool
    scope: Scope
    dtypes: Mapping[str, Dtype]  # types of arrays and scalars, by name

    def match(self, terms: Sequence[Term], codes: Sequence[int]) -> list[Pass]:
        """Match arguments with parameter types, in the numbers of kernel_types.py.

        `call` is only for functions.

        Raises
        ------
        TypeError
            An argument does not fit its parameter.
        """
        if not self.on_host:
            terms = [x for x in terms if not (x.text == "call" and self._is_record(x))]
        if len(terms) != len(codes):
            raise TypeError(
                f"{self._where}: got {len(terms)}, expected {len(codes)} as "
                f"{self.name} has parameters"
            )
        return [self._pass(term, code) for term, code in zip(terms, codes, strict=True)]

    def _pass(self, term: Term, code: int) -> Pass:
        if term.text in self.scope.arrays:
            return self._array(term, code)
        if term.text in self.scope.scalars:
            return self._scalar(term, code)
        if self._is_record(term):
            return self._given(term, code, *RECORDS[term.text])
        return self._integer(term, code)

    def _is_record(self, term: Term) -> bool:
        is_own = term.text in self.scope.arrays or term.text in self.scope.scalars
        return not (term.steps or is_own)

    @property
    def _where(self) -> str:
        return f"{self.operator}: arguments"

    def _array(self, term: Term, code: int) -> Pass:
        name = term.text
        x, dtype = self.scope.parameter(name), self.dtypes[name]
        if x.is_on_host and not self.on_host:
            raise TypeError(
                f"{self._where}: {name}: got an array of the host, expected one that kernels can "
                f"read; write {name} without host"
            )
        kind, size, is_const = code >> 4 & 15, code >> 40, bool(code >> 8 & 1)
        is_element = (kind, size) in self._elements(dtype)
        is_struct = kind == OPAQUE and size < 1 << 16
        if (
            code & 15 != POINTER
            or not (is_element or is_struct or kind == VOID)
            or (x.kind == "array" and not is_const)
            or (x.kind == "output" and is_const)
        ):
            const = "const " if x.kind == "array" else ""
            wanted = f"{const}{element_type(dtype, self.on_host)} *"
            raise self._refuse(term, code, wanted)
        unit = size if is_struct and not is_element else 0
        return Pass(ARRAY, self.scope.arrays[name], 0, term, unit, 1 << (code >> 9 & 15))

    def _given(self, term: Term, code: int, kind: int, wanted: str, n_bytes: int) -> Pass:
        is_const = bool(code >> 8 & 1)
        is_record = (code & 15, code >> 4 & 15, code >> 40) == (POINTER, OPAQUE, n_bytes)
        if not is_record or is_const != wanted.startswith("const"):
            raise self._refuse(term, code, wanted)
        return Pass(kind, 0, 0, term)

    def _elements(self, dtype: Dtype) -> list[tuple[int, int]]:
        """Return the kinds and sizes of elements to which a pointer may point."""
        if dtype.kind == "complex":
            return [(COMPLEX if self.on_host else OPAQUE, dtype.n_bytes)]
        if dtype.kind == "storage":
            return [(UINT, dtype.n_bytes)]
        own = (kernel_types.KINDS[dtype.code], dtype.n_bytes)
        return [own, (UINT, dtype.n_bytes)] if self.on_host and dtype.is_narrow else [own]

    def _scalar(self, term: Term, code: int) -> Pass:
        name = term.text
        x, at = self.scope.parameter(name), self.scope.scalars[name]
        kind, size = code & 15, code >> 16 & 0xFFFFFF
        own = Term((), name)
        if x.kind == "string" and self.on_host:
            is_text = kind == POINTER and code >> 8 & 1 and code >> 40 == 1
            if not is_text or code >> 4 & 15 not in (INT, UINT):
                raise self._refuse(term, code, "const char *")
            return Pass(SCALAR, at, 0, own)
        if x.kind not in ("scalar", "choice"):
            raise self._refuse(term, code, "no lists and dtypes, and no text on a GPU")
        dtype = DTYPES["int64"] if x.kind == "choice" else self.dtypes[name]
        if dtype.kind == "float":
            if kind != FLOAT or size not in (4, 8):
                raise self._refuse(term, code, "float or double")
            return Pass(SCALAR, at, DTYPES[f"float{8 * size}"].id, own)
        if dtype.kind == "complex":
            if (kind, size) not in self._elements(dtype):
                raise self._refuse(term, code, element_type(dtype, self.on_host))
            return Pass(SCALAR, at, dtype.id, own)
        if dtype.name == "uint64" and (kind, size) == (UINT, 8):
            return Pass(SCALAR, at, dtype.id, own)
        # also types given by a type variable
        made = Term(((SCALAR_STEP, at, dtype.kind == "uint"),), name)
        if kind == BOOL and dtype.kind == "bool":
            return Pass(NUMBER, 0, dtype.id, made)
        return self._integer(made, code)

    def _integer(self, term: Term, code: int) -> Pass:
        kind, bits = code & 15, (code >> 16 & 0xFFFFFF) * 8
        if kind not in (INT, UINT) or bits > 64:
            raise self._refuse(term, code, "an integer type")
        return Pass(NUMBER, 0, DTYPES[f"{'u' if kind == UINT else ''}int{bits}"].id, term)

    def _refuse(self, term: Term, code: int, wanted: str) -> TypeError:
        seen = kernel_types.describe(code)
        return TypeError(
            f"{self._where}: {term.text}: got {seen} in {self.name}, expected {wanted}"
        )


def element_type(dtype: Dtype, on_host: bool) -> str:
    """Return the type of an array's elements in the source of a kernel or function."""
    if not on_host:
        return dtype.cuda
    return "bool" if dtype.name == "bool" else dtype.stored


def check_arguments(terms: Sequence[Term], scope: Scope, operator: str, most: int) -> None:
    """Check that the arguments are not too many and include every output.

    Raises
    ------
    ValueError
        They are too many, or an output is missing.
    """
    named = {term.text for term in terms}
    if len(terms) > most:
        raise ValueError(f"{operator}: arguments: got {len(terms)}, expected at most {most}")
    for x in scope.signature.outputs:
        if any(kind == "unknown" for kind, _ in x.dims):
            raise ValueError(
                f"{operator}: signature: got an output of the size ?, expected sizes that are "
                "known before the run"
            )
        if x.name not in named:
            seen = f"no {x.name}" if x.name else "an output without a name"
            raise ValueError(f"{operator}: arguments: got {seen}, expected each output by its name")
