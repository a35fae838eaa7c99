# SPDX-License-Identifier: Apache-2.0
"""The buffer protocol of Array: the correct shape, strides and format, or an error."""

import io

import cuplug
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

DTYPES = [
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
]
STRUCT = np.dtype([("a", "i4"), ("b", "f4", (2,))])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 0, 3), (1, 2, 3, 4, 5)])
def test_memoryviews_are_those_of_numpy(dtype, shape):
    host = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    seen, wanted = memoryview(cuplug.asarray(host)), memoryview(host)
    assert (seen.format, seen.shape, seen.itemsize) == (wanted.format, shape, host.itemsize)
    assert memoryview(cuplug.asarray(host)).tobytes() == host.tobytes()
    assert bytes(cuplug.asarray(host)) == bytes(host)
    assert np.array_equal(np.asarray(cuplug.asarray(host)), host)


@given(st.lists(st.integers(0, 4), max_size=4), st.data())
def test_strides_are_those_of_views(shape, data):
    host = np.arange(np.prod(shape, dtype=int), dtype="int32").reshape(shape)
    keys = [slice(None), slice(None, None, 2), slice(None, None, -1), slice(1, None)]
    key = tuple(data.draw(st.sampled_from(keys)) for _ in shape)
    seen = memoryview(cuplug.asarray(host)[key])
    assert (seen.shape, seen.tolist()) == (host[key].shape, host[key].tolist())


def test_structures():
    host = np.zeros(3, STRUCT)
    host["a"] = [1, 2, 3]
    assert np.asarray(memoryview(cuplug.asarray(host)))["a"].tolist() == [1, 2, 3]


@pytest.mark.parametrize("shape", [(), (2, 3), (1, 1)])
def test_bytes_without_a_shape_are_for_one_dimension(shape):
    x = cuplug.asarray(np.ones(shape, "float32"))
    with pytest.raises(BufferError, match="request for bytes without a shape.*torch.from_dlpack"):
        np.frombuffer(x, "float32")
    file = io.BytesIO()
    assert file.write(memoryview(x)) == x.nbytes
    assert np.frombuffer(x.reshape((-1,)) if shape else memoryview(x), "float32")[0] == 1


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_dtypes_that_buffers_cannot_describe(name):
    x = cuplug.asarray(np.ones((2, 3), getattr(ml_dtypes, name)))
    with pytest.raises(BufferError, match=f"which {name} does not have"):
        memoryview(x)
    assert np.asarray(x).shape == (2, 3)
    assert np.asarray(x).dtype.name == name


@pytest.mark.parametrize("dtype", DTYPES)
def test_pytorch_sees_the_shape(dtype):
    torch = pytest.importorskip("torch")
    x = cuplug.asarray(np.arange(6).reshape(2, 3).astype(dtype))
    for function in (torch.tensor, torch.as_tensor, torch.from_dlpack):
        assert function(x).tolist() == x.numpy().tolist()
    with pytest.raises((RuntimeError, BufferError, ValueError)):  # it requests bytes
        torch.asarray(x)
