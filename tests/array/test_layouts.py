# SPDX-License-Identifier: Apache-2.0
"""Arrays of any layout: computing with them, writing to them, and converting them."""

import gc
import itertools
import math
import operator
import pickle
import re

import cuplug
import numpy as np
import pytest
from cuplug import array_api as xp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)


@pytest.fixture(params=DEVICES)
def device(request):
    return request.param


def pair(shape, device="cpu", dtype="float32"):
    x = (np.arange(math.prod(shape)).reshape(shape) % 7 + 1).astype(dtype)
    return x, cuplug.asarray(x.copy(), device=device)


def views(x):
    """Yield views with the dimensions in each order."""
    for turn in itertools.permutations(range(3)):
        yield x.transpose(turn) if isinstance(x, np.ndarray) else xp.permute_dims(x, turn)


def turned(x, ours):
    """Return pairs of equal views."""
    return list(zip(views(x), views(ours), strict=True))


@pytest.mark.parametrize("call", [
    lambda m, x, y: x + y,
    lambda m, x, y: 2 - x,
    lambda m, x, y: m.where(x < 4, x, y),
    lambda m, x, y: m.where(x < 4, x, 0.5),
    lambda m, x, y: m.clip(x, 2, 5),
    lambda m, x, y: m.sqrt(x[::-1, :, 1:]),
    lambda m, x, y: m.maximum(x[:, ::2], y[:, 1::2]),
    lambda m, x, y: x * y[0],
    lambda m, x, y: x + m.broadcast_to(y[:1], y.shape),
])  # fmt: skip
def test_functions_of_arrays_of_any_order(device, call):
    x, ours = pair((4, 4, 4), device)
    y, their = x * 2, ours * 2
    for (a, b), (c, d) in itertools.product(turned(x, ours), turned(y, their)):
        np.testing.assert_array_equal(call(xp, b, d).numpy(), call(np, a, c))


def test_results_lie_as_the_arrays_do():
    x, ours = pair((3, 5, 7))
    for a, b in turned(x, ours):
        assert (b + 1).strides == (a + np.float32(1)).strides
        assert xp.less(b, b * 2).strides == (a < a * 2).strides
        assert xp.astype(b, "float64").strides == a.astype("f8").strides
        assert (b + xp.asarray(b, copy=True)).shape == a.shape
        assert np.asarray(xp.asarray(b, copy=True)).flags.c_contiguous


def test_writing_to_arrays_of_any_order(device):
    x, ours = pair((4, 4, 4), device)
    for (a, b), (c, d) in itertools.product(turned(x, ours), repeat=2):
        source, values = c.copy() + 1, d + 1
        a += source
        b += values
        np.testing.assert_array_equal(ours.numpy(), x)
        a[:, 1:] = source[:, :-1]
        b[:, 1:] = values[:, :-1]
        np.testing.assert_array_equal(ours.numpy(), x)
        a[...] = c.copy()
        b[...] = d
        np.testing.assert_array_equal(ours.numpy(), x)


IN_PLACE = ["iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow", "iand", "ior", "ixor"]
IN_PLACE += ["ilshift", "irshift"]


@pytest.mark.parametrize("name", IN_PLACE)
def test_numpy_arrays_change_arrays_of_the_host(name):
    change = getattr(operator, name)
    for dtypes in itertools.product(("float32", "float64", "int16", "int64"), repeat=2):
        x, y = (np.arange(1, 7).reshape(2, 3).astype(dtype) for dtype in dtypes)
        for other in (y, y[1], y[:, ::-1], y.T.copy().T):
            expected, ours = x.copy(), xp.asarray(x.copy(), device="cpu")
            try:
                change(expected, other)
            except TypeError:
                with pytest.raises(TypeError):
                    change(ours, other)
                continue
            assert change(ours, other) is ours
            np.testing.assert_allclose(ours.numpy(), expected, rtol=1e-6)


def test_numpy_views_of_a_changed_array():
    ours = xp.arange(5, device="cpu")
    ours += ours.numpy()[::-1]
    np.testing.assert_array_equal(ours.numpy(), [4, 4, 4, 4, 4])
    with pytest.raises(ValueError, match=r"broadcast_to: shape: got"):
        ours += np.ones(4, int)
    with pytest.raises(TypeError, match="got ndarray, of elements of dtype object"):
        ours += np.array([None] * 5)


@pytest.mark.gpu
def test_numpy_arrays_change_no_array_on_a_gpu():
    ours = xp.ones(3, device="cuda")
    with pytest.raises(TypeError, match=r"add: y: got ndarray, expected a cuplug.Array"):
        ours += np.ones(3)


def test_writing_across_large_arrays(device):
    x, ours = pair((1100, 1100), device)
    y, their = x * 2, ours * 2
    x += y.T
    ours += their.T
    x.T[:] = x.T + y
    ours.T[:] = ours.T + their
    x.T[:] = y
    ours[:] += their.T
    x += x.T.copy()
    x[:] = y
    ours.T[:] = their
    np.testing.assert_array_equal(ours.numpy(), y.T)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_reshape(data):
    shape = data.draw(SHAPES)
    x = np.arange(math.prod(shape)).reshape(shape)
    turn = data.draw(st.permutations(range(len(shape))))
    a, b = x.transpose(turn), xp.permute_dims(cuplug.asarray(x, device="cpu"), turn)
    wanted = data.draw(st.lists(st.integers(-1, 6), max_size=4).map(tuple))
    if data.draw(st.booleans()) and x.size:
        wanted = tuple(data.draw(st.permutations(shape)))
    try:
        expected = a.reshape(wanted)
    except ValueError:
        with pytest.raises(ValueError, match="reshape: shape: got"):
            xp.reshape(b, wanted)
        return
    seen = xp.reshape(b, wanted)
    np.testing.assert_array_equal(seen.numpy(), expected)
    assert np.shares_memory(np.asarray(seen), x) == np.shares_memory(expected, x)


@settings(max_examples=100, deadline=None)
@given(SHAPES, st.lists(st.integers(-1, 4), max_size=5).map(tuple))
def test_broadcast_to(shape, wanted):
    x, ours = pair(shape)
    try:
        expected = np.broadcast_to(x, wanted)
    except ValueError:
        with pytest.raises(ValueError, match="broadcast_to: shape: got"):
            xp.broadcast_to(ours, wanted)
    else:
        np.testing.assert_array_equal(xp.broadcast_to(ours, wanted).numpy(), expected)


def test_products_of_sizes_do_not_wrap_around():
    x = xp.zeros(16, device="cpu")
    for shape in ((1 << 32, 1 << 32, 16), (1 << 62, 4, 16), (-1, 1 << 62, 8)):
        with pytest.raises(ValueError, match="expected 16 elements"):
            xp.reshape(x, shape)


@pytest.mark.parametrize("axis", [0, 1, -1, None])
def test_concat_of_layouts_and_dtypes(device, axis):
    x, ours = pair((3, 3), device)
    given = [(x, ours), (x.T, ours.T), (x[::-1], ours[::-1]), (x[:0] if axis == 0 else x, None)]
    given[3] = (given[3][0], ours[:0] if axis == 0 else ours)
    wide = [(a.astype("f8"), xp.astype(b, "float64")) for a, b in given]
    for parts in (given, given + wide, wide[:1]):
        theirs, own = zip(*parts, strict=True)
        seen = xp.concat(own, axis=axis)
        expected = np.concatenate(theirs, axis=axis)
        assert seen.dtype == expected.dtype
        np.testing.assert_array_equal(seen.numpy(), expected)


@pytest.mark.parametrize("name", ["zeros", "ones", "full"])
def test_filled(device, name):
    value = {"zeros": 0, "ones": 1, "full": 7}[name]
    given = (value,) if name == "full" else ()
    for dtype, shape in itertools.product(("bool", "int8", "float64", "complex64"), ((), 0, 3000)):
        cuplug.asarray(np.full(3000, 9.0), device=device)  # whose memory is used again
        x = getattr(xp, name)(shape, *given, dtype=dtype, device=device)
        np.testing.assert_array_equal(x.numpy(), np.full(shape, value, dtype))
        like = getattr(xp, f"{name}_like")(xp.asarray(x), *given)
        np.testing.assert_array_equal(like.numpy(), x.numpy())
    assert xp.full(3, 1 << 70, dtype="bool", device=device).numpy().all()


@pytest.mark.parametrize("call", [
    lambda m, x, n: m.repeat(x, n),
    lambda m, x, n: m.repeat(x, n, axis=-1),
    lambda m, x, n: m.tile(x, (n,)),
    lambda m, x, n: m.tile(x, (n, 1)),
])  # fmt: skip
def test_repeated_elements_have_memory_of_their_own(device, call):
    for shape, n in itertools.product(((1,), (1, 1), (2, 3), (3, 0)), (0, 1, 2, 5)):
        x, ours = pair(shape, device)
        seen, expected = call(xp, ours, n), call(np, x, n)
        np.testing.assert_array_equal(seen.numpy(), expected)
        if expected.size:
            seen[..., :1] = expected[..., :1] = 9
        np.testing.assert_array_equal(seen.numpy(), expected)
        np.testing.assert_array_equal(ours.numpy(), x)


def test_views_keep_memory():
    x = xp.arange(5000.0, device="cpu")
    for view in (x[10:], xp.reshape(x, (50, 100)), np.asarray(x), xp.flip(x)):
        expected = np.array(view)
        kept = np.asarray(view)
        del view
        gc.collect()
        xp.zeros(5000, device="cpu")
        np.testing.assert_array_equal(kept, expected)


def test_a_wrong_position_changes_nothing():
    x, ours = pair((6,))
    with pytest.raises(IndexError, match="index 6 at position 1 is out of bounds"):
        ours[cuplug.asarray([0, 6], device="cpu")] = 0
    np.testing.assert_array_equal(ours.numpy(), x)


@pytest.mark.parametrize("name", ["add", "abs", "sum", "concat", "where"])
def test_functions_are_found_by_their_names(name):
    function = getattr(xp, name)
    assert pickle.loads(pickle.dumps(function)) is function
    assert function.__name__ == name
    assert function.__doc__


VIEWS = [
    lambda x: x.T,
    lambda x: x[::2, 1:],
    lambda x: x[:, ::-1],
    lambda x: x[::-3, ::2],
    lambda x: x[:, :1],
    lambda x: x[:, 1:3].T,
]


@pytest.mark.parametrize("dtype", ["bool", "int16", "float32", "float64", "complex128"])
@pytest.mark.parametrize("columns", [3, 16, 17, 300])
@pytest.mark.parametrize("n", [0, 1, 40, 4000])
def test_strided_arrays_of_all_sizes_are_copied_and_written(dtype, columns, n):
    a = np.arange(n * columns).reshape(n, columns).astype(dtype)
    for view in VIEWS:
        seen = xp.asarray(view(xp.asarray(a)), copy=True)
        np.testing.assert_array_equal(seen.numpy(), view(a))
        changed, expected = xp.zeros(a.shape, dtype=dtype), np.zeros(a.shape, dtype)
        view(changed)[...] = seen
        view(expected)[...] = view(a)
        np.testing.assert_array_equal(changed.numpy(), expected)


@pytest.mark.parametrize("n", [5, 3000, 3_000_000])
def test_an_array_is_written_to_itself_in_another_order(n):
    a = np.arange(n, dtype="float32")
    for to, source in [((), slice(None, None, -1)), (slice(1, None), slice(None, -1))]:
        x = xp.asarray(a, copy=True)
        x[to or ...] = x[source]
        expected = a.copy()
        expected[to or ...] = expected[source].copy()
        np.testing.assert_array_equal(x.numpy(), expected)


@pytest.mark.sample(6)
@pytest.mark.parametrize("view", [lambda x: x, *VIEWS[:4], lambda x: x[1]])
@pytest.mark.parametrize("name", ["sum", "max", "min", "mean", "prod", "any", "argmax", "argmin"])
def test_reductions_of_all_elements_go_in_c_order(device, name, view):
    x, ours = pair((5, 6), device)
    expected = getattr(np, name)(view(x))
    for arguments in ({}, {"axis": None}):
        seen = getattr(xp, name)(view(ours), **arguments)
        assert (seen.shape, seen.dtype) == ((), expected.dtype)
        np.testing.assert_allclose(seen.numpy(), expected, rtol=1e-6)


@pytest.mark.parametrize("name", ["sum", "max", "mean", "any", "argmax"])
@pytest.mark.parametrize("x", [3, 1.5, np.ones(2)], ids=str)
def test_reductions_refuse_what_is_no_array(name, x):
    with pytest.raises(TypeError, match=f"{name}: x: got .*, expected a cuplug.Array"):
        getattr(xp, name)(x)


@pytest.mark.parametrize("dtype", ["int8", "float64"])
@pytest.mark.parametrize("shapes", [((4, 1), (1, 5), 0), ((1, 6), (3, 2), 1), ((2, 3), (2, 2), -1)])
def test_elements_along_an_axis_are_broadcast_together(device, shapes, dtype):
    shape, wanted, axis = shapes
    x, ours = pair(shape, device, dtype)
    indices = (np.arange(math.prod(wanted)) % shape[axis]).reshape(wanted).astype("uint8")
    expected = np.take_along_axis(x, indices.astype("int64"), axis)
    seen = xp.take_along_axis(ours, xp.asarray(indices, device=device), axis=axis)
    np.testing.assert_array_equal(seen.numpy(), expected)


def test_tiles_have_their_limits(device):
    _, ours = pair((2,), device)
    for times, sentence in [
        ((1 << 61, 1), "tile: got 1.84e+19 bytes, expected less than 2^63"),
        ((1 << 63,), "tile: repetitions: got"),
        ((-1,), "tile: repetitions: got"),
        ((1,) * 33, "got 66 dimensions, expected at most 64"),
    ]:
        with pytest.raises(ValueError, match=re.escape(sentence)):
            xp.tile(ours, times)


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "float64", "complex128"])
def test_copies_of_elements_in_the_other_order(device, dtype):
    for n in (1, 2, 7, 8, 9, 31, 1000, 70001):
        x = (np.arange(n) % 101).astype(dtype)
        ours = cuplug.asarray(x, device=device)
        np.testing.assert_array_equal(xp.asarray(ours[::-1], copy=True).numpy(), x[::-1])
        np.testing.assert_array_equal(xp.asarray(ours[1:][::-1], copy=True).numpy(), x[1:][::-1])


@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "float32", "float64", "complex128"])
def test_copies_of_transposed_arrays(device, dtype):
    for shape in ((1, 1), (8, 8), (7, 9), (16, 64), (100, 10), (33, 31), (2, 3, 40), (300, 1023)):
        x, ours = pair(shape, device, dtype)
        for a, b in ((x, ours), (x[::-1], ours[::-1]), (x[..., ::-1], ours[..., ::-1])):
            copy = xp.asarray(xp.permute_dims(b, range(b.ndim)[::-1]), copy=True)
            np.testing.assert_array_equal(copy.numpy(), a.T)
        np.testing.assert_array_equal(ours.numpy(), x)
