# SPDX-License-Identifier: Apache-2.0
# Declarations of <internal/functions.h>: one call in two halves, copies on the
# host, look-ups, files. For this package alone: the headers are not installed.
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from cuplug._engine.base.core cimport (
    cuplug_argument,
    cuplug_device,
    cuplug_error,
    cuplug_handle,
    cuplug_operator,
    cuplug_progress,
    cuplug_scalar,
    cuplug_tensor,
)


cdef extern from "internal/core.h" nogil:
    # Signatures
    enum:
        CUPLUG_ANY_ROW
        CUPLUG_NOT_CALLED
        CUPLUG_MAX_ARGUMENTS
        CUPLUG_COPY_ITEMS
        CUPLUG_WORD_HOST
        CUPLUG_PARAMETER_ARRAY
        CUPLUG_PARAMETER_INOUT
        CUPLUG_PARAMETER_SCALAR
        CUPLUG_PARAMETER_STRING
        CUPLUG_PARAMETER_CHOICE
        CUPLUG_PARAMETER_OUTPUT
        CUPLUG_PARAMETER_LIST
        CUPLUG_PARAMETER_ARRAYS
        CUPLUG_PARAMETER_HANDLE
        CUPLUG_PARAMETER_DTYPE

    ctypedef enum cuplug_dim_kind:
        CUPLUG_DIM_FIXED
        CUPLUG_DIM_NAMED
        CUPLUG_DIM_VARIADIC
        CUPLUG_DIM_LOOP
        CUPLUG_DIM_UNKNOWN
        CUPLUG_DIM_FORMULA
        CUPLUG_DIM_SLICE
        CUPLUG_DIM_LISTED

    ctypedef enum cuplug_step_kind:
        CUPLUG_STEP_SIZE
        CUPLUG_STEP_SCALAR
        CUPLUG_STEP_REAL
        CUPLUG_STEP_NDIM
        CUPLUG_STEP_PRODUCT
        CUPLUG_STEP_ITEM
        CUPLUG_STEP_LENGTH
        CUPLUG_STEP_ELEMENT

    ctypedef struct cuplug_step:
        int32_t kind
        int32_t operand
        int64_t value

    ctypedef struct cuplug_formula:
        const cuplug_step *steps
        uint32_t n_steps

    ctypedef struct cuplug_dim:
        int32_t kind
        uint32_t at
        int64_t value
        cuplug_formula formula
        cuplug_formula end
        const char *text

    ctypedef struct cuplug_parameter:
        const char *name
        int32_t kind
        int32_t type_variable
        int32_t n_dims
        int32_t has_default
        const cuplug_dim *dims
        int32_t default_kind
        int32_t n_choices
        cuplug_scalar default_value
        const char *default_text
        const char **choices
        const char *tag
        int32_t is_inout
        int32_t is_each
        uint32_t address_mask
        uint32_t words
        int32_t like
        uint32_t type_at
        uint32_t type_end

    ctypedef struct cuplug_type_variable:
        const char *name
        uint64_t dtypes

    ctypedef struct cuplug_side:
        int32_t relation
        cuplug_formula formula

    ctypedef struct cuplug_condition:
        const char *text
        const cuplug_side *sides
        uint32_t n_sides
        uint32_t at
        int32_t array

    ctypedef struct cuplug_dim_source:
        int32_t array
        int32_t n_before
        int32_t n_after
        int32_t is_group

    ctypedef struct cuplug_signature:
        const char *name
        const char *text
        int32_t n_parameters
        int32_t n_outputs
        int32_t n_variables
        int32_t n_dim_names
        int32_t n_conditions
        int32_t n_lists
        int32_t n_each_lists
        uint64_t each_names
        uint64_t optional_outputs
        uint64_t host_arrays
        uint32_t parameters_end
        cuplug_parameter *parameters
        const cuplug_parameter *made
        cuplug_type_variable *variables
        const char **dim_names
        cuplug_dim_source *places
        cuplug_condition *conditions

    int cuplug_parse_signature "cuplug_core->parse_signature"(
        const char *text, cuplug_signature **signature, uint32_t *position, cuplug_error *error
    )
    int cuplug_parse_short "cuplug_core->parse_short"(
        const char *text, cuplug_signature **signature, uint32_t *position, cuplug_error *error
    )
    void cuplug_free_signature "cuplug_core->free_signature"(cuplug_signature *signature)
    const cuplug_signature *cuplug_operator_signature(const cuplug_operator *op, uint32_t k)

    # One call
    ctypedef int cuplug_allocate(
        void *user, cuplug_frame *frame, uint32_t tensor, cuplug_error *error
    ) noexcept

    ctypedef int cuplug_keep_workspace(
        void *user, const cuplug_frame *frame, uint32_t number, uint64_t n_bytes, void **pointer,
        cuplug_error *error
    ) noexcept

    ctypedef struct cuplug_frame:
        cuplug_operator *op
        const cuplug_signature *signature
        uint32_t row
        uint32_t n_tensors
        uint32_t n_inputs
        uint32_t n_scalars
        uint64_t copy_mask
        uint32_t runs_with_gil
        uint64_t unaligned_stride_mask
        cuplug_device home
        cuplug_device device
        void *stream
        cuplug_handle **made
        cuplug_allocate *allocate
        cuplug_progress *progress
        cuplug_keep_workspace *keep_scratch
        void *user
        void *blocks
        const uint64_t *origins
        uint32_t n_origins
        uint64_t origin
        int32_t staged
        uint8_t parameter[64]
        cuplug_tensor tensors[64]
        int64_t n_bytes[64]
        cuplug_scalar scalars[64]

    int cuplug_bind "cuplug_core->bind"(
        cuplug_operator *op, const cuplug_argument *args, uint32_t n_args, cuplug_frame *frame,
        cuplug_error *error
    )
    const cuplug_error *cuplug_call_again "cuplug_core->call_again"(
        cuplug_operator *op, uint32_t row, const cuplug_argument *args, uint32_t n_parameters,
        uint32_t n_outputs
    )
    int cuplug_bind_row "cuplug_core->bind_row"(
        cuplug_operator *op, uint32_t row, const cuplug_argument *args, uint32_t n_args,
        uint32_t needs_memory, cuplug_frame *frame, int32_t *n_matched, cuplug_error *error
    )
    int32_t cuplug_required_shape "cuplug_core->required_shape"(
        const cuplug_frame *frame, uint32_t k, int64_t *shape
    )
    void cuplug_copy_input "cuplug_core->copy_input"(
        const cuplug_frame *frame, uint32_t k, void *to
    )
    int cuplug_set_output "cuplug_core->set_output"(
        cuplug_frame *frame, uint32_t k, const cuplug_argument *given, cuplug_error *error
    )
    void cuplug_free_blocks "cuplug_core->free_blocks"(void *blocks)
    void cuplug_leave_out(cuplug_frame *frame, uint32_t k)
    void cuplug_keep_layout "cuplug_core->keep_layout"(cuplug_frame *frame) nogil
    uint64_t cuplug_required_copies "cuplug_core->required_copies"(const cuplug_frame *frame)
    int cuplug_check_device "cuplug_core->check_device"(
        const cuplug_frame *frame, cuplug_error *error
    )
    int cuplug_run "cuplug_core->run"(cuplug_frame *frame, cuplug_error *error)
    uint64_t cuplug_n_rounding_changes "cuplug_core->n_rounding_changes"()

    ctypedef struct cuplug_call:
        pass

    ctypedef int cuplug_entry(const cuplug_call *call) noexcept

    ctypedef int cuplug_reshape(cuplug_frame *frame, cuplug_error *error) noexcept

    ctypedef struct cuplug_term:
        cuplug_formula formula
        const char *text

    int cuplug_copy_array "cuplug_core->copy_array"(
        const cuplug_tensor *to, const cuplug_tensor *source
    )

    int cuplug_find_stock "cuplug_core->find_stock"(
        const char *name, cuplug_operator **op, cuplug_error *error
    )
    cuplug_operator *cuplug_find_loaded "cuplug_core->find_loaded"(const char *name)

    int cuplug_check_owner "cuplug_core->check_owner"(const char *path, cuplug_error *error)
    void *cuplug_open_library "cuplug_core->open_library"(
        const char *path, cuplug_error *error
    )
