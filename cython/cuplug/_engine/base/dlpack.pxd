# SPDX-License-Identifier: Apache-2.0
# The structures of DLPack 1 that carry a tensor, and its C exchange API. A DLTensor is a
# cuplug_tensor.
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, uint32_t, uint64_t

from cuplug._engine.base.core cimport cuplug_tensor


cdef enum:
    DLPACK_MAJOR = 1
    DLPACK_READ_ONLY = 1
    # Codes of dtypes.
    DLPACK_INT = 0
    DLPACK_UINT = 1
    DLPACK_FLOAT = 2
    DLPACK_COMPLEX = 5
    DLPACK_BOOL = 6

ctypedef struct dlpack_version:
    uint32_t major
    uint32_t minor

ctypedef struct dlpack_managed_tensor:
    cuplug_tensor tensor
    void *context
    void (*deleter)(dlpack_managed_tensor *) noexcept

ctypedef struct dlpack_versioned_tensor:
    dlpack_version version
    void *context
    void (*deleter)(dlpack_versioned_tensor *) noexcept
    uint64_t flags
    cuplug_tensor tensor

ctypedef void (*dlpack_set_error)(void *context, const char *kind, const char *message) noexcept

ctypedef struct dlpack_exchange_header:
    dlpack_version version
    dlpack_exchange_header *previous

# Functions return 0, or -1 with a Python exception set.
ctypedef struct dlpack_exchange:
    dlpack_exchange_header header
    int (*allocate)(
        cuplug_tensor *prototype, dlpack_versioned_tensor **out, void *context,
        dlpack_set_error set_error
    ) noexcept
    int (*export_managed)(void *array, dlpack_versioned_tensor **out) noexcept
    int (*import_managed)(dlpack_versioned_tensor *tensor, void **array) noexcept
    int (*export_borrowed)(void *array, cuplug_tensor *out) noexcept  # may be NULL
    int (*current_stream)(int32_t device_type, int32_t device, void **stream) noexcept
