# SPDX-License-Identifier: Apache-2.0
"""Signatures in calls: arithmetic, ranges, lists, None, named outputs, the first overload."""

import pickle

import cuplug
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from places import FIXTURES


@pytest.fixture(scope="module")
def ops(build_plugin):
    return cuplug.load(build_plugin(FIXTURES / "language.c", "language"))


X = np.arange(5, dtype=np.float32)


def test_sizes_from_parameters_and_named_outputs(ops):
    result = ops.head(X, 2)
    assert type(result).__name__ == "head"
    assert result._fields == ("values", "indices")
    np.testing.assert_array_equal(result.values, [0, 1])
    np.testing.assert_array_equal(result.indices, [0, 1])
    again = pickle.loads(pickle.dumps(result))
    assert type(again) is type(result)
    np.testing.assert_array_equal(again.values, result.values)
    assert ops.head(X, 0).values.shape == (0,)


@pytest.mark.parametrize("k", [-1, 6, 2**40])
def test_ranges(ops, k):
    with pytest.raises(ValueError, match=f"^head: got k = {k}, n = 5, expected 0 <= k <= n$"):
        ops.head(X, k)


def test_a_range_is_checked_in_every_call(ops):
    for k in (2, 9, 3):  # arrays are similar, so the match of the first is used again
        if k > 5:
            with pytest.raises(ValueError, match="got k = 9"):
                ops.head(X, k)
        else:
            assert ops.head(X, k).values.shape == (k,)


@pytest.mark.parametrize(("p", "k"), [(0.5, 3), (1.25, 255), (1, 0)])
def test_ranges_of_floats_hold(ops, p, k):
    assert ops.within(p, k) == 1


@pytest.mark.parametrize(
    ("p", "k", "seen"),
    [
        (0.0, 3, "p = 0, expected 0 < p < 1.5"),
        (1.5, 3, "p = 1.5, expected 0 < p < 1.5"),
        (float("nan"), 3, "p = nan, expected 0 < p < 1.5"),
        (float("inf"), 3, "p = inf, expected 0 < p < 1.5"),
        (1.0, 4, "k = 4, expected k != 4"),
    ],
)
def test_ranges_of_floats_are_checked(ops, p, k, seen):
    with pytest.raises(ValueError, match=f"^within: got {seen}$"):
        ops.within(p, k)


def test_lists_of_arrays(ops):
    a, b = np.arange(6.0).reshape(2, 3), np.ones((2, 3))
    np.testing.assert_array_equal(ops.stack([a, b]), np.stack([a, b]))
    np.testing.assert_array_equal(ops.stack((a, b), [2, 0.5]), np.stack([2 * a, 0.5 * b]))
    np.testing.assert_array_equal(ops.stack([a], 2), np.stack([2 * a]))
    np.testing.assert_array_equal(ops.stack(xs=[a.T, b.T]), np.stack([a.T, b.T]))
    strided = [np.arange(12.0)[::2], np.arange(12.0)[1::2]]
    np.testing.assert_array_equal(ops.stack(strided), np.stack(strided))
    np.testing.assert_array_equal(ops.stack([np.zeros(0)] * 3), np.zeros((3, 0)))
    for n in (63, 64, 10**5):
        np.testing.assert_array_equal(ops.stack([a[0]] * n, [2.0] * n), np.stack([2 * a[0]] * n))


@pytest.mark.parametrize(
    ("call", "exception", "message"),
    [
        (lambda f: f([]), ValueError, "xs: got an empty list, expected at least one array, which "),
        (lambda f: f([np.ones(2), np.ones(3)]), ValueError, "xs: item 1: dimensions *s: got (3,)"),
        (
            lambda f: f([np.ones(2), 3]),
            TypeError,
            "xs: item 1: got the integer 3, expected float64",
        ),
        (lambda f: f([np.ones(2), None]), TypeError, "xs: item 1: got None, expected float64[*s]"),
        (lambda f: f([[1.0]]), TypeError, "xs: item 0: got a list in a list, expected float64[*s]"),
        (lambda f: f([X]), TypeError, "xs: item 0: got float32[5], expected float64[*s]"),
        (lambda f: f(np.ones(2)), TypeError, "xs: got float64[2], expected a list of float64[*s]"),
        (lambda f: f([np.ones(2)], ["a"]), TypeError, 'weights: item 0: got the string "a", expe'),
        (lambda f: f([np.ones(2)], "a"), TypeError, 'weights: got the string "a", expected a list'),
    ],
)
def test_lists_that_do_not_fit(ops, call, exception, message):
    with pytest.raises(exception) as raised:
        call(ops.stack)
    assert str(raised.value).startswith(f"stack: {message}")


def test_a_list_that_holds_itself_is_refused(ops):
    x = [np.ones(2)]
    x.append(x)
    with pytest.raises(TypeError, match="xs: item 1: got a list in a list"):
        ops.stack(x)


def test_a_list_that_changes_while_it_is_read(ops):
    class Array:
        def __init__(self, array):
            self.array = array

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

        def __dlpack__(self, **options):
            x.clear()
            return self.array.__dlpack__()

    x = [Array(np.arange(4.0)[::2]), np.arange(2.0)]
    np.testing.assert_array_equal(ops.stack(x), [[0, 2], [0, 1]])


def test_sizes_from_a_list(ops):
    np.testing.assert_array_equal(ops.full((2, 3)), np.full((2, 3), 1.5))
    np.testing.assert_array_equal(ops.full([np.int8(2)], value=7), [7, 7])
    assert ops.full([0, 9]).shape == (0, 9)
    assert ops.full(3).shape == (3,)  # a number means a list of one
    with pytest.raises(ValueError, match=r"^full: got shape = \[\], expected len\(shape\) > 0$"):
        ops.full([])
    with pytest.raises(
        ValueError, match=r"size \*shape: got -3, expected 0 or more \(shape = \[2, -3"
    ):
        ops.full([2, -3])
    with pytest.raises(ValueError, match="the output would have more than 64 dimensions"):
        ops.full([1] * 65)
    with pytest.raises(ValueError, match="the output's shape .* needs 2\\^63 bytes or more"):
        ops.full([2**62, 2])


def test_scalars_that_may_be_none(ops):
    assert ops.absent().tolist() == [7, 0, 0, 0]
    assert ops.absent(None, None, None).tolist() == [7, 0, 0, 0]
    assert ops.absent(5, mode="b").tolist() == [2, 5, 0, 1]
    assert ops.absent(0, "abc", "a").tolist() == [0, 0, 3, 0]
    with pytest.raises(ValueError, match="^absent: got k = -1, expected 0 <= k$"):
        ops.absent(-1)
    with pytest.raises(TypeError, match="^head: k: got None, expected a scalar of dtype int64$"):
        ops.head(X, None)


@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=4),
    st.lists(st.integers(0, 3), max_size=2),
    st.integers(-5, 4),
)
def test_slices_of_groups(ops, shape, index, axis):
    x, i = np.zeros(shape), np.zeros(index, np.int64)
    if -len(shape) <= axis < len(shape):
        at = axis % len(shape)
        assert ops.take(x, i, axis).shape == (*shape[:at], *index, *shape[at + 1 :])
    else:
        with pytest.raises(ValueError, match=f"axis = {axis}, expected -len"):
            ops.take(x, i, axis)


def test_sizes_that_are_worked_out(ops):
    assert ops.diff(np.zeros((4, 3))).shape == (4, 2)
    with pytest.raises(ValueError, match=r"size n - 1: got -1, expected 0 or more \(n = 0\)"):
        ops.diff(np.zeros((4, 0)))
    with pytest.raises(ValueError, match=r"y: size n \+ 2: got 5, expected 7 \(n = 5\)"):
        ops.formula(X, X, X)


@given(
    st.integers(0, 6),
    st.lists(st.integers(0, 3), min_size=1, max_size=3),
    st.integers(-(2**63), 2**63 - 1) | st.integers(-9, 9),
    st.integers(-(2**63), 2**63 - 1) | st.integers(-9, 9),
)
@example(4, [0], 2**61, 0)
@example(0, [1], 1, 0)
def test_arithmetic_is_that_of_python_in_64_bits(ops, n, g, a, b):
    x, y, z = np.zeros(n, np.int8), np.zeros(n + 2, np.int8), np.zeros(g, np.int8)
    product = max(a, 0) * n
    if product >= 2**63:
        wanted = "its value exceeds 64 bits"
    elif b == 0:
        wanted = "it divides by zero"
    else:
        size = product // b % 100 + min(n, 3) + int(np.prod(g))
        assert ops.formula(x, y, z, a, b).shape == (size, len(g), g[-1])
        return
    with pytest.raises(ValueError, match=wanted):
        ops.formula(x, y, z, a, b)


def test_the_first_row_that_fits_is_taken_always(ops):
    assert [int(ops.either(X, a)) for a in (2, 2.5, 2, True, 2**70, 3)] == [1, 2, 1, 1, 2, 1]
    matrix = X.reshape(1, 5)
    assert [int(ops.rank(x)) for x in (X, matrix, X, matrix, X)] == [1, 2, 1, 2, 1]


def test_parsed_signatures_say_what_is_worked_out(ops):
    from cuplug._engine.signature.signature import parse

    parsed = parse(ops.take.signatures[0])
    assert parsed.conditions == ("-len(s) <= axis < len(s)",)
    assert parsed.shape(parsed.outputs[0]) == "*s[:axis % len(s)], *n, *s[axis % len(s) + 1:]"
    assert [x.kind for x in parse(ops.stack.signatures[0]).parameters] == ["arrays", "list"]
