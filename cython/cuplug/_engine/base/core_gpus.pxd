# SPDX-License-Identifier: Apache-2.0
# Declarations of <internal/gpus.h>.
from libc.stdint cimport int32_t, uint32_t, uint64_t

from cuplug._engine.base.core cimport cuplug_error

cdef extern from "internal/core.h" nogil:
    uint64_t cuplug_used_gpus "cuplug_core->used_gpus"()
    int cuplug_query_attribute "cuplug_core->query_attribute"(
        int32_t device, int32_t attribute, int32_t *value, int32_t *is_known, cuplug_error *error
    )
    int cuplug_release_device "cuplug_core->release_device"(
        int32_t device, void *pointer, uint64_t n_bytes, void *stream
    )
    int cuplug_check_origin "cuplug_core->check_origin"(uint64_t origin, cuplug_error *error)
