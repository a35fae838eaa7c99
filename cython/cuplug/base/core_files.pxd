# SPDX-License-Identifier: Apache-2.0
# Declarations of <internal/files.h>.
from libc.stdint cimport uint8_t, uint64_t

from cuplug.base.core cimport cuplug_error

cdef extern from "internal/core.h" nogil:
    int cuplug_check_owner "cuplug_core->check_owner"(const char *path, cuplug_error *error)
    void *cuplug_open_library "cuplug_core->open_library"(
        const char *path, int is_copied, cuplug_error *error
    )
    void cuplug_sha256 "cuplug_core->sha256"(const void *data, uint64_t n_bytes, uint8_t *digest)
