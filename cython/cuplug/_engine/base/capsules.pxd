# SPDX-License-Identifier: Apache-2.0
from cuplug._engine.base.core cimport cuplug_tensor


# A capsule of a tensor whose memory, shape and strides live as long as the owner, for a consumer of
# `max_version` of DLPack; None: a consumer older than DLPack 1, where arrays cannot be read-only.
cdef object export(
    object owner, const cuplug_tensor *x, object max_version, bint is_read_only
)
# An argument of __dlpack__ that must be a pair.
cdef tuple two_integers(str argument, object value)


cdef class HostArray:
    cdef object array  # keeps the memory
    cdef cuplug_tensor tensor
