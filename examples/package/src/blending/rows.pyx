# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3
from blending.blend_typed cimport blend, view


def blend_rows(
    const float[:, ::1] x, const float[:, ::1] y, const float[::1] weights, float[:, ::1] out
):
    """Blend each row with its own weight, in a loop without the GIL."""
    cdef Py_ssize_t k
    with nogil:
        for k in range(x.shape[0]):
            blend(view(x[k]), view(y[k]), weights[k], view(out[k]))
