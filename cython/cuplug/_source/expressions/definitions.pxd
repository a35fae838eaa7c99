# SPDX-License-Identifier: Apache-2.0
# Declarations of <runtime/expressions.h>.
from libc.stdint cimport int32_t, uint8_t, uint16_t, uint32_t, uint64_t

from cuplug._engine.base.core cimport cuplug_error
from cuplug._engine.base.core_call cimport cuplug_call, cuplug_frame, cuplug_term


cdef extern from "runtime/expressions.h" nogil:
    ctypedef struct cuplug_variant:
        int32_t device
        uint64_t still
        uint64_t fixed
        uint64_t near
        uint64_t across
        uint32_t types[64]
        uint8_t n_arrays
        uint8_t width
        uint8_t unroll
        uint8_t ndim
        uint8_t n_reduced
        uint8_t wide
        uint8_t columns
        uint8_t alone
        uint8_t flat
        uint8_t few
        uint8_t stores
        uint8_t walk

    ctypedef struct cuplug_code:
        void *function
        void *finish

    ctypedef int cuplug_compile(
        void *user, const cuplug_variant *variant, cuplug_code *code, cuplug_error *error
    ) noexcept

    ctypedef struct cuplug_source:
        cuplug_compile *compile
        void *user
        uint32_t in_order
        uint32_t accumulator_bytes
        uint32_t has_identity
        uint32_t strided_below
        uint32_t n_outputs
        uint64_t raw
        uint32_t work
        uint32_t n_sizes
        const cuplug_term *sizes

    int cuplug_elementwise_host(const cuplug_call *call) noexcept
    int cuplug_elementwise_cuda(const cuplug_call *call) noexcept
    int cuplug_reduction_host(const cuplug_call *call) noexcept
    int cuplug_reduction_cuda(const cuplug_call *call) noexcept
    int cuplug_reduction_reshape(cuplug_frame *frame, cuplug_error *error) noexcept
    int cuplug_rows_host(const cuplug_call *call) noexcept
    int cuplug_rows_cuda(const cuplug_call *call) noexcept
    int cuplug_scan_host(const cuplug_call *call) noexcept
    int cuplug_scan_cuda(const cuplug_call *call) noexcept

    enum:
        CUPLUG_MAX_PASSES

    ctypedef struct cuplug_kernel_argument:
        int32_t kind
        int32_t operand
        uint32_t type
        uint16_t unit_bytes
        uint16_t unit_alignment
        cuplug_term number

    ctypedef struct cuplug_launch_plan:
        cuplug_term grid[3]
        cuplug_term block[3]
        cuplug_term shared_bytes
        const cuplug_kernel_argument *passes
        uint32_t n_passes
        uint32_t per_thread

    int cuplug_kernel_cuda(const cuplug_call *call) noexcept
    int cuplug_function_host(const cuplug_call *call) noexcept
