# SPDX-License-Identifier: Apache-2.0
"""Dtypes that are only moved: narrow floats, and packed pairs of 4 bits."""

import ctypes

import cuplug
import cuplug.array_api as xp
import numpy as np
import pytest
from cuplug._engine.base.dtypes import DTYPES
from cuplug.testing import numpy_dtype
from dltensor import Tensor

MOVED = [name for name, x in DTYPES.items() if x.kind == "storage"]
PACKED = {"float4_e2m1fn_x2": (17, 4, 2), "int4_x2": (0, 4, 2), "uint4_x2": (1, 4, 2)}
CODES = {"float8_e4m3fnuz": (11, 8, 1), "float8_e5m2fnuz": (13, 8, 1), "float8_e8m0fnu": (14, 8, 1)}
CODES |= PACKED
BYTES = np.arange(24, dtype=np.uint8).reshape(4, 6) * 11


@pytest.fixture(params=MOVED)
def name(request):
    """Return the name of a dtype."""
    return request.param


@pytest.fixture
def given(name):
    """Return a NumPy array."""
    return BYTES.copy().view(numpy_dtype(name))


def same(x, wanted):
    """Return whether an array has these bytes."""
    x = np.asarray(x)
    return x.shape == wanted.shape and x.tobytes() == np.ascontiguousarray(wanted).tobytes()


def described(capsule):
    """Return the DLTensor of a capsule."""
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return Tensor.from_address(get_pointer(capsule, b"dltensor"))


def test_they_are_these():
    assert list(CODES) == MOVED


def test_operators_move_them(given):
    index, along = np.array([2, 0]), np.array([[1, 0], [0, 5], [2, 2], [3, 4]])
    assert same(cuplug.ops.gather(given, index), BYTES[index])
    taken = cuplug.ops.take_along_axis(given, along)
    assert taken.dtype == given.dtype
    assert same(taken, np.take_along_axis(BYTES, along, 1))
    assert same(cuplug.ops.gather(given[::-1, ::2], index), BYTES[::-1, ::2][index])
    order = np.argsort(BYTES[:, ::-1].astype(int), axis=1)
    assert same(cuplug.ops.sort_by(given, order), np.take_along_axis(BYTES, np.argsort(order), 1))


def test_arrays_move_them(given):
    x = cuplug.asarray(given)
    assert x.dtype == given.dtype
    assert same(x, BYTES)
    assert same(xp.asarray(x.T, copy=True), BYTES.T)
    assert same(xp.concat([x, x[::-1]], axis=1), np.concatenate([BYTES, BYTES[::-1]], 1))
    assert same(xp.take(x, xp.asarray([1, 0]), axis=1), BYTES[:, [1, 0]])
    assert same(xp.roll(x, 1, axis=0), np.roll(BYTES, 1, 0))
    assert same(xp.repeat(x, 2, axis=0), np.repeat(BYTES, 2, 0))
    assert same(x[xp.asarray([True, False, True, False])], BYTES[::2])
    assert same(xp.zeros_like(x), np.zeros_like(BYTES))
    x[1:3] = xp.asarray(x[:2], copy=True)
    assert same(x[1:3], BYTES[:2])


def test_dlpack(name, given):
    x = cuplug.asarray(given, copy=True)
    capsule = x.__dlpack__()
    seen = described(capsule)
    assert (seen.code, seen.bits, seen.lanes) == CODES[name]

    class Other:
        __dlpack__ = x.__dlpack__
        __dlpack_device__ = x.__dlpack_device__

    shared = xp.from_dlpack(Other())
    assert shared.dtype == given.dtype
    assert shared.data_ptr == x.data_ptr
    assert same(cuplug.ops.gather(Other(), np.array([3])), BYTES[[3]])


def test_specs(name, given):
    spec = cuplug.ArraySpec(given.dtype, (4, 6))
    assert spec == cuplug.ArraySpec(name, (4, 6))
    (found,) = cuplug.ops.gather.infer(spec, cuplug.ArraySpec("int64", (2,))).outputs
    assert found == cuplug.ArraySpec(name, (2, 6))


def test_arithmetic_is_refused(name, given):
    x = cuplug.asarray(given)
    wanted = (
        f"got elements of {name}, expected a dtype that is computed with; convert the elements, or "
        "view their bytes as uint8"
    )
    for function in (
        lambda: x + x,
        lambda: x * 2,
        lambda: x == x,
        lambda: xp.sum(x),
        lambda: xp.astype(x, "float32"),
        lambda: cuplug.elementwise("add(x: T[...]) -> T[...] where T: any", "x + x")(x),
    ):
        with pytest.raises(TypeError, match=rf"^\w+: (x: )?{wanted}$"):
            function()
    with pytest.raises(TypeError, match=f"^assign: value: got 1, expected an array of {name}$"):
        x[:] = 1
    with pytest.raises(TypeError, match=rf"^nonzero: x: got {name}\[4, 6\], expected"):
        xp.nonzero(x)


@pytest.mark.parametrize("name", PACKED)
def test_scalars_are_no_pairs(name):
    f = cuplug.elementwise("f(x: float32[...], a: T, y: T[n]) -> float32[...] where T: any", "x")
    with pytest.raises(TypeError, match="^f: a: "):
        f(np.zeros(2, np.float32), 1, np.zeros(2, numpy_dtype(name)))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("float4_e2m1fn_x2", "[(0.5, -6), (-0, 0)]"),
        ("int4_x2", "[(1, -1), (-8, 0)]"),
        ("uint4_x2", "[(1, 15), (8, 0)]"),
    ],
)
def test_packed_pairs_are_shown(name, text):
    x = cuplug.asarray(np.array([0xF1, 0x08], np.uint8).view(numpy_dtype(name)))
    assert repr(x) == f"Array({text}, dtype={name}, device='cpu')"
    assert str(x) == text.replace("), (", ") (")
    assert str(x[0]) == text[1:].partition(", (")[0]


@pytest.mark.parametrize("name", PACKED)
def test_a_packed_pair_is_a_structure_in_numpy(name):
    x = cuplug.empty(3, name)
    assert x.dtype == np.dtype([(name, "u1")])
    assert x.itemsize == 1
    x[name][:] = 7
    assert x.numpy().tobytes() == b"\7\7\7"


def test_unpacked_numbers_are_named():
    code, bits, _ = PACKED["int4_x2"]
    x = cuplug.empty(3, "int4_x2")
    capsule = x.__dlpack__()
    described(capsule).lanes = 1

    class Other:
        def __dlpack__(self, **_):
            return capsule

        def __dlpack_device__(self):
            return 1, 0

    with pytest.raises(TypeError, match=rf"\({code}, {bits} bits, 1 lanes\), an unpacked int4_x2"):
        cuplug.ops.gather(Other(), np.array([0]))
