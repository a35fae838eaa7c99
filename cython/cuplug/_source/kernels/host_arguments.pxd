# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport int32_t, uint64_t

from cuplug._engine.cuda.memory cimport DeviceMemory
from cuplug._source.kernels.parameters cimport launch_state


cdef class Staged:
    cdef readonly object array  # the caller's
    cdef bint copies_in
    cdef bint copies_out


# What one staged argument is for one launch.
cdef class Block(DeviceMemory):
    cdef object target  # the caller's array, when it is to be written back
    cdef object host  # C-contiguous: the caller's array or a copy
    cdef Py_ssize_t position  # of the argument, from 0


# Makes device memory for a staged argument, with its elements where they go in.
cdef Block stage(
    Staged staged, launch_state *state, Py_ssize_t k, uint64_t code, int32_t device, void *stream
)
# Raises where two arrays that are to be written share memory.
cdef int check_targets(launch_state *state, list blocks) except -1
# Waits for the stream's work and writes the caller's array, where elements come out.
cdef int unstage(Block block, const char *name) except -1
