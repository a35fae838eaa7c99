# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport uint32_t

from cuplug.base.core_jit cimport cuplug_grid


# Blocks, threads of one and bytes of shared memory, from (grid, block[, shared]).
cdef int parse_grid(str name, tuple configuration, cuplug_grid *grid) except -1
# A number of 32 bits; `what` it is names it in errors.
cdef uint32_t size_of(str name, str what, object given) except? 0xFFFFFFFF
