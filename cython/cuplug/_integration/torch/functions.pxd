# SPDX-License-Identifier: Apache-2.0
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from cuplug._engine.base.core cimport cuplug_argument, cuplug_dtype, cuplug_tensor

cdef enum:
    N_NUMBERS = 64  # of dtypes

ctypedef void (*boxed)(uint64_t *stack, uint64_t n_arguments, uint64_t n_outputs) noexcept

# Functions return 0, or an error. A handle is the address of an at::Tensor, which contains the
# address of its c10::TensorImpl.
ctypedef struct functions:
    int (*init_of_library)(
        const char *name, const char *key, const char *file, uint32_t line, void **library
    ) noexcept nogil
    int (*impl_of_library)(
        void *library, const char *name, boxed f, uint64_t version
    ) noexcept nogil
    uint64_t (*version)() noexcept nogil
    int (*dtype)(void *tensor, int32_t *number) noexcept nogil
    int (*device_type)(void *tensor, int32_t *number) noexcept nogil
    int (*device_index)(void *tensor, int32_t *number) noexcept nogil
    int (*dim)(void *tensor, int64_t *n) noexcept nogil
    int (*sizes)(void *tensor, int64_t **sizes) noexcept nogil
    int (*strides)(void *tensor, int64_t **strides) noexcept nogil
    int (*data_ptr)(void *tensor, void **pointer) noexcept nogil
    int (*storage_offset)(void *tensor, int64_t *offset) noexcept nogil
    int (*empty)(
        int64_t ndim, const int64_t *sizes, const int64_t *strides, int32_t dtype,
        int32_t device_type, int32_t device_index, void **tensor
    ) noexcept nogil
    int (*copy_handle)(void *tensor, void **copy) noexcept nogil
    int (*drop)(void *tensor) noexcept nogil
    int (*string_text)(void *string, const char **text) noexcept nogil
    int (*drop_string)(void *string) noexcept nogil
    bint (*grad_is_enabled)() noexcept nogil
    # C++ functions, whose names may change. Their results are tested.
    void *(*alias)(void *to, void *tensor) noexcept nogil
    unsigned char (*requires_grad)(const void *impl) noexcept nogil
    void **(*forward_gradient)(const void *impl, uint64_t level, void *tensor) noexcept nogil
    unsigned char (*is_included)(uint32_t key) noexcept nogil
    void (*delete_word)(void *word) noexcept nogil
    void (*throw_error)(const char *text) noexcept nogil
    PyObject *(*wrap)(void *tensor) noexcept


cdef functions torch
cdef int (*cuda_stream)(int32_t device, void **stream) noexcept nogil  # NULL if missing
cdef int32_t cpu, cuda  # PyTorch's device types
cdef cuplug_dtype dtypes[N_NUMBERS]  # by PyTorch's dtype numbers; 0 bits: none
cdef size_t place_in_object  # offset of the at::Tensor in a Python tensor
# Returns whether nothing is traced now.
cdef bint is_untraced() noexcept nogil
# Returns whether a tensor is neither wrapped nor recorded. `records`: gradients are enabled.
cdef bint is_plain_tensor(void *tensor, bint records) noexcept nogil
# Reads a tensor as an argument, and sets PyTorch's numbers of its device.
cdef bint read_tensor(
    void *tensor, cuplug_argument *a, int32_t *device_type, int32_t *device_index
) noexcept nogil
# Returns a new C-contiguous tensor and sets x.data, or returns NULL on failure.
cdef void *new_tensor(cuplug_tensor *x, int32_t device_type, int32_t device_index) noexcept nogil
# Throws the pending exception in base.status, as PyTorch's C++ exception for a Python exception.
cdef void throw_pending() noexcept nogil
