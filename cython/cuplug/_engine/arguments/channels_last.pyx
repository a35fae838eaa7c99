# SPDX-License-Identifier: Apache-2.0
"""Element-wise calls on PyTorch tensors in channels_last: the outputs have that format, too."""

from libc.stdint cimport int64_t, uint32_t

from cuplug._engine.array.buffer cimport is_contiguous
from cuplug._engine.base.core cimport (
    CUPLUG_ARGUMENT_ARRAY,
    CUPLUG_ARGUMENT_LIST,
    CUPLUG_ROW_KEEPS_WHOLE,
    cuplug_n_elements,
    cuplug_operator,
    cuplug_operator_n_rows,
    cuplug_operator_row,
    cuplug_row_flags,
    cuplug_tensor,
)
from cuplug._engine.base.core_call cimport (
    CUPLUG_DIM_LOOP,
    CUPLUG_PARAMETER_ARRAY,
    CUPLUG_PARAMETER_ARRAYS,
    CUPLUG_PARAMETER_INOUT,
    cuplug_operator_signature,
    cuplug_parameter,
    cuplug_signature,
)
from cuplug._engine.interop.reading cimport reading, store


cdef bint is_channels_last(const cuplug_tensor *x) noexcept nogil:
    cdef int64_t stride = 1
    cdef int k, d
    if x.strides == NULL or not 4 <= x.ndim <= 5:
        return False
    for k in range(x.ndim):  # channels, then the last dimension to the third, then the first
        d = 1 if k == 0 else x.ndim - k if k < x.ndim - 1 else 0
        if x.shape[d] == 1:
            continue
        if x.strides[d] != stride:
            return False
        stride *= x.shape[d]
    return stride > 0 and not is_contiguous(x)


cdef inline bint has_loop_alone(const cuplug_parameter *x) noexcept:
    return x.n_dims == 1 and x.dims[0].kind == CUPLUG_DIM_LOOP


cdef bint is_element_wise(const cuplug_operator *op) noexcept:
    cdef uint32_t row
    for row in range(cuplug_operator_n_rows(op)):
        if cuplug_row_flags(cuplug_operator_row(op, row)) & CUPLUG_ROW_KEEPS_WHOLE:
            return False
        if not is_row_element_wise(cuplug_operator_signature(op, row)):
            return False
    return True


cdef bint is_row_element_wise(const cuplug_signature *s) noexcept:
    cdef int k
    cdef const cuplug_parameter *x
    for k in range(s.n_parameters + s.n_outputs):
        x = &s.parameters[k]
        if x.kind == CUPLUG_PARAMETER_INOUT or x.kind == CUPLUG_PARAMETER_ARRAYS:
            return False
        is_array = x.kind == CUPLUG_PARAMETER_ARRAY or k >= s.n_parameters
        if is_array and not has_loop_alone(x):
            return False
    return s.n_outputs > 0


cdef int flatten(reading *r, const cuplug_operator *op, uint32_t n) except -1:
    cdef const cuplug_tensor *first = NULL
    cdef cuplug_tensor *x
    cdef int64_t *size
    cdef uint32_t i
    if not r.first_kind.is_torch or not is_element_wise(op):
        return 0
    for i in range(n):
        if r.args[i].kind == CUPLUG_ARGUMENT_LIST:
            return 0
        if r.args[i].kind != CUPLUG_ARGUMENT_ARRAY or not r.args[i].tensor.ndim:
            continue
        x = &r.args[i].tensor
        if first == NULL:
            first = x
        if not is_channels_last(x) or not has_same_layout(x, first):
            return 0
    if first == NULL:
        return 0
    r.layout = first[0]
    size = store(r, 1)
    size[0] = cuplug_n_elements(first)
    for i in range(n):
        if r.args[i].kind == CUPLUG_ARGUMENT_ARRAY and r.args[i].tensor.ndim:
            r.args[i].tensor.ndim = 1
            r.args[i].tensor.shape = size
            r.args[i].tensor.strides = NULL
    return 0


cdef bint restore(reading *r, uint32_t n) noexcept:
    cdef uint32_t i
    for i in range(n):
        if r.args[i].kind == CUPLUG_ARGUMENT_ARRAY and r.args[i].tensor.ndim:
            r.args[i].tensor.ndim = r.layout.ndim
            r.args[i].tensor.shape = r.layout.shape
            r.args[i].tensor.strides = r.layout.strides
    r.layout.ndim = 0
    return True


cdef bint has_same_layout(const cuplug_tensor *x, const cuplug_tensor *y) noexcept:
    cdef int d
    if x.ndim != y.ndim:
        return False
    for d in range(x.ndim):
        if x.shape[d] != y.shape[d] or x.strides[d] != y.strides[d]:
            return False
    return True
