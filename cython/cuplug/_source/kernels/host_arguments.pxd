# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport int32_t, uint64_t

from cuplug._engine.cuda.memory cimport DeviceMemory
from cuplug._source.kernels.parameters cimport launch_state


cdef class Staged:
    cdef readonly object array  # the caller's
    cdef bint copies_in
    cdef bint copies_out


# A host argument in one launch.
cdef class Block(DeviceMemory):
    cdef object target  # the caller's array, if it will be written
    cdef object host  # C-contiguous: the caller's array or a copy
    cdef Py_ssize_t position  # number of the argument, from 0


# Allocates device memory for a host argument, and copies In and InOut arrays there.
cdef Block stage(
    Staged staged, launch_state *state, Py_ssize_t k, uint64_t code, int32_t device, void *stream
)
# Raises an error if two arrays that will be written share memory.
cdef int check_targets(launch_state *state, list blocks) except -1
# Waits for the stream's work and writes the caller's array, if it is Out or InOut.
cdef int unstage(Block block, const char *name) except -1
