# SPDX-License-Identifier: Apache-2.0
# Declarations of <cuplug/host.h> and <cuplug/plugin.h>. Modules of others use them, too.
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t


cdef extern from "cuplug/host.h" nogil:
    const char *CUPLUG_VERSION
    enum:
        CUPLUG_ABI_VERSION
        CUPLUG_MAX_NDIM
        CUPLUG_MAX_NAME
        CUPLUG_ROW_TAKES_STRIDES
        CUPLUG_ROW_PREFERS_CUDA
        CUPLUG_ROW_KEEPS_WHOLE
        CUPLUG_ROW_IN_PLACE
        CUPLUG_ROW_NEVER_WAITS
        CUPLUG_CPU
        CUPLUG_CUDA
        CUPLUG_ALL_GPUS
        CUPLUG_CUDA_HOST
        CUPLUG_CUDA_MANAGED
        CUPLUG_READ_ONLY
        CUPLUG_BYTE_SWAPPED
        CUPLUG_MISALIGNED
        CUPLUG_ODD_STRIDES

    # Status and errors
    enum:
        CUPLUG_OK
        CUPLUG_ERROR_VALUE
        CUPLUG_ERROR_TYPE
        CUPLUG_ERROR_INDEX
        CUPLUG_ERROR_MEMORY
        CUPLUG_ERROR_CUDA
        CUPLUG_ERROR_PLUGIN
        CUPLUG_ERROR_NOT_FOUND
        CUPLUG_ERROR_COMPILE

    ctypedef struct cuplug_error:
        int32_t status
        int32_t cuda_code
        uint32_t message_bytes
        char message[4080]

    const char *cuplug_version()
    const char *cuplug_status_name(int status)

    # Arrays and scalars
    ctypedef struct cuplug_device:
        int32_t type
        int32_t id

    ctypedef struct cuplug_dtype:
        uint8_t code
        uint8_t bits
        uint16_t lanes

    ctypedef struct cuplug_tensor:
        void *data
        cuplug_device device
        int32_t ndim
        cuplug_dtype dtype
        int64_t *shape
        int64_t *strides
        uint64_t byte_offset

    ctypedef union cuplug_scalar:
        double f
        int64_t i
        uint64_t u
        double c[2]
        const char *s
        void *handle
        cuplug_dtype dtype

    uint32_t cuplug_type(const cuplug_tensor *x)
    int64_t cuplug_n_elements(const cuplug_tensor *x)
    int64_t cuplug_element_bytes(const cuplug_tensor *x)

    # Arguments
    ctypedef enum cuplug_argument_kind:
        CUPLUG_ARGUMENT_ABSENT
        CUPLUG_ARGUMENT_ARRAY
        CUPLUG_ARGUMENT_BOOL
        CUPLUG_ARGUMENT_INT
        CUPLUG_ARGUMENT_UINT
        CUPLUG_ARGUMENT_HUGE_INT
        CUPLUG_ARGUMENT_FLOAT
        CUPLUG_ARGUMENT_COMPLEX
        CUPLUG_ARGUMENT_STRING
        CUPLUG_ARGUMENT_NONE
        CUPLUG_ARGUMENT_LIST
        CUPLUG_ARGUMENT_HANDLE
        CUPLUG_ARGUMENT_DTYPE
        CUPLUG_ARGUMENT_OTHER

    enum:
        CUPLUG_NEW_HANDLE

    const char *cuplug_dtype_name(uint32_t k)
    uint32_t cuplug_dtype_id(uint32_t k)

    # Discovery
    ctypedef enum cuplug_origin:
        CUPLUG_ORIGIN_CUPLUG_PATH
        CUPLUG_ORIGIN_LIBRARY_PATH
        CUPLUG_ORIGIN_USER
        CUPLUG_ORIGIN_SYSTEM
        CUPLUG_ORIGIN_ADDED
        CUPLUG_ORIGIN_STOCK
        CUPLUG_ORIGIN_LOADED

    ctypedef enum cuplug_state:
        CUPLUG_STATE_OK
        CUPLUG_STATE_SHADOWED
        CUPLUG_STATE_DUPLICATE
        CUPLUG_STATE_REJECTED
        CUPLUG_STATE_CHANGED
        CUPLUG_STATE_NO_PLUGIN
        CUPLUG_STATE_MISSING

    ctypedef struct cuplug_row:
        pass

    const char *cuplug_row_signature(const cuplug_row *row)
    const char *cuplug_row_doc(const cuplug_row *row)
    const char *cuplug_row_entry(const cuplug_row *row, int32_t device_type)
    uint32_t cuplug_row_flags(const cuplug_row *row)
    const char *cuplug_row_field(const cuplug_row *row, uint32_t k)

    ctypedef struct cuplug_directory:
        pass

    const char *cuplug_directory_path(const cuplug_directory *directory)
    const char *cuplug_directory_reason(const cuplug_directory *directory)
    int32_t cuplug_directory_origin(const cuplug_directory *directory)
    int32_t cuplug_directory_state(const cuplug_directory *directory)

    ctypedef struct cuplug_file:
        pass

    const char *cuplug_file_path(const cuplug_file *file)
    const char *cuplug_file_reason(const cuplug_file *file)
    int32_t cuplug_file_origin(const cuplug_file *file)
    int32_t cuplug_file_state(const cuplug_file *file)
    int cuplug_file_is_loaded(const cuplug_file *file)
    const char *cuplug_file_name(const cuplug_file *file)
    const char *cuplug_file_version(const cuplug_file *file)
    const char *cuplug_file_architectures(const cuplug_file *file)
    uint32_t cuplug_file_abi_version(const cuplug_file *file)
    uint32_t cuplug_file_n_rows(const cuplug_file *file)
    const cuplug_row *cuplug_file_row(const cuplug_file *file, uint32_t k)

    ctypedef struct cuplug_listing:
        pass

    size_t cuplug_listing_n_directories(const cuplug_listing *listing)
    const cuplug_directory *cuplug_listing_directory(const cuplug_listing *listing, size_t k)
    size_t cuplug_listing_n_files(const cuplug_listing *listing)
    const cuplug_file *cuplug_listing_file(const cuplug_listing *listing, size_t k)
    int cuplug_list(int with_files, cuplug_listing **listing, cuplug_error *error)
    void cuplug_free_listing(cuplug_listing *listing)
    int cuplug_inspect(const char *path, cuplug_file **file, cuplug_error *error)
    void cuplug_free_file(cuplug_file *file)
    int cuplug_check_trust(const char *path, cuplug_error *error)
    int cuplug_add_directory(const char *path, cuplug_error *error)

    # Operators
    ctypedef struct cuplug_operator:
        pass

    int cuplug_find(const char *name, cuplug_operator **op, cuplug_error *error)
    int cuplug_find_early(const char *name, cuplug_operator **op, cuplug_error *error)
    int cuplug_load(
        const char *path, cuplug_operator **ops, uint32_t room, uint32_t *n_ops,
        cuplug_error *error
    )
    const char *cuplug_operator_name(const cuplug_operator *op)
    const char *cuplug_operator_plugin(const cuplug_operator *op)
    const char *cuplug_operator_version(const cuplug_operator *op)
    const char *cuplug_operator_path(const cuplug_operator *op)
    const char *cuplug_operator_architectures(const cuplug_operator *op)
    int cuplug_operator_digest(
        const cuplug_operator *op, uint8_t *digest, cuplug_error *error
    )
    int cuplug_operator_is_loaded(const cuplug_operator *op)
    uint32_t cuplug_operator_n_rows(const cuplug_operator *op)
    const cuplug_row *cuplug_operator_row(const cuplug_operator *op, uint32_t k)
    int cuplug_load_code(cuplug_operator *op, cuplug_error *error)
    int cuplug_reload(const cuplug_operator *op, cuplug_operator **fresh, cuplug_error *error)

    # Handles
    ctypedef struct cuplug_handle:
        pass

    int cuplug_close_handle(cuplug_handle *handle, cuplug_error *error)
    int cuplug_free_handle(cuplug_handle *handle, cuplug_error *error)
    int cuplug_handle_is_closed(const cuplug_handle *handle)
    const char *cuplug_handle_tag(const cuplug_handle *handle)
    const cuplug_operator *cuplug_handle_operator(const cuplug_handle *handle)
    cuplug_device cuplug_handle_device(const cuplug_handle *handle)

    ctypedef struct cuplug_argument_list:
        const cuplug_argument *items
        uint32_t n

    ctypedef struct cuplug_argument:
        uint32_t kind
        uint32_t flags
        cuplug_tensor tensor
        cuplug_scalar scalar
        cuplug_argument_list list

    ctypedef int cuplug_progress(
        void *user, uint64_t done_bytes, uint64_t total_bytes, cuplug_error *error
    ) noexcept

    int cuplug_infer(
        cuplug_operator *op, const cuplug_argument *args, uint32_t n_args, uint32_t *row,
        cuplug_tensor *outputs, int64_t (*sizes)[64], uint32_t *n_outputs, cuplug_error *error
    )

    # Devices
    ctypedef struct cuplug_device_info:
        uint32_t struct_bytes
        int32_t compute_capability
        uint64_t memory_bytes
        char name[128]

    int cuplug_n_devices(int32_t *n, int32_t *driver_version, cuplug_error *error)
    int cuplug_query_device(int32_t id, cuplug_device_info *info, cuplug_error *error)
    ctypedef struct cuplug_memory_info:
        uint32_t struct_bytes
        uint64_t total_bytes
        uint64_t free_bytes
        uint64_t reserved_bytes
        uint64_t used_bytes
        uint64_t most_used_bytes
        uint64_t pinned_bytes

    int cuplug_query_memory(int32_t device, cuplug_memory_info *info, cuplug_error *error)
    int cuplug_trim(int32_t device, uint64_t *freed_bytes, cuplug_error *error)

    enum:
        CUPLUG_HELD_BYTES
    ctypedef void cuplug_reclaim(int32_t device, char *held) noexcept
    void cuplug_set_reclaim(cuplug_reclaim *reclaim)
    int cuplug_prepare(cuplug_operator *op, int32_t device, cuplug_error *error)
    int cuplug_free_device(
        int32_t device, void *pointer, void *stream, cuplug_error *error
    )
    int cuplug_allocate_device(
        int32_t device, uint64_t bytes, void *stream, void **pointer, cuplug_error *error
    )
    void *cuplug_allocate_host(uint64_t bytes) noexcept
    void *cuplug_reallocate_host(void *pointer, uint64_t bytes) noexcept
    void cuplug_free_host(void *pointer) noexcept
    uint64_t cuplug_trim_host() noexcept
    int cuplug_copy_watched(
        int32_t device, int to_host, void *to, const void *from_, uint64_t bytes, void *stream,
        cuplug_progress *progress, void *user, cuplug_error *error
    )
    int cuplug_query_stream(
        void *stream, int32_t *device, int32_t *is_captured, cuplug_error *error
    )
    int cuplug_query_pointer(const void *pointer, int32_t *device, cuplug_error *error)
    int cuplug_order_streams(int32_t device, void *waiting, void *stream, cuplug_error *error)
    int cuplug_synchronize(int32_t device, void *stream, int whole_device, cuplug_error *error)
