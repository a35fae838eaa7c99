# SPDX-License-Identifier: Apache-2.0
"""The arguments of a call: operands of the program, and constants in it.

Arrays are operands. Scalars of Python and NumPy, strings and lists of numbers are constants of the
program. A scalar that is a JAX array, or is traced, is an operand that the call reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import jax
import numpy

from cuplug._engine.base.dtypes import DTYPES
from cuplug._engine.base.numpy_dtypes import dtype_name
from cuplug._engine.call.operator import Operator
from cuplug._engine.signature.evaluate import names_in_sizes
from cuplug._engine.signature.gradient import results_of
from cuplug._engine.signature.signature import Parameter, Signature, parse, signatures_of
from cuplug._integration.jax.handler import address_of

__all__ = ["ABSENT", "TracedCall", "keyword_at", "read_call", "read_values", "rows_of", "texts_of"]

ABSENT: Any = object()  # represents an omitted argument
_OWN = ("out", "device", "stream")  # keyword arguments of calls outside of JAX
_MAX_OPERANDS = 64  # of the core's handler
_ARRAYS = ("array", "inout")


@dataclass(frozen=True)
class Leaf:
    """One argument without its arrays."""

    letters: str  # as in the attribute `arguments`: include/runtime/xla.h
    key: str = ""  # distinguishes constants that compare equal: True, 1 and 1.0, 0.0 and -0.0
    value: Any = field(default=None, compare=False)

    @property
    def n_operands(self) -> int:
        """The number of its operands in the program."""
        return self.letters.count("a") + self.letters.count("t")


@dataclass(frozen=True)
class TracedCall:
    """A call of an operator without its operands. Equal calls are compiled once."""

    operator: Operator
    leaves: tuple[Leaf, ...]
    address: int  # differs after the operator was reloaded
    row: int = -1  # the only overload whose parameter names were used; -1: any

    def __repr__(self) -> str:
        return f"{self.operator.plugin}.{self.operator.name}({self.letters})"

    @property
    def letters(self) -> str:
        """The letters of all its leaves."""
        return "".join(leaf.letters for leaf in self.leaves)

    @property
    def are_read(self) -> list[bool]:
        """For each operand, whether it is a scalar that the call reads."""
        return [letter == "t" for letter in self.letters if letter in "at"]

    def arguments(self, operands: Sequence[Any]) -> list[Any]:
        """Return the arguments in the order of the parameters; ABSENT for omitted ones."""
        left = iter(operands)
        return [_argument(leaf, left) for leaf in self.leaves]

    def parameters(self, row: int) -> list[Parameter]:
        """Return the parameter of each operand."""
        parameters = rows_of(self.operator)[row].parameters
        pairs = zip(parameters, self.leaves, strict=False)
        return [x for x, leaf in pairs for _ in range(leaf.n_operands)]

    def inouts(self, row: int) -> list[int]:
        """Return the numbers of the operands that are modified in place."""
        return [k for k, x in enumerate(self.parameters(row)) if x.kind == "inout"]

    def results(self, row: int) -> dict[int, Parameter]:
        """Return the returned results, by their numbers among all results of the overload.

        Omitted in-out arrays are missing.
        """
        given = {x.name for x in self.parameters(row)}
        pairs = enumerate(results_of(rows_of(self.operator)[row]))
        return {k: x for k, x in pairs if x.kind == "output" or x.name in given}

    def constants(self) -> dict[str, Any]:
        """Return the constants in the program, as attributes."""
        values = [leaf.value for leaf in self.leaves if leaf.letters in ("v", "c")]
        return {f"value{k:02}": _attribute(value) for k, value in enumerate(values)}


def _argument(leaf: Leaf, operands: Iterator[Any]) -> Any:
    if leaf.letters in ("a", "t"):
        return next(operands)
    if leaf.letters.startswith("["):
        return [next(operands) for _ in range(leaf.n_operands)]
    return ABSENT if leaf.letters == "-" else leaf.value


def _attribute(value: Any) -> Any:
    """Return a constant in the type that XLA uses for it."""
    if isinstance(value, bool):
        return numpy.bool_(value)
    if isinstance(value, int):
        fits = -(2**63) <= value < 2**64
        return (numpy.int64 if value < 2**63 else numpy.uint64)(value) if fits else float(value)
    if isinstance(value, float):
        return numpy.float64(value)
    if isinstance(value, complex):
        return numpy.array([value.real, value.imag])
    if isinstance(value, tuple):
        are_whole = all(isinstance(x, int) for x in value)
        return numpy.array(value, numpy.int64 if are_whole else numpy.float64)
    return value


# ---- Signatures ----------------------------------------------------------------------------------


_texts: dict[int, tuple[str, ...]] = {}  # by the addresses of operators, which do not change
_rows: dict[int, tuple[Signature, ...]] = {}


def texts_of(operator: Operator) -> tuple[str, ...]:
    """Return the signatures of an operator, always the same objects."""
    address = address_of(operator)
    found = _texts.get(address)
    if found is None:
        found = _texts[address] = operator.signatures
    return found


def rows_of(operator: Operator) -> tuple[Signature, ...]:
    """Return the parsed signatures of an operator, always the same objects."""
    address = address_of(operator)
    found = _rows.get(address)
    if found is None:
        found = _rows[address] = signatures_of(operator)
    return found


@cache
def _parsed(texts: tuple[str, ...]) -> tuple[Signature, ...]:
    return tuple(parse(text) for text in texts)


@cache
def _positions(texts: tuple[str, ...]) -> dict[str, int]:
    """Return the position of a keyword in the first overload that has it."""
    found: dict[str, int] = {}
    for row in _parsed(texts):
        for k, x in enumerate(row.parameters):
            found.setdefault(x.name, k)
    return found


@cache
def _kinds(texts: tuple[str, ...], position: int) -> frozenset[str]:
    rows = [row.parameters for row in _parsed(texts)]
    return frozenset(row[position].kind for row in rows if position < len(row))


# ---- Reading -------------------------------------------------------------------------------------


def read_call(
    operator: Operator, args: tuple[Any, ...], keywords: dict[str, Any]
) -> tuple[TracedCall, list[Any]]:
    """Return a call without its operands, and the operands."""
    return _read_all(operator, -1, _in_order(operator, args, keywords))


def read_values(
    operator: Operator, row: int, given: dict[str, Any]
) -> tuple[TracedCall, list[Any]]:
    """Return the same for arguments by the names of one overload."""
    names = [x.name for x in rows_of(operator)[row].parameters]
    last = max((k for k, name in enumerate(names) if name in given), default=-1)
    return _read_all(operator, row, [given.get(name, ABSENT) for name in names[: last + 1]])


def _read_all(operator: Operator, row: int, values: list[Any]) -> tuple[TracedCall, list[Any]]:
    operands: list[Any] = []
    given = enumerate(values)
    leaves = tuple(_read(operator, k, value, operands) for k, value in given)
    if len(operands) > _MAX_OPERANDS:
        raise TypeError(
            f"{operator.name}: got {len(operands)} arrays in a function of JAX, expected at most "
            f"{_MAX_OPERANDS}; call cuplug.ops.{operator.name} outside of jax.jit"
        )
    letters = [(k, letter) for k, leaf in enumerate(leaves) for letter in leaf.letters]
    places = [k for k, letter in letters if letter in "at"]
    if all(letter != "t" for _, letter in letters):
        rows = rows_of(operator) if row < 0 else rows_of(operator)[row : row + 1]
        operands = list(_strengthen(rows, operands, places))
    return TracedCall(operator, leaves, address_of(operator), row), operands


def _in_order(operator: Operator, args: tuple[Any, ...], keywords: dict[str, Any]) -> list[Any]:
    positions = _positions(texts_of(operator))
    values = list(args)
    for name, value in keywords.items():
        if name in _OWN:
            raise TypeError(
                f"{operator.name}: {name}: JAX places arrays itself; jax.device_put moves them, "
                "and donated arrays are written in place"
            )
        at = positions.get(name, -1)
        if at < 0:
            raise TypeError(f"{operator.name}: there is no parameter {name!r}")
        values += [ABSENT] * (at + 1 - len(values))
        if values[at] is not ABSENT:
            raise TypeError(f"{operator.name}: {name} is given twice")
        values[at] = value
    return values


def _read(operator: Operator, position: int, value: Any, operands: list[Any]) -> Leaf:
    if isinstance(value, jax.Array) and value.ndim:  # the usual case
        operands.append(value)
        return Leaf("a")
    if value is ABSENT or value is None:
        return Leaf("-" if value is ABSENT else "n")
    if isinstance(value, numpy.generic):
        value = value.item()
    if isinstance(value, (bool, int, float, complex, str)):
        return _constant(value)
    kinds = _kinds(texts_of(operator), position)
    if "dtype" in kinds and (name := dtype_name(value)):
        return _constant(name)
    if isinstance(value, (list, tuple)):
        return _read_list(operator, position, value, operands)
    if isinstance(value, numpy.ndarray) and not value.ndim and not kinds & {*_ARRAYS}:
        return _constant(value.item())
    if not isinstance(value, (jax.Array, numpy.ndarray)):
        where = _name(operator, position)
        kind = type(value).__name__
        raise TypeError(f"{where}: got {kind}, expected a JAX or NumPy array, or a value")
    if value.ndim or kinds & {*_ARRAYS}:
        operands.append(_as_operand(value))
        return Leaf("a")
    return _read_scalar(operator, position, value, operands)


def _as_operand(value: Any) -> Any:
    return value if isinstance(value, jax.Array) else jax.numpy.asarray(value)


def _read_scalar(operator: Operator, position: int, value: Any, operands: list[Any]) -> Leaf:
    name = _name(operator, position)
    if _decides_sizes(texts_of(operator), position):
        if isinstance(value, jax.core.Tracer):
            raise TypeError(
                f"{name}: got a traced value, expected one that is known when the program is made, "
                "as it decides the shape of an output: static_argnames of jax.jit keeps it so"
            )
        return _constant(value.item())
    is_narrow = jax.numpy.issubdtype(value.dtype, jax.numpy.floating) and value.dtype.itemsize < 4
    operands.append(value.astype("float32") if is_narrow else value)
    return Leaf("t")


def _refuse_changes(operator: Operator, position: int) -> None:
    for row in rows_of(operator):
        if position < len(row.parameters) and row.parameters[position].is_inout:
            raise TypeError(
                f"{_name(operator, position)}: got a list of JAX arrays, which the call would "
                "change, expected arrays that can be written; copy them with numpy.array or "
                "cuplug.asarray"
            )


def _read_list(operator: Operator, position: int, values: Any, operands: list[Any]) -> Leaf:
    values = [x.item() if isinstance(x, numpy.generic) else x for x in values]
    if values and all(isinstance(x, (jax.Array, numpy.ndarray)) for x in values):
        if "arrays" in _kinds(texts_of(operator), position):
            _refuse_changes(operator, position)
            operands += map(_as_operand, values)
            return Leaf(f"[{'a' * len(values)}]")
        values = [_known(_name(operator, position), x) for x in values]
    if not all(isinstance(x, (bool, int, float)) for x in values):
        kinds = ", ".join(sorted({type(x).__name__ for x in values}))
        name = _name(operator, position)
        raise TypeError(f"{name}: got a list of {kinds}, expected numbers, or arrays")
    keys = ",".join(_key(x) for x in values)
    return Leaf("v" if values else "e", keys, tuple(values))


def _known(name: str, value: Any) -> Any:
    if isinstance(value, jax.core.Tracer):
        raise TypeError(
            f"{name}: got a list of traced values, expected numbers that are known when the "
            "program is made: static_argnames of jax.jit keeps them so"
        )
    return value.item() if not value.ndim else value


def _constant(value: Any) -> Leaf:
    return Leaf("c" if isinstance(value, complex) else "v", _key(value), value)


def _key(value: Any) -> str:
    return f"{type(value).__name__} {value!r}"


def keyword_at(operator: Operator, position: int) -> str:
    """Return the name by which the argument at a position is given."""
    names = [name for name, at in _positions(texts_of(operator)).items() if at == position]
    return names[0] if names else f"argument {position}"


def _name(operator: Operator, position: int) -> str:
    return f"{operator.name}: {keyword_at(operator, position)}"


@cache
def _decides_sizes(texts: tuple[str, ...], position: int) -> bool:
    """Return whether a size of an array depends on a parameter."""
    return any(
        position < len(row.parameters) and row.parameters[position].name in names_in_sizes(row)
        for row in _parsed(texts)
    )


# ---- Python numbers in traced programs -----------------------------------------------------------
# Outside a program they are constants of the call. Transforms turn them into operands without
# dimensions, whose dtype JAX marks as weak, except for bools.

# a number fits its own kind and the following ones
_ORDER = ("bool", "int", "uint", "float", "complex")


def _strengthen(rows: Sequence[Signature], operands: Sequence[Any], places: Sequence[int]) -> Any:
    """Return the operands. Weak ones are converted as the first overload that fits requires.

    Parameters
    ----------
    rows : sequence of Signature
    operands : sequence of jax.Array
    places : sequence of int
        The position of the parameter that takes each operand.
    """
    weak = [k for k, x in enumerate(operands) if _is_weak(x)]
    if not weak or len(weak) == len(operands):
        return operands
    given = [None if k in weak else str(x.dtype) for k, x in enumerate(operands)]
    wanted = next(filter(None, (_dtypes(row, given, places, operands) for row in rows)), None)
    if wanted is None:  # the core rejects the call and reports the operands' dtypes
        return operands
    pairs = zip(operands, wanted, strict=True)
    return [x if dtype is None else jax.lax.convert_element_type(x, dtype) for x, dtype in pairs]


def _is_weak(x: Any) -> bool:
    if x.ndim or not isinstance(x, jax.core.Tracer):
        return False
    return x.dtype == bool or bool(jax.typeof(x).weak_type)


def _dtypes(
    row: Signature, given: list[str | None], places: Sequence[int], operands: Sequence[Any]
) -> list[str | None] | None:
    """Return an overload's dtypes for the weak operands; None if the others do not fit it."""
    if max(places) >= len(row.parameters):
        return None
    parameters = [row.parameters[at] for at in places]
    known: dict[int, str] = {}
    for x, dtype in zip(parameters, given, strict=True):
        if dtype is not None and known.setdefault(x.type_variable, dtype) != dtype:
            return None
        if dtype is not None and dtype not in row.dtypes(x):
            return None
    wanted = [
        None if dtype is not None else _dtype(row, x, known, str(operand.dtype))
        for x, dtype, operand in zip(parameters, given, operands, strict=True)
    ]
    pairs = zip(given, wanted, strict=True)
    return wanted if all(dtype or own for dtype, own in pairs) else None


def _dtype(row: Signature, x: Parameter, known: dict[int, str], weak: str) -> str | None:
    """Return the dtype for a weak operand; None if its kind does not fit."""
    dtypes = row.dtypes(x)
    dtype = known.get(x.type_variable, dtypes[0] if len(dtypes) == 1 else weak)
    fits = dtype in dtypes and _rank(dtype) >= _rank(weak)
    return dtype if fits else None


def _rank(dtype: str) -> int:
    kind = DTYPES[dtype].kind.removeprefix("u") if dtype in DTYPES else ""
    return _ORDER.index(kind) if kind in _ORDER else -1
