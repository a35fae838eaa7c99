# SPDX-License-Identifier: Apache-2.0
"""Arguments of kernels.c and kernels.cu that signatures cannot describe."""

import cuplug
import numpy as np


def read_pages_table(shape, pages, random):
    """Return numbers of pages."""
    return random.integers(0, pages, shape)


def table(shape, m, random):
    """Return numbers of rows."""
    return random.integers(0, m, shape)


def address(device):
    """Return the value at the address."""
    numbers = np.arange(4, dtype=np.float32)
    return numbers if device == "cpu" else cuplug.asarray(numbers, device=device)


def expected_adam(params, grads, m, v, step, lr):
    """Update params, m and v in one step."""
    for p, g, first, second in zip(params, grads, m, v, strict=True):
        g = g.astype("float64")
        first[...] = 0.5 * first + 0.5 * g
        second[...] = 0.75 * np.abs(second) + 0.25 * g * g
        root = np.sqrt(second.astype("float64") / (1 - 0.75**step))
        p[...] -= lr * first.astype("float64") / (1 - 0.5**step) / (root + 0.5)


def expected_select_where(x, mask):
    """Return the elements where the mask is true."""
    return x[mask]


def expected_histogram(x, bins):
    """Return the count of each number."""
    return np.bincount(x, minlength=bins)


def expected_pool(x, size):
    """Return the maxima of windows."""
    n, c, h, w = x.shape
    whole = x[..., : h // size * size, : w // size * size]
    return whole.reshape(n, c, h // size, size, w // size, size).max((3, 5), initial=-np.inf)


def expected_scan(x, start):
    """Return sums along lines, and their ends."""
    sums = start + x.astype("float64").cumsum(-1)
    return sums, (sums[..., -1] if x.shape[-1] else np.full(x.shape[:-1], start))


def expected_softplus(x, bias):
    """Return a smooth maximum with 0."""
    return np.logaddexp(0, (x + (0 if bias is None else bias)).astype("float64"))
