# SPDX-License-Identifier: Apache-2.0
"""Padded arrays: all modes of NumPy, with their options."""

import numpy as np
import pytest
from cuplug import array_api as xp
from same_as_numpy import check, compare, ours

X = np.array([[3, 1, 4, 1], [5, 9, 2, 6], [5, 3, 5, 8]])
CASES = [
    *[(mode, {}) for mode in ("constant", "edge", "reflect", "symmetric", "wrap", "linear_ramp")],
    *[(mode, {"reflect_type": "odd"}) for mode in ("reflect", "symmetric")],
    ("linear_ramp", {"end_values": ((-5, 7), (2, 30))}),
    *[(mode, {}) for mode in ("maximum", "mean", "median", "minimum")],
    *[(mode, {"stat_length": ((1, 3), (2, 5))}) for mode in ("maximum", "mean", "median")],
]


@pytest.mark.parametrize(("mode", "options"), CASES, ids=str)
@pytest.mark.parametrize("dtype", ["int64", "uint8", "float32", "float64"])
def test_modes(mode, options, dtype):
    for x in (X.astype(dtype), X.astype(dtype)[0], X.astype(dtype).T[:, :1]):
        given = {k: v if x.ndim > 1 else 2 for k, v in options.items() if k != "reflect_type"}
        given |= {k: v for k, v in options.items() if k == "reflect_type"}
        if "end_values" in given and dtype == "uint8":
            given = {"end_values": 3}
        for width in (1, (0, 9), (7, 2)):
            check("pad", x, width, mode=mode, tolerance=1e-6, **given)


def test_a_function_fills_each_line():
    def fill(line, widths, axis, options):
        line[: widths[0]] = options["value"] + axis
        line[len(line) - widths[1] :] = -1

    check("pad", X, ((1, 2), (2, 1)), mode=fill, value=10)


def test_undefined_values_are_around_the_elements():
    compare(xp.pad(ours(X), (2, 1), "empty")[2:-1, 2:-1], X)


@pytest.mark.parametrize(
    ("given", "options", "error"),
    [
        ((1, "constant"), {"stat_length": 3}, ValueError),
        ((1, "edge"), {"reflect_type": "odd"}, ValueError),
        ((1, "maximum"), {"stat_length": 0}, ValueError),
        ((1, "no_such_mode"), {}, ValueError),
        (([], "edge"), {}, TypeError),
    ],
)
def test_refused(given, options, error):
    for function, x in ((np.pad, X), (xp.pad, ours(X))):
        with pytest.raises(error):
            function(x, *given, **options)
    with pytest.raises(ValueError, match="expected at least one"):
        xp.pad(ours(X[:0]), 1, "edge")
    with pytest.raises(ValueError, match="reflect_type"):
        xp.pad(ours(X), 1, "reflect", reflect_type="both")
