# SPDX-License-Identifier: Apache-2.0
"""Operators as functions of tvm-ffi: arrays of the host without Python, all others through it."""

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int32_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc

from cuplug._engine.base.core cimport (
    CUPLUG_ARGUMENT_ABSENT,
    CUPLUG_ARGUMENT_BOOL,
    CUPLUG_ARGUMENT_FLOAT,
    CUPLUG_ARGUMENT_INT,
    CUPLUG_ARGUMENT_NONE,
    CUPLUG_ARGUMENT_STRING,
    CUPLUG_CPU,
    cuplug_allocate_host,
    cuplug_argument,
    cuplug_array,
    cuplug_default_options,
    cuplug_element_bytes,
    cuplug_error,
    cuplug_free_host,
    cuplug_invoke,
    cuplug_n_elements,
    cuplug_operator,
    cuplug_options,
    cuplug_tensor,
)
from cuplug._engine.base.status cimport raise_error
from cuplug._engine.call.operator cimport Operator
from cuplug._engine.modules.abi cimport (
    TVM_BOOL,
    TVM_FLOAT,
    TVM_INT,
    TVM_NONE,
    TVM_RAW_TENSOR,
    TVM_RAW_TEXT,
    TVM_TENSOR,
    tvm_any,
    tvm_bytes,
    tvm_callable,
    tvm_free_tensor,
    tvm_make_tensor,
    tvm_object,
    tvm_release,
    tvm_retain,
    tvm_tensor,
)
from cuplug._engine.modules.runtime cimport load_exports, runtime

from cuplug.errors import PluginError

cdef enum:
    MAX_VALUES = 64

# The operator of a function of tvm-ffi.
ctypedef struct exported:
    PyObject *operator
    cuplug_operator **op  # a field of it, which reload replaces
    int n_parameters
    int n_outputs  # that are given
    tvm_object *other  # the function for all other calls


cdef bint to_argument(const tvm_any *value, cuplug_argument *a) noexcept nogil:
    """Return whether a value needs no Python: a number, a text, or an array of the host."""
    cdef const cuplug_tensor *tensor
    a.flags = 0
    if value.type == TVM_TENSOR or value.type == TVM_RAW_TENSOR:
        tensor = <const cuplug_tensor *>value.value.p
        if value.type == TVM_TENSOR:
            tensor = &(<const tvm_tensor *>value.value.p).tensor
        a[0] = cuplug_array(tensor)
        return tensor.device.type == CUPLUG_CPU
    if value.type == TVM_INT or value.type == TVM_BOOL:
        a.kind = CUPLUG_ARGUMENT_INT if value.type == TVM_INT else CUPLUG_ARGUMENT_BOOL
        a.scalar.i = value.value.i
    elif value.type == TVM_FLOAT:
        a.kind = CUPLUG_ARGUMENT_FLOAT
        a.scalar.f = value.value.f
    elif value.type == TVM_RAW_TEXT:
        a.kind = CUPLUG_ARGUMENT_STRING
        a.scalar.s = <const char *>value.value.p
    else:
        a.kind = CUPLUG_ARGUMENT_NONE
        return value.type == TVM_NONE
    return True


cdef void free_made(void *self, int what) noexcept nogil:
    if what & 1:
        cuplug_free_host((<tvm_tensor *>self).owner)
    if what & 2:
        tvm_free_tensor(self)


cdef int allocate_made(
    void *user, uint32_t output, cuplug_tensor *tensor, cuplug_error *error
) noexcept nogil:
    """Make the tensor of the only output."""
    cdef uint64_t n_bytes = cuplug_n_elements(tensor) * cuplug_element_bytes(tensor)
    cdef tvm_tensor **made = <tvm_tensor **>user
    tensor.data = cuplug_allocate_host(n_bytes + (not n_bytes))
    if tensor.data != NULL:
        made[0] = tvm_make_tensor(tensor, tensor.data, free_made)
        if made[0] == NULL:
            cuplug_free_host(tensor.data)
            tensor.data = NULL
    return tensor.data == NULL


cdef int call_operator(
    void *self, const tvm_any *values, int32_t n, tvm_any *result
) noexcept nogil:
    cdef const exported *function = <const exported *>self
    cdef cuplug_argument args[2 * MAX_VALUES]
    cdef cuplug_options options
    cdef cuplug_error error
    cdef tvm_tensor *made = NULL
    cdef int32_t k, n_given = n - function.n_outputs
    cdef bint is_plain = 0 <= n_given <= function.n_parameters
    for k in range(n if is_plain else 0):
        is_plain &= to_argument(
            &values[k], &args[k if k < n_given else function.n_parameters + k - n_given]
        )
    if not is_plain:
        return (<tvm_callable *>function.other).call(function.other, values, n, result)
    for k in range(n_given, function.n_parameters):
        args[k].kind = CUPLUG_ARGUMENT_ABSENT
        args[k].flags = 0
    options = cuplug_default_options()
    options.allocate = allocate_made
    options.user = &made
    if cuplug_invoke(
        function.op[0], args, function.n_parameters + function.n_outputs, &options, &error
    ):
        if made != NULL:
            tvm_release(&made.head)
        return raise_in_tvm(&error)
    result.type = TVM_TENSOR if made != NULL else TVM_NONE
    result.n_small = 0
    result.value.p = made
    return 0


cdef int raise_in_tvm(const cuplug_error *error) noexcept with gil:
    try:
        raise_error(error)
    except BaseException as raised:
        kind, message = type(raised).__name__.encode(), str(raised).encode("utf-8", "replace")
        runtime.raise_error(kind, message)
    return -1


cdef void delete_exported(void *self) noexcept with gil:
    Py_DECREF(<object>(<exported *>self).operator)
    tvm_release((<exported *>self).other)
    free(self)


def export_function(Operator operator, int n_parameters, int n_outputs, size_t other, str name):
    """Register a function of tvm-ffi that calls an operator of arrays, numbers and texts.

    `n_outputs` of its arguments are outputs; with 0 the operator has one output. `other` is the
    function of tvm-ffi that is called for arrays on a GPU, lists and all other arguments.
    """
    cdef exported *function
    cdef void *made = NULL
    cdef tvm_bytes text
    cdef bytes encoded = name.encode()
    load_exports(name)
    function = <exported *>malloc(sizeof(exported))
    if function == NULL:
        raise MemoryError()
    Py_INCREF(operator)
    function.operator = <PyObject *>operator
    function.op = &operator.op
    function.n_parameters, function.n_outputs = n_parameters, n_outputs
    function.other = <tvm_object *>other
    tvm_retain(function.other)
    if runtime.create_function(<void *>function, call_operator, delete_exported, &made):
        delete_exported(function)
        raise PluginError(f"{name}: tvm-ffi made no function")
    text.data, text.n = encoded, len(encoded)
    status = runtime.set_global(&text, made, 1)
    tvm_release(<tvm_object *>made)
    if status:
        raise PluginError(f"{name}: tvm-ffi registered no function")
