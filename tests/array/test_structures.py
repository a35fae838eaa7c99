# SPDX-License-Identifier: Apache-2.0
"""Arrays of structures, which kernels accept and operators reject."""

import pickle

import cuplug
import numpy as np
import pytest
from cuplug.ops import relu

POINT = np.dtype([("n", np.int32), ("z", np.complex64), ("v", np.float32, 3)], align=True)
PACKED = np.dtype([("n", np.int8), ("x", np.float64)])


def points(dtype=POINT) -> np.ndarray:
    """Return six structures."""
    x = np.zeros((2, 3), dtype)
    x["n"] = np.arange(6).reshape(2, 3)
    return x


@pytest.mark.parametrize("dtype", [POINT, PACKED])
def test_on_the_host(dtype):
    host = points(dtype)
    x = cuplug.asarray(host, device="cpu")
    assert (x.shape, x.dtype, x.strides, x.nbytes) == (
        host.shape,
        dtype,
        host.strides,
        host.nbytes,
    )
    assert x.data_ptr == host.ctypes.data
    np.testing.assert_array_equal(x.numpy(), host)
    np.testing.assert_array_equal(np.asarray(x[:, 1:]), host[:, 1:])
    np.testing.assert_array_equal(x[1, ::2].numpy(), host[1, ::2])
    assert x[1, 2].numpy()["n"] == 5
    copy = cuplug.asarray(x, copy=True)
    assert copy.data_ptr != x.data_ptr
    np.testing.assert_array_equal(copy.numpy(), host)
    np.testing.assert_array_equal(x.T.copy().numpy(), host.T)
    new = cuplug.empty((2, 3), dtype, "cpu")
    new.set(host)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(new)).numpy(), host)
    shared = cuplug.from_pointer(x.data_ptr, 6, dtype, "cpu", owner=host)
    assert shared.numpy()["n"].tolist() == list(range(6))
    assert "(5, " in repr(x)
    for name in dtype.names[:1] if dtype == PACKED else dtype.names:
        np.testing.assert_array_equal(x[name].numpy(), host[name])
        np.testing.assert_array_equal(x[1:][name].numpy(), host[1:][name])
    x["n"] = 7
    assert host["n"].tolist() == [[7] * 3] * 2
    assert cuplug.empty(0, dtype, "cpu").numpy().dtype == dtype
    swapped = cuplug.asarray(host.astype(dtype.newbyteorder()), device="cpu")
    np.testing.assert_array_equal(swapped.numpy(), host)


TEXTS = np.zeros(3, [("name", "S4"), ("x", "<f4")])


@pytest.mark.parametrize(
    "call",
    [
        lambda x: cuplug.asarray(x, dtype="float32"),
        lambda x: cuplug.array_api.zeros_like(x),
        lambda x: cuplug.array_api.concat([x, x]),
        lambda x: cuplug.array_api.where(
            cuplug.array_api.ones(3, dtype="bool", device="cpu"), x, x
        ),
        lambda x: x == x,
        lambda x: x.__setitem__(0, x[1]),
        cuplug.fuse(lambda x: x + 1),
        lambda x: x["name"],
    ],
)
def test_structures_are_told(call):
    with pytest.raises(TypeError, match="got (structures|a field) of .*, (expected|w)"):
        call(cuplug.asarray(TEXTS, device="cpu"))


def test_what_structures_are_not_for():
    x = cuplug.asarray(points(), device="cpu")
    with pytest.raises(KeyError, match="got the field 'm', expected one of"):
        x["m"]
    with pytest.raises(ValueError, match="x: got strides .*, expected multiples of the 8 bytes"):
        cuplug.asarray(points(PACKED), device="cpu")["x"]
    with pytest.raises(TypeError, match="relu: x: got "):
        relu(x)
    with pytest.raises(BufferError, match="expected a dtype of DLPack"):
        x.__dlpack__()
    with pytest.raises(TypeError):
        x + x
    for dtype in ([("x", object)], [("x", "V70000")], np.dtype("V4"), "U3"):
        with pytest.raises(TypeError, match="expected a dtype of cuplug"):
            cuplug.empty(3, np.dtype(dtype), "cpu")


KERNELS = """
struct point { int n; float re, im; float v[3]; };
extern "C" __global__ void twice(point *p, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) { p[i].n *= 2; p[i].v[2] = p[i].re; }
}
extern "C" __global__ void floats(float *x) {}
"""
BODY = """
    point = np.dtype([("n", np.int32), ("z", np.complex64), ("v", np.float32, 3)], align=True)
    host = np.zeros(6, point)
    host["n"], host["z"] = range(6), 3 + 1j
    x = cuplug.asarray(host, device="cuda")
    assert (x.dtype, x.nbytes) == (point, host.nbytes)
    module = cuplug.compile(KERNELS)
    module["twice"][1, 32](x, 6)
    module["twice"][1, 32](x[4:], 2)  # from an offset
    seen = x.numpy()
    assert seen["n"].tolist() == [0, 2, 4, 6, 16, 20] and seen["v"][:, 2].tolist() == [3] * 6
    copy = cuplug.asarray(x, copy=True)
    assert copy.data_ptr != x.data_ptr and copy.device == x.device
    assert x["n"].shape == (6,) and x["v"].shape == (6, 3) and x["z"].device == x.device
    out = np.zeros(6, point)
    assert x.numpy(out=out) is out and np.array_equal(out, seen)
    x.set(host)
    assert np.array_equal(x.numpy(), host)
"""


def test_kernels_take_structures(run_kernels):
    wrong = """
    floats = module["floats"][1, 1]
    raises(TypeError, "floats: argument 1: got Array, a structure of 24 bytes", floats, x)
    raises(ValueError, "got strided structures on a GPU", x[::2].numpy)
    """
    run_kernels(f"    KERNELS = {KERNELS!r}{BODY}{wrong}")


@pytest.mark.gpu
@pytest.mark.sanitizer
def test_kernels_take_structures_on_a_gpu():
    names = {"np": np, "cuplug": cuplug, "KERNELS": KERNELS}
    exec("if True:" + BODY, names)
