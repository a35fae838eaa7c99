# SPDX-License-Identifier: Apache-2.0
"""Checks of an operator's gradients and of `linear`, as functions of one example.

Arrays of numbers get other values, in float64 if the operator supports it. The gradients of these
values are compared with differences. The functions raise AssertionError.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cuplug._engine.call.operator import Operator
from cuplug._engine.lookup.gradient import find_gradient
from cuplug._engine.signature.gradient import Gradient, linear_names
from cuplug._engine.signature.signature import Signature, parse
from cuplug._integration.author.gradient_arguments import misfit
from cuplug._integration.commands.properties import Arguments, Array, as_list, inouts, with_arrays
from cuplug._integration.commands.property_outcomes import REFUSALS, Tried
from cuplug.errors import Error

STEPS = {"float64": 1e-5, "complex128": 1e-5, "float32": 1e-2, "complex64": 1e-2}
NEAR = {"float64": 1e-5, "complex128": 1e-5, "float32": 2e-2, "complex64": 2e-2}
ATTEMPTS = 4  # at other points, since an operator may have jumps or kinks
FACTORS = (2.5, -0.75)  # their sum is not 1, which reveals a constant added to a linear function


def gradient_agrees(
    operator: Tried, arguments: Arguments, device: str = "cpu", signature: str = ""
) -> None:
    """The gradient along a random direction is the central difference of the results."""
    row = operator.signatures.index(signature)
    try:
        found = find_gradient(operator.operator, row)
    except (Error, ValueError) as error:
        raise AssertionError(str(error)) from None
    assert found, "the row has no gradient"
    refusal = ""
    for bits in (64, 32):
        given = _in_bits(parse(signature), arguments, bits)
        if not misfit(operator.operator, given) and _has_numbers(operator, given):
            refusal = _refusal_at_points(
                Function(operator, parse(signature), device), given, *found
            )
            if not refusal:
                return
    assert not refusal, f"it refuses what {operator.name} took: {refusal}"


def linear_agrees(
    operator: Tried, arguments: Arguments, device: str = "cpu", signature: str = ""
) -> None:
    """Sums and multiples of the arrays in `linear` give sums and multiples of the results."""
    row = operator.signatures.index(signature)
    names = linear_names(operator.operator.properties[row].get("linear"))
    function = Function(operator, parse(signature), device)
    random = np.random.default_rng(0)
    x = with_numbers(random, _in_bits(function.signature, arguments, 64))
    if not _has_numbers(operator, x):
        return
    z = x | {name: numbers(random, x[name]) for name in names if is_numbers(x.get(name))}
    both = {k: _sum(x[k], z[k]) for k in z if k in names and is_numbers(x[k])}
    try:
        seen, parts = function(x | both), (function(x), function(z))
    except REFUSALS:
        return
    for y, *of in zip(seen, *parts, strict=True):
        if not is_numbers(y) or not all(np.isfinite(part).all() for part in (y, *of)):
            continue
        wanted, size = _sum(*of), sum(float(np.abs(part).max(initial=0)) for part in of)
        off = float(np.abs(y - wanted).max(initial=0))
        assert off <= NEAR.get(y.dtype.name, 0.1) * size, (
            f"it is not linear in {', '.join(names)}: a combination of arrays and that of their "
            f"results are {off:.3g} apart"
        )


class Function:
    """An operator without side effects: in-out arrays are also results."""

    def __init__(self, operator: Tried | Operator, signature: Signature, device: str) -> None:
        self.operator, self.signature, self.device = operator, signature, device

    def __call__(self, given: Arguments) -> list[Array]:
        """Return the in-out arrays after a call, then the outputs."""
        copies = with_arrays(given, np.copy)
        outputs = as_list(self.operator(**copies, device=self.device))
        return [*inouts(self.operator.signatures, copies), *outputs]


def _refusal_at_points(
    function: Function, given: Arguments, gradient: Operator, how: Gradient
) -> str:
    """Check the gradient at a point that allows it; return the reason if none does."""
    for attempt in range(ATTEMPTS):
        random = np.random.default_rng(attempt)
        point = Point(function, with_numbers(random, given, attempt % 2 == 1), random)
        try:
            point.take_results()
        except REFUSALS:
            return ""
        passed = point.passed(how)
        refusal = misfit(gradient, passed)
        if refusal:
            return refusal
        computed = Function(gradient, parse(gradient.signatures[0]), function.device)(passed)
        targets = [k for k in how.targets if not point.is_left_out(k)]
        told = [point.agrees(gradient.name, *x) for x in zip(targets, computed, strict=True)]
        if all(told):
            break
    return ""


class Point:
    """A function at random arguments, with random weights for its results."""

    def __init__(self, function: Function, given: Arguments, random: np.random.Generator) -> None:
        self.function, self.given, self.random = function, given, random
        self.results: list[Array] = []
        self.weights: list[Array] = []

    def take_results(self) -> None:
        """Call the function."""
        self.results = self.function(self.given)
        self.weights = [
            numbers(self.random, y) if is_numbers(y) else np.zeros_like(y) for y in self.results
        ]

    def passed(self, how: Gradient) -> Arguments:
        """Return the arguments of the gradient's operator. Defaults are the function's."""
        parameters = self.function.signature.parameters
        known = {x.name: x.default for x in parameters if x.default is not None} | self.given
        places: dict[str, list[Any]] = {"gradient": self.weights, "result": self.results}
        places["argument"] = [known.get(x.name) for x in parameters]
        # Omitted in-out arrays have no results, and follow all others.
        given = {
            name: next(iter(places[x.kind][x.number : x.number + 1]), None)
            for name, x in how.arguments.items()
        }
        return {name: x for name, x in given.items() if x is not None}

    def is_left_out(self, k: int) -> bool:
        """Return whether a parameter is an omitted in-out array, which has no gradient."""
        x = self.function.signature.parameters[k]
        return x.is_inout and self.given.get(x.name) is None

    def agrees(self, name: str, target: int, computed: Array) -> bool:
        """Compare the gradient of one parameter with differences; False if these are inaccurate."""
        x = self.function.signature.parameters[target].name
        if not is_numbers(self.given.get(x)):
            return True
        direction = numbers(self.random, self.given[x])
        step, near = STEPS[direction.dtype.name], NEAR[direction.dtype.name]
        wide, narrow = (self.difference(x, direction, step / k) for k in (1, 2))
        along = np.broadcast_to(direction, computed.shape)
        seen, sizes = inner(computed, along), [abs(wide), np.abs(computed * along).sum()]
        sizes += [np.abs(w * y).sum() for w, y in zip(self.weights, self.results, strict=True)]
        bound = near * float(sum(sizes))
        if not np.isfinite([seen, wide, narrow]).all() or abs(wide - narrow) > bound:
            return False
        assert abs(seen - wide) <= bound, (
            f"{name}: the gradient of {x} along a random direction: got {seen:.6g}, expected "
            f"{wide:.6g}, the central difference in {direction.dtype}"
        )
        return True

    def difference(self, name: str, direction: Array, step: float) -> float:
        """Return the central difference of the weighted results along a direction."""
        x = self.given[name]
        ahead, behind = (
            sum(map(inner, self.weights, self.function(self.given | {name: moved})))
            for moved in (_moved(x, direction, step), _moved(x, direction, -step))
        )
        return (ahead - behind) / (2 * step)


def is_numbers(x: Any) -> bool:
    """Return whether an object is an array of floating or complex numbers of 32 bits or more."""
    return isinstance(x, np.ndarray) and x.dtype.name in STEPS


def _has_numbers(operator: Tried, given: Arguments) -> bool:
    """Return whether differences can be computed. If not, no call counts as accepted."""
    if any(map(is_numbers, given.values())):
        return True
    operator.answer = "no array of numbers of 32 bits or more"
    return False


def numbers(random: np.random.Generator, like: Array, positive: bool = False) -> Array:
    """Return random numbers in the shape and dtype of an array."""

    def drawn() -> Array:
        if positive:
            return np.asarray(random.uniform(0.1, 0.9, like.shape))
        return np.asarray(random.standard_normal(like.shape))

    x = drawn() + 1j * drawn() if like.dtype.kind == "c" else drawn()
    return np.asarray(x, like.dtype)


def with_numbers(
    random: np.random.Generator, given: Arguments, positive: bool = False
) -> Arguments:
    """Return arguments whose numeric arrays have random values."""
    return with_arrays(given, lambda x: numbers(random, x, positive) if is_numbers(x) else x)


def inner(x: Array, y: Array) -> float:
    """Return the sum of products. Complex numbers count as vectors of real ones."""
    return float(np.vdot(x, y).real)


def _sum(x: Array, z: Array) -> Array:
    return np.asarray(FACTORS[0] * x + FACTORS[1] * z, x.dtype)


def _moved(x: Array, direction: Array, step: float) -> Array:
    return np.asarray(x + step * direction, x.dtype)


def _in_bits(signature: Signature, arguments: Arguments, bits: int) -> Arguments:
    """Return arguments with numbers of the given bits in arrays, if the overload accepts them."""

    def changed(name: str, x: Any) -> Any:
        allowed = signature.dtypes(kinds[name])
        return with_arrays({name: x}, lambda y: _cast(y, allowed, bits))[name]

    kinds = {x.name: x for x in signature.parameters}
    return {name: changed(name, x) for name, x in arguments.items()}


def _cast(x: Array, allowed: tuple[str, ...], bits: int) -> Array:
    wanted = f"complex{2 * bits}" if x.dtype.kind == "c" else f"float{bits}"
    return x.astype(wanted) if wanted in allowed else x
