# SPDX-License-Identifier: Apache-2.0
"""Arrays of read-only memory, compared with NumPy."""

import pickle

import cuplug
import numpy as np
import pytest
from cuplug import array_api as xp
from cuplug.ops import relu, scale
from dltensor import OnlyDLPack


def read_only(values=(1.0, 2.0, 3.0, 4.0), dtype="float64"):
    x = np.array(values, dtype)
    x.flags.writeable = False
    return x


def shared(x):
    return cuplug.asarray(x, device="cpu")


def test_memory_is_shared():
    theirs = read_only()
    for copied in (None, False):
        ours = cuplug.asarray(theirs, device="cpu", copy=copied)
        assert ours.data_ptr == theirs.ctypes.data
        assert not ours.flags.writeable
        assert not ours.flags["W"]
    for text in (b"abcd", memoryview(b"abcd")):
        assert not shared(np.frombuffer(text, "uint8")).flags.writeable
    repeated = shared(np.broadcast_to(np.float64(7), (2, 3)))
    assert repeated.strides == (0, 0)
    assert (repeated + 1).tolist() == [[8.0] * 3] * 2


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x[1:],
        lambda x: x[None, 1:],
        lambda x: x.reshape(2, 2),
        lambda x: x.reshape(2, 2).T,
        lambda x: x.reshape(2, 2).T.diagonal(),
        lambda x: x[None].squeeze(0),
        lambda x: x.view(np.int64),
        lambda x: x.ravel(),
        lambda x: x.real,
        lambda x: x[1:][:2],
    ],
)
def test_views_are_read_only_copies_are_not(view):
    for x in (read_only(), shared(read_only())):
        seen = view(x)
        assert not seen.flags.writeable
        with pytest.raises(ValueError, match="read-only"):
            seen[...] = 1
        assert x.tolist() == [1, 2, 3, 4]
        for mine in (seen.copy(), seen + 0, x[np.array([1, 0])], x.astype("float32")):
            assert mine.flags.writeable
            mine[...] = 1
    part = view(cuplug.asarray(np.array([1.0, 2, 3, 4]), device="cpu"))
    assert part.flags.writeable


def add_in_place(x):
    x += 1


WRITES = {
    "number": lambda x: x.__setitem__(0, 5.0),
    "slice": lambda x: x.__setitem__(slice(1, 3), 5.0),
    "array": lambda x: x.__setitem__(slice(None), x[::-1].copy()),
    "positions": lambda x: x.__setitem__(np.array([1, 0]), 5.0),
    "mask": lambda x: x.__setitem__(x > 2, 5.0),
    "in place": add_in_place,
    "fill": lambda x: x.fill(5.0),
    "sort": lambda x: x.sort(),
    "partition": lambda x: x.partition(2),
    "put": lambda x: x.put([0], [5.0]),
    "flat": lambda x: x.flat.__setitem__(0, 5.0),
    "byteswap": lambda x: x.byteswap(True),
    "real": lambda x: setattr(x, "real", 5.0),
    "out": lambda x: np.add(x, x, out=x),
    "sum": lambda x: x.reshape(1, 4).sum(0, out=x),
    "copyto": lambda x: np.copyto(x, 5.0),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_writes_raise(write):
    for x in (read_only([4.0, 1, 3, 2]), shared(read_only([4.0, 1, 3, 2]))):
        with pytest.raises(ValueError, match="read-only"):
            write(x)
        assert x.tolist() == [4, 1, 3, 2]


def test_messages_name_the_remedy():
    x = shared(read_only())
    message = r"got a read-only array, expected a writable one; use x\.copy\(\)$"
    for name, write in (
        ("assignment", WRITES["number"]),
        ("add", add_in_place),
        ("set", lambda x: x.set(np.zeros(4))),
        ("sort", WRITES["sort"]),
        ("partition", WRITES["partition"]),
        ("cuplug.Array: out", WRITES["sum"]),
    ):
        with pytest.raises(ValueError, match=f"^{name}: {message}"):
            write(x)


def test_operators_read_and_do_not_write():
    x = shared(read_only([-1.0, 2]))
    assert relu(x).tolist() == [0, 2]
    with pytest.raises(ValueError, match="scale: data: got a read-only array, expected a writable"):
        scale(x, 2)
    with pytest.raises(ValueError, match="relu: out: got a read-only array, expected a writable"):
        relu(np.zeros(2), out=x)
    with pytest.raises(ValueError, match="got a read-only array"):
        cuplug.random.Generator(1).random(2, out=x)
    assert x.tolist() == [-1, 2]


@pytest.mark.parametrize("dtype", ["float64", "bfloat16"])
def test_other_libraries_see_it(dtype):
    pytest.importorskip("ml_dtypes")
    theirs = read_only(dtype=cuplug.array_api.dtypes.to_dtype(dtype, "x"))
    x = shared(theirs)
    assert not np.asarray(x).flags.writeable
    assert np.asarray(x).ctypes.data == theirs.ctypes.data
    assert x.numpy().flags.writeable
    with pytest.raises(BufferError, match=r"got a read-only array, .* use x\.copy\(\) or max_vers"):
        x.__dlpack__()
    again = xp.from_dlpack(OnlyDLPack(x), device="cpu")
    assert again.data_ptr == x.data_ptr
    assert not again.flags.writeable
    if dtype == "float64":
        assert x.__array_interface__["data"] == (theirs.ctypes.data, True)
        assert memoryview(x).readonly
        assert not np.from_dlpack(x).flags.writeable


@pytest.mark.parametrize("make", [np.array, lambda x: cuplug.asarray(x, device="cpu")])
def test_pickled_memory_that_may_not_be_written(make):
    """As in Ray's object store. Data inside the pickle is writable."""
    x, buffers = make(np.array([1.0, 2.0])), []
    data = pickle.dumps(x, 5, buffer_callback=buffers.append)
    for place, writable in ((bytes(buffers[0]), False), (bytearray(buffers[0]), True)):
        y = pickle.loads(data, buffers=[place])
        assert np.shares_memory(np.asarray(y), np.frombuffer(place))
        assert y.flags.writeable == writable
        assert y.tolist() == [1, 2]
    for protocol in (4, 5):
        assert pickle.loads(pickle.dumps(x, protocol)).flags.writeable


@pytest.mark.parametrize("protocol", [4, 5])
def test_pickles_of_read_only_arrays(protocol):
    found = [
        pickle.loads(pickle.dumps(x, protocol)).flags.writeable
        for x in (read_only(), shared(read_only()))
    ]
    assert found[0] == found[1]


def test_arrays_of_a_gpu(run_streams):
    run_streams("""
    d = cuplug.asarray(np.arange(3.0))
    x = cuplug.asarray(Foreign(d, data=(d.data_ptr, True)))
    assert x.data_ptr == d.data_ptr and not x.flags.writeable
    assert x.__cuda_array_interface__["data"] == (d.data_ptr, True)
    for write in (lambda: x.__setitem__(0, 5.0), lambda: x.set(np.zeros(3))):
        with Raises(ValueError, "got a read-only array, expected a writable one; use x.copy()"):
            write()
    assert x.numpy().tolist() == [0, 1, 2]
    """)
