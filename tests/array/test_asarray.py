# SPDX-License-Identifier: Apache-2.0
"""`cuplug.asarray`, of arrays on the host and on a GPU, on the fake driver."""

import cuplug
import numpy as np
import pytest
from cuplug import array_api as xp
from dltensor import OnlyDLPack


def test_dtypes_of_arrays_of_the_host(run_fake):
    run_fake("""
    for dtype in ("float32", np.float32, ">f4"):
        for d in (cuplug.asarray([1, 2], dtype), cuplug.asarray(x[:2], dtype=dtype)):
            assert d.dtype == np.float32 and d.shape == (2,)
    assert cuplug.asarray([1.5, 2], "int32").numpy().tolist() == [1, 2]
    assert cuplug.asarray(x).numpy().tolist() == x.tolist()
    with Raises(TypeError, "asarray: dtype: got 'cuda', expected a dtype of NumPy or ml_dtypes"):
        cuplug.asarray(x, "cuda")
    """)


def test_arrays_of_other_libraries_are_shared(run_streams):
    run_streams("""
    import gc, weakref

    theirs = Foreign(cuplug.asarray(np.arange(6.0).reshape(2, 3)))
    pointer, kept = theirs.array.data_ptr, weakref.ref(theirs)
    ours = cuplug.asarray(theirs)
    assert type(ours) is cuplug.Array and ours.data_ptr == pointer
    assert ours.shape == (2, 3) and ours.dtype == np.float64 and str(ours.device) == "cuda:0"
    assert cuplug.asarray(theirs, "float64", "cuda").data_ptr == pointer
    turned = Foreign(theirs.array, shape=(3, 2), strides=(8, 24))
    assert cuplug.asarray(turned).strides == (8, 24)
    del theirs
    gc.collect()
    assert kept() is not None
    assert ours.numpy().tolist() == [[0, 1, 2], [3, 4, 5]]
    assert gpu.triple(ours).numpy().tolist() == [[0, 3, 6], [9, 12, 15]]
    del ours
    gc.collect()
    assert kept() is None
    cuplug.synchronize()
    assert counts().misuses == 0
    """)


def test_arrays_of_the_host_with_dlpack_alone():
    x = np.arange(6.0).reshape(2, 3)
    for theirs in (OnlyDLPack(x), OnlyDLPack(x.T)):
        for make in (cuplug.asarray, xp.from_dlpack):
            ours = make(theirs, device="cpu")
            ours[0, 0] += 1
            assert theirs.x[0, 0] == ours[0, 0]
            assert (ours.numpy() == theirs.x).all()
    assert cuplug.asarray(OnlyDLPack(x), "float32", device="cpu").dtype == np.float32
    x.flags.writeable = False
    shared = cuplug.asarray(OnlyDLPack(x), device="cpu")
    assert (shared.data_ptr, shared.flags.writeable) == (x.ctypes.data, False)
    with pytest.raises(TypeError, match="asarray: x: got OnlyDLPack that cannot be read"):
        cuplug.asarray(OnlyDLPack(np.array(["a"])), device="cpu")


def test_the_streams_of_others_come_first(run_streams):
    run_streams("""
    d, stream = cuplug.asarray(np.arange(3.0)), make_stream(0)
    assert "cuStreamWaitEvent" not in calls(cuplug.asarray, Foreign(d, stream=1))
    assert "cuStreamWaitEvent" in calls(cuplug.asarray, Foreign(d, stream=stream))
    """)


@pytest.mark.parametrize(
    ("make", "options", "error", "message"),
    [
        ("Foreign(d, typestr='>f8')", "", "TypeError", "got a byte-swapped array"),
        ("Foreign(d, typestr='U3')", "", "TypeError", "got array of dtype <U3, expected an array"),
        ("Foreign(d)", "device='cuda:1'", "ValueError", "got an array on cuda:0, expected one on"),
    ],
)
def test_what_cannot_be_shared(run_streams, make, options, error, message):
    run_streams(f"""
    d = cuplug.asarray(np.zeros((2, 2)))
    with Raises({error}, {"asarray: x: " + message!r}):
        cuplug.asarray({make}, {options})
    """)


def test_arrays_that_are_there_already(run_streams):
    run_streams("""
    d = cuplug.asarray(x, device=1)
    assert cuplug.asarray(d) is d
    assert cuplug.asarray(d, x.dtype, 1) is d
    moved = cuplug.asarray(d, device="cuda:0")
    assert str(moved.device) == "cuda:0" and np.array_equal(moved.numpy(), x)
    """)


def test_metadata_of_dtypes():
    """Metadata in a NumPy dtype, as scikit-learn adds, is not copied to an Array."""
    x = np.arange(3, dtype=np.dtype("int64", metadata={"unique": np.arange(3)}))
    for given in (x, x.astype(x.dtype.newbyteorder(">"))):
        y = cuplug.asarray(given, device="cpu")
        assert y.dtype == np.int64
        assert y.dtype.metadata is None
        assert y.tolist() == [0, 1, 2]
    shared = cuplug.asarray(x, device="cpu")
    x[0] = 7
    assert int(shared[0]) == 7


def test_what_is_imported_when_it_is_first_used(run_python):
    """Creating and printing arrays imports no compilers, and on the host no GPU modules."""
    code = """
import sys, cuplug, numpy
def found(*rooms):
    return [name for name in sys.modules if name.startswith(tuple(f"cuplug.{x}" for x in rooms))]
x = cuplug.asarray([1.0, 2.0], "float32", "cpu")
assert repr(x) and cuplug.asarray(numpy.ones(3), device="cpu").shape == (3,)
print(found("_source", "array_api.elementwise"))
assert (2 * x).tolist() == [2, 4]
late = "_source.compilers.jit", "_source.compilers.nvrtc", "_source.expressions.red"
print(found(*late, "_engine.lookup", "array_api.indexing"))
assert x[x > 1].tolist() == [2]
"""
    assert run_python(code).stdout == "[]\n[]\n"


def test_the_namespace_knows_all_functions_before_they_are_imported(run_python):
    code = """
from cuplug import array_api as xp
first = dir(xp)
from cuplug.array_api.elementwise import CALLED
print(set(CALLED) - set(first), set(xp._MODULES["elementwise"].split()) - set(CALLED))
print([name for name in xp.__all__ if callable(f := getattr(xp, name)) and f.__name__ != name])
print(dir(xp) == first, xp.mean is xp.mean)
"""
    assert run_python(code).stdout == "set() {'clip'}\n[]\nTrue True\n"


def test_masks_are_not_lost():
    x = xp.arange(3.0, device="cpu")
    masked = np.ma.masked_array([0, 1, 2], mask=[False, True, False])
    for lose in (
        lambda: cuplug.asarray(masked),
        lambda: cuplug.asarray(masked, "float32"),
        lambda: x.set(masked),
        lambda: x.__setitem__(slice(None), masked),
        lambda: x[masked],
        lambda: x[np.ma.masked_array([True, False, True], mask=[False, False, True])],
        lambda: xp.full(3, np.ma.masked, device="cpu"),
        lambda: xp.repeat(x, masked),
    ):
        with pytest.raises(TypeError, match="masked"):
            lose()
    assert x.tolist() == [0, 1, 2]
