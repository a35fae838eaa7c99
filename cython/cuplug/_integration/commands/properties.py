# SPDX-License-Identifier: Apache-2.0
"""Properties of every operator, as functions of one example that raise AssertionError."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from cuplug._engine.arguments.handle import Handle
from cuplug._engine.array.promotion import kind_of
from cuplug._engine.call.run import n_rounding_changes
from cuplug._engine.signature.signature import Signature, parse
from cuplug._engine.signature.solver import TILE
from cuplug._integration.commands.property_outcomes import REFUSALS, Fresh, Tried, check_beside

Arguments = dict[str, Any]
Array = np.ndarray[Any, Any]

GUARD_BYTES = 64
BESIDE = 0xA5  # value of each byte in guard zones
# Bytes next to inputs, on which no result may depend: numbers of both signs, large, 0, and NaN.
FILLS = (0x00, 0x47, 0xC7, 0xFF)
EPSILONS = 64  # allowed difference between device types, in epsilons of the largest value


class Guarded:
    """A copy of an array between guard zones, `shift` bytes after a multiple of 16."""

    def __init__(
        self, x: Array, shift: int = 0, fill: int | None = None, beside: int = BESIDE
    ) -> None:
        at = GUARD_BYTES + shift
        room = np.full(x.nbytes + 2 * at + 16, beside, np.uint8)
        at += -room.ctypes.data % 16
        self.zones = (room[:at], room[at + x.nbytes :])
        self.bytes = room[at : at + x.nbytes]
        self.bytes[:] = np.frombuffer(x.tobytes(), np.uint8) if fill is None else fill
        self.array: Array = self.bytes.view(x.dtype).reshape(x.shape)

    def check(self, what: str) -> None:
        """Check that nothing was written next to the array."""
        for side, zone in zip(("before", "after"), self.zones, strict=True):
            assert (zone == BESIDE).all(), f"memory {side} {what} was written"


def with_arrays(arguments: Arguments, change: Callable[[Array], Any]) -> Arguments:
    """Return arguments with all arrays changed by a function, including arrays in lists."""

    def changed(x: Any) -> Any:
        return change(x) if isinstance(x, np.ndarray) else x

    return {
        name: [changed(item) for item in x] if isinstance(x, list) else changed(x)
        for name, x in arguments.items()
    }


def on_host(operator: Any, arguments: Arguments) -> Arguments:
    """Return the arguments that stay in host memory in CUDA calls."""
    parameters = [x for text in operator.signatures for x in parse(text).parameters]
    names = {x.name for x in parameters if x.is_on_host}
    return {name: x for name, x in arguments.items() if name in names}


def arrays_of(arguments: Arguments) -> dict[str, Array]:
    """Return the arrays of a call by name: "x", "xs[0]"."""
    named: Arguments = {}
    for name, x in arguments.items():
        items = {f"{name}[{k}]": item for k, item in enumerate(x)} if isinstance(x, list) else {}
        named |= items or {name: x}
    return {name: x for name, x in named.items() if isinstance(x, np.ndarray)}


def outcome(
    operator: Tried,
    arguments: Arguments,
    copy: Callable[[Array], Array] = np.copy,
    **keywords: Any,
) -> Any:
    """Call; return the arrays that the call returned or changed, or the type of its exception."""
    given = with_arrays(arguments, copy)
    changed = inouts(operator.signatures, given)
    try:
        result = operator(**given, **keywords)
    except REFUSALS as error:
        return type(error)
    return [*as_list(result), *changed]


def as_list(result: Any) -> list[Array]:
    """Return the outputs of a call as a list, without omitted ones. Handles are closed."""
    return [x for x in all_of(result) if x is not None]


def all_of(result: Any) -> list[Any]:
    """Return the outputs of a call as a list, with None for omitted ones."""
    if isinstance(result, Handle):
        result.close()
        return []
    return list(result) if isinstance(result, tuple) else [] if result is None else [result]


def given_as_out(outs: Sequence[Any]) -> Arguments:
    """Return the keyword that passes outputs, with None for omitted ones."""
    return {"out": tuple(outs) if len(outs) > 1 else outs[0]} if outs else {}


def has_unknown_sizes(operator: Tried) -> bool:
    """Return True if an output has a size that is known after the run."""
    return any("?" in text.partition("->")[2] for text in operator.signatures)


def inouts(signatures: Iterable[str], arguments: Arguments) -> list[Array]:
    """Return the arrays that a call changes in place."""
    names = {x.name for s in signatures for x in parse(s).parameters if x.is_inout}
    given = [x for name, x in arguments.items() if name in names]
    return [y for x in given for y in (x if isinstance(x, list) else [x]) if y is not None]


def assert_same(seen: Any, wanted: Any, epsilons: int, what: str) -> None:
    """Compare two outcomes, bitwise if `epsilons` is 0."""
    if isinstance(seen, type) or isinstance(wanted, type):
        assert seen is wanted, f"{what}: got {_name(seen)}, expected {_name(wanted)}"
        return
    for x, y in zip(seen, wanted, strict=True):
        assert (x.shape, x.dtype) == (y.shape, y.dtype), f"{what}: shape or dtype differ"
        if kind_of(x.dtype) == "storage":
            assert x.tobytes() == y.tobytes(), f"{what}: {x!r}, expected {y!r}"
            continue
        if not epsilons or x.dtype.kind in "iub":
            same = x.tobytes() == y.tobytes() or np.array_equal(x, y)
            assert same or _bits(x) == _bits(y), f"{what}: {x!r}, expected {y!r}"
            continue
        wide = np.complex128 if x.dtype.kind == "c" else np.float64
        a, b = x.astype(wide), y.astype(wide)
        scale = float(np.max(np.abs(b[np.isfinite(b)]), initial=1.0))
        near = epsilons * _epsilon(x.dtype)
        close = np.allclose(a, b, rtol=near, atol=near * scale, equal_nan=True)
        assert close, f"{what}: {x!r}, expected {y!r}"


def _name(x: Any) -> str:
    return x.__name__ if isinstance(x, type) else "a result"


def _epsilon(dtype: np.dtype[Any]) -> float:
    import ml_dtypes

    return float(ml_dtypes.finfo(dtype).eps)


def _bits(x: Array) -> bytes:
    """Return the bytes of an array, with equal bytes for all NaNs."""
    wide = x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
    return np.where(np.isnan(wide), np.nan, wide).tobytes()


def is_deterministic(operator: Tried, arguments: Arguments, device: str = "cpu") -> None:
    """Equal calls return equal bits, also on several threads at once."""
    wanted = outcome(operator, arguments, device=device)
    seen: list[Any] = []
    threads = [
        threading.Thread(target=lambda: seen.append(outcome(operator, arguments, device=device)))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for other in seen:
        assert_same(other, wanted, 0, "the same call again")


def leaves_inputs_alone(operator: Tried, arguments: Arguments, device: str = "cpu") -> None:
    """The entry does not write to inputs, or next to inputs and in-out arrays."""
    guarded: dict[int, Guarded] = {}

    def guard(x: Array) -> Array:
        guarded[id(x)] = Guarded(x)
        return guarded[id(x)].array

    given = with_arrays(arguments, guard)
    changed = {id(x) for x in inouts(operator.signatures, given)}
    with contextlib.suppress(*REFUSALS):
        operator(**given, device=device)
    for name, before in arrays_of(arguments).items():
        x = guarded[id(before)]
        x.check(name)
        same = id(x.array) in changed or x.array.tobytes() == before.tobytes()
        assert same, f"input {name} was written"


def reads_inputs_alone(operator: Tried, arguments: Arguments, device: str = "cpu") -> None:
    """Results do not depend on memory next to inputs and in-out arrays."""

    def between(beside: int, x: Array) -> Array:
        return Guarded(x, beside=beside).array

    wanted, *others = [outcome(operator, arguments, partial(between, fill)) for fill in FILLS]
    for other in others:
        assert_same(other, wanted, 0, "other memory beside inputs")


def takes_any_layout(operator: Tried, arguments: Arguments, device: str = "cpu") -> None:
    """Strided, misaligned and read-only inputs give equal results, or are rejected."""
    wanted = outcome(operator, arguments, device=device)
    if isinstance(wanted, type):
        return
    changed = {id(x) for x in inouts(operator.signatures, arguments)}
    for layout, change in LAYOUTS.items():
        given = with_arrays(arguments, _except(changed, change))
        try:
            result = operator(**given, device=device)
        except REFUSALS as error:
            operator.rejected[layout] = str(error)
            continue
        seen = [*as_list(result), *inouts(operator.signatures, given)]
        assert_same(seen, wanted, EPSILONS, f"{layout} inputs")
        if changed or not _has_like(operator) or has_unknown_sizes(operator):
            continue
        outs = [x if x is None else np.full_like(x, 0) for x in all_of(result)]
        operator(**given, **given_as_out(outs), device=device)
        assert_same(as_list(tuple(outs)), wanted, EPSILONS, f"{layout} inputs and out=")


def _except(ids: set[int], change: Callable[[Array], Array]) -> Callable[[Array], Array]:
    return lambda x: x.copy() if id(x) in ids else change(x)


def _has_like(operator: Tried) -> bool:
    return any(x.like for text in operator.signatures for x in parse(text).outputs)


def _channels_last(x: Array) -> Array:
    if x.ndim < 3:
        return x.copy()
    return np.moveaxis(np.moveaxis(x, 1, -1).copy(), -1, 1)


def _strided(x: Array) -> Array:
    wide = np.zeros((*x.shape, 2), x.dtype)
    wide[..., 0] = x
    return wide[..., 0]


def _sliced(x: Array) -> Array:
    if not x.ndim:
        return x
    wide = np.zeros((*x.shape[:-1], x.shape[-1] + 3), x.dtype)
    wide[..., :-3] = x
    return wide[..., :-3]


def _read_only(x: Array) -> Array:
    copy = x.copy()
    copy.flags.writeable = False
    return copy


LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "strided": _strided,
    "sliced": _sliced,
    "reversed": lambda x: x[::-1].copy()[::-1] if x.ndim else x,
    "Fortran-ordered": lambda x: np.array(x, order="F"),
    "channels-last": _channels_last,
    "offset by one element": lambda x: Guarded(x, shift=x.itemsize).array,
    "misaligned": lambda x: Guarded(x, shift=1).array,
    "read-only": _read_only,
}


def fills_outputs(operator: Tried, arguments: Arguments, device: str = "cpu") -> None:
    """Arrays in `out=` get the call's results, whatever they contained. Nothing else is written."""
    given = with_arrays(arguments, np.copy)
    try:
        wanted = all_of(operator(**given, device=device))
    except REFUSALS:
        return
    if not wanted or has_unknown_sizes(operator):
        return
    for fill in (0x00, 0xFF):
        guarded = [x if x is None else Guarded(x, fill=fill) for x in wanted]
        outs = [x and x.array for x in guarded]
        operator(**with_arrays(arguments, np.copy), **given_as_out(outs), device=device)
        for x in filter(None, guarded):
            x.check("an output")
        what = f"out= that held bytes of {fill:#04x}"
        assert_same(as_list(tuple(outs)), as_list(tuple(wanted)), 0, what)


def keeps_to_outputs(operator: Tried, arguments: Arguments, device: str = "cpu") -> None:
    """Memory next to outputs is not written, including outputs of unknown size."""
    given = with_arrays(arguments, np.copy)
    with contextlib.suppress(*REFUSALS):
        check_beside(as_list(operator(**given, device=device)))


def keeps_rounding(operator: Tried, arguments: Arguments, device: str = "cpu") -> None:
    """The entry does not change rounding, flushing of subnormals or traps in its threads."""
    before = n_rounding_changes()
    with contextlib.suppress(*REFUSALS):
        operator(**with_arrays(arguments, np.copy), device=device)
    assert n_rounding_changes() == before, (
        "the entry came back with another rounding direction, with subnormal numbers flushed, or "
        "with traps: restore what it sets; cuplug undoes it in each call"
    )


def refuses_bad_arguments(operator: Tried, arguments: Arguments, device: str = "cpu") -> None:
    """A wrong dtype, rank or number of arguments is an error, and nothing is written."""
    arrays = [name for name in arrays_of(arguments) if name in arguments]
    bad: list[tuple[str, Arguments]] = [("one more", arguments | {"no_such_argument": 1})]
    for name in arrays:
        bad.append((f"dates as {name}", arguments | {name: np.zeros(3, "datetime64[s]")}))
        bad.append((f"text as {name}", arguments | {name: "text"}))
    for what, given in bad:
        kept = {k: x.tobytes() for k, x in arrays_of(given).items()}
        try:
            operator(**given, device=device)
        except REFUSALS:
            for name, was in kept.items():
                assert arrays_of(given)[name].tobytes() == was, (
                    f"{what}: rejected, but {name} was written"
                )
        else:
            raise AssertionError(f"{what}: got a result, expected an error")


def survives_any_values(operator: Tried, arguments: Arguments, device: str = "cpu") -> None:
    """Any values give a result or an error, and nothing is written next to arrays."""
    leaves_inputs_alone(operator, arguments, device)
    keeps_to_outputs(operator, arguments, device)
    fills_outputs(operator, arguments, device)


def paste(signature: Signature, path: str, arguments: Arguments) -> str:
    """Return an example as code."""
    given = ", ".join(f"{name}={code_of(x)}" for name, x in arguments.items())
    load = f"{signature.name} = cuplug.load({path!r}).{signature.name}"
    return f"import cuplug, ml_dtypes, numpy as np\n{load}\n{signature.name}({given})"


def code_of(x: Any) -> str:
    """Return an argument as code."""
    if isinstance(x, list):
        return f"[{', '.join(map(code_of, x))}]"
    if isinstance(x, Fresh):
        return x.code
    if not isinstance(x, np.ndarray):
        return repr(x)
    own = repr(x.dtype.descr if x.dtype.names else x.dtype.name)
    dtype = f"ml_dtypes.{x.dtype.name}" if x.dtype.isbuiltin == 2 else own
    if x.size > 100:
        n = TILE if np.resize(x.ravel()[:TILE], x.shape).tobytes() == x.tobytes() else 4
        return f"np.resize({code_of(x.ravel()[:n])}, {x.shape})"
    values = str(x.tolist()).replace("nan", "np.nan").replace("inf", "np.inf")
    reshaped = f".reshape({x.shape})" if not x.size else ""
    return f"np.array({values}, dtype={dtype}){reshaped}"
