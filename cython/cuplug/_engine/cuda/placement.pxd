# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport int32_t

from cuplug._engine.base.core cimport cuplug_device


# "cpu", "cuda", "cuda:1", a number, or a device object of another library.
cdef cuplug_device parse_device(str function, object device) except *
# The same, or "cuda:*".
cdef cuplug_device parse_places(str function, object device) except *
# As parse_device, where a GPU is wanted. Errors of all name the function.
cdef cuplug_device parse_gpu(str function, object device) except *
# Where host arrays run unless a call says it; type 0: not set.
# False as long as neither the environment nor a context manager has named a device.
cdef bint has_default
cdef int default_device(cuplug_device *device) except -1
# Where new arrays are made: there, else on the first GPU, on the host where there is none.
cdef cuplug_device where_arrays_go() except *
