# SPDX-License-Identifier: Apache-2.0
"""The functions that XLA calls for operators, and their attributes for operators in memory."""

from cpython.pycapsule cimport PyCapsule_New
from libc.stdint cimport uint32_t, uint64_t

from cuplug._engine.base.core cimport (
    CUPLUG_OVERLOAD_TAKES_STRIDES,
    cuplug_operator_overload,
    cuplug_overload_flags,
)
from cuplug._engine.base.status cimport drop_raised, has_raised
from cuplug._engine.call.operator cimport Operator

import secrets

cdef extern from "runtime/xla.h":
    ctypedef struct cuplug_xla_call "struct cuplug__xla_call":
        pass
    ctypedef struct cuplug_xla_error "struct cuplug__xla_error":
        pass
    cuplug_xla_error *cuplug_xla_instantiate_cpu(cuplug_xla_call *call) noexcept nogil
    cuplug_xla_error *cuplug_xla_instantiate_cuda(cuplug_xla_call *call) noexcept nogil
    cuplug_xla_error *cuplug_xla_execute_cpu(cuplug_xla_call *call) noexcept nogil
    cuplug_xla_error *cuplug_xla_execute_cuda(cuplug_xla_call *call) noexcept nogil
    cuplug_xla_error *cuplug_xla_execute_cuda_waiting(cuplug_xla_call *call) noexcept nogil
    void cuplug_xla_begin(uint64_t process)

# for this process and its forked children, which have the same operators
PROCESS: int = secrets.randbits(63)
cuplug_xla_begin(PROCESS)


# XLA reports the text of an error. The exception, for example of an operator that does not compile,
# has no Python caller here, and must not remain set for the next call on this thread.


cdef inline cuplug_xla_error *settle(cuplug_xla_error *error) noexcept nogil:
    if error != NULL and has_raised():
        drop_raised()
    return error


cdef cuplug_xla_error *instantiate_cpu(cuplug_xla_call *call) noexcept nogil:
    return settle(cuplug_xla_instantiate_cpu(call))


cdef cuplug_xla_error *instantiate_cuda(cuplug_xla_call *call) noexcept nogil:
    return settle(cuplug_xla_instantiate_cuda(call))


cdef cuplug_xla_error *execute_cpu(cuplug_xla_call *call) noexcept nogil:
    return settle(cuplug_xla_execute_cpu(call))


cdef cuplug_xla_error *execute_cuda(cuplug_xla_call *call) noexcept nogil:
    return settle(cuplug_xla_execute_cuda(call))


cdef cuplug_xla_error *execute_cuda_waiting(cuplug_xla_call *call) noexcept nogil:
    return settle(cuplug_xla_execute_cuda_waiting(call))


CPU: dict[str, Any] = {
    "instantiate": PyCapsule_New(<void *>instantiate_cpu, NULL, NULL),
    "execute": PyCapsule_New(<void *>execute_cpu, NULL, NULL),
}
CUDA: dict[str, Any] = {
    "instantiate": PyCapsule_New(<void *>instantiate_cuda, NULL, NULL),
    "execute": PyCapsule_New(<void *>execute_cuda, NULL, NULL),
}
CUDA_WAITING: dict[str, Any] = {
    "instantiate": PyCapsule_New(<void *>instantiate_cuda, NULL, NULL),
    "execute": PyCapsule_New(<void *>execute_cuda_waiting, NULL, NULL),
}


def address_of(Operator operator not None) -> int:
    """Return the address of an operator, which is never freed."""
    return <size_t>operator.op


def takes_strides(Operator operator not None, uint32_t row) -> bool:
    """Return whether an overload broadcasts its arrays itself."""
    flags = cuplug_overload_flags(cuplug_operator_overload(operator.op, row))
    return bool(flags & CUPLUG_OVERLOAD_TAKES_STRIDES)
