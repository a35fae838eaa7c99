# SPDX-License-Identifier: Apache-2.0
"""Bandwidth of an operator over sizes, compared with a copy: `cuplug bench`."""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from cuplug._engine.array.array import Array
from cuplug._engine.array.make import empty
from cuplug._engine.call.operator import Operator
from cuplug._engine.call.output_tuples import all_outputs
from cuplug._engine.cuda.devices import devices, synchronize
from cuplug._engine.lookup.find import find, load
from cuplug._engine.signature.signature import Signature, parse
from cuplug._integration.author.bench_arguments import n_bytes_of, sized_arguments
from cuplug._integration.author.gradient_arguments import Gradients, misfit
from cuplug._integration.author.sources import library_at
from cuplug._integration.commands.overrides import (
    Range,
    check_names,
    read_pins,
    read_shapes,
    settable,
)
from cuplug._integration.commands.properties import Arguments, as_list, inouts, on_host, with_arrays
from cuplug._integration.commands.property_runner import NO_GPU
from cuplug.array_api.conversion import asarray
from cuplug.errors import CudaError, PluginError

SIZES = tuple(1 << power for power in range(10, 29, 3))
BATCH_S = 0.02
N_BATCHES = 5


@dataclass
class Measurement:
    """One size on one device type."""

    device_type: str  # "cpu" or "cuda"
    n_bytes: int  # bytes of all arrays, each read or written once
    call_us: float
    copy_us: float  # time of a copy that moves the same number of bytes
    arguments: str  # arguments of the call: "x=float32[64]"

    @property
    def gb_per_s(self) -> float:
        """Return the bandwidth of the operator."""
        return self.n_bytes / self.call_us / 1e3

    @property
    def share(self) -> float:
        """Return the fraction of the copy's bandwidth."""
        return self.copy_us / self.call_us

    def as_dict(self) -> dict[str, Any]:
        """Return the measurement for JSON."""
        return asdict(self) | {"gb_per_s": self.gb_per_s}


def find_operator(what: str) -> Operator:
    """Return the operator with a name.

    For a file or folder, return the plugin's own, or its first.
    """
    path = library_at(what)
    if not path:
        return find(what)
    plugin = load(path)
    if not plugin.operators:
        raise PluginError(
            f"{path}: got a tvm-ffi module without a description, expected operators; describe its "
            "functions"
        )
    return next((x for x in plugin.operators if x.name == plugin.name), plugin.operators[0])


def measure(
    operator: Operator,
    dtype: str | None = None,
    shapes: dict[str, str] | None = None,
    said: dict[str, str] | None = None,
    sizes: tuple[int, ...] = SIZES,
) -> list[Measurement]:
    """Time an operator's first signature on its device types, if this machine has them.

    Parameters
    ----------
    operator : Operator
    dtype : str, optional
        The dtype of arrays that may have it; else float32 if allowed.
    shapes : dict, optional
        Shapes of arrays as text, by name: "1024,1024".
    said : dict, optional
        Values of scalars, strings and dimensions as text, by name.
    sizes : tuple of int
        Bytes of all arrays of a call. Sizes that change nothing, because shapes or sizes are given,
        are skipped.

    Raises
    ------
    ValueError
        The operator has no arrays, none that may have the dtype, or rejects the arguments.
    CudaError
        The operator runs only on GPUs, and none is available.
    """
    signature = parse(operator.signatures[0])
    if not signature.arrays:
        raise ValueError(f"bench: {operator.name}: got no arrays, expected an operator with arrays")
    names = {name for _, allowed in signature.variables for name in allowed}
    if dtype is not None and dtype not in names:
        raise ValueError(f"bench: dtype: got {dtype}, expected one of {', '.join(sorted(names))}")
    calls = _choose_calls(operator, signature, sizes, dtype, shapes or {}, said or {})
    measured = []
    if "cpu" in operator.device_types:
        measured += [_on_host(operator, signature, call) for call in calls]
    if "cuda" in operator.device_types and devices():
        measured += [_on_device(operator, signature, call) for call in calls]
    if not measured:
        raise CudaError(f"bench: {operator.name}: it runs on GPUs alone, and {NO_GPU}")
    return measured


def _choose_calls(
    operator: Operator,
    signature: Signature,
    sizes: tuple[int, ...],
    dtype: str | None,
    shapes: dict[str, str],
    said: dict[str, str],
) -> list[Arguments]:
    """Return the arguments for each size, if they differ."""
    check_names("--set", said, settable(signature))
    pins = read_pins(signature, said)
    for name, pin in pins.items():
        if isinstance(pin, Range):
            raise ValueError(f"--set: {name}: got {said[name]!r}, expected one value")
    given = read_shapes(signature, shapes)
    gradients = Gradients(operator)
    make = partial(sized_arguments, signature, dtype=dtype, pinned=pins, shapes=given)
    calls: dict[str, Arguments] = {}
    for size in sizes:
        call = gradients.sized(make, size)
        calls.setdefault(describe(call), call)
    for call in calls.values():
        if sentence := misfit(operator, call):
            raise ValueError(f"{sentence} (--shape and --set say what to measure with)")
    return list(calls.values())


def describe(arguments: Arguments) -> str:
    """Return arguments as text, arrays by their dtype and shape: "x=float32[64, 3], k=1"."""
    return ", ".join(f"{name}={_described(x)}" for name, x in arguments.items())


def _described(x: Any) -> str:
    if isinstance(x, list):
        return f"[{', '.join(map(_described, x))}]"
    return f"{x.dtype.name}{list(x.shape)}" if isinstance(x, np.ndarray) else repr(x)


def _on_host(operator: Operator, s: Signature, arguments: Arguments) -> Measurement:
    outputs = as_list(operator(**arguments, **all_outputs(operator), device="cpu"))
    n_bytes = n_bytes_of(arguments, [*outputs, *inouts(operator.signatures, arguments)])
    keywords = _keywords(s, outputs) | {"device": "cpu"}
    source, target = np.ones(n_bytes // 2, np.uint8), np.empty(n_bytes // 2, np.uint8)
    call_us = _time_us(lambda: operator(**arguments, **keywords), lambda: None)
    copy_us = _time_us(lambda: np.copyto(target, source), lambda: None)
    return Measurement("cpu", n_bytes, call_us, copy_us, describe(arguments))


def _on_device(operator: Operator, s: Signature, host: Arguments) -> Measurement:
    arguments = with_arrays(host, lambda x: asarray(x, device="cuda")) | on_host(operator, host)
    outputs = as_list(operator(**arguments, **all_outputs(operator)))
    n_bytes = n_bytes_of(host, [*outputs, *inouts(operator.signatures, host)])
    keywords = _keywords(s, outputs)
    call_us = _time_us(lambda: operator(**arguments, **keywords), synchronize)
    copy_us = _time_us(_device_copy(n_bytes // 2), synchronize)
    return Measurement("cuda", n_bytes, call_us, copy_us, describe(host))


def _keywords(signature: Signature, outputs: list[Any]) -> dict[str, Any]:
    """Write to the same outputs in each call, as a copy does."""
    unknown = any(kind == "unknown" for x in signature.outputs for kind, _ in x.dims)
    if not outputs or unknown:
        return {}
    return {"out": tuple(outputs) if len(outputs) > 1 else outputs[0]}


def _device_copy(n_bytes: int) -> Callable[[], object]:
    """Return a function that queues a device-to-device copy on the default stream."""
    source, target = empty(n_bytes, "uint8"), empty(n_bytes, "uint8")
    synchronize()
    driver, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
    status = driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), source.device.index)
    status = status or driver.cuCtxSetCurrent(context)
    if status:
        raise OSError(f"bench: CUDA error {status} before the copy")
    pointers = [ctypes.c_uint64(x.data_ptr) for x in (target, source)]
    copy, size = driver.cuMemcpyDtoDAsync_v2, ctypes.c_size_t(n_bytes)

    def run(arrays: tuple[Array, Array] = (source, target)) -> object:
        return copy(*pointers, size, None)

    return run


def _time_us(call: Callable[[], object], wait: Callable[[], object]) -> float:
    """Return the minimum time of a call, over batches of BATCH_S or longer."""
    n_calls, best = 1, float("inf")
    call()
    while _batch_s(call, wait, n_calls) < BATCH_S and n_calls < 1 << 20:
        n_calls *= 2
    for _ in range(N_BATCHES):
        best = min(best, _batch_s(call, wait, n_calls) / n_calls)
    return best * 1e6


def _batch_s(call: Callable[[], object], wait: Callable[[], object], n_calls: int) -> float:
    wait()
    begin = time.perf_counter()
    for _ in range(n_calls):
        call()
    wait()
    return time.perf_counter() - begin


def check_picture(path: str) -> None:
    """Check, before measuring, that a picture can be written to this path.

    Raises
    ------
    ModuleNotFoundError
        Matplotlib is not installed.
    ValueError
        The file name does not end in a picture format, or its folder does not exist.
    """
    formats = _figure().canvas.get_supported_filetypes()
    suffix = os.path.splitext(path)[1]
    if suffix[1:].lower() not in formats:
        raise ValueError(f"-o: got {path!r}, expected a name that ends in .svg or .png")
    folder = os.path.dirname(os.path.abspath(path))
    if not os.access(folder, os.W_OK):
        raise ValueError(f"-o: got {path!r}, expected a file in a folder that can be written")


def _figure() -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ModuleNotFoundError(
            "a picture needs the package matplotlib: pip install matplotlib"
        ) from None
    return Figure(figsize=(7, 4), layout="constrained")


def draw(name: str, measured: list[Measurement], path: str) -> None:
    """Write a picture, .svg or .png: bandwidth by size, compared with a copy."""
    figure = _figure()
    axes = figure.subplots()
    for device_type in dict.fromkeys(x.device_type for x in measured):
        rows = [x for x in measured if x.device_type == device_type]
        sizes = [x.n_bytes for x in rows]
        (line,) = axes.plot(sizes, [x.gb_per_s for x in rows], "o-", label=f"{name}, {device_type}")
        copies = [x.n_bytes / x.copy_us / 1e3 for x in rows]
        axes.plot(sizes, copies, "--", color=line.get_color(), label=f"copy, {device_type}")
    axes.set(xscale="log", yscale="log", xlabel="bytes of all arrays", ylabel="GB/s", title=name)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path)
