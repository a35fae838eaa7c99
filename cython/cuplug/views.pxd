# SPDX-License-Identifier: Apache-2.0
# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
# `view` for typed memoryviews of one to four dimensions, and for matrices in Fortran order. In
# cuplug.typed, `view` takes one or two dimensions: each type is translated in every module that
# cimports the function.
cimport cuplug
cimport cuplug._memoryviews as _cuplug
cimport cuplug._views as _views

ctypedef fused Vector:
    const _views.Element[::1]
    const _views.Element[:]

ctypedef fused Matrix:
    const _views.Element[:, ::1]
    const _views.Element[:, :]
    const _views.Element[::1, :]

ctypedef fused Cube:
    const _views.Element[:, :, ::1]
    const _views.Element[:, :, :]

ctypedef fused Contiguous:
    const _views.Element[::1]
    const _views.Element[:, ::1]
    const _views.Element[:, :, ::1]
    const _views.Element[:, :, :, ::1]

ctypedef fused Memoryview:
    const _views.Element[::1]
    const _views.Element[:]
    const _views.Element[:, ::1]
    const _views.Element[:, :]
    const _views.Element[::1, :]
    const _views.Element[:, :, ::1]
    const _views.Element[:, :, :]
    const _views.Element[:, :, :, ::1]
    const _views.Element[:, :, :, :]
    cuplug.Array


cdef inline _cuplug.View view(Memoryview x) noexcept nogil:
    if Memoryview is cuplug.Array:
        return _cuplug.view_of_array(x)
    elif Memoryview in Vector:
        return _views.memoryview_of(1, Memoryview not in Contiguous, x, &x[0])
    elif Memoryview in Matrix:
        return _views.memoryview_of(2, Memoryview not in Contiguous, x, &x[0, 0])
    elif Memoryview in Cube:
        return _views.memoryview_of(3, Memoryview not in Contiguous, x, &x[0, 0, 0])
    else:
        return _views.memoryview_of(4, Memoryview not in Contiguous, x, &x[0, 0, 0, 0])
