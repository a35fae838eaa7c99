# SPDX-License-Identifier: Apache-2.0
"""Typed functions with cuplug arrays and with pointers, on the host and on GPUs."""

import os
import subprocess
import sys
from pathlib import Path

import cuplug
import numpy as np
import pytest
from builds import compile_module
from cuplug._engine.base.flags import PACKAGE
from cuplug.array_api import zeros
from places import FIXTURES, ROOT

pytestmark = pytest.mark.slow  # a module is compiled


@pytest.fixture(scope="module")
def folder(once):
    """Compile the user and the example; return their folder."""

    def fill(folder):
        for source in (FIXTURES / "typed_arrays.pyx", ROOT / "examples" / "typed" / "signals.pyx"):
            compile_module(source, folder, options=["-fopenmp"])

    return once("typed_arrays", fill)


@pytest.fixture(scope="module")
def user(folder):
    """Return the compiled user of stock operators."""
    sys.path.insert(0, str(folder))
    try:
        import typed_arrays
    finally:
        sys.path.remove(str(folder))
    return typed_arrays


def on_host(x):
    return cuplug.asarray(x, device="cpu")


def test_an_array_is_described_without_python(user):
    x = on_host(np.arange(24, dtype="f4").reshape(4, 6))
    assert user.describe(x) == (x.data_ptr, [4, 6], None, 0x2200001, 1, 0)
    part = x[1:, ::2]
    assert user.describe(part) == (part.data_ptr, [3, 3], [6, 2], 0x2200001, 1, 0)
    assert user.describe(on_host(np.arange(3.0)[::-1]))[3] == 0x2400001


def test_arrays_of_any_rank_are_arguments(user):
    x = np.arange(-60, 60, dtype="f4").reshape(2, 3, 4, 5, 1)
    for source in (on_host(x), on_host(x)[:, ::2, ::-1], on_host(x[0, 0, 0, 0, 0])):
        out = zeros(source.shape, dtype="float32", device="cpu")
        user.run_relu(source, out)
        np.testing.assert_array_equal(out.numpy(), np.maximum(source.numpy(), 0))
    halves, out = on_host(np.float16([-1, 2])), cuplug.empty(2, "float16", device="cpu")
    user.run_relu(halves, out)
    assert out.numpy().tolist() == [0, 2]


@pytest.mark.parametrize("n_threads", [1, 2, 4])
def test_rows_of_an_array_in_threads(user, n_threads):
    x = np.arange(-500, 500, dtype="f4").reshape(50, 20)
    out = zeros(x.shape, dtype="float32", device="cpu")
    user.run_rows(on_host(x), out, n_threads)
    np.testing.assert_array_equal(out.numpy(), np.maximum(x, 0))


@pytest.mark.parametrize("n_threads", [1, 2, 4])
def test_gathered_rows_in_threads(user, n_threads):
    random = np.random.default_rng(n_threads)
    source, index = random.random((64, 33)), random.integers(-99, 99, (64, 17))
    out = zeros(index.shape, dtype="float64", device="cpu")
    user.gather_rows(on_host(source), on_host(index), out, n_threads)
    np.testing.assert_array_equal(out.numpy(), np.take_along_axis(source, index % 33, axis=1))


@pytest.mark.parametrize("n_threads", [1, 2, 4])
def test_errors_leave_parallel_loops(user, n_threads):
    source, index = on_host(np.zeros((64, 0))), on_host(np.zeros((64, 3), "i8"))
    out = zeros((64, 3), dtype="float64", device="cpu")
    with pytest.raises(IndexError, match="gather"):
        user.gather_rows(source, index, out, n_threads)


def test_arrays_and_memoryviews_in_one_call(user):
    out = np.zeros(3, "f4")
    user.run_memoryview(on_host(np.float32([-1, 0, 4])), out)
    assert out.tolist() == [0, 0, 4]


def test_outputs_of_unknown_size(user):
    shape, gpu, data = user.shape_of_nonzero(on_host(np.array([[0.0, 3], [2, 0]])))
    assert (shape, gpu, data) == ((2, 2), -1, 0)


def test_arrays_of_other_libraries_are_shared(user):
    x, out = np.float32([-2, 5]), np.zeros(2, "f4")
    user.run_relu(on_host(x), on_host(out))
    assert out.tolist() == [0, 5]


def test_errors_name_the_argument(user):
    x, out = on_host(np.zeros(3, "f4")), on_host(np.zeros(4, "f4"))
    with pytest.raises(ValueError, match="relu: out: "):
        user.run_relu(x, out)
    theirs = np.float32([-1, 2])
    theirs.flags.writeable = False
    for result in (on_host(theirs), on_host(theirs)[::-1]):
        with pytest.raises(ValueError, match="relu: out: got a read-only array"):
            user.run_relu(on_host(theirs), result)
    with pytest.raises(TypeError, match="relu: x: got None"):
        user.run_relu(None, out)
    with pytest.raises(TypeError, match="Argument 'x' has incorrect type"):
        user.run_relu(np.zeros(3), out)
    with pytest.raises(TypeError, match="relu: x: "):
        user.run_as_bool(on_host(np.zeros(3, "u1")), on_host(np.zeros(3, "u1")))
    with pytest.raises(ValueError, match="relu: stream: got one for arrays of the host"):
        user.run_relu(x, on_host(np.zeros(3, "f4")), 1)
    with pytest.raises(IndexError):
        user.run_gather(x, on_host(np.array([7])), on_host(np.zeros(1, "f4")))


SAME = """
for shape in [(7,), (3, 5), (2, 0, 3), (2, 3, 4, 5, 2)]:
    x = random.integers(-9, 9, shape).astype("f4")
    there, out = asarray(x, device="cuda"), cuplug.empty(shape, "float32", device="cuda")
    user.run_relu(there, out)
    np.testing.assert_array_equal(out.numpy(), np.maximum(x, 0))
assert user.describe(out)[4:] == (2, 0), user.describe(out)
x = random.integers(-9, 9, (6, 8)).astype("f4")
there, out = asarray(x, device="cuda"), cuplug.empty(x.shape, "float32", device="cuda")
user.run_rows(there, out)
np.testing.assert_array_equal(out.numpy(), np.maximum(x, 0))
"""
STREAMS = """
stream = cuplug.Stream(device=0)
x, out = asarray(np.float32([-1, 3]), device="cuda"), zeros(2, dtype="float32", device="cuda")
assert user.stream_of(0) == 0
cuplug.synchronize()
user.run_relu(x, out, stream.handle)
stream.synchronize()
assert out.numpy().tolist() == [0, 3]
with stream:
    assert user.stream_of(0) == stream.handle
    user.run_relu(asarray(np.float32([5, -1]), device="cuda"), out)
    assert out.numpy(stream=stream).tolist() == [5, 0]
assert user.stream_of(0) == 0
"""
ERRORS = """
x, out = asarray(np.zeros(4, "f4"), device="cuda"), zeros(4, dtype="float32", device="cuda")
host = asarray(np.zeros(4, "f4"), device="cpu")
raises(ValueError, "cuda:0", user.run_relu, x, host)
index = asarray(np.array([0, 1, 0, 1]), device="cuda")
raises(ValueError, "gather: source: ", user.run_gather, x[::2], index, out)
raises(Exception, "cuda:70", user.run_on_gpu, host.numpy(), np.zeros(4, "f4"), 70)
raises(Exception, "cuda:65534", user.run_on_gpu, host.numpy(), np.zeros(4, "f4"), -1)
"""
FAULTS = """
x = asarray(np.arange(4, dtype="f4"), device="cuda")
index, out = asarray(np.array([1, 9]), device="cuda"), zeros(2, dtype="float32", device="cuda")
user.run_gather(x, index, out)
raises(IndexError, "gather", out.numpy)
"""
FOUND = """
x = asarray(np.array([[0.0, 3], [2, 5]]), device="cuda")
shape, gpu, data = user.shape_of_nonzero(x)
assert (shape, gpu, data) == ((2, 3), 0, 0), (shape, gpu, data)
"""
SIGNALS = """
import signals

start, source = random.integers(-9, 9, (7, 65)).astype("f4"), random.integers(0, 65, 65)
by_hand, expected = start.copy(), np.empty_like(start)
signals.run_by_hand(by_hand, source, expected, 5)
for device in devices:
    x = asarray(start, device=device, copy=True)
    out = zeros(start.shape, dtype="float32", device=device)
    signals.run(x, asarray(source, device=device), out, 5)
    np.testing.assert_array_equal(out.numpy(), expected)
    np.testing.assert_array_equal(x.numpy(), by_hand)
"""
HEAD = """
import cuplug
import numpy as np
import typed_arrays as user
from cuplug.array_api import asarray, zeros

random = np.random.default_rng(0)
devices = ["cpu", "cuda"]


def raises(kind, part, call, *args):
    try:
        call(*args)
    except kind as error:
        assert part in str(error), f"got {error!s}, expected {part}"
    else:
        raise AssertionError(f"nothing raised, expected {kind.__name__}: {part}")
"""
BODIES = {
    "same": SAME, "streams": STREAMS, "errors": ERRORS, "faults": FAULTS, "found": FOUND,
    "signals": SIGNALS,
}  # fmt: skip


@pytest.mark.parametrize("name", BODIES)
def test_on_the_emulated_gpu(run_plugins, folder, name):
    built = "from emulation import build_plugin\nfor x in ('relu', 'gather', 'indexing'):\n"
    start = f"import sys\nsys.path.insert(0, {str(folder)!r})\n{built}    build_plugin(x)\n"
    run_plugins(start + HEAD + BODIES[name])


@pytest.mark.gpu
@pytest.mark.parametrize("name", BODIES)
def test_on_a_gpu(folder, name):
    path = os.pathsep.join([str(folder), str(Path(PACKAGE).parent)])
    command = [sys.executable, "-c", HEAD + BODIES[name]]
    done = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.gpu
@pytest.mark.parametrize("library", ["torch", "cupy"])
def test_arrays_of_gpu_libraries_are_shared(user, library):
    module = pytest.importorskip(library)
    there = {"device": "cuda"} if library == "torch" else {}
    x = module.asarray([-2.0, 5.0], dtype=module.float32, **there)
    out = module.zeros_like(x)
    user.run_relu(cuplug.asarray(x), cuplug.asarray(out))
    assert out.tolist() == [0, 5]
