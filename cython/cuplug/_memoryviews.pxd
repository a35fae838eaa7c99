# SPDX-License-Identifier: Apache-2.0
# Code that the typed functions of cuplug bind share. It uses no Python objects. Each name here is
# parsed for each module that uses a typed function, so there are few of them.
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t


cdef extern from "cuplug/view.h" nogil:
    """
    /* A new one for each place where it is written. */
    #define CUPLUG_NEW_SLOT (__extension__({ static cuplug_operator *slot; &slot; }))
    """
    enum:
        BOOL "CUPLUG_BOOL"
        UINT8 "CUPLUG_UINT8"
        UINT16 "CUPLUG_UINT16"
        FLOAT16 "CUPLUG_FLOAT16"
        BFLOAT16 "CUPLUG_BFLOAT16"

    ctypedef struct cuplug_operator:
        pass
    ctypedef struct cuplug_handle:
        pass
    ctypedef struct cuplug_argument:
        pass
    ctypedef struct Device "cuplug_device":
        int32_t type
        int32_t id
    ctypedef struct Tensor "cuplug_tensor":
        void *data
        Device device
        int32_t ndim
        int64_t *shape
        int64_t *strides
        uint64_t byte_offset
    # An array that somebody else owns.
    ctypedef struct View "cuplug_view":
        void *data
        uint64_t head
        uint32_t type
        uint32_t rank
        int64_t shape[4]
        void *stream
        int64_t strides[4]

    # The part of a view that an argument borrows.
    ctypedef struct Shape "cuplug_view_shape":
        pass

    cuplug_operator **NEW_SLOT "CUPLUG_NEW_SLOT"
    # at(pointer, sizes...): a view of C-contiguous memory, of at most four dimensions.
    View at "CUPLUG_VIEW_AT"(...)
    View view_as "cuplug_view_as"(View view, uint32_t dtype)
    View no_view "cuplug_no_view"()
    View view_of_tensor "cuplug_view_of_tensor"(const Tensor *x)
    View on_gpu "cuplug_view_on_gpu"(View view, int32_t device)
    View on_stream "cuplug_view_on_stream"(View view, void *stream)
    uint32_t dtype_of "cuplug_type"(const Tensor *x)
    void stand_in "cuplug_view_stand_in"(View *view, uint32_t dtype, uint32_t meant)
    void set_view "cuplug_set_view"(cuplug_argument *argument, View view, Shape *own)
    cuplug_argument new_view "cuplug_new_view"(View *place)
    cuplug_argument views "cuplug_views"(const View *items, uint32_t n)
    cuplug_argument ints "cuplug_ints"(const int64_t *items, uint32_t n)
    cuplug_argument floats "cuplug_floats"(const double *items, uint32_t n)
    cuplug_argument string "cuplug_string"(const char *value)
    cuplug_argument boolean "cuplug_bool"(bint value)
    cuplug_argument signed_number "cuplug_int"(int64_t value)
    cuplug_argument unsigned_number "cuplug_uint"(uint64_t value)
    cuplug_argument real_number "cuplug_float"(double value)
    cuplug_argument complex_number "cuplug_complex"(double real, double imaginary)
    cuplug_argument none "cuplug_none"()
    cuplug_argument handle "cuplug_handle_argument"(cuplug_handle *handle)
    cuplug_argument new_handle "cuplug_new_handle"(cuplug_handle **place)


# Runs an operator, found at the first call and kept in *slot. `name` is "plugin.operator", or
# "plugin." and the text of the signature, which the operator must have. The arguments are
# n_parameters parameters, then n_outputs outputs.
cdef int call(
    cuplug_operator **slot, const char *name, const cuplug_argument *arguments,
    uint32_t n_parameters, uint32_t n_outputs,
) except -1 nogil

# The same; arrays of a GPU are used on `stream`. NULL: as in calls from Python, on the stream of
# the `with` block around, if there is one, or on the legacy default stream.
cdef int call_on_stream(
    cuplug_operator **slot, const char *name, const cuplug_argument *arguments,
    uint32_t n_parameters, uint32_t n_outputs, void *stream,
) except -1 nogil

# The same, with lists among its parameters, whose arguments are changed.
cdef int call_with_lists(
    cuplug_operator **slot, const char *name, cuplug_argument *arguments,
    uint32_t n_parameters, uint32_t n_outputs, void *stream,
) except -1 nogil

# The stream that such a call uses on a GPU; NULL is the legacy default stream.
cdef void *current_stream(int32_t device) except? NULL nogil

# The tensor of a cuplug.Array, valid while the array exists; NULL for None.
cdef const Tensor *tensor_of(object array) noexcept nogil

# A view of a cuplug.Array, valid while the array exists; for None, a view without an array.
cdef View view_of_array(object array) noexcept nogil

# Frees the memory of an output whose size only the run knew.
cdef void free_view(View *view) noexcept nogil

# Closes and frees a handle that a typed function has made.
cdef int close_handle(cuplug_handle *handle) except -1 nogil
