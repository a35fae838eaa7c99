# SPDX-License-Identifier: Apache-2.0
"""Operators of cuplug called from Cython, the GIL released, on typed memoryviews."""

from cuplug.typed cimport gather, view
from half_typed cimport half


def half_of(const float[:] source, const int[:] index, float[::1] work, float[::1] out):
    """Write source[index] / 2 to `out`; `work` has room for source[index]."""
    with nogil:
        gather(view(source), view(index), view(work), b"wrap")
        half(view(work), view(out))
