# SPDX-License-Identifier: Apache-2.0
from cpython.object cimport PyObject
from libc.stdint cimport int32_t

from cuplug._engine.base.core cimport cuplug_argument
from cuplug._engine.interop.reading cimport reading
from cuplug._engine.modules.abi cimport tvm_any

# Argument `at` of a function as a value, which `drop` releases.
cdef int to_value(
    const cuplug_argument *a, PyObject *obj, reading *r, str name, Py_ssize_t at,
    tvm_any *value
) except -1
# Passes arguments as they are, which the caller keeps, if all are tensors of tvm-ffi on the host.
cdef bint take_tensors(
    PyObject *const *args, Py_ssize_t n, reading *r, tvm_any *values
) noexcept
# Releases the object of a value.
cdef void drop(tvm_any *value) noexcept
# A value as a Python object; it takes the value's reference. Tensors become arrays like the first
# of the call.
cdef object to_object(tvm_any *value, reading *r, str name)
# The exception for a function that returned `status`, not raised.
cdef object error_of(str name, int status)
# Calls a function in tvm-ffi's registry.
cdef int call_global(
    const char *name, const tvm_any *args, Py_ssize_t n, tvm_any *result
) except -1
