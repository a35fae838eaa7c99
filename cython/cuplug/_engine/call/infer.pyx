# SPDX-License-Identifier: Apache-2.0
"""The outputs of a call, computed without the call."""

from libc.stdint cimport int32_t, int64_t, uint32_t

from cuplug._engine.base.core cimport (
    CUPLUG_MAX_NDIM,
    cuplug_error,
    cuplug_infer,
    cuplug_operator,
    cuplug_tensor,
)
from cuplug._engine.base.core_call cimport (
    CUPLUG_MAX_ARGUMENTS,
    cuplug_bind_overload,
    cuplug_frame,
    cuplug_free_blocks,
)
from cuplug._engine.base.status cimport raise_error
from cuplug._engine.call.run cimport reread_arguments
from cuplug._engine.interop.reading cimport reading, store

from cuplug._engine.base.dtypes import BY_ID
from cuplug._engine.signature.spec import ArraySpec, Inferred


cdef object infer_outputs(cuplug_operator *op, reading *r, uint32_t n):
    cdef cuplug_tensor outputs[CUPLUG_MAX_ARGUMENTS]
    cdef cuplug_error error
    cdef uint32_t row = 0, n_outputs = CUPLUG_MAX_ARGUMENTS
    cdef int64_t *sizes = store(r, CUPLUG_MAX_ARGUMENTS * CUPLUG_MAX_NDIM)
    reread_arguments(op, r, n, 0)
    if r.row >= 0:
        return infer_row(op, r, n)
    if cuplug_infer(
        op, r.args, n, &row, outputs, <int64_t (*)[CUPLUG_MAX_NDIM]>sizes, &n_outputs, &error
    ):
        raise_error(&error)
    return Inferred(row, tuple([to_spec(&outputs[k]) for k in range(n_outputs)]))


cdef object infer_row(cuplug_operator *op, reading *r, uint32_t n):
    """Infer from the only overload that has the names of the keywords."""
    cdef cuplug_frame frame
    cdef cuplug_error error
    cdef int32_t n_matched = 0
    if cuplug_bind_overload(op, <uint32_t>r.row, r.args, n, 0, &frame, &n_matched, &error):
        raise_error(&error)
    outputs = [to_spec(&frame.tensors[k]) for k in range(frame.n_inputs, frame.n_tensors)]
    cuplug_free_blocks(frame.blocks)
    return Inferred(r.row, tuple(outputs))


cdef object to_spec(const cuplug_tensor *x):
    cdef uint32_t type_id = x.dtype.code << 24 | x.dtype.bits << 16 | x.dtype.lanes
    return ArraySpec(BY_ID[type_id].name, tuple([x.shape[k] for k in range(x.ndim)]))
