# SPDX-License-Identifier: Apache-2.0
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from cuplug._engine.base.core cimport cuplug_argument, cuplug_dtype, cuplug_tensor

cdef enum:
    N_NUMBERS = 64  # of dtypes

ctypedef void (*boxed)(uint64_t *stack, uint64_t n_arguments, uint64_t n_outputs) noexcept

# They return 0, or an error. A handle is the address of an at::Tensor, which holds the address of
# its c10::TensorImpl.
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
    # Of C++: the names are no promise, and what they do is tried.
    void *(*alias)(void *to, void *tensor) noexcept nogil
    unsigned char (*requires_grad)(const void *impl) noexcept nogil
    void **(*forward_gradient)(const void *impl, uint64_t level, void *tensor) noexcept nogil
    unsigned char (*is_included)(uint32_t key) noexcept nogil
    void (*delete_word)(void *word) noexcept nogil
    void (*throw_error)(const char *text) noexcept nogil
    PyObject *(*wrap)(void *tensor) noexcept


cdef functions torch
cdef int (*cuda_stream)(int32_t device, void **stream) noexcept nogil  # NULL: there is none
cdef int32_t cpu, cuda  # PyTorch's numbers
cdef cuplug_dtype dtypes[N_NUMBERS]  # by PyTorch's numbers; 0 bits: none
cdef size_t place_in_object  # of the at::Tensor in a Python tensor
# Whether nothing traces now.
cdef bint is_untraced() noexcept nogil
# Whether nothing wraps or records a tensor: `records`, where gradients are.
cdef bint is_plain_tensor(void *tensor, bint records) noexcept nogil
# Read a tensor as an argument; set PyTorch's numbers of its device.
cdef bint read_tensor(
    void *tensor, cuplug_argument *a, int32_t *device_type, int32_t *device_index
) noexcept nogil
# A new C-contiguous tensor, to which x.data is set; NULL where there is none.
cdef void *new_tensor(cuplug_tensor *x, int32_t device_type, int32_t device_index) noexcept nogil
# Throw what waits in base.status, as PyTorch's own C++ exception for one of Python.
cdef void throw_pending() noexcept nogil
