# SPDX-License-Identifier: Apache-2.0
"""Time of one call on the host: small NumPy arrays to a function that does nothing."""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable
from functools import partial

import native
import numpy as np
from measurement import Comparison, Contender, Target, statement
from module import Run, at_once, run_module

SIZE = 16
LETTERS = "abcdefghijklmn"

os.environ["LD_LIBRARY_CUPLUG_PATH"] = str(native.PLUGINS)


def arrays(n: int) -> dict[str, np.ndarray]:
    """Return n arrays of 16 floats under the names a, b, c, ..."""
    return {name: np.full(SIZE, k, np.float32) for k, name in enumerate(LETTERS[:n])}


def names(n: int) -> str:
    """Return "a, b, c" for 3."""
    return ", ".join(LETTERS[:n])


def cuplug_operator(name: str, n: int) -> Callable[..., object]:
    """Return an operator of the plugin noop on n arrays, after verifying that checks are on."""
    import cuplug

    native.plugin("noop")
    operator = cuplug.find(f"noop.{name}")
    wrong_dtype = [np.zeros(SIZE, np.float64)] * n
    try:
        operator(*wrong_dtype)
    except TypeError:
        return operator
    raise ArithmeticError("it takes float64 for float32: its checks are off")


def cuplug_call(name: str, text: str, n: int, n_arrays: int | None = None) -> Contender:
    """cuplug with NumPy arrays, all checks on; n of them are inputs."""
    return statement(text, call=cuplug_operator(name, n), **arrays(n_arrays or n))


def cuplug_torch() -> Contender:
    """cuplug with PyTorch CPU tensors."""
    import torch

    tensors = {name: torch.from_numpy(x) for name, x in arrays(3).items()}
    return statement(f"call({names(3)})", call=cuplug_operator("brief3", 3), **tensors)


def numpy_add() -> Contender:
    """np.add on three arrays: checks, dispatch and 16 additions."""
    x = arrays(3)
    return statement("call(a, b, out=c)", lambda: x["c"], call=np.add, **x)


def torch_add() -> Contender:
    """torch.add on three CPU tensors."""
    import torch

    x = arrays(3)
    tensors = {name: torch.from_numpy(array) for name, array in x.items()}
    return statement("call(a, b, out=c)", lambda: x["c"], call=torch.add, **tensors)


def plain_function() -> Callable[..., int]:
    """Return the C function that takes three pointers and a size, through ctypes."""
    function = ctypes.CDLL(str(native.shared_library("plain.c"))).noop3
    function.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_int64]
    return function


def ctypes_prepared() -> Contender:
    """The minimum that ctypes can do: pointers are created before, nothing is checked."""
    x = arrays(3)
    pointers = {name: ctypes.c_void_p(array.ctypes.data) for name, array in x.items()}
    keep = list(x.values())
    return statement("call(a, b, c, 16)", call=plain_function(), keep=keep, **pointers)


def ctypes_data() -> Contender:
    """The usual way: arr.ctypes.data in each call, without checks."""
    text = "call(a.ctypes.data, b.ctypes.data, c.ctypes.data, a.size)"
    return statement(text, call=plain_function(), **arrays(3))


def cffi_function() -> tuple[Callable[..., int], Callable[..., object]]:
    """Return the same function through cffi in ABI mode, and the conversion to a pointer."""
    import cffi

    ffi = cffi.FFI()
    ffi.cdef("int noop3(const float *, const float *, const float *, int64_t);")
    return ffi.dlopen(str(native.shared_library("plain.c"))).noop3, ffi.from_buffer


def cffi_buffers() -> Contender:
    """The same function through cffi: ffi.from_buffer in each call, nothing checked."""
    function, view = cffi_function()
    parts = ", ".join(f'view("float[]", {name})' for name in LETTERS[:3])
    return statement(f"call({parts}, 16)", call=function, view=view, **arrays(3))


def nanobind_call() -> Contender:
    """nanobind, which checks dtype, number of dimensions, layout and device of each array."""
    function = native.nanobind_module().noop3
    try:
        function(*[np.zeros(SIZE, np.float64)] * 3)
    except TypeError:
        return statement(f"call({names(3)})", call=function, **arrays(3))
    raise ArithmeticError("it takes float64 for float32: its checks are off")


def tvm_ffi_function() -> Callable[..., object]:
    """Return the do-nothing function of tvm-ffi's calling convention, loaded by tvm-ffi."""
    import tvm_ffi
    from tvm_ffi import libinfo

    path = native.shared_library("noop_tvm_ffi.c", *libinfo.include_paths())
    return tvm_ffi.load_module(str(path)).noop


def tvm_ffi_call(n: int, source: str) -> Contender:
    """tvm-ffi on tensors created before, on NumPy arrays converted in each call, or PyTorch's."""
    import tvm_ffi

    function, x = tvm_ffi_function(), arrays(n)
    if source == "torch":
        import torch

        x = {name: torch.from_numpy(array) for name, array in x.items()}
    if source == "prepared":
        x = {name: tvm_ffi.from_dlpack(array) for name, array in x.items()}
    text = names(n)
    if source == "from_dlpack":
        text = ", ".join(f"convert({name})" for name in x)
    return statement(f"call({text})", call=function, convert=tvm_ffi.from_dlpack, **x)


def three_arrays() -> Comparison:
    """Return the main comparison: three arrays of 16 floats."""
    numpy, tvm = "np.add(out=)", "tvm-ffi, NumPy arrays"
    comparison = Comparison(
        f"3 arrays of {SIZE} floats, host",
        "us",
        numpy,
        targets=[
            Target("cuplug, 3 NumPy arrays", "<= 0.5 x np.add(out=)", (numpy,), 0.5),
            Target("cuplug, 2 NumPy arrays and out=", "<= 0.5 x np.add(out=)", (numpy,), 0.5),
            Target("cuplug, 3 NumPy arrays", "below tvm-ffi with NumPy arrays", (tvm,)),
            Target("cuplug, 3 torch CPU tensors", "below tvm-ffi with torch", ("tvm-ffi, torch",)),
        ],
        expected=np.full(SIZE, 1, np.float32),
        settings={
            "cuplug": "checks on; CUPLUG_NONBLOCKING but where named",
            "ctypes, cffi and tvm-ffi": "the function checks nothing",
            "nanobind": "checks dtype, number of dimensions, layout and device",
        },
    )
    add = comparison.add
    add("cuplug, 3 NumPy arrays", partial(cuplug_call, "brief3", "call(a, b, c)", 3))
    add(
        "cuplug, 2 NumPy arrays and out=",
        partial(cuplug_call, "brief_out", "call(a, b, out=c)", 2, 3),
    )
    add("cuplug, 3 NumPy arrays, GIL released", partial(cuplug_call, "noop3", "call(a, b, c)", 3))
    add("cuplug, 3 torch CPU tensors", cuplug_torch)
    add(numpy, numpy_add)
    add("torch.add(out=), CPU", torch_add)
    add("ctypes, prepared pointers", ctypes_prepared)
    add("ctypes, arr.ctypes.data", ctypes_data)
    add("cffi, ffi.from_buffer(arr)", cffi_buffers)
    add("nanobind, nb::ndarray", nanobind_call)
    add("tvm-ffi, prepared tensors", partial(tvm_ffi_call, 3, "prepared"))
    add(tvm, partial(tvm_ffi_call, 3, "arrays"))
    add("tvm-ffi, from_dlpack(array)", partial(tvm_ffi_call, 3, "from_dlpack"))
    add("tvm-ffi, torch", partial(tvm_ffi_call, 3, "torch"))
    add("empty loop", partial(statement, "pass"))
    return comparison


def other_arguments() -> Comparison:
    """Return the comparison of other numbers of arrays, scalars and keywords."""
    counts = (1, 8, 14)
    title = "1, 8 and 14 arrays, scalars and keywords, host"
    wanted = [
        Target(f"cuplug, {n} arrays", "below tvm-ffi", (f"tvm-ffi, {n} NumPy arrays",))
        for n in counts
    ]
    comparison = Comparison(title, "us", "cuplug, 1 arrays", targets=wanted)
    for n in counts:
        own = partial(cuplug_call, f"noop{n}", f"call({names(n)})", n)
        comparison.add(f"cuplug, {n} arrays", own)
        comparison.add(f"tvm-ffi, {n} NumPy arrays", partial(tvm_ffi_call, n, "arrays"))
        comparison.add(f"tvm-ffi, {n} prepared tensors", partial(tvm_ffi_call, n, "prepared"))
    scaled = {
        "call(a, b, c, 0.5)": "a scalar",
        "call(a, b, c, factor=0.5, mode='wrap')": "2 keywords",
    }
    for text, what in scaled.items():
        name = f"cuplug, 3 arrays and {what}"
        comparison.add(name, partial(cuplug_call, "noop_scaled", text, 3))
    return comparison


def in_compiled_loop(kind: str) -> Contender:
    """A loop in Cython without the GIL: typed function, C API or plain C function."""
    cuplug_operator("noop3", 3)
    function, x = getattr(native.typed_calls(), kind), list(arrays(3).values())

    def time_ns(number: int) -> float:
        start_ns = time.perf_counter_ns()
        function(*x, number)
        return time.perf_counter_ns() - start_ns

    return Contender(time_ns)


def typed_functions() -> Comparison:
    """Return the comparison of calls from compiled code."""
    typed, plain = "cuplug, typed function", "plain C function"
    wanted = [Target(typed, "<= the C function + 20 ns", (plain,), extra=0.02)]
    title = f"3 arrays of {SIZE} floats, from Cython without the GIL"
    comparison = Comparison(title, "us", plain, wanted)
    comparison.settings["plain C function"] = "called through a pointer, checks nothing"
    for name, kind in ((typed, "typed"), ("cuplug, cuplug_invoke", "c_api"), (plain, "plain")):
        comparison.add(name, partial(in_compiled_loop, kind))
    return comparison


def rows_in_threads(size: int) -> Comparison:
    """Return the comparison of a prange over rows with one thread and with all."""
    n_rows = 4096
    x = np.linspace(-1, 1, n_rows * size, dtype=np.float32).reshape(n_rows, size)
    title = f"relu of {n_rows} rows of {size} floats, typed function in prange"
    comparison = Comparison(title, "us", "pointers, 1 thread", expected=np.maximum(x, 0))

    def contender(name: str, n_threads: int) -> Contender:
        function, out = getattr(native.typed_calls(), name), np.empty_like(x)

        def time_ns(number: int) -> float:
            start_ns = time.perf_counter_ns()
            function(x, out, number, n_threads)
            return time.perf_counter_ns() - start_ns

        return Contender(time_ns, lambda: out)

    for who, name in {"pointers": "rows", "slices": "sliced_rows"}.items():
        for n_threads in sorted({1, 2, len(os.sched_getaffinity(0))}):
            text = f"{who}, {n_threads} thread{'s' if n_threads > 1 else ''}"
            comparison.add(text, partial(contender, name, n_threads))
    return comparison


def measure(run: Run) -> None:
    """Time of one call on the host: small NumPy arrays to a function that does nothing."""
    compiled = [plain_function, tvm_ffi_function, native.nanobind_module]
    at_once([partial(cuplug_operator, "noop3", 3), *compiled])
    in_threads = [partial(rows_in_threads, size) for size in (16, 256)]
    run.measure_all([three_arrays, other_arguments, typed_functions, *in_threads])


if __name__ == "__main__":
    run_module(measure)
