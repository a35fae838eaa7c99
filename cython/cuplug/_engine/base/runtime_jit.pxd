# SPDX-License-Identifier: Apache-2.0
# Declarations of <runtime/jit.h> and <runtime/define.h>.
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from cuplug._engine.base.core cimport cuplug_error, cuplug_operator
from cuplug._engine.base.core_call cimport (
    cuplug_call,
    cuplug_entry,
    cuplug_reshape,
    cuplug_signature,
    cuplug_term,
)

cdef extern from "runtime/jit.h" nogil:
    ctypedef struct cuplug_program:
        const char *text
        const char *name
        const char *architecture
        const char *const *options
        const char *const *names
        const char *const *header_names
        const char *const *header_texts
        uint32_t n_options
        uint32_t n_names
        uint32_t n_headers
        uint32_t try_minimal
        uint32_t is_part

    ctypedef struct cuplug_binary:
        void *image
        uint64_t image_bytes
        char **lowered
        char *log
        uint32_t n_names
        int32_t is_ptx

    int cuplug_find_compiler(const char *directories, char *path, cuplug_error *error)
    int cuplug_compile_program(
        const char *path, const cuplug_program *program, cuplug_binary **binary,
        cuplug_error *error
    )
    void cuplug_free_binary(cuplug_binary *binary)

    ctypedef struct cuplug_linking:
        const char *name
        const void *const *parts
        const uint64_t *part_bytes
        const char *const *part_names
        const char *const *options
        uint32_t n_parts
        uint32_t n_options
        int32_t is_ptx

    int cuplug_link_program(
        const char *path, const cuplug_linking *linking, cuplug_binary **binary,
        cuplug_error *error
    )

    enum:
        CUPLUG_MAX_KERNEL_PARAMETERS

    ctypedef struct cuplug_image:
        pass

    ctypedef struct cuplug_kernel:
        pass

    ctypedef struct cuplug_kernel_info:
        int32_t max_threads
        int32_t n_registers
        int32_t shared_bytes
        int32_t local_bytes
        int32_t constant_bytes
        int32_t max_dynamic_shared_bytes

    ctypedef struct cuplug_grid:
        uint32_t blocks[3]
        uint32_t threads[3]
        uint32_t shared_bytes
        uint32_t flags
        uint32_t cluster[3]

    enum:
        CUPLUG_COOPERATIVE
        CUPLUG_OVERLAPPING

    int cuplug_load_image(
        const void *image, uint64_t n_bytes, const char *name, cuplug_image **loaded,
        cuplug_error *error
    )
    int cuplug_list_kernels(
        cuplug_image *image, const char **names, uint32_t *n, cuplug_error *error
    )
    int cuplug_find_kernel(
        cuplug_image *image, const char *lowered, const char *name, cuplug_kernel **kernel,
        cuplug_error *error
    )
    int cuplug_find_global(
        cuplug_image *image, const char *lowered, const char *name, int32_t device,
        void **pointer, uint64_t *n_bytes, cuplug_error *error
    )
    int cuplug_kernel_parameters(
        cuplug_kernel *kernel, int32_t device, uint64_t *sizes, int32_t *n, cuplug_error *error
    )
    int cuplug_query_kernel(
        cuplug_kernel *kernel, int32_t device, cuplug_kernel_info *info, cuplug_error *error
    )
    int cuplug_max_active_blocks(
        cuplug_kernel *kernel, int32_t device, int32_t n_threads, uint64_t shared_bytes,
        int32_t *n_blocks, cuplug_error *error
    )
    int cuplug_suggest_block(
        cuplug_kernel *kernel, int32_t device, uint64_t shared_bytes, int32_t *n_threads,
        int32_t *n_blocks, cuplug_error *error
    )
    int cuplug_check_launch(
        cuplug_kernel *kernel, int32_t device, const cuplug_grid *grid, cuplug_error *error
    )
    int cuplug_launch_kernel(
        cuplug_kernel *kernel, int32_t device, const cuplug_grid *grid, void *stream,
        void *const *parameters, cuplug_error *error
    )
    int cuplug_kernel_function(
        cuplug_kernel *kernel, int32_t device, void **function, cuplug_error *error
    )

cdef extern from "runtime/define.h" nogil:
    ctypedef struct cuplug_definition_row:
        const char *signature
        cuplug_entry *host
        cuplug_entry *cuda
        void *context
        cuplug_reshape *reshape
        uint32_t flags
        uint32_t implies_strides
        uint32_t scans
        uint32_t takes_handles
        const char *gradient
        const char *linear
        int (*close)(const cuplug_call *call, void *handle) noexcept

    ctypedef struct cuplug_definition:
        const char *plugin
        const char *version
        const char *origin
        const char *doc
        const cuplug_definition_row *rows
        uint32_t n_rows

    int cuplug_define(
        const cuplug_definition *definition, cuplug_operator **op, cuplug_error *error
    )

    cuplug_error *cuplug_entry_error(const cuplug_call *call)

    int cuplug_entry_number(
        const cuplug_call *call, const cuplug_term *term, const char *what, uint32_t type,
        int64_t *number
    )

    int cuplug_parse_terms(
        const cuplug_signature *scope, const char *text, const char *what, const char *own,
        cuplug_signature **terms, uint32_t *position, cuplug_error *error
    )
