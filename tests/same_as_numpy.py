# SPDX-License-Identifier: Apache-2.0
"""Functions of `cuplug.array_api` compared with the NumPy functions of the same names."""

import warnings

import cuplug
import numpy as np
from cuplug import array_api as xp


def ours(x):
    return cuplug.asarray(np.array(x), device="cpu")


def compare(seen, wanted, tolerance=1e-12):
    if isinstance(wanted, (tuple, list)):
        assert len(seen) == len(wanted)
        for a, b in zip(seen, wanted, strict=True):
            compare(a, b, tolerance)
        return
    assert type(seen) is cuplug.Array
    assert seen.shape == np.shape(wanted)
    assert seen.dtype == np.asarray(wanted).dtype
    np.testing.assert_allclose(seen.numpy(), wanted, rtol=tolerance, atol=tolerance * 1e3)


def check(name, *args, tolerance=1e-12, **keywords):
    """Compare a function with NumPy's of the same name, also called with cuplug arrays."""
    mine = [ours(x) if isinstance(x, np.ndarray) else x for x in args]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        wanted = getattr(np, name)(*args, **keywords)
    compare(getattr(xp, name)(*mine, **keywords), wanted, tolerance)
    compare(getattr(np, name)(*mine, **keywords), wanted, tolerance)
