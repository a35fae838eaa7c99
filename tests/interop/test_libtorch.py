# SPDX-License-Identifier: Apache-2.0
"""Tensors read by libtorch's C functions, if these agree with DLPack; with a fake PyTorch."""

import pytest
from builds import COMPILER, compile_library, compile_module
from places import FIXTURES, ROOT

CYTHON = ROOT / "cython"
# By their numbers in fake_libtorch.c.
LIES = [
    *("shape", "strides", "data", "ndim", "device", "dtype", "error"),
    *("requires_grad", "has_storage", "missing"),
]
PRELUDE = """
import numpy as np, torch
from cuplug.ops import relu

def read(x, **keywords):
    out = np.empty(x.shape, x.dtype)
    relu(torch.Tensor(x, **keywords), out=out)
    assert np.array_equal(out, np.maximum(x, 0)), (x, out)

def warm_up(n=16):
    for _ in range(n):
        read(np.array([1.0, -2.0]))

def refused(wanted, x):
    try:
        relu(x, out=np.empty(2))
    except TypeError as error:
        assert wanted in str(error), error
    else:
        raise AssertionError(wanted)

views = [np.arange(24.0)[::-1] - 12, np.arange(24.0).reshape(4, 6).T - 12, np.arange(6.0)[3:] - 4,
         np.zeros((0, 3)), np.array(-3.0), np.arange(6.0).reshape(1, 6, 1) - 3]
"""


@pytest.fixture(scope="module")
def compiled(once):
    """Return the directory of the fake module, linked with a library next to each run."""
    return once("fake_torch", build_module)


def build_module(folder):
    build_library(folder, 0)
    options = [f"-I{FIXTURES}", f"-L{folder}", "-l:libtorch_cpu.so"]
    compile_module(FIXTURES / "fake_torch.pyx", folder, "torch", CYTHON, options)


def build_library(folder, lie):
    options = ["-shared", "-fPIC", f"-DLIE={lie}", "-Wl,-soname,libtorch_cpu.so"]
    source, library = FIXTURES / "fake_libtorch.c", folder / "libtorch_cpu.so"
    compile_library([*COMPILER, *options, str(source), "-o", str(library)])


@pytest.fixture
def run_with_torch(compiled, run_python, tmp_path):
    """Return a function that runs Python text with the fake PyTorch, whose library may be wrong."""

    def run(code, lie=0):
        build_library(tmp_path, lie)
        environment = {"LD_LIBRARY_PATH": str(tmp_path)}
        prelude = f"import sys\nsys.path.insert(0, {str(compiled)!r})\n{PRELUDE}"
        done = run_python(prelude + code, environment)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_a_dtype_is_exported_once_more(run_with_torch):
    run_with_torch("""
warm_up(15)
assert torch.counts() == (15, 0)
for dtype in ("float64", "float32", "int64"):
    x = np.array([-1, 2], dtype)
    before = torch.counts()[0]
    for _ in range(3):
        read(x)
    assert torch.counts()[0] == before + 1
for x in views * 2:
    read(x)
# What is exported is read twice as well, but once when the functions have just been found.
assert torch.counts() == (15 + 3, 3 + 4 + 4 + 2 * len(views))
""")


def test_what_memory_does_not_tell(run_with_torch):
    run_with_torch("""
for _ in range(2):
    warm_up()
    refused("Tensor that requires grad", torch.Tensor(np.ones(2), requires_grad=True))
    negated = torch.Tensor(np.ones(4)[::2])
    negated.is_neg = lambda: True
    refused("a negated view", negated)
    conjugated = torch.Tensor(np.ones(2, "complex128"))
    conjugated.is_conj = lambda: True
    refused("a conjugated view", conjugated)
""")


def test_tensors_without_memory_and_subclasses_are_left_to_dlpack(run_with_torch):
    run_with_torch("""
class Own(torch.Tensor):
    pass

x, out = np.array([1.0, -2.0]), np.empty(2)
warm_up()
before, n_reads = torch.counts()
read(x, has_storage=False)
relu(Own(x), out=out)
assert torch.counts() == (before + 2, n_reads)
relu(torch.Parameter(x), out=out)
assert torch.counts() == (before + 2, n_reads + 1)
""")


def test_before_the_exchange_interface(run_with_torch):
    run_with_torch("""
n_exports = 0

class Old(torch.Tensor):
    __dlpack_c_exchange_api__ = None
    is_cuda = False

    def __dlpack__(self, stream):
        global n_exports
        assert stream is None  # on the host
        n_exports += 1
        return self.memory.__dlpack__()

    def new_empty(self, shape, dtype):
        return Old(np.empty(shape, dtype))

    def data_ptr(self):
        return self.memory.ctypes.data

torch.Tensor, torch.float64 = Old, np.float64
x = np.array([1.0, -2.0])
for _ in range(2):
    refused("Old that requires grad", Old(x, requires_grad=True))
    for bit, seen in {"is_neg": "a negated view", "is_conj": "a conjugated view"}.items():
        tensor = Old(np.ones(4)[::2])
        setattr(tensor, bit, lambda: True)
        refused(seen, tensor)
    made = relu(Old(x))
    assert type(made) is Old and made.memory.tolist() == [1, 0]
    warm_up(15)
    for view in views:
        read(view)
assert n_exports == 16
# The 16th tensor, then the others of both rounds, and the two views of the second.
assert torch.counts() == (0, 1 + 16 + 2 * len(views) + 2)
""")


@pytest.mark.parametrize("lie", LIES)
def test_what_disagrees_with_dlpack_is_not_used(run_with_torch, lie):
    """Each tensor is read correctly, by DLPack."""
    run_with_torch(
        """
for x in [np.array([[1.0, -2.0, 3.0], [4.0, -5.0, 6.0]]).T] * 20:
    read(x)
assert torch.counts()[0] == 20
""",
        1 + LIES.index(lie),
    )
