# SPDX-License-Identifier: Apache-2.0
"""Views of bytes, `flat`, `flags`, `order=` and `kind=`, as in NumPy."""

import cuplug
import numpy as np
import pytest


def test_views_of_bytes():
    theirs = np.arange(12, dtype="float64").reshape(3, 4)
    x = cuplug.asarray(theirs.copy(), device="cpu")
    for dtype in ("int64", "uint8", "complex128", "float32"):
        seen = x.view(dtype)
        assert seen.data_ptr == x.data_ptr
        np.testing.assert_array_equal(seen.numpy(), theirs.view(dtype))
    np.testing.assert_array_equal(x[::2].view("int32").numpy(), theirs[::2].view("int32"))
    np.testing.assert_array_equal(x[::2, 1].view("int64").numpy(), theirs[::2, 1].view("int64"))
    assert x.view().data_ptr == x.data_ptr
    x.view()[0, 0] = 9
    assert float(x[0, 0]) == 9
    bytes_ = cuplug.asarray(np.zeros(24, "uint8"), device="cpu")
    for call in (
        lambda: x.T.view("float32"),
        lambda: x[:, :3].view("complex128"),
        lambda: bytes_[1:9].view("int64"),
        lambda: x[0, 0].view("int8"),
    ):
        with pytest.raises(ValueError, match="view: got .*, expected"):
            call()


def test_flat_elements_and_flags():
    theirs = np.arange(6.0).reshape(2, 3)
    for turned in (False, True):
        x, wanted = cuplug.asarray(theirs.copy(), device="cpu"), theirs.copy()
        x, wanted = (x.T, wanted.T) if turned else (x, wanted)
        assert len(x.flat) == 6
        assert [float(each) for each in x.flat] == list(wanted.flat)
        np.testing.assert_array_equal(x.flat[1:4].numpy(), wanted.flat[1:4])
        for each in (x, wanted):
            each.flat[2] = -1
            each.flat[3:5] = [7, 8]
        np.testing.assert_array_equal(x.numpy(), wanted)
        x.flat, wanted.flat = [1.0, 2], [1.0, 2]
        np.testing.assert_array_equal(x.numpy(), wanted)
        for name in ("C_CONTIGUOUS", "F_CONTIGUOUS", "WRITEABLE", "ALIGNED", "FORC", "FNC", "C"):
            assert x.flags[name] == wanted.flags[name]
        assert x.flags.c_contiguous == wanted.flags.c_contiguous
        with pytest.raises(KeyError):
            x.flags["nothing"]


@pytest.mark.parametrize("order", ["C", "F", "A", "K"])
def test_orders(order):
    theirs = np.arange(12.0).reshape(3, 4)
    ours = cuplug.asarray(theirs, device="cpu")
    for x, wanted in ((ours, theirs), (ours.T, theirs.T)):
        other = "A" if order == "K" else order  # reshape has no "K"
        for seen, expected in (
            (x.reshape(2, 6, order=other), wanted.reshape(2, 6, order=other)),
            (x.reshape((2, -1), order=other), wanted.reshape((2, -1), order=other)),
            (x.ravel(order), wanted.ravel(order)),
            (x.flatten(order), wanted.flatten(order)),
            (x.copy(order), wanted.copy(order)),
        ):
            np.testing.assert_array_equal(seen.numpy(), expected)
        assert x.copy(order).strides == wanted.copy(order).strides
    with pytest.raises(ValueError, match="order: got 'Z'"):
        ours.ravel("Z")


def test_methods_of_sorted_and_partial_order():
    theirs = np.array([[3, 1, 2], [9, 7, 8]])
    x = cuplug.asarray(theirs.copy(), device="cpu")
    for kind in (None, "quicksort", "stable"):
        np.testing.assert_array_equal(x.argsort(kind=kind).numpy(), theirs.argsort(kind=kind))
    np.testing.assert_array_equal(x.argsort(None).numpy(), theirs.argsort(None))
    with pytest.raises(ValueError, match="kind: got 'best'"):
        x.sort(kind="best")
    x.partition(1)
    np.testing.assert_array_equal(x.numpy(), np.sort(theirs))
    line = cuplug.asarray([1, 4, 9], device="cpu")
    np.testing.assert_array_equal(line.searchsorted([0, 4, 10], "right").numpy(), [0, 2, 3])
    np.testing.assert_array_equal(x.compress([False, True], axis=0).numpy(), [[7, 8, 9]])
    assert (int(x.ptp()), int(x.trace()), x.diagonal(1).tolist()) == (8, 9, [2, 9])
    for each in (x, theirs):
        each.put([0, -1, 4], [50, 60])
    np.testing.assert_array_equal(x.ravel()[[0, -1, 4]].numpy(), theirs.ravel()[[0, -1, 4]])


def test_conversions_that_a_rule_forbids():
    x = cuplug.asarray([1.5], device="cpu")
    assert x.astype("float32", casting="same_kind").dtype == np.float32
    with pytest.raises(TypeError, match="expected a conversion that is 'safe'"):
        x.astype("float32", casting="safe")


def test_orders_of_bytes_and_converted_elements():
    x = np.arange(24).reshape(2, 3, 4)
    for given in (x, x.transpose(2, 0, 1), x.T):
        own = cuplug.asarray(given, device="cpu")
        for order in ("C", "F", "A"):
            assert own.tobytes(order) == given.tobytes(order)
            found, wanted = own.astype("int8", order=order), given.astype("int8", order=order)
            np.testing.assert_array_equal(found.numpy(), wanted)
            assert found.dtype == wanted.dtype
            assert found.flags.c_contiguous == wanted.flags.c_contiguous
            assert found.flags.f_contiguous == wanted.flags.f_contiguous
    with pytest.raises(ValueError, match="astype: order: got 'Z'"):
        own.astype("int8", order="Z")
    with pytest.raises(ValueError, match="order: got 'Z'"):
        own.tobytes("Z")
