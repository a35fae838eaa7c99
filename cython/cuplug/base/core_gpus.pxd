# SPDX-License-Identifier: Apache-2.0
# Declarations of <internal/gpus.h>.
from libc.stdint cimport int32_t, uint64_t

from cuplug.base.core cimport cuplug_error

cdef extern from "internal/gpus.h" nogil:
    int cuplug_query_attribute(
        int32_t device, int32_t attribute, int32_t *value, int32_t *is_known, cuplug_error *error
    )
    int cuplug_allocate_shared(
        int32_t device, int is_managed, uint64_t n_bytes, void **pointer, cuplug_error *error
    )
    int cuplug_free_shared(
        int32_t device, int is_managed, void *pointer, cuplug_error *error
    )
    int cuplug_copy_peer(
        int32_t to_device, void *to, void *waiting, int32_t from_device, const void *from_,
        void *stream, uint64_t n_bytes, cuplug_error *error
    )
