# SPDX-License-Identifier: Apache-2.0
"""The operator and the module in Cython, compared with NumPy."""

import blending
import cuplug
import numpy as np
import pytest

RNG = np.random.default_rng(1)
X, Y = RNG.random((2, 3, 1000), "float32")
WEIGHTS = np.float32([0, 0.25, 1])


def test_blend():
    np.testing.assert_allclose(blending.blend(X, Y, 0.25), X + 0.25 * (Y - X), 1e-6)


def test_each_row_has_its_weight():
    out = np.empty_like(X)
    blending.blend_rows(X, Y, WEIGHTS, out)
    np.testing.assert_allclose(out, X + WEIGHTS[:, None] * (Y - X), 1e-6)


def test_shapes_must_match():
    with pytest.raises(ValueError, match="y"):
        blending.blend(X, Y[:2], 0.5)


@pytest.mark.skipif(not cuplug.is_available(), reason="needs a GPU")
def test_blend_on_a_gpu():
    np.testing.assert_allclose(blending.blend(X, Y, 0.5, device="cuda"), (X + Y) / 2, 1e-6)
