# SPDX-License-Identifier: Apache-2.0
"""Arguments of kernels.c and kernels.cu that no signature describes."""

import cuplug
import numpy as np


def read_pages_table(shape, pages, random):
    """Return numbers of pages."""
    return random.integers(0, pages, shape)


def table(shape, m, random):
    """Return numbers of rows."""
    return random.integers(0, m, shape)


def address(device):
    """Return what is stored at the address."""
    numbers = np.arange(4, dtype=np.float32)
    return numbers if device == "cpu" else cuplug.asarray(numbers, device=device)
