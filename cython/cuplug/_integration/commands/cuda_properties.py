# SPDX-License-Identifier: Apache-2.0
"""Properties of every CUDA entry, as functions of one example that raise AssertionError."""

from __future__ import annotations

from typing import Any

import numpy as np

from cuplug._engine.cuda.devices import synchronize
from cuplug._engine.discovery.table import read_table
from cuplug._integration.commands.properties import (
    BESIDE,
    EPSILONS,
    LAYOUTS,
    Arguments,
    Array,
    Guarded,
    arrays_of,
    as_list,
    assert_same,
    given_as_out,
    has_unknown_sizes,
    inouts,
    on_host,
    outcome,
    takes_any_layout,
    with_arrays,
)
from cuplug._integration.commands.property_outcomes import REFUSALS, Tried
from cuplug.array_api.conversion import asarray

LAYOUTS_THERE = (
    "strided",
    "sliced",
    "reversed",
    "Fortran-ordered",
    "channels-last",
    "offset by one element",
)


class Window:
    """An array in device memory between guard zones."""

    def __init__(self, x: Array) -> None:
        self.host = Guarded(x)
        before, after = self.host.zones
        self.n_before = before.nbytes
        self.room = asarray(np.concatenate([before, self.host.bytes, after]), device="cuda")
        self.__cuda_array_interface__ = {
            "shape": x.shape,
            "typestr": x.dtype.str,
            "data": (self.room.data_ptr + self.n_before, False),
            "version": 3,
        }

    def fetch(self, what: str) -> Array:
        """Return the array after checking the memory around it."""
        room, x = self.room.numpy(), self.host.array
        end = self.n_before + x.nbytes
        for side, zone in (("before", room[: self.n_before]), ("after", room[end:])):
            assert (zone == BESIDE).all(), f"device memory {side} {what} was written"
        return room[self.n_before : end].view(x.dtype).reshape(x.shape)


class Laid:
    """An array in device memory with the layout of the host array."""

    def __init__(self, x: Array) -> None:
        owner: Array = x if x.base is None else x.base  # type: ignore[assignment]
        self.room = asarray(owner.ravel("K").view(np.uint8), device="cuda")
        self.__cuda_array_interface__ = {
            "shape": x.shape,
            "strides": x.strides,
            "typestr": x.dtype.str,
            "data": (self.room.data_ptr + x.ctypes.data - owner.ctypes.data, False),
            "version": 3,
        }


def takes_any_layout_there(operator: Tried, arguments: Arguments, device: str = "cuda") -> None:
    """Host arrays of any layout, and device arrays if the entry accepts their strides."""
    takes_any_layout(operator, arguments, device)
    arrays = arrays_of(arguments)
    changed = {id(x) for x in inouts(operator.signatures, arguments)}
    rows = [row for row in read_table(operator.path).rows if row.operator == operator.name]
    foreign = any(x.dtype.isbuiltin != 1 for x in arrays.values())
    if changed or foreign or not arrays or not all(row.cuda_takes_strides for row in rows):
        return
    wanted = outcome(operator, arguments, device=device)
    if isinstance(wanted, type):
        return
    for layout in LAYOUTS_THERE:
        laid = with_arrays(arguments, LAYOUTS[layout])
        laid = with_arrays(laid, Laid) | on_host(operator, laid)
        try:
            seen: list[Any] = as_list(operator(**laid))
        except REFUSALS as error:
            operator.rejected[f"{layout} on the device"] = str(error)
            continue
        assert_same([x.numpy() for x in seen], wanted, EPSILONS, f"{layout} device arrays")


def device_types_agree(operator: Tried, arguments: Arguments, device: str = "cuda") -> None:
    """The CUDA entry returns the results of the host entry."""
    wanted = outcome(operator, arguments, device="cpu")
    seen = outcome(operator, arguments, device=device)
    assert_same(seen, wanted, EPSILONS, "CUDA entry against host entry")


def runs_again(operator: Tried, arguments: Arguments, device: str = "cuda") -> None:
    """The CUDA entry returns the same bits twice."""
    wanted = outcome(operator, arguments, device=device)
    assert_same(outcome(operator, arguments, device=device), wanted, 0, "the same call again")


def keeps_to_its_arrays(operator: Tried, arguments: Arguments, device: str = "cuda") -> None:
    """Device arrays between guard zones give the results of host arrays."""
    arrays = arrays_of(arguments)
    if any(x.dtype.isbuiltin != 1 for x in arrays.values()) or not arrays:
        return  # their interface has no names for the dtypes of ml_dtypes
    wanted = outcome(operator, arguments, device=device)
    if isinstance(wanted, type):
        return
    changed = {id(x) for x in inouts(operator.signatures, arguments)}
    outputs = wanted[: len(wanted) - len(changed)]
    staying = on_host(operator, with_arrays(arguments, np.copy))
    windows = {id(x): Window(x) for name, x in arrays.items() if name not in staying}
    if any(x.dtype.isbuiltin != 1 for x in outputs) or has_unknown_sizes(operator):
        return
    outs = [Window(_complement(x)) for x in outputs]
    try:
        moved = {name: x for name, x in arguments.items() if name not in staying}
        given = with_arrays(moved, lambda x: windows[id(x)]) | staying
        as_list(operator(**given, **given_as_out(_placed(operator, arguments, outs))))
        synchronize()
    except REFUSALS as error:
        raise AssertionError(f"device arrays: {error}") from None
    results = [x.fetch("an output") for x in outs]
    for name, x in arrays.items():
        fetched = staying[name] if name in staying else windows[id(x)].fetch(name)
        if id(x) in changed:
            results.append(fetched)
        else:
            assert fetched.tobytes() == x.tobytes(), f"input {name} was written"
    assert_same(results, wanted, 0, "device arrays against host arrays through the GPU")


def _complement(x: Array) -> Array:
    """Return an array that differs in each byte, to find bytes that are not written."""
    return (~np.frombuffer(x.tobytes(), np.uint8)).view(x.dtype).reshape(x.shape)


def _placed(operator: Tried, arguments: Arguments, outs: list[Any]) -> list[Any]:
    """Return outputs at their positions, with None for those that a call omits."""
    rest, returns = iter(outs), operator.operator.returns
    left_out = {place for name, place in returns.items() if not arguments.get(name, True)}
    return [None if k in left_out else next(rest) for k in range(len(outs) + len(left_out))]
