# SPDX-License-Identifier: Apache-2.0
"""Python text in a process with the driver that needs no GPU (tests/fixtures/fake_cuda.c).

A process starts CUDA once, so each test runs its text in a separate process.
"""

import textwrap
from pathlib import Path

import pytest
from builds import compile_driver
from places import FIXTURES
from processes import run_on

PRELUDE = """
import ctypes, os, pickle, re
import numpy as np
import cuplug

gpu = cuplug.load(os.environ["PLUGIN"])
x = np.arange(1000, dtype=np.float32)


class Raises:
    "Wants an exception of a type, whose text has a part."

    def __init__(self, kind, part):
        self.kind, self.part, self.error = kind, part, None

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        assert error is not None, f"nothing raised, expected {self.kind.__name__}: {self.part}"
        assert type(error) is self.kind, f"got {error!r}, expected {self.kind.__name__}"
        assert self.part in str(error), f"got {error!r}, expected {self.part!r}"
        self.error = error
        return True


class Counts(ctypes.Structure):
    _fields_ = [(name, ctypes.c_long) for name in
                "allocations pinned streams events synchronizations misuses".split()]


def counts():
    driver, result = ctypes.CDLL("libcuda.so.1"), Counts()
    driver.fake_cuda_count(ctypes.byref(result))
    return result

"""

STREAMS = """
driver = ctypes.CDLL("libcuda.so.1")
log = os.environ["FAKE_CUDA_LOG"]


def make_stream(device=0, flags=1):
    "A non-blocking stream; the context that was current is current again."
    before, context, stream = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) == 0
    assert driver.cuCtxGetCurrent(ctypes.byref(before)) == 0
    assert driver.cuCtxSetCurrent(context) == 0
    assert driver.cuStreamCreate(ctypes.byref(stream), flags) == 0
    assert driver.cuCtxSetCurrent(before) == 0
    return stream.value


def calls(function, *arguments, **keywords):
    "The driver's functions that a call used."
    before = len(open(log).readlines())
    function(*arguments, **keywords)
    return [line.strip() for line in open(log).readlines()[before:]]


class Protocol:
    "A stream by the protocol, as a method."

    def __init__(self, handle):
        self.handle = handle

    def __cuda_stream__(self):
        return (0, self.handle)


class Foreign:
    "An array by __cuda_array_interface__ alone."

    def __init__(self, array, **more):
        self.array = array
        self.__cuda_array_interface__ = {**array.__cuda_array_interface__, **more}


a = cuplug.asarray(x, device="cuda")
out = cuplug.empty(x.shape, x.dtype, "cuda")
"""

# Functions that wait, or make the driver wait: its own allocations, pinned memory.
WAITING = """
WAITING = {"cuStreamSynchronize", "cuCtxSynchronize", "cuEventSynchronize", "cuMemHostAlloc",
           "cuMemFreeHost", "cuMemAlloc", "cuMemFree", "cuMemcpyHtoD", "cuMemcpyDtoH",
           "cuMemGetInfo", "cuMemPoolTrimTo", "cuMemPoolCreate", "cuStreamCreate",
           "cuStreamDestroy"}
"""


@pytest.fixture(scope="session")
def fake_cuda(once) -> Path:
    """Return the directory of a libcuda.so.1 that needs no GPU."""
    return once("fake_cuda", lambda folder: compile_driver("fake_cuda.c", folder))


@pytest.fixture(scope="session")
def fake_gpu(build_plugin) -> Path:
    """Return the plugin for the fake driver."""
    return build_plugin(FIXTURES / "fake_gpu.c", "fake_gpu", defines=["CUPLUG_ARCHITECTURES=900"])


@pytest.fixture
def run_fake(fake_gpu, fake_cuda):
    """Return a function that runs Python text on the fake driver, with a plugin called `gpu`."""

    def run(body: str, plugin: Path = fake_gpu, libraries: str = str(fake_cuda), **variables: str):
        run_on(libraries, PRELUDE + textwrap.dedent(body), PLUGIN=str(plugin), **variables)

    return run


@pytest.fixture
def run_streams(run_fake, tmp_path):
    """Return a function that runs text on a fake GPU, with arrays, streams and a log."""

    def run(body: str, **variables: str):
        text = STREAMS + WAITING + textwrap.dedent(body)
        run_fake(text, FAKE_CUDA_LOG=str(tmp_path / "log"), **variables)

    return run
