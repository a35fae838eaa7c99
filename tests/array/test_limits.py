# SPDX-License-Identifier: Apache-2.0
"""Numbers at the ends of their ranges, and impossible sizes."""

import cuplug
import numpy as np
import pytest
from cuplug import array_api as xp
from hypothesis import given
from hypothesis import strategies as st

ONE = cuplug.asarray(np.ones(1), copy=True, device="cpu")
INTEGERS = ["int8", "uint16", "int64", "uint64"]


@pytest.mark.parametrize(
    "shape", [(2**62, 8), (2**32, 2**32), (2**63,), (0, 2**62, 2**62)], ids=str
)
def test_shapes_of_too_many_bytes(shape):
    """Their number of elements would overflow to a valid one, modulo 2**64."""
    with pytest.raises(ValueError, match="got .*, expected less than 2.63 bytes"):
        xp.broadcast_to(ONE, shape)
    with pytest.raises(ValueError, match="shape: got .*2.63"):
        cuplug.empty(shape, device="cpu")


def test_views_of_views_without_end():
    """All views keep the memory, not each other, which would free them recursively."""
    x = ONE
    for _ in range(500_000):
        x = x[:]
    assert float(x[0]) == 1.0
    for _ in range(100_000):  # through NumPy, which keeps the original object
        x = cuplug.asarray(np.asarray(x), device="cpu")
    assert float(x[0]) == 1.0


@pytest.mark.parametrize("times", [2**62, 2**64 - 1, [2**62, 2**62, 0], [2**63, 0, 2**63]], ids=str)
def test_repeats_whose_sum_is_too_large(times):
    x = cuplug.asarray(np.arange(3), device="cpu")
    times = cuplug.asarray(np.array(times, np.uint64), device="cpu")
    with pytest.raises(ValueError, match="repeat: repeats: got .*, expected a sum below"):
        xp.repeat(x, times)


def test_repeats_of_nothing_must_fit():
    x = cuplug.asarray(np.zeros((0, 2)), device="cpu")
    assert xp.repeat(x, 3, axis=0).shape == (0, 2)
    with pytest.raises(ValueError, match="expected one that .* fits"):
        xp.repeat(x, cuplug.asarray(np.array([1, 2]), device="cpu"), axis=0)


def of(dtype: str) -> st.SearchStrategy[int]:
    """Return numbers of a dtype, most of them at its ends."""
    limits = np.iinfo(dtype)
    low, high = int(limits.min), int(limits.max)
    return st.one_of(st.sampled_from([low, low + 1, 0, 1, high - 1, high]), st.integers(low, high))


@given(st.data(), st.sampled_from(INTEGERS), st.sampled_from(INTEGERS))
def test_clip_by_bounds_of_any_integers(data, own, theirs):
    numbers, bound = data.draw(st.lists(of(own), min_size=1, max_size=4)), data.draw(of(theirs))
    x = cuplug.asarray(np.array(numbers, own), device="cpu")
    y = cuplug.asarray(np.array(bound, theirs), device="cpu")
    limits = np.iinfo(own)
    held = max(int(limits.min), min(bound, int(limits.max)))
    assert xp.clip(x, y).numpy().tolist() == [max(k, held) for k in numbers]
    assert xp.clip(x, None, y).numpy().tolist() == [min(k, held) for k in numbers]


@given(st.integers(-100, 100), st.integers(-100, 100), st.integers(0, 9), st.booleans())
def test_linspace_of_integers_rounds_down(start, stop, n, endpoint):
    got = xp.linspace(start, stop, n, dtype="int64", endpoint=endpoint, device="cpu")
    floats = xp.linspace(start, stop, n, endpoint=endpoint, device="cpu")
    assert got.numpy().tolist() == np.floor(floats.numpy()).tolist()


def test_full_of_an_array_without_dimensions():
    x = xp.full((2,), np.float32(3), device="cpu")
    assert xp.full((2,), x[0], device="cpu").dtype == np.float32
    with pytest.raises(TypeError, match="full: fill_value: got str, expected a number"):
        xp.full((2,), "a", device="cpu")


def test_no_number_of_degrees_of_freedom():
    with pytest.raises(ValueError, match="var: correction: got nan"):
        xp.var(ONE, correction=float("nan"))


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@np.errstate(all="ignore")
def test_the_next_numbers(dtype, device):
    limits, random = np.finfo(dtype), np.random.default_rng(4)
    ends = [0, limits.smallest_subnormal, limits.tiny, 1, 1.5, limits.max, np.inf, np.nan]
    x, y = (
        each.ravel() for each in np.meshgrid(*[np.array([*ends, *(-z for z in ends)], dtype)] * 2)
    )
    bits = random.integers(0, 2 ** (limits.bits - 1), (2, 5000), f"u{limits.bits // 8}") * 2 + 1
    x, y = np.concatenate([x, bits[0].view(dtype)]), np.concatenate([y, bits[1].view(dtype)])
    found = xp.nextafter(*(cuplug.asarray(each, device=device) for each in (x, y))).numpy()
    wanted = np.nextafter(x, y)
    np.testing.assert_array_equal(found, wanted)
    is_number = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(found)[is_number], np.signbit(wanted)[is_number])


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_choices_between_bools(device):
    parts = [np.array(each).ravel() for each in np.meshgrid(*[[False, True]] * 3)]
    arrays = [cuplug.asarray(np.tile(each, 20), device=device) for each in parts]
    wanted = np.where(*(each.numpy() for each in arrays))
    np.testing.assert_array_equal(xp.where(*arrays).numpy(), wanted)
    fused = cuplug.fuse(lambda c, x, y: xp.where(c, x, y))
    np.testing.assert_array_equal(fused(*arrays).numpy(), wanted)
