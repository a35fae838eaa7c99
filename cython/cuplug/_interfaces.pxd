# SPDX-License-Identifier: Apache-2.0
from cuplug._reading cimport reading
from cuplug._host cimport cuplug_argument


cdef int read_cupy(object x, reading *r, cuplug_argument *a) except -1
cdef int read_cuda_interface(object x, reading *r, cuplug_argument *a) except -1
cdef int read_buffer(object x, reading *r, cuplug_argument *a) except -1
