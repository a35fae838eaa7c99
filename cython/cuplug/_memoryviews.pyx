# SPDX-License-Identifier: Apache-2.0
"""The call behind the generated typed-memoryview functions."""

from cuplug.base.core cimport cuplug_error
from cuplug.base.core_call cimport cuplug_bind, cuplug_frame, cuplug_run, cuplug_set_output

from cuplug.base.status cimport raise_error
from cuplug.lookup.find cimport look_up

import cuplug.cuda.memory  # where a GPU's memory runs out, other libraries are asked for theirs

cdef extern from *:
    """
    #define cuplug_load_slot(slot) __atomic_load_n((slot), __ATOMIC_ACQUIRE)
    #define cuplug_store_slot(slot, op) __atomic_store_n((slot), (op), __ATOMIC_RELEASE)
    """
    cuplug_operator *cuplug_load_slot(cuplug_operator **slot) noexcept nogil
    void cuplug_store_slot(cuplug_operator **slot, cuplug_operator *op) noexcept nogil


cdef int call(
    cuplug_operator **slot, const char *name, const cuplug_argument *arguments,
    uint32_t n_parameters, uint32_t n_outputs,
) except -1 nogil:
    cdef cuplug_error error
    cdef cuplug_frame frame
    cdef uint32_t k
    cdef cuplug_operator *op = cuplug_load_slot(slot)
    if op == NULL:
        if look_up(name, &op, &error):
            return raise_error(&error)
        cuplug_store_slot(slot, op)
    if cuplug_bind(op, arguments, n_parameters, &frame, &error):
        return raise_error(&error)
    for k in range(n_outputs):
        if cuplug_set_output(&frame, k, &arguments[n_parameters + k], &error):
            return raise_error(&error)
    if cuplug_run(&frame, &error):
        return raise_error(&error)
    return 0
