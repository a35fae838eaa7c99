# SPDX-License-Identifier: Apache-2.0
"""PyTorch's tensors, beyond DLPack: lazy operations, the allocator, the stream."""

import sys

from cpython.object cimport PyObject
from libc.stdint cimport int32_t, uint32_t

from cuplug._engine.base.core cimport (
    CUPLUG_ARGUMENT_ARRAY,
    cuplug_argument,
    cuplug_dtype,
    cuplug_n_elements,
    cuplug_tensor,
)
from cuplug._engine.base.dlpack cimport DLPACK_BOOL, DLPACK_COMPLEX, DLPACK_INT, DLPACK_UINT
from cuplug._engine.interop.kinds cimport array_kind, call_getter
from cuplug._engine.interop.libtorch cimport MAX_FREED, drop_strides, is_traced, learn_traces
from cuplug._engine.interop.reading cimport reading, set_unsupported, set_other

from cuplug._engine.base.dtypes import BY_ID
from cuplug._engine.interop.unsupported import advice_on_freed, advice_on_tensor

cdef dict torch_dtypes = {}  # by type id
cdef object torch_empty_like = None


cdef inline bint is_integer(const cuplug_tensor *x) noexcept:
    return x.dtype.code in (DLPACK_INT, DLPACK_UINT, DLPACK_BOOL)


cdef int check_torch(
    PyObject *obj, reading *r, cuplug_argument *a, const array_kind *kind
) except -1:
    """Check properties that memory does not show, which only non-integers can have."""
    check_memory(obj, r, a)
    if a.kind != CUPLUG_ARGUMENT_ARRAY:
        return 0
    if is_integer(&a.tensor):
        return 0
    check_grad(obj, r, a, kind)
    if a.kind != CUPLUG_ARGUMENT_ARRAY:
        return 0
    drop_strides(&a.tensor)
    return check_views(<object>obj, r, a)


cdef int check_memory(PyObject *obj, reading *r, cuplug_argument *a) except -1:
    cdef size_t data = <size_t>a.tensor.data + a.tensor.byte_offset
    learn_traces()
    if is_traced():
        return set_unsupported(r, a, ("torch", "a tensor in torch.jit.trace"))
    if data >= MAX_FREED or cuplug_n_elements(&a.tensor) <= 0:
        return 0
    text = advice_on_tensor(<object>obj)
    if text is None:
        text = advice_on_freed(<object>obj)
    if text is not None:
        return set_other(r, a, text)
    if a.tensor.data == NULL:
        return set_unsupported(r, a, ("torch", "a tensor that PyTorch traces, without memory"))
    return 0


cdef int check_grad(
    PyObject *obj, reading *r, cuplug_argument *a, const array_kind *kind
) except -1:
    if kind.requires_grad != NULL:
        grad = call_getter(kind.requires_grad, obj)
    else:
        grad = (<object>obj).requires_grad
    if grad is not False:
        kind_of_array = type(<object>obj).__name__
        reason = f"{kind_of_array} that requires grad (pass x.detach())"
        return set_unsupported(r, a, ("torch", reason))
    return 0


cdef int check_views(object obj, reading *r, cuplug_argument *a) except -1:
    """Check for lazy views: conjugated ones are complex, negated ones every second number."""
    if a.tensor.dtype.code != DLPACK_COMPLEX:
        if a.tensor.strides == NULL or is_integer(&a.tensor):
            return 0
    return check_bits(obj, r, a)


cdef int check_bits(object obj, reading *r, cuplug_argument *a) except -1:
    if obj.is_conj():
        return set_other(r, a, "a conjugated view (pass x.resolve_conj())")
    if obj.is_neg():
        return set_other(r, a, "a negated view (pass x.resolve_neg())")
    return 0


cdef object new_tensor(object like, const cuplug_tensor *x, bint is_of_dtype):
    shape = tuple([x.shape[k] for k in range(x.ndim)])
    return like.new_empty(shape) if is_of_dtype else like.new_empty(
        shape, dtype=torch_dtype(x.dtype)
    )


cdef object new_strided(object like, const cuplug_tensor *x):
    shape = tuple([x.shape[k] for k in range(x.ndim)])
    strides = tuple([x.strides[k] for k in range(x.ndim)])
    return like.new_empty_strided(shape, strides, dtype=torch_dtype(x.dtype))


cdef object empty_like(object x):
    global torch_empty_like
    if torch_empty_like is None:
        torch_empty_like = sys.modules["torch"].empty_like
    return torch_empty_like(x)


cdef object torch_dtype(cuplug_dtype dtype):
    cdef uint32_t type_id = dtype.code << 24 | dtype.bits << 16 | dtype.lanes
    found = torch_dtypes.get(type_id)
    if found is None:
        name = BY_ID[type_id].name
        found = getattr(sys.modules["torch"], name, None)
        if found is None:
            seen = f"elements of {name}, which this version of PyTorch does not have"
            raise TypeError(f"got {seen}, expected a dtype of torch; pass the bytes as torch.uint8")
        torch_dtypes[type_id] = found
    return found


cdef void *torch_stream(int32_t device) except? NULL:
    return <void *><size_t>sys.modules["torch"].cuda.current_stream(device).cuda_stream
