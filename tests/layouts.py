# SPDX-License-Identifier: Apache-2.0
"""Layouts that a NumPy array may have, and the comparison of arrays."""

import numpy as np

LAYOUTS = {
    "contiguous": lambda x: x,
    "strided": lambda x: x[::2],
    "reversed": lambda x: x[::-1],
    "transposed": lambda x: x.reshape(4, 6).T,
    "fortran": lambda x: np.asfortranarray(x.reshape(2, 3, 4)),
    "broadcast": lambda x: np.broadcast_to(x, (3, x.size)),
    "empty": lambda x: x[:0],
    "empty_strided": lambda x: x.reshape(4, 6)[:, 6:].T,
    "one": lambda x: x[3:4],
    "many_dimensions": lambda x: x[:16].reshape((2, 1) * 4 + (1,) * 5)[..., ::-1],
}


def assert_same(seen, wanted):
    assert type(seen) is np.ndarray
    assert seen.dtype == wanted.dtype
    assert seen.shape == wanted.shape
    assert seen.tobytes() == wanted.tobytes()
