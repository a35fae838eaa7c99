# SPDX-License-Identifier: Apache-2.0
"""Operators of cuplug called from Cython, the GIL released, on typed memoryviews."""

from cuplug.typed cimport gather_float32_int32
from half_typed cimport half


def half_of(const float[::1] source, const int[::1] index, float[::1] work, float[::1] out):
    """Write source[index] / 2 to `out`; `work` has room for source[index]."""
    with nogil:
        gather_float32_int32(source, index, work, b"wrap")
        half(work, out)
