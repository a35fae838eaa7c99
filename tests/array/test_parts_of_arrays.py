# SPDX-License-Identifier: Apache-2.0
"""Reductions of the elements that a mask selects, from an initial value, as in NumPy."""

import cuplug
import numpy as np
import pytest
from same_as_numpy import compare, ours

CUBE = np.arange(24.0).reshape(2, 3, 4) - 7
MASKS = [CUBE % 3 == 0, np.array([True, False, True, False]), np.zeros((2, 1, 1), bool)]
DTYPES = ["float64", "float32", "float16", "int16", "uint8", "complex64", "bool"]


def both(name, x, **known):
    """Compare a method with NumPy's, and NumPy's function of cuplug arrays."""
    with np.errstate(all="ignore"):
        wanted = getattr(x, name)(**known)
    given = {key: ours(y) if isinstance(y, np.ndarray) else y for key, y in known.items()}
    for found in (
        getattr(ours(x), name)(**given),
        getattr(np, name)(ours(x), **given),
        getattr(np, name)(ours(x), **known),
    ):
        assert type(found) is cuplug.Array
        assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
        rtol = {"float16": 2e-3, "float32": 1e-6, "complex64": 1e-6}.get(x.dtype.name, 1e-14)
        np.testing.assert_allclose(found.numpy(), wanted, rtol=rtol)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mask", MASKS, ids=["mixed", "broadcast", "none"])
def test_elements_that_a_mask_selects(dtype, mask):
    x = CUBE.astype(dtype)
    for axis, keepdims in ((None, False), (1, False), ((0, 2), True), (-1, True)):
        known = {"axis": axis, "keepdims": keepdims, "where": mask}
        for name in ("sum", "prod", "any", "all", "mean", "var", "std"):
            both(name, x, **known)
        both("var", x, **known, ddof=1)
        for name in ("max", "min") if x.dtype.kind not in "cb" else ():
            both(name, x, **known, initial=3)


def test_values_outside_a_mask_do_not_matter():
    x = np.array([np.nan, 1.0, np.inf, 3.0])
    mask = np.isfinite(x)
    for name in ("sum", "prod", "mean", "var", "std"):
        both(name, x, where=mask)
    both("mean", np.array([1.0, np.nan]), where=np.array([True, True]))


def test_initial_values():
    for name in ("sum", "prod", "max", "min"):
        for initial in (-100, 2, 100):
            both(name, CUBE, initial=initial)
            both(name, CUBE[:0], initial=initial, axis=0)
            both(name, CUBE[:, :0], initial=initial, keepdims=True)
        compare(getattr(ours(CUBE), name)(0, initial=9), getattr(CUBE, name)(0, initial=9))
    compare(
        np.add.reduce(ours(CUBE), initial=5, where=ours(CUBE > 0)),
        np.add.reduce(CUBE, initial=5, where=CUBE > 0),
    )
    out = cuplug.empty((2, 4), "float64", "cpu")
    assert ours(CUBE).sum(1, out=out, where=ours(CUBE > 0)) is out
    compare(out, CUBE.sum(1, where=CUBE > 0))


def test_bad_masks():
    x = ours(CUBE)
    for call, text in (
        (lambda: x.sum(where=ours(CUBE)), "sum: where: got float64, expected bool"),
        (lambda: x.mean(where=1), "mean: where: got int64, expected bool"),
        (lambda: x.max(where=x > 0), "max: initial: got None, expected a number"),
        (lambda: x.sum(where=ours(np.ones(5, bool))), "5"),
    ):
        with pytest.raises((TypeError, ValueError), match=text):
            call()


def test_means_of_narrow_floats_do_not_overflow():
    x = np.full(100, 60000, "float16")
    assert float(ours(x).mean(where=ours(x > 0))) == 60000
    assert float(np.nanmean(ours(x))) == 60000
    assert float(np.nanvar(ours(x))) == 0


@pytest.mark.gpu
def test_masks_on_the_gpu():
    x, mask = (cuplug.asarray(y, device="cuda") for y in (CUBE, CUBE % 3 == 0))
    for name in ("sum", "prod", "mean", "var", "std"):
        wanted = getattr(CUBE, name)(axis=1, where=CUBE % 3 == 0)
        compare(getattr(np, name)(x, axis=1, where=mask), wanted)
