# SPDX-License-Identifier: Apache-2.0
"""Arguments of kernels.c that no signature describes."""

import numpy as np


def table(shape, pages, random):
    """Return numbers of pages."""
    return random.integers(0, pages, shape)


def address(device):
    """Return what is stored at the address."""
    return np.arange(4, dtype=np.float32)
