# SPDX-License-Identifier: Apache-2.0
"""Outputs computed from the parsed text, for sizes that are symbols, which the core cannot read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from cuplug._engine.base.dtypes import DTYPES
from cuplug._engine.base.numpy_dtypes import dtype_name, numpy_dtype
from cuplug._engine.signature.evaluate import LOOP, conditions_hold, shape_of
from cuplug._engine.signature.signature import GROUP_KINDS, Parameter, Signature
from cuplug._engine.signature.spec import ArraySpec
from cuplug._engine.signature.steps import Extent, Formula, NoValue

__all__ = ["NoMatch", "Sizes", "SymbolicMatch", "walk"]

_MAX_NDIM = 64
_UNKNOWN: Any = object()  # in place of a size
_KINDS = ("bool", "int", "float", "complex")  # of numbers; each converts to the later ones


class NoMatch(TypeError):
    """No overload accepts the arguments."""


class Sizes:
    """How sizes are compared; frameworks with symbolic sizes derive a class."""

    def same(self, a: Any, b: Any) -> bool:
        """Return whether two sizes are equal; a trace is then valid only for such sizes."""
        return bool(a == b)

    def broadcast(self, a: Any, b: Any) -> Any:
        """Return the size that two sizes are broadcast to.

        Raises
        ------
        NoMatch
            They are different, and neither is 1.
        """
        if self.same(a, b) or self.same(b, 1):
            return a
        if self.same(a, 1):
            return b
        raise NoMatch(f"sizes {a} and {b} cannot be broadcast together")

    def is_possible(self, size: Any) -> bool:
        """Return whether a computed number can be the size of an output."""
        return bool(size >= 0)

    def unknown(self) -> Any:
        """Return a size that is known after the run."""
        return -1


@dataclass(frozen=True)
class SymbolicMatch:
    """The result of matching arguments with a signature."""

    row: int
    names: dict[str, Any]  # sizes, tuples of sizes of groups and of `...`, values of parameters
    outputs: tuple[ArraySpec, ...]


@dataclass
class _Match:
    signature: Signature
    sizes: Sizes
    names: dict[str, Any] = field(default_factory=dict)
    types: dict[int, str] = field(default_factory=dict)
    shapes: list[tuple[Parameter, tuple[Any, ...]]] = field(default_factory=list)


def walk(
    signatures: Sequence[Signature], arguments: Sequence[Any], sizes: Sizes | None = None
) -> SymbolicMatch:
    """Return the match of the first overload that accepts the arguments.

    Parameters
    ----------
    signatures : sequence of Signature
        The overloads of an operator.
    arguments : sequence
        In the order of the parameters; missing ones at the end have their defaults. An array is an
        ArraySpec, and a list of arrays is a list of them.
    sizes : Sizes, optional
        How sizes are compared.

    Raises
    ------
    NoMatch
        No overload accepts them. The message is the last one's reason.
    """
    error = NoMatch("there are no signatures")
    for row, signature in enumerate(signatures):
        try:
            match = _Match(signature, sizes or Sizes())
            _match(match, list(arguments))
            outputs = tuple(_output(match, x) for x in signature.outputs)
        except NoMatch as misfit:
            error = misfit
        else:
            return SymbolicMatch(row, match.names, outputs)
    raise NoMatch(f"{signatures[0].name}: {error}" if signatures else str(error)) from None


def _match(match: _Match, arguments: list[Any]) -> None:
    parameters = match.signature.parameters
    if len(arguments) > len(parameters):
        raise NoMatch(f"got {len(arguments)} arguments, expected at most {len(parameters)}")
    given = dict(zip((x.name for x in parameters), arguments, strict=False))
    for x in parameters:
        if x.is_array and not _is_left_out(x, given):
            _match_array(match, x, given[x.name])
    lists = [x for x in parameters if x.kind == "arrays" and not _is_left_out(x, given)]
    for x in lists:
        _match_arrays(match, x, given[x.name])
    _match_each(match, [(x, given[x.name]) for x in lists if x.is_each])
    _broadcast(match)
    for x in parameters:
        if not x.is_array and x.kind != "arrays":
            match.names[x.name] = _value(match, x, given.get(x.name, x.default), x.name in given)
    if not conditions_hold(match.signature, match.names):
        raise NoMatch(f"expected {', '.join(match.signature.conditions)}")
    _compare_formulas(match)


def _is_left_out(x: Parameter, given: dict[str, Any]) -> bool:
    if given.get(x.name) is not None:
        return False
    if not x.has_default:
        raise NoMatch(f"{x.name}: expected an array")
    return True


# ---- Arrays --------------------------------------------------------------------------------------


def _match_array(match: _Match, x: Parameter, spec: Any) -> None:
    if not isinstance(spec, ArraySpec):
        raise NoMatch(f"{x.name}: got {type(spec).__name__}, expected an array")
    wanted = match.signature.dtypes(x)
    if (
        spec.dtype not in wanted
        or match.types.setdefault(x.type_variable, spec.dtype) != spec.dtype
    ):
        raise NoMatch(
            f"{x.name}: got {spec.dtype}, expected {match.types.get(x.type_variable, wanted)}"
        )
    groups = sum(kind in GROUP_KINDS for kind, _ in x.dims)
    n_group = spec.ndim - (len(x.dims) - groups)
    if spec.ndim > _MAX_NDIM or n_group < 0 or (n_group and not groups):
        raise NoMatch(
            f"{x.name}: got {spec.ndim} dimensions, expected [{match.signature.shape(x)}]"
        )
    at = 0
    for kind, value in x.dims:
        n = n_group if kind in GROUP_KINDS else 1
        _match_dim(match, x, kind, value, spec.shape[at : at + n])
        at += n
    match.shapes.append((x, spec.shape))


def _match_dim(
    match: _Match, x: Parameter, kind: str, value: Extent, part: tuple[Any, ...]
) -> None:
    if kind == "loop" or not isinstance(value, int):
        return  # compared when all are known
    name = "" if kind == "fixed" else match.signature.dim_names[value]
    known = match.names.get(name, value)
    if name and name not in match.names:
        match.names[name] = part if kind == "variadic" else part[0]
        return
    wanted = known if kind == "variadic" else (known,)
    if len(wanted) != len(part) or not all(map(match.sizes.same, part, wanted)):
        raise NoMatch(f"{x.name}: got sizes {part}, expected {wanted}")


def _match_arrays(match: _Match, x: Parameter, specs: Any) -> None:
    if not isinstance(specs, (list, tuple)):
        raise NoMatch(f"{x.name}: got {type(specs).__name__}, expected a list of arrays")
    for spec in () if x.is_each else specs:
        _match_array(match, x, spec)
    named = [
        match.signature.dim_names[value]
        for kind, value in x.dims
        if kind in ("named", "variadic")
        and isinstance(value, int)
        and value not in match.signature.each_names
    ]
    is_typed = x.type_variable in match.types or len(match.signature.dtypes(x)) == 1
    if not specs and not (is_typed and match.names.keys() >= set(named)):
        raise NoMatch(f"{x.name}: got an empty list, expected at least one array")
    match.names[x.name] = tuple(specs)


def _match_each(match: _Match, lists: list[tuple[Parameter, Any]]) -> None:
    """Match lists whose items belong together: item k of each binds names only for these items."""
    own = {match.signature.dim_names[k] for k in match.signature.each_names}
    for x, specs in lists:
        if len(specs) != len(lists[0][1]):
            raise NoMatch(f"{x.name}: got {len(specs)} arrays, expected {len(lists[0][1])}")
    for specs in zip(*(specs for _, specs in lists), strict=True):
        for (x, _), spec in zip(lists, specs, strict=True):
            _match_array(match, x, spec)
        match.names = {name: size for name, size in match.names.items() if name not in own}


def _loop_part(x: Parameter, shape: tuple[Any, ...]) -> slice:
    """Return where the loop dimensions of an array are."""
    before = [kind for kind, _ in x.dims].index("loop")
    return slice(before, len(shape) - (len(x.dims) - 1 - before))


def _broadcast(match: _Match) -> None:
    looped = [
        (x, shape[_loop_part(x, shape)]) for x, shape in match.shapes if ("loop", 0) in x.dims
    ]
    ndim = max((len(part) for _, part in looped), default=0)
    result: list[Any] = [1] * ndim
    for _, part in looped:
        for k, size in enumerate(part, ndim - len(part)):
            result[k] = match.sizes.broadcast(result[k], size)
    match.names[LOOP] = tuple(result)
    for x, part in looped:
        is_whole = len(part) == ndim and all(map(match.sizes.same, part, result))
        if x.kind == "inout" and not is_whole:
            raise NoMatch(f"{x.name}: got {part}, expected {result} (it is changed in place)")


def _compare_formulas(match: _Match) -> None:
    for x, shape in match.shapes:
        for k, (_, value) in enumerate(x.dims):
            groups = [at for at, (other, _) in enumerate(x.dims[:k]) if other in GROUP_KINDS]
            at = k - len(x.dims) if groups else k
            if not isinstance(value, Formula):
                continue
            try:
                is_same = match.sizes.same(shape[at], value.value(match.names))
            except NoValue as error:
                raise NoMatch(f"{value.text}: {error}") from None
            if not is_same:
                raise NoMatch(f"{x.name}: got size {shape[at]}, expected {value.text}")


# ---- Other parameters ----------------------------------------------------------------------------


def _dtype_of_variable(match: _Match, name: Any) -> str | None:
    """Return the dtype of the type variable of a name, if it is known."""
    for number, (known, _) in enumerate(match.signature.variables):
        if name and name == known:
            return match.types.get(number)
    return None


def _value(match: _Match, x: Parameter, value: Any, is_given: bool) -> Any:
    if not is_given and not x.has_default:
        raise NoMatch(f"{x.name}: it is missing")
    if value is None and x.has_default and x.default is None:
        return None
    if x.kind == "handle":
        fits = True  # the core checks which plugin created it
    elif x.kind == "dtype":
        value = dtype_name(value) or _dtype_of_variable(match, value)
        fits = value in match.signature.dtypes(x)
        fits = fits and match.types.setdefault(x.type_variable, value) == value
    elif x.kind in ("string", "choice"):
        fits = isinstance(value, str) and (x.kind == "string" or value in x.choices)
    elif x.kind == "list":
        if _fits(_dtype(match, x), value):  # a number means a list of one item
            value = (value,)
        fits = isinstance(value, (list, tuple)) and all(_fits(_dtype(match, x), v) for v in value)
    else:
        fits = _fits(_dtype(match, x), value)
    if not fits:
        raise NoMatch(
            f"{x.name}: got {value!r}, expected {x.kind} of {', '.join(match.signature.dtypes(x))}"
        )
    return value


def _dtype(match: _Match, x: Parameter) -> str:
    return match.types.get(x.type_variable) or match.signature.dtypes(x)[0]


def _fits(dtype: str, value: Any) -> bool:
    """Return whether a dtype accepts a number. Types other than Python's are symbolic integers."""
    kinds = (bool, int, float, complex)
    if isinstance(value, (str, list, tuple, ArraySpec)) or value is None:
        return False
    kind = next((k for k, x in enumerate(kinds) if isinstance(value, x)), 1)
    wanted = DTYPES[dtype].kind.removeprefix("u")
    if wanted == "storage":
        if DTYPES[dtype].n_packed > 1:
            return False
        wanted = "float"
    if wanted == "bool" or kind > _KINDS.index(wanted):
        return wanted == "bool" and kind == 0
    return not isinstance(value, kinds) or _is_in_range(dtype, wanted, value)


def _is_in_range(dtype: str, wanted: str, value: Any) -> bool:
    if wanted == "int":
        bits = 8 * DTYPES[dtype].n_bytes
        low, high = (0, 2**bits) if dtype.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1))
        return low <= value < high
    import ml_dtypes  # slow to import, and rarely needed

    real = numpy_dtype(dtype).type(0).real.dtype if wanted == "complex" else numpy_dtype(dtype)
    most = float(ml_dtypes.finfo(real).max)
    try:
        parts = [float(part) for part in (complex(value).real, complex(value).imag)]
    except OverflowError:
        return False
    return not any(abs(part) > most and not math.isinf(part) for part in parts)


# ---- Outputs -------------------------------------------------------------------------------------


def _output(match: _Match, x: Parameter) -> ArraySpec:
    dtype, sizes = _dtype(match, x), match.sizes
    try:
        shape = shape_of(match.signature, x, match.names, unknown=_UNKNOWN)
    except NoValue as error:
        raise NoMatch(f"{x.name or 'output'}: {error}") from None
    known = [size for size in shape if size is not _UNKNOWN]
    if len(shape) > _MAX_NDIM or not all(map(sizes.is_possible, known)):
        raise NoMatch(f"{x.name or 'output'}: got the shape {shape}, expected one of an array")
    n_bytes = math.prod(
        (size for size in known if isinstance(size, int)), start=DTYPES[dtype].n_bytes
    )
    if n_bytes >= 2**63 and len(known) == len(shape):
        raise NoMatch(f"{x.name or 'output'}: the shape {shape} needs 2^63 bytes or more")
    shape = tuple(sizes.unknown() if size is _UNKNOWN else size for size in shape)
    return ArraySpec(dtype, _reduced(match, shape) if match.signature.reduces else shape)


def _reduced(match: _Match, shape: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a shape without the dimensions that `axis` names, or with 1 for each of them."""
    axis, ndim = match.names["axis"], len(shape)
    numbers = tuple(range(ndim)) if axis is None else tuple(axis)
    if not all(isinstance(k, int) for k in numbers):
        raise NoMatch("axis: got a number known after the run, expected one known before it")
    axes = {k % ndim for k in numbers if -ndim <= k < ndim}
    if len(axes) < len(numbers):
        expected = f"{-ndim} <= axis < {ndim}, each dimension once"
        raise NoMatch(f"axis: got {list(numbers)}, expected {expected}")
    if match.names["keepdims"]:
        return tuple(1 if k in axes else size for k, size in enumerate(shape))
    return tuple(size for k, size in enumerate(shape) if k not in axes)
