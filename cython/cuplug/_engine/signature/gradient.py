# SPDX-License-Identifier: Apache-2.0
"""The arguments of the operator that computes a gradient, and the parameters of its results.

docs/abi.md has the contract: only names decide.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from cuplug._engine.signature.signature import Parameter, Signature

__all__ = [
    "Gradient",
    "Origin",
    "broadcast_inputs",
    "detached_of",
    "has_gradients",
    "linear_in",
    "linear_names",
    "match_gradient",
    "results_of",
]

PREFIX = "grad_"
OPEN = ("variadic", "loop", "slice", "listed")  # any number of dimensions


@dataclass(frozen=True)
class Origin:
    """The source of an argument of the gradient's operator."""

    kind: str  # "gradient" of a result, "argument" or "result" of the operator
    number: int  # among the results, the parameters or the results, by kind


@dataclass(frozen=True)
class Gradient:
    """How the gradient of one overload is computed.

    Attributes
    ----------
    arguments : dict of str to Origin
        The arguments of the gradient's operator, by name.
    targets : tuple of int
        For each result of the gradient's operator, the number of the parameter whose gradient it
        is. If the shapes differ, that parameter was broadcast: sum to its shape.
    """

    arguments: dict[str, Origin]
    targets: tuple[int, ...]


def results_of(signature: Signature) -> list[Parameter]:
    """Return the results of a call: the in-out arrays, as changed by it, then the outputs."""
    return [*(x for x in signature.parameters if x.is_inout), *signature.outputs]


def detached_of(signature: Signature) -> tuple[int, ...]:
    """Return the numbers of the results that, by the signature, have no gradient."""
    return tuple(k for k, x in enumerate(results_of(signature)) if "detached" in x.words)


def broadcast_inputs(signature: Signature) -> list[int]:
    """Return the numbers of the parameters that may be broadcast against another one."""
    looped = [k for k, x in enumerate(signature.parameters) if ("loop", 0) in x.dims]
    return looped if len(looped) > 1 else []


def has_gradients(signature: Signature, x: Parameter) -> bool:
    """Return whether an array may have gradients: its dtype may be floating or complex.

    `host` and `detached` arrays have none.
    """
    dtypes = signature.dtypes(x) if x.is_array and not {"detached", "host"} & {*x.words} else ()
    return any("float" in name or "complex" in name for name in dtypes)


def linear_names(value: str | None) -> tuple[str, ...]:
    """Return the names that the property `linear` lists."""
    return tuple(name.strip() for name in (value or "").split(",") if name.strip())


def linear_in(properties: Iterable[Mapping[str, str | None]]) -> list[str]:
    """Return the arrays in which an operator is linear by the properties of any overload."""
    names = [name for own in properties for name in linear_names(own.get("linear"))]
    return list(dict.fromkeys(names))


def match_gradient(
    operator: Signature, gradient: Sequence[Signature], linear: Sequence[str] = ()
) -> Gradient:
    """Match the operator that computes a gradient with the overload whose gradient it computes.

    Parameters
    ----------
    operator : Signature
        One overload of the operator.
    gradient : sequence of Signature
        All overloads of the operator that computes its gradient.
    linear : sequence of str
        The arrays in which that operator is linear, by its property.

    Raises
    ------
    ValueError
        They do not match; the message names the first mismatch.
    """
    given = _given(operator, gradient, linear)
    refusals = []
    for row in gradient:
        refusal = _refusal(operator, row, given)
        if not refusal:
            return Gradient(given, _targets(operator, row))
        refusals.append(refusal)
    raise ValueError(refusals[0])


def _given(
    operator: Signature, gradient: Sequence[Signature], linear: Sequence[str]
) -> dict[str, Origin]:
    """Return the sources of the parameters of all overloads, without parameters that have none."""
    results = results_of(operator)
    origins = {x.name: Origin("result", k) for k, x in enumerate(results) if x.name}
    origins |= {x.name: Origin("argument", k) for k, x in enumerate(operator.parameters)}
    gradients = {
        PREFIX + x.name: Origin("gradient", k)
        for k, x in enumerate(results)
        if x.name and "detached" not in x.words
    }
    if len(results) == 1 and "detached" not in results[0].words:
        gradients["grad"] = Origin("gradient", 0)
    names = [x.name for row in gradient for x in row.parameters]
    if linear and not gradients.keys() & set(names):
        gradients = _to_linear(results, linear)
    origins |= gradients
    return {name: origins[name] for name in dict.fromkeys(names) if name in origins}


def _to_linear(results: list[Parameter], linear: Sequence[str]) -> dict[str, Origin]:
    """Return the gradients that linear arguments receive: the only one, or by name if several."""
    if len(results) == len(linear) == 1:
        return {linear[0]: Origin("gradient", 0)}
    places = {x.name.removeprefix(PREFIX): k for k, x in enumerate(results)}
    return {name: Origin("gradient", places[name]) for name in linear if name in places}


def _refusal(operator: Signature, row: Signature, given: dict[str, Origin]) -> str:
    """Return why an overload of the gradient's operator rejects the arguments, or ""."""
    parameters = {x.name: x for x in row.parameters}
    for name in sorted(given.keys() - parameters.keys()):
        return f"{row.name}: {name}: another row takes it, this one does not: {row.text}"
    if not any(origin.kind == "gradient" for origin in given.values()):
        return f"{row.name}: no parameter takes the gradient of a result: {_wanted(operator)}"
    for name, x in parameters.items():
        if name not in given:
            if not x.has_default:
                return f"{row.name}: {name}: {operator.name} has no such parameter or result"
        elif not _fits(operator, _origin(operator, given[name]), row, x, is_input=True):
            return f"{row.name}: {name}: its type is not that of {operator.name}"
    missing = _missing(operator, given)
    return _missing_text(row.name, missing) if missing else _refused_results(operator, row)


def _missing_text(name: str, missing: Sequence[str]) -> str:
    """Return the message that a gradient would be taken as zero."""
    wanted = " and ".join(PREFIX + x for x in missing)
    return (
        f"{name}: got no parameter for the gradient of {' and '.join(missing)}, expected {wanted}; "
        "add it, or the gradient would silently be zero"
    )


def _missing(operator: Signature, given: dict[str, Origin]) -> list[str]:
    """Return the results whose gradient no parameter takes."""
    taken = {origin.number for origin in given.values() if origin.kind == "gradient"}
    pairs = enumerate(results_of(operator))
    found = [(k, x) for k, x in pairs if k not in taken and has_gradients(operator, x)]
    return [x.name or f"output {k}" for k, x in found]


def _wanted(operator: Signature) -> str:
    results = results_of(operator)
    own = [x for x in results if "detached" not in x.words]
    names = ["grad"] if len(results) == 1 else [PREFIX + x.name for x in own if x.name]
    return f"expected {' or '.join(names) or 'results with names'}"


def _origin(operator: Signature, origin: Origin) -> Parameter:
    places = operator.parameters if origin.kind == "argument" else results_of(operator)
    return places[origin.number]


def _refused_results(operator: Signature, row: Signature) -> str:
    results = results_of(row)
    for result in results:
        target = _target(operator, results, result)
        if target is None and not _is_named(results, result):
            return f"{row.name}: {operator.name} has no array of floating or complex numbers"
        if target is None:
            return (
                f"{row.name}: {result.name or 'an output without a name'}: expected the name of an "
                f"array of {operator.name} behind {PREFIX}"
            )
        if not _fits(operator, operator.parameters[target], row, result):
            name = operator.parameters[target].name
            return f"{row.name}: the gradient of {name}: its type is not that of {operator.name}"
    return "" if results else f"{row.name}: got no output, expected a gradient"


def _targets(operator: Signature, row: Signature) -> tuple[int, ...]:
    results = results_of(row)
    targets = (_target(operator, results, x) for x in results)
    return tuple(target for target in targets if target is not None)


def _is_named(results: list[Parameter], result: Parameter) -> bool:
    """Return whether the name of a result selects its parameter. A single result needs no name."""
    return len(results) > 1 or result.name.startswith(PREFIX)


def _target(operator: Signature, results: list[Parameter], result: Parameter) -> int | None:
    for k, x in enumerate(operator.parameters):
        meant = result.name == PREFIX + x.name if _is_named(results, result) else True
        if meant and has_gradients(operator, x):
            return k
    return None


def _fits(
    operator: Signature, x: Parameter, row: Signature, y: Parameter, is_input: bool = False
) -> bool:
    """Return whether both descriptions allow a common value."""
    if is_input and x.is_on_host != y.is_on_host:
        return False
    kinds = (x.is_array or x.kind, y.is_array or y.kind)
    dtypes = operator.dtypes(x), row.dtypes(y)
    if kinds[0] != kinds[1] or x.choices != y.choices:
        return False
    return (not any(dtypes) or bool(set(dtypes[0]) & set(dtypes[1]))) and _ranks_meet(x, y)


def _ranks_meet(x: Parameter, y: Parameter) -> bool:
    """Return whether two arrays may have the same number of dimensions."""
    least = [sum(kind not in OPEN for kind, _ in z.dims) for z in (x, y)]
    is_open = [any(kind in OPEN for kind, _ in z.dims) for z in (x, y)]
    return all(is_open[k] or least[k] >= least[1 - k] for k in (0, 1))
