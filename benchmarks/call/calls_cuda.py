# SPDX-License-Identifier: Apache-2.0
"""Host time of one asynchronous launch: three GPU arrays of 16 floats to the same add kernel."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import native
import numpy as np
from cuplug._engine.base import flags
from driver import Driver
from measurement import Comparison, Contender, Skip, Target, statement
from module import Run, at_once, run_module

SIZE = 16
LAUNCHES = 200
FLOOR = "launch from C"
READ = "launch from C, 3 torch tensors read"
X, Y = np.arange(SIZE, dtype=np.float32), np.full(SIZE, 0.5, np.float32)
KERNEL = (native.HERE / "fixtures" / "add3" / "add_kernel.cuh").read_text()

os.environ["LD_LIBRARY_CUPLUG_PATH"] = str(native.PLUGINS)


def tensors() -> dict[str, Any]:
    """Return two inputs and an output of NaN as PyTorch CUDA tensors."""
    import torch

    z = torch.full((SIZE,), float("nan"), device="cuda")
    return {"x": torch.from_numpy(X).cuda(), "y": torch.from_numpy(Y).cuda(), "z": z}


def torch_statement(text: str, function: object, **more: object) -> Contender:
    """Return a contender that calls `function` on PyTorch tensors x, y, z."""
    t = tensors()
    return statement(text, lambda: t["z"].cpu().numpy(), call=function, **t, **more)


@cache
def floor() -> ctypes.CDLL:
    """Return the C functions of floor.cu."""
    library = ctypes.CDLL(str(native.shared_library("floor.cu")))
    pointer = ctypes.c_void_p
    library.add_launch.argtypes = [pointer, pointer, pointer, ctypes.c_int64, pointer]
    library.launch_ns.argtypes = [ctypes.c_int, pointer, pointer, pointer]
    names = ("event_record_ns", "wait_event_ns", "get_device_ns", "malloc_async_ns", "malloc_ns")
    for name in ("launch_ns", *names):
        getattr(library, name).restype = ctypes.c_int64
    return library


def timed_in_c(name: str, *args: object) -> Callable[[int], float]:
    """Return a function in which a C function of floor.cu times `number` rounds."""
    function = getattr(floor(), name)

    def time_ns(number: int) -> float:
        elapsed_ns = function(number, *args)
        if elapsed_ns < 0:
            raise RuntimeError(f"{name}: CUDA error {-elapsed_ns}")
        return elapsed_ns

    return time_ns


def launch_from_c(driver: Driver) -> Contender:
    """The floor: the same kernel, launched in a loop in C."""
    pointers = [driver.upload(array) for array in (X, Y, np.full_like(X, np.nan))]
    time_ns = timed_in_c("launch_ns", *pointers)
    return Contender(time_ns, lambda: driver.download(pointers[2], X))


def torch_exchange() -> int:
    """Return the address of PyTorch's DLPack exchange functions."""
    import torch

    find = ctypes.pythonapi.PyCapsule_GetPointer
    find.argtypes, find.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p
    address = find(torch.Tensor.__dlpack_c_exchange_api__, b"dlpack_exchange_api")
    if not isinstance(address, int):
        raise Skip("this PyTorch has no DLPack exchange functions")
    return address


def launch_of_tensors() -> Contender:
    """The floor with tensors, in a loop: PyTorch's functions read them from C, and C launches."""
    includes = (flags.get_include(),)
    library = ctypes.PyDLL(str(native.shared_library("exchange_floor.cu", *includes)))
    call = library.exchange_launch_ns
    call.argtypes = [ctypes.c_int, ctypes.c_void_p] + [ctypes.py_object] * 3
    call.restype = ctypes.c_int64
    functions, t = torch_exchange(), tensors()

    def time_ns(number: int) -> float:
        elapsed_ns = call(number, functions, t["x"], t["y"], t["z"])
        if elapsed_ns < 0:
            raise RuntimeError(f"exchange_launch_ns: error {-elapsed_ns}")
        return elapsed_ns

    return Contender(time_ns, lambda: t["z"].cpu().numpy())


def cuplug_torch(name: str, text: str) -> Contender:
    """cuplug with PyTorch CUDA tensors, on PyTorch's current stream."""
    import cuplug

    native.plugin("add3")
    return torch_statement(text, cuplug.find(f"add3.{name}"))


def cuplug_own(text: str) -> Contender:
    """cuplug with its own device arrays."""
    import cuplug

    native.plugin("add3")
    function = cuplug.find("add3.add3")
    x, y = cuplug.asarray(X, device="cuda"), cuplug.asarray(Y, device="cuda")
    z = cuplug.asarray(np.full(SIZE, np.nan, np.float32), device="cuda")
    expected = z if "out=" in text else function(x, y)
    return statement(text, lambda: expected.numpy(), call=function, x=x, y=y, z=z)


def torch_add() -> Contender:
    """PyTorch's own addition."""
    import torch

    return torch_statement("call(x, y, out=z)", torch.add)


def torch_python_op() -> Contender:
    """An operator registered with PyTorch whose body is Python that launches through ctypes."""
    import torch
    from torch import library as registration

    launch = floor().add_launch

    def add3(x: Any, y: Any, z: Any) -> None:
        launch(x.data_ptr(), y.data_ptr(), z.data_ptr(), x.numel(), None)

    registration.define("cuplug_python::add3", "(Tensor x, Tensor y, Tensor(a!) z) -> ()")
    registration.impl("cuplug_python::add3", "CUDA", add3)
    return torch_statement("call(x, y, z)", torch.ops.cuplug_python.add3)


@cache
def torch_extension() -> Any:
    """Return the C++ extension of torch_op.cpp, compiled."""
    from torch.utils import cpp_extension

    path = native.shared_library("floor.cu")
    directory = native.BUILD / "torch"
    directory.mkdir(parents=True, exist_ok=True)
    return cpp_extension.load(
        name="cuplug_cpp",
        sources=[str(native.find("torch_op.cpp"))],
        extra_ldflags=[str(path), f"-Wl,-rpath,{path.parent}"],
        build_directory=str(directory),
        with_cuda=True,
    )


def torch_cpp(kind: str, quick: bool) -> Contender:
    """A C++ extension, called through torch.ops or through its pybind11 function."""
    if quick:
        raise Skip("left out by --quick: compiling the extension takes about a minute")
    import torch

    extension = torch_extension()
    function = extension.add3 if kind == "pybind11" else torch.ops.cuplug_cpp.add3
    return torch_statement("call(x, y, z)", function)


@cache
def tvm_ffi_function(name: str) -> Callable[..., object]:
    """Return a function of tvm_ffi_cuda.cu, loaded by tvm-ffi."""
    import tvm_ffi
    from tvm_ffi import libinfo

    path = native.shared_library("tvm_ffi_cuda.cu", *libinfo.include_paths())
    return getattr(tvm_ffi.load_module(str(path)), name)


def ctypes_data_ptr() -> Contender:
    """ctypes with the tensors' addresses, nothing checked."""
    text = "call(x.data_ptr(), y.data_ptr(), z.data_ptr(), 16, None)"
    return torch_statement(text, floor().add_launch)


def cupy_arrays() -> dict[str, Any]:
    """Return two inputs and an output of NaN as CuPy arrays."""
    import cupy

    z = cupy.full(SIZE, np.nan, np.float32)
    return {"x": cupy.asarray(X), "y": cupy.asarray(Y), "z": z}


def cuplug_cupy(text: str) -> Contender:
    """cuplug with CuPy arrays, on CuPy's current stream."""
    import cuplug

    native.plugin("add3")
    a, function = cupy_arrays(), cuplug.find("add3.add3")
    expected = a["z"] if "out=" in text else function(a["x"], a["y"])
    return statement(text, lambda: expected.get(), call=function, **a)


def cupy_add() -> Contender:
    """CuPy's own addition."""
    import cupy

    a = cupy_arrays()
    return statement("call(x, y, out=z)", lambda: a["z"].get(), call=cupy.add, **a)


def cupy_raw_kernel() -> Contender:
    """The kernel, compiled and launched by CuPy."""
    import cupy

    a, kernel = cupy_arrays(), cupy.RawKernel(KERNEL, "add_kernel")
    more = {"grid": (1,), "block": (32,), "n": np.int64(SIZE)}
    text = "call(grid, block, (x, y, z, n))"
    return statement(text, lambda: a["z"].get(), call=kernel, **a, **more)


def cuda_core_launch(read: bool = False) -> Contender:
    """The kernel, compiled and launched by cuda.core. Addresses are read before unless `read`."""
    from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

    device = Device(0)
    device.set_current()
    options = ProgramOptions(arch=f"sm_{device.arch}")
    compiled = Program(KERNEL, code_type="c++", options=options).compile("cubin")
    names = {"kernel": compiled.get_kernel("add_kernel"), "stream": device.default_stream}
    names["config"] = LaunchConfig(grid=1, block=32)
    t = tensors()
    names |= {name: x if read else x.data_ptr() for name, x in t.items()}
    arrays = ", ".join(f"{name}.data_ptr()" if read else name for name in t)
    text = f"call(stream, config, kernel, {arrays}, {SIZE})"
    return statement(text, lambda: t["z"].cpu().numpy(), call=launch, keep=t, **names)


def launches(driver: Driver, quick: bool) -> Comparison:
    """Return the main comparison."""
    peers = ("torch.add(out=)", "torch.ops custom op, C++", "pybind11 extension")
    peers += ("ctypes, data_ptr()", "cupy.add(out=)", "CuPy RawKernel", "cuda.core launch")
    ours = ("cuplug, 2 torch tensors and out=", "cuplug, 3 torch tensors")
    wanted = [Target(name, "<= 1.10 x the floor", (FLOOR,), 1.10) for name in ours]
    tvm, cupy_in = "tvm-ffi, torch tensors", "cuplug, CuPy arrays and out="
    wanted += [Target(name, "<= 1.10 x that with tensors read", (READ,), 1.10) for name in ours]
    wanted += [Target(name, "below all peers", (*peers, tvm)) for name in ours]
    wanted += [Target(cupy_in, "below CuPy", ("cupy.add(out=)", "CuPy RawKernel"))]
    comparison = Comparison(
        f"3 GPU arrays of {SIZE} floats, asynchronous launch",
        "us",
        FLOOR,
        targets=wanted,
        expected=X + Y,
        number=LAUNCHES,
        synchronize=driver.synchronize,
        settings={"launches between synchronisations": LAUNCHES, "stream": "legacy default"},
    )
    add = comparison.add
    add(FLOOR, lambda: launch_from_c(driver))
    add(READ, launch_of_tensors)
    add(ours[0], lambda: cuplug_torch("add3", "call(x, y, out=z)"))
    add(ours[1], lambda: cuplug_torch("add3_into", "call(x, y, z)"))
    add("cuplug, own arrays and out=", lambda: cuplug_own("call(x, y, out=z)"))
    add("cuplug, own arrays, new output", lambda: cuplug_own("call(x, y)"))
    add(cupy_in, lambda: cuplug_cupy("call(x, y, out=z)"))
    add("cuplug, CuPy arrays, new output", lambda: cuplug_cupy("call(x, y)"))
    contenders = (torch_add, lambda: torch_cpp("ops", quick), lambda: torch_cpp("pybind11", quick))
    contenders += (ctypes_data_ptr, cupy_add, cupy_raw_kernel, cuda_core_launch)
    for name, prepare in zip(peers, contenders, strict=True):
        add(name, prepare)
    add(tvm, lambda: torch_statement("call(x, y, z)", tvm_ffi_function("add3")))
    add("torch.ops custom op, Python", torch_python_op)
    add("cuda.core launch, data_ptr()", lambda: cuda_core_launch(read=True))
    return comparison


def affordable(driver: Driver) -> Comparison:
    """Return the comparison of the driver calls that one call may include, from C."""
    comparison = Comparison("CUDA runtime calls, from C", "us", "get device", number=LAUNCHES)
    comparison.synchronize = driver.synchronize
    names = {"event record": "event_record_ns", "wait event": "wait_event_ns"}
    names |= {"get device": "get_device_ns", "cudaMallocAsync + cudaFreeAsync": "malloc_async_ns"}
    names |= {"cudaMalloc + cudaFree, 4 MiB": "malloc_ns"}
    for name, function in names.items():
        comparison.add(name, lambda function=function: Contender(timed_in_c(function)))
    return comparison


def measure(run: Run) -> None:
    """Host time of one asynchronous launch: three GPU arrays of 16 floats to one add kernel."""
    driver = Driver()
    built = [floor, launch_of_tensors, partial(native.plugin, "add3")]
    built += [partial(tvm_ffi_function, "add3"), *([] if run.quick else [torch_extension])]
    at_once(built, ["torch"])
    run.measure_all([partial(launches, driver, run.quick), partial(affordable, driver)])


if __name__ == "__main__":
    run_module(measure)
