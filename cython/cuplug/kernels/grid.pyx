# SPDX-License-Identifier: Apache-2.0
"""What stands in the brackets of a launch -> a grid."""

from libc.stdint cimport uint32_t
from libc.string cimport memset

from cuplug.base.core_jit cimport cuplug_grid


cdef int parse_grid(str name, tuple configuration, cuplug_grid *grid) except -1:
    memset(grid, 0, sizeof(cuplug_grid))
    set_sizes(name, "grid", configuration[0], grid.blocks)
    set_sizes(name, "block", configuration[1], grid.threads)
    if len(configuration) > 2 and configuration[2] is not None:
        grid.shared_bytes = size_of(name, "shared", configuration[2])
    return 0


cdef int set_sizes(str name, str what, object given, uint32_t *sizes) except -1:
    cdef int k
    parts = given if isinstance(given, (tuple, list)) else (given,)
    if not 1 <= len(parts) <= 3:
        raise ValueError(f"{name}: {what}: seen {len(parts)} sizes, wanted 1 to 3")
    for k in range(3):
        sizes[k] = size_of(name, what, parts[k]) if k < len(parts) else 1
    return 0


cdef uint32_t size_of(str name, str what, object given) except? 0xFFFFFFFF:
    try:
        size = given.__index__()
    except AttributeError:
        raise TypeError(
            f"{name}: {what}: seen {type(given).__name__}, wanted an int"
        ) from None
    if not 0 <= size < 1 << 32:
        raise ValueError(f"{name}: {what}: seen {size}, wanted 0 to {(1 << 32) - 1}")
    return size
