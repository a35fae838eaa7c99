# SPDX-License-Identifier: Apache-2.0
# What compiled code sees of a cuplug.Array: `from cuplug cimport Array`. Nothing is to be linked.
from libc.stdint cimport int32_t, int64_t, uint32_t

cimport cuplug._memoryviews as _cuplug


cdef extern from *:
    # An array on the host or a GPU. All of this is valid for as long as the array lives.
    ctypedef class cuplug.Array [object PyObject, check_size ignore]:
        # The address of the first element.
        @property
        cdef inline void *data(self) noexcept nogil:
            return <char *>_cuplug.tensor_of(self).data + _cuplug.tensor_of(self).byte_offset

        @property
        cdef inline int ndim(self) noexcept nogil:
            return _cuplug.tensor_of(self).ndim

        @property
        cdef inline const int64_t *shape(self) noexcept nogil:
            return _cuplug.tensor_of(self).shape

        # In elements; NULL if it is C-contiguous.
        @property
        cdef inline const int64_t *strides(self) noexcept nogil:
            return _cuplug.tensor_of(self).strides

        # CUPLUG_FLOAT32 and the like.
        @property
        cdef inline uint32_t type(self) noexcept nogil:
            return _cuplug.dtype_of(_cuplug.tensor_of(self))

        # As in DLPack: type 1 is the host, 2 a GPU, 13 managed memory.
        @property
        cdef inline _cuplug.Device device(self) noexcept nogil:
            return _cuplug.tensor_of(self).device
