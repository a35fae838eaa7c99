# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport int32_t

from cuplug._engine.modules.abi cimport tvm_any, tvm_bytes, tvm_call

ctypedef void (*move_error_function)(void **error) noexcept nogil
ctypedef int (*set_stream_function)(
    int32_t type, int32_t device, void *stream, void **before
) noexcept nogil
ctypedef int (*set_allocator_function)(
    void *allocator, int is_global, void **before
) noexcept nogil
ctypedef int (*find_global_function)(const tvm_bytes *name, void **function) noexcept nogil
ctypedef void (*raise_error_function)(const char *kind, const char *message) noexcept nogil
ctypedef int (*create_function_function)(
    void *self, tvm_call *call, void (*deleter)(void *self) noexcept, void **made
) noexcept nogil
ctypedef int (*set_global_function)(
    const tvm_bytes *name, void *function, int can_override
) noexcept nogil

# Functions of libtvm_ffi; NULL before it is loaded.
ctypedef struct tvm_runtime:
    move_error_function move_error
    set_stream_function set_stream
    set_allocator_function set_allocator
    find_global_function find_global
    raise_error_function raise_error
    create_function_function create_function
    set_global_function set_global

cdef tvm_runtime runtime

# Calls a function of a module with a device's stream as tvm-ffi's current one, and cuplug's arrays
# as its allocations. `device`: a GPU, or -1.
cdef int run_function(
    void *self, tvm_call *call, const tvm_any *args, int32_t n, int32_t device, void *stream,
    tvm_any *result
) noexcept nogil
# Finds the constructor of functions.
cdef int load_exports(str name) except -1
# A function in tvm-ffi's registry.
cdef void *find_global(const char *name) except NULL
