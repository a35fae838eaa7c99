# SPDX-License-Identifier: Apache-2.0
from cuplug._host_jit cimport cuplug_grid


# Blocks, threads of one and bytes of shared memory, from (grid, block[, shared]).
cdef int parse_grid(str name, tuple configuration, cuplug_grid *grid) except -1
