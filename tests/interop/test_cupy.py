# SPDX-License-Identifier: Apache-2.0
"""CuPy arrays: the same kind out, without copies, on CuPy's current stream."""

import cuplug
import numpy as np
import pytest
from cuplug.ops import gather, relu, scale

cupy = pytest.importorskip("cupy")
pytestmark = pytest.mark.gpu

DTYPES = [
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
]


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype(dtype):
    x = cupy.arange(7).astype(dtype)
    y = gather(x, cupy.array([3, 0, -1]))
    assert isinstance(y, cupy.ndarray)
    assert y.dtype == x.dtype
    np.testing.assert_array_equal(y.get(), x.get()[[3, 0, -1]])


def test_out_in_place_and_empty():
    x, out = cupy.array([-1.0, 2]), cupy.zeros(2)
    assert relu(x, out=out) is out
    assert out.tolist() == [0, 2]
    assert scale(x, 3) is None
    assert x.tolist() == [-3, 6]
    assert relu(x[:0]).shape == (0,)
    assert relu(cupy.array(-2.0)).tolist() == 0


@pytest.mark.parametrize(
    "view",
    [lambda x: x[::2], lambda x: x.reshape(4, 6).T, lambda x: x[5:], lambda x: x[::-1]],
)
def test_views(view):
    x = view(cupy.arange(24.0) - 12)
    np.testing.assert_array_equal(relu(x).get(), np.maximum(x.get(), 0))


def test_subclasses():
    """Attributes that Python computes for an array, or its memory, are read by name."""

    class Memory(cupy.cuda.MemoryPointer):
        pass

    class Half(cupy.ndarray):
        @property
        def shape(self):
            return (super().shape[0] // 2,)

    x = cupy.arange(8.0) - 2
    memory = Memory(x.data.mem, x.data.ptr - x.data.mem.ptr)
    assert relu(cupy.ndarray((8,), x.dtype, memory)).tolist() == [0, 0, 0, 1, 2, 3, 4, 5]
    assert relu(Half((8,), x.dtype, x.data)).tolist() == [0, 0, 0, 1]
    assert relu(x[::2]).tolist() == [0, 0, 2, 4]


def test_current_stream_is_used():
    x = cupy.zeros(1 << 24)
    stream = cupy.cuda.Stream(non_blocking=True)
    cupy.cuda.Device().synchronize()
    with stream:
        for _ in range(50):
            x += 1
        y = relu(x)
        later = y + 1
    stream.synchronize()
    assert float(later.min()) == 51


def test_cupy_allocates_the_outputs():
    pool = cupy.get_default_memory_pool()
    before = pool.used_bytes()
    y = relu(cupy.ones(1 << 20))
    assert pool.used_bytes() - before >= y.nbytes


def test_dtype_without_operators():
    with pytest.raises(TypeError, match="source: got a list of 1 item, expected"):
        gather([1.0], cupy.array([0]))


def test_mixed_with_torch():
    torch = pytest.importorskip("torch")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(100_000_000)
        index = torch.zeros(3, device="cuda", dtype=torch.int64) + 2
        y = gather(cupy.arange(4.0), index)
    assert isinstance(y, cupy.ndarray)
    assert y.tolist() == [2, 2, 2]


def test_cuda_array_interface_alone():
    class Foreign:
        def __init__(self, x, **changes):
            self.x, self.changes = x, changes

        @property
        def __cuda_array_interface__(self):
            return {**self.x.__cuda_array_interface__, **self.changes}

    x = cupy.arange(12.0).reshape(3, 4) - 6
    y = relu(Foreign(x))
    assert isinstance(y, cuplug.Array)
    np.testing.assert_array_equal(y.numpy(), np.maximum(x.get(), 0))
    out = cupy.zeros((3, 4))
    relu(Foreign(x, stream=1), out=out)
    cuplug.synchronize()
    np.testing.assert_array_equal(out.get(), np.maximum(x.get(), 0))
    with pytest.raises(ValueError, match=r"^relu: out: got a read-only array"):
        relu(x, out=Foreign(out, data=(out.data.ptr, True)))
    np.testing.assert_array_equal(relu(Foreign(x.T)).numpy(), np.maximum(x.T.get(), 0))
    with pytest.raises(ValueError, match=r"^relu: x: got a strided, misaligned or broadcast"):
        relu(Foreign(x[:2], data=(x.data.ptr + 4, False)))
