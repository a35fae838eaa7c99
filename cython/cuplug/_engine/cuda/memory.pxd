# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport int32_t, uint64_t


# Memory of a GPU, which is freed with the object, after the work on its stream.
cdef class DeviceMemory:
    cdef void *data
    cdef uint64_t n_bytes
    cdef int32_t gpu
    cdef void *stream  # NULL: the legacy default stream
    cdef object stream_owner  # keeps it


# Allocates the memory.
cdef int allocate(DeviceMemory memory, int32_t gpu, uint64_t n_bytes, void *stream) except -1
