# SPDX-License-Identifier: Apache-2.0
"""Arrays of libraries that have only `__dlpack__`, on the host: read, written, and made."""

import ctypes
import gc
import re
import sys
from types import SimpleNamespace
from unittest.mock import MagicMock

import cuplug
import ml_dtypes
import numpy as np
import pytest
from cuplug import array_api as xp
from cuplug.ops import scale
from layouts import LAYOUTS, assert_same


class Exporter:
    """A NumPy array with only `__dlpack__`; with `versioned` False, as before DLPack 1."""

    def __init__(self, x, versioned=True):
        self.x, self.versioned = x, versioned

    def __dlpack_device__(self):
        return self.x.__dlpack_device__()

    def __dlpack__(self, *, stream=None, **keywords):
        assert stream is None
        if keywords and not self.versioned:
            raise TypeError("unexpected keyword")
        return self.x.__dlpack__(**keywords)


@pytest.mark.parametrize("versioned", [True, False])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_dlpack_protocol(ops, versioned, layout):
    x = LAYOUTS[layout](np.arange(24.0))
    if not versioned and not x.flags.writeable:
        pytest.skip("a capsule of the old kind cannot say that it is read-only")
    assert_same(ops.copy(Exporter(x, versioned)), np.array(x, order="C"))


def test_dlpack_alone_in_place(ops):
    x = np.arange(3.0)
    assert scale(Exporter(x), 2) is None
    assert x.tolist() == [0, 2, 4]
    out = Exporter(x)
    assert ops.copy(np.ones(3), out=out) is out
    for call in (lambda out: scale(out, 2), lambda out: ops.copy(np.zeros(3), out=out)):
        with pytest.raises(ValueError, match="got a read-only array, expected a writable one"):
            call(Exporter(x, versioned=False))  # it cannot state that it is writable
    assert x.tolist() == [1, 1, 1]


@pytest.mark.parametrize("versioned", [True, False])
def test_dlpack_capsules_are_released(ops, versioned):
    x = np.arange(4.0)
    before = sys.getrefcount(x)
    for _ in range(10):
        ops.copy(Exporter(x, versioned))
        with pytest.raises(TypeError):
            ops.copy(Exporter(x, versioned), Exporter(x, versioned))
    gc.collect()
    assert sys.getrefcount(x) == before


def test_dlpack_export_that_fails(ops):
    class Broken(Exporter):
        def __dlpack__(self, **keywords):
            raise BufferError("it is on the moon\nand more")

    wanted = "copy: x: got Broken that cannot be read: it is on the moon, expected T[*n] with T"
    with pytest.raises(TypeError, match=r"^" + re.escape(wanted)):
        ops.copy(Broken(np.arange(2.0)))


def test_dlpack_export_that_is_no_capsule(ops):
    class Broken(Exporter):
        def __dlpack__(self, **keywords):
            return 3

    with pytest.raises(TypeError, match="its __dlpack__ gives no capsule"):
        ops.copy(Broken(np.arange(2.0)))


@pytest.mark.parametrize(("name", "shape_at"), [("dltensor", 24), ("dltensor_versioned", 56)])
def test_dlpack_export_without_a_shape(ops, name, shape_at):
    class Broken(Exporter):
        def __dlpack__(self, **keywords):
            capsule = super().__dlpack__(**keywords)
            pointer = ctypes.pythonapi.PyCapsule_GetPointer
            pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
            managed = pointer(capsule, name.encode())
            ctypes.c_void_p.from_address(managed + shape_at).value = None
            return capsule

    with pytest.raises(TypeError, match="got Broken that cannot be read: its shape is a null"):
        ops.copy(Broken(np.arange(2.0), name == "dltensor_versioned"))


@pytest.mark.parametrize("ndim", [-1, 65, 1000, 2**31 - 1, -(2**31)])
def test_dlpack_export_of_absurd_dimensions(ops, ndim):
    class Broken(Exporter):
        def __dlpack__(self, **keywords):
            capsule = super().__dlpack__(**keywords)
            pointer = ctypes.pythonapi.PyCapsule_GetPointer
            pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
            managed = pointer(capsule, b"dltensor")
            ctypes.c_int32.from_address(managed + 16).value = ndim
            return capsule

    with pytest.raises(TypeError, match="or not of 0 to 64 dimensions"):
        ops.copy(Broken(np.arange(2.0), False))


def test_stand_ins_of_libraries(ops, monkeypatch):
    """Such as documentation tools import."""

    class New(Exporter):
        pass

    for library in ("torch", "cupy"):
        monkeypatch.setitem(sys.modules, library, MagicMock())
    assert ops.copy(New(np.arange(2.0))).tolist() == [0, 1]


def test_outputs_go_back_through_the_namespace(ops):
    class Namespace:
        @staticmethod
        def from_dlpack(x):
            return Spaced(x)

    class Spaced(Exporter):
        def __array_namespace__(self):
            return Namespace

    for out in ({}, {"out": None}, {"out": (None,)}):
        result = ops.copy(Spaced(np.arange(3.0)), **out)
        assert type(result) is Spaced
        assert result.x.tolist() == [0, 1, 2]
    given = np.empty(3)
    for out in ((given, None), (None, given)):
        results = ops.split(Spaced(np.arange(3.0)), out=out)
        assert [type(x) for x in results] == [Spaced if x is None else np.ndarray for x in out]


def test_output_that_the_library_does_not_take(ops):
    class Full(Exporter):
        def __array_namespace__(self):
            raise BufferError("its memory is full")

    wanted = "copy: its output could not become an array like Full: its memory is full (pass one"
    with pytest.raises(TypeError, match="^" + re.escape(wanted)) as raised:
        ops.copy(Full(np.arange(3.0)))
    assert isinstance(raised.value.__cause__, BufferError)
    out = np.zeros(3)
    assert ops.copy(Full(np.arange(3.0)), out=out) is out
    assert out.tolist() == [0, 1, 2]


@pytest.mark.parametrize("name", ["__dlpack__", "__cuda_array_interface__"])
def test_attribute_that_cannot_be_had(ops, name):
    def fail(self):
        raise ValueError("it was deleted")

    deleted = type("Deleted", (), {name: property(fail), "__dlpack_device__": lambda self: (1, 0)})
    with pytest.raises(TypeError, match="^copy: x: got Deleted that cannot be read: it was del"):
        ops.copy(deleted())


@pytest.mark.parametrize("versioned", [True, False])
@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e5m2"])
def test_outputs_of_dtypes_that_numpy_does_not_export(ops, dtype, versioned):
    class Own(Exporter):
        def __array_namespace__(self):
            return SimpleNamespace(from_dlpack=lambda x: Own(x, versioned))

    x = np.array([[0.5, -1, 2], [3, 4, -5]], np.float32)
    narrow = cuplug.elementwise(f"narrow(x: float32) -> {dtype}", "x")
    result = narrow(Own(x))
    assert isinstance(result, Own)
    assert ops.copy(np.ones((5, 7))).shape == (5, 7)  # where the sizes of that call were
    out = np.empty(x.shape, getattr(ml_dtypes, dtype))
    assert ops.copy(result, out=out) is out
    assert_same(out, x.astype(out.dtype))
    del narrow, x
    gc.collect()
    assert ops.copy(ops.copy(result), out=out) is out


def test_arrays_of_jax(ops):
    jax = pytest.importorskip("jax")
    x = jax.device_put(jax.numpy.arange(4), jax.devices("cpu")[0])
    for dtype in ("float32", "bfloat16", "int32", "bool"):
        y = ops.copy(x.astype(dtype))
        assert isinstance(y, jax.Array)
        assert y.dtype == dtype
        assert y.tolist() == x.astype(dtype).tolist()
    for call in (lambda out: scale(out, 2), lambda out: ops.copy(np.zeros(4, out.dtype), out=out)):
        with pytest.raises(ValueError, match="got a read-only array"):
            call(x.astype("float32"))  # they never change


@pytest.mark.parametrize("copy", [None, False, True])
@pytest.mark.parametrize("max_version", [None, (0, 0), (1, 0), (2, 0)])
@pytest.mark.parametrize("device", [None, (1, 0)])
def test_what_arrays_of_the_host_are_asked_for(copy, max_version, device):
    x = cuplug.asarray([1.0, 2.0], device="cpu")

    class Asked:
        def __dlpack__(self, **_):
            return x.__dlpack__(max_version=max_version, dl_device=device, copy=copy)

        def __dlpack_device__(self):
            return x.__dlpack_device__()

    y = np.from_dlpack(Asked())
    assert y.tolist() == [1, 2]
    assert np.shares_memory(y, np.asarray(x)) is (copy is not True)


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_dtypes_that_numpy_does_not_know(name):
    torch = pytest.importorskip("torch")
    x = torch.ones(4).to(getattr(torch, name))
    for y in (xp.from_dlpack(x), cuplug.asarray(x), cuplug.asarray(x, device="cpu")):
        assert (y.dtype.name, y.shape, y.device.type) == (name, (4,), "cpu")
    shared, copied = xp.from_dlpack(x), xp.from_dlpack(x, copy=True)
    x[0] = 2
    assert [float(shared[0]), float(copied[0])] == [2, 1]
    assert cuplug.asarray(x[::2], dtype="float32").numpy().tolist() == [2, 1]
    assert cuplug.asarray(x.reshape(2, 2).T).shape == (2, 2)


@pytest.mark.filterwarnings("ignore:ComplexHalf")
def test_a_dtype_that_no_operator_has():
    torch = pytest.importorskip("torch")
    with pytest.raises(TypeError, match=r"^asarray: x: got Tensor of torch\.complex32, expected"):
        xp.from_dlpack(torch.ones(2).to(torch.complex32))


@pytest.mark.parametrize("name", ["float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"])
def test_narrow_floats_of_torch(name):
    torch = pytest.importorskip("torch")
    x = xp.from_dlpack(torch.ones(2).to(getattr(torch, name)))
    assert (x.dtype.name, x.numpy().astype("float32").tolist()) == (name, [1, 1])
