# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: F811
"""Example plugins whose calls pass dtypes, or host arrays."""

import ml_dtypes
import numpy as np
import pytest
from test_example_plugins import check, draw, get_operator, on_sides  # noqa: F401


@on_sides
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sizes", [[3, 0, 5], [8], [0, 0], []])
def test_grouped_matmul(get_operator, side, dtype, sizes):
    operator, random = get_operator("grouped_matmul"), np.random.default_rng(0)
    x = random.integers(-9, 9, (sum(sizes), 6)).astype(dtype)
    w = random.integers(-9, 9, (len(sizes), 6, 5)).astype(dtype)
    parts = np.split(x, np.cumsum(sizes)[:-1]) if sizes else []
    wanted = [part @ own for part, own in zip(parts, w, strict=True)]
    wanted = np.concatenate(wanted) if wanted else np.zeros((0, 5), dtype)
    given = np.array(sizes, np.int64)
    np.testing.assert_array_equal(operator(x, w, given, device=side), wanted, strict=True)
    for wrong in (given + 1, -given - 1) if sizes else ():
        with pytest.raises(ValueError, match="grouped_matmul: sizes: got another sum, expected m"):
            operator(x, w, wrong, device=side)


@on_sides
@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
@pytest.mark.parametrize("to", [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2])
@pytest.mark.parametrize(("m", "n"), [(3, 5), (2, 1000), (0, 8), (4, 0)])
def test_quantize(get_operator, side, dtype, to, m, n):
    operator, x = get_operator("quantize"), draw((m, n), dtype)
    x[: m // 2] = 0
    wide = x.astype(np.float32)
    greatest = np.abs(wide).max(1, initial=0)
    scale = np.where(greatest > 0, greatest / np.float32(ml_dtypes.finfo(to).max), np.float32(1))
    y, found = operator(x, to, device=side)
    np.testing.assert_allclose(found, scale, rtol=1e-6)
    assert (found.shape, found.dtype) == (scale.shape, scale.dtype)
    np.testing.assert_array_equal(y, (wide / found[:, None]).astype(to), strict=True)
    assert operator(x, device=side).y.dtype == ml_dtypes.float8_e4m3fn
