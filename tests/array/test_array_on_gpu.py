# SPDX-License-Identifier: Apache-2.0
"""cuplug's own arrays in GPU memory: with the fake driver, and on a GPU."""

import cuplug
import numpy as np
import pytest
from backends import contents

ROUND_TRIP = """
import gc, pickle, numpy as np, cuplug, ml_dtypes
x = np.arange(12, dtype=np.float32).reshape(3, 4)
y = cuplug.asarray(x)
assert (y.shape, y.ndim, y.size, y.nbytes, len(y)) == ((3, 4), 2, 12, 48, 3)
assert y.dtype == np.float32
assert (y.device.type, y.device.index, str(y.device)) == ("cuda", 0, "cuda:0")
assert y.data_ptr > 0
np.testing.assert_array_equal(y.numpy(), x)
np.testing.assert_array_equal(cuplug.asarray(x.T).numpy(), x.T)
np.testing.assert_array_equal(cuplug.asarray(x.astype(">f4")).numpy(), x)
np.testing.assert_array_equal(cuplug.asarray([1, 2]).numpy(), [1, 2])
assert cuplug.asarray(np.array(3.0)).numpy().shape == ()
assert cuplug.asarray(np.zeros((0, 3))).numpy().shape == (0, 3)
b = cuplug.asarray(x.astype(ml_dtypes.bfloat16))
assert b.numpy().dtype == ml_dtypes.bfloat16
out = np.empty((3, 4), np.float32)
assert y.numpy(out=out) is out and (out == x).all()
y.set(x + 1)
np.testing.assert_array_equal(y.numpy(), x + 1)
y.set(x)
again = pickle.loads(pickle.dumps(y))
assert again.device == y.device and (again.numpy() == x).all()
assert cuplug.empty((2, 3), "bfloat16").nbytes == 12
assert cuplug.empty(5).shape == (5,)
assert cuplug.asarray(y) is y
shown = np.array2string(x, separator=", ", prefix="Array(")
assert repr(y) == f"Array({shown}, dtype=float32, device='cuda:0')"
assert y.__dlpack_device__() == (2, 0)
interface = y.__cuda_array_interface__
assert interface["shape"] == (3, 4) and interface["data"] == (y.data_ptr, False)
assert interface["typestr"] == "<f4" and interface["stream"] == 1
capsules = [y.__dlpack__(), y.__dlpack__(max_version=(1, 0)), y.__dlpack__(stream=-1)]
assert "dltensor_versioned" in repr(capsules[1]) and '"dltensor"' in repr(capsules[0])
pointer = y.data_ptr
del y
gc.collect()
"""

REFUSED = """
import numpy as np, cuplug
y = cuplug.asarray(np.arange(3.0))

def refused(exception, text, call):
    try:
        call()
    except exception as error:
        assert text in str(error), error
    else:
        raise AssertionError(f"nothing raised, expected {text}")

refused(TypeError, "copy it to a NumPy array with x.numpy()", lambda: np.asarray(y))
refused(ValueError, "sizes of at least 0", lambda: cuplug.empty((2, -1)))
refused(ValueError, "expected less than 2^63 bytes", lambda: cuplug.empty((2**40, 2**40)))
refused(ValueError, "65 dimensions", lambda: cuplug.empty((1,) * 65))
NONES = np.array([None])
refused(TypeError, "expected a dtype of cuplug", lambda: cuplug.empty(3, object))
refused(TypeError, "x: got ndarray, of elements of dtype obj", lambda: cuplug.asarray(NONES))
refused(TypeError, "x: got NoneType, of elements of dtype obj", lambda: cuplug.asarray(None))
refused(TypeError, "nope", lambda: cuplug.empty(3, "nope"))
refused(ValueError, "cuda:9", lambda: cuplug.empty(3, device="cuda:9"))
refused(MemoryError, "", lambda: cuplug.empty(2**45))
refused(BufferError, "got cuda:5, expected cuda:0 or cpu", lambda: y.__dlpack__(dl_device=(2, 5)))
refused(BufferError, "got DLPack's device (8, 0)", lambda: y.__dlpack__(dl_device=(8, 0)))
COPIED = "copy: got False, expected None (cuda:0)"
refused(BufferError, COPIED, lambda: y.__dlpack__(dl_device=(1, 0), copy=False))
assert "dltensor" in repr(y.__dlpack__(dl_device=(1, 0)))
refused(TypeError, "without dimensions", lambda: len(cuplug.empty(())))
np.testing.assert_array_equal(y.numpy(), np.arange(3.0))
"""


@pytest.mark.parametrize("code", [ROUND_TRIP, REFUSED], ids=["round_trip", "refused"])
def test_on_the_fake_driver(run_fake, code):
    run_fake(code)


@pytest.mark.gpu
@pytest.mark.parametrize("code", [ROUND_TRIP, REFUSED], ids=["round_trip", "refused"])
def test_on_a_gpu(run_python, code):
    done = run_python(code)
    assert done.returncode == 0, done.stderr


def test_memory_is_freed(run_fake):
    run_fake("""
    import gc

    def allocations():
        gc.collect()
        cuplug.trim()
        assert counts().misuses == 0
        return counts().allocations

    first = cuplug.asarray(np.ones(3))
    before = allocations()
    for _ in range(5):
        x = cuplug.asarray(np.ones(100))
        capsules = [x.__dlpack__(), x.__dlpack__(max_version=(1, 1))]
    assert allocations() == before + 1
    del x
    assert allocations() == before + 1
    del capsules
    assert allocations() == before
    """)


def test_devices_and_synchronize(run_fake):
    code = """
    cuplug.synchronize()
    devices = cuplug.devices()
    assert (len(devices), devices[1].index, devices[0].compute_capability) == (2, 1, 90)
    x = cuplug.empty(3, device="cuda:1")
    cuplug.synchronize()
    cuplug.synchronize(1)
    """
    run_fake(code, FAKE_CUDA_DEVICES="2", FAKE_CUDA_CAPABILITY="90")


def test_without_a_driver(run_python):
    code = (
        "import cuplug\n"
        "cuplug.synchronize()\n"
        "print(cuplug.devices(), cuplug.is_available())\n"
        "for call in (lambda: cuplug.Device(0).name, lambda: cuplug.empty(3, device=0)):\n"
        "    try:\n"
        "        call()\n"
        "    except cuplug.CudaError as error:\n"
        "        print(str(error) != '')\n"
    )
    done = run_python(code, env={"LD_LIBRARY_PATH": "/nonexistent", "CUDA_VISIBLE_DEVICES": "-1"})
    assert done.stdout == "[] False\nTrue\nTrue\n", done.stderr


@pytest.mark.gpu
def test_operators_on_device_arrays():
    from cuplug.ops import gather, relu, scale

    x = cuplug.asarray(np.arange(-3, 3, dtype=np.float32))
    y = relu(x)
    assert isinstance(y, cuplug.Array)
    np.testing.assert_array_equal(y.numpy(), [0, 0, 0, 0, 1, 2])
    assert relu(x, out=y) is y
    scale(x, 2)
    np.testing.assert_array_equal(x.numpy(), np.arange(-6, 6, 2))
    index = cuplug.asarray(np.array([5, 9]))
    gather(x, index)
    with pytest.raises(IndexError, match=r"^gather: index"):
        cuplug.synchronize()


@pytest.mark.gpu
def test_positions_are_looked_at_on_the_gpu():
    """Errors are raised later, and nothing is written for wrong positions."""
    x = cuplug.asarray(np.zeros((3, 4)), device="cuda")
    for key in ([0, 3], ([0, 3], [0, 0])):
        taken = x[key]
        with pytest.raises(IndexError, match="index 3 at position 1 is out of bounds for size 3"):
            taken.numpy()
        x[key] = 7
        with pytest.raises(IndexError, match="index 3 at position 1 is out of bounds for size 3"):
            cuplug.synchronize()
        cuplug.synchronize()
        with pytest.raises(IndexError, match="index 3 at position 1 is out of bounds for size 3"):
            x[0].numpy()
    assert contents(x)[0].tolist() == [7] * 4
    assert not contents(x)[1:].any()


@pytest.mark.gpu
def test_other_libraries_read_device_arrays():
    x = cuplug.asarray(np.arange(5.0))
    torch = pytest.importorskip("torch")
    seen = torch.from_dlpack(x)
    assert seen.data_ptr() == x.data_ptr
    assert seen.tolist() == [0, 1, 2, 3, 4]
    cupy = pytest.importorskip("cupy")
    assert cupy.asarray(x).data.ptr == x.data_ptr
    assert cupy.from_dlpack(x).tolist() == [0, 1, 2, 3, 4]
    del x
    assert seen.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.gpu
def test_arrays_of_jax_and_numba():
    """Libraries that are read through `__dlpack__` and `__cuda_array_interface__`."""
    from cuplug.ops import relu, scale

    jax = pytest.importorskip("jax")
    x = jax.device_put(np.array([-1.0, 2], np.float32), jax.devices("gpu")[0])
    y = relu(x)
    assert isinstance(y, jax.Array)
    assert y.tolist() == [0, 2]
    assert relu(x.astype("bfloat16")).tolist() == [0, 2]
    with pytest.raises(ValueError, match="^scale: data: got a read-only array"):
        scale(x, 2)
    cuda = pytest.importorskip("numba.cuda")
    z = relu(cuda.to_device(np.array([-1.0, 2], np.float32)))
    assert isinstance(z, cuplug.Array)
    np.testing.assert_array_equal(z.numpy(), [0, 2])
