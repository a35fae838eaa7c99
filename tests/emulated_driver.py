# SPDX-License-Identifier: Apache-2.0
"""Python text in a process with the driver that runs kernels on the CPU (emulation.py)."""

import os
import shutil
import textwrap
from pathlib import Path

import cuplug
import pytest
from builds import compile_driver, compile_library
from cuplug._source.compilers import nvrtc, toolkit
from emulation import COMPILER, HEAD
from places import FIXTURES, TESTS
from processes import run_on

# For kernels that a test compiles itself.
PRELUDE = """
import sys
import numpy as np
import cuplug
from cuplug import In, InOut, Out
from emulation import install_modules

install_modules()


def raises(kind, part, call, *args):
    try:
        call(*args)
    except Exception as error:
        assert type(error) is kind, repr(error)
        assert part in str(error), f"got {error!s}, expected {part}"
    else:
        raise AssertionError(f"nothing raised, expected {kind.__name__}: {part}")


class Foreign:
    "An array of another library: of the interface alone."

    def __init__(self, x, **changes):
        self.x = x
        self.__cuda_array_interface__ = {**x.__cuda_array_interface__, **changes}

"""

SCALE = """
template <int N> __global__ void scale(float *x, float factor, long long n) {
  const int first = (blockIdx.x * blockDim.x + threadIdx.x) * N;
  for (int k = 0; k < N; k++)
    if (first + k < n) x[first + k] *= factor;
}
"""


@pytest.fixture(scope="session")
def emulated_cuda(once) -> Path:
    """Return the directory of a libcuda.so.1 that runs kernels on the CPU."""
    if not shutil.which(COMPILER[0]):
        pytest.skip("needs a C++ compiler")

    def fill(folder: Path) -> None:
        compile_driver("emulated_cuda.c", folder)
        precompiled = ["-x", "c++-header", str(FIXTURES / HEAD), "-o", str(folder / f"{HEAD}.gch")]
        compile_library([*COMPILER, *precompiled])

    return once("emulated_cuda", fill)


@pytest.fixture
def run_emulated(emulated_cuda):
    """Return a function that runs Python text in a process with the emulated GPU.

    It returns the output.
    """
    paths = [str(TESTS), os.environ.get("PYTHONPATH", "")]
    usual = {"EMULATED": str(emulated_cuda), "PYTHONPATH": os.pathsep.join(filter(None, paths))}

    def run(text: str, **variables: str) -> str:
        return run_on(str(emulated_cuda), text, **usual, **variables)

    return run


@pytest.fixture
def run_kernels(run_emulated):
    """Return a function that runs Python text in which `cuplug.compile` is for the emulated GPU."""
    need_nvrtc()

    def run(body: str, **variables: str) -> str:
        # Code that is compiled there must not enter the other tests' cache.
        text = PRELUDE + f"SCALE = {SCALE!r}\n" + textwrap.dedent(body)
        return run_emulated(text, CUPLUG_CACHE_BYTES="0", **variables)

    return run


def need_nvrtc() -> None:
    """Skip the test if NVRTC is not installed."""
    try:
        nvrtc.find()
    except cuplug.CompileError as error:
        pytest.skip(str(error))


PLUGINS = """
import numpy as np
import cuplug
from cuplug import ops
from emulation import CLUSTERS, FIXTURES, OPTIMIZED, build_plugin, build_sorting
from emulation import install_expressions

install_expressions()
random = np.random.default_rng(0)


def same(operator, *arrays, **keywords):
    "Compare results, and arrays that are written to, on the host and on the emulated GPU."
    own = [np.array(x) for x in arrays]
    wanted = operator(*own, **keywords)
    there = [cuplug.asarray(x, device="cuda") for x in arrays]
    got = operator(*there, **keywords)
    cuplug.synchronize()
    pairs = list(zip(there, own))
    results = zip(got, wanted) if isinstance(wanted, tuple) else [(got, wanted)]
    pairs += [pair for pair in results if wanted is not None]
    for x, y in pairs:
        np.testing.assert_array_equal(np.asarray(x.numpy()), np.asarray(y))


def fails(error, operator, *arrays, **keywords):
    try:
        operator(*(cuplug.asarray(x, device="cuda") for x in arrays), **keywords)
        cuplug.synchronize()
    except error as seen:
        return str(seen)
    raise AssertionError("no error")
"""


@pytest.fixture
def run_plugins(run_emulated, emulated_cuda):
    """Return a function that runs Python text with emulated stock plugins."""
    if not toolkit.find_nvcc():
        pytest.skip("needs the headers of nvcc")
    return lambda text: run_emulated(PLUGINS + text, LD_LIBRARY_CUPLUG_PATH=str(emulated_cuda))
