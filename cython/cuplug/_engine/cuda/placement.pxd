# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport int32_t

from cuplug._engine.base.core cimport cuplug_device


# A device from "cpu", "cuda", "cuda:1", a number, or a device object of another library.
cdef cuplug_device parse_device(str function, object device) except *
# The same, or "cuda:*".
cdef cuplug_device parse_places(str function, object device) except *
# As parse_device, for a GPU. All errors name the function.
cdef cuplug_device parse_gpu(str function, object device) except *
# The device of host arrays' calls unless a call names one; type 0: not set.
# False until the environment or a context manager names a device.
cdef bint has_default
cdef int default_device(cuplug_device *device) except -1
# The device of new arrays: the default device, else the first GPU, or the host without GPUs.
cdef cuplug_device where_arrays_go() except *
