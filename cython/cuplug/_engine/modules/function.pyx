# SPDX-License-Identifier: Apache-2.0
"""A function of a module without a description, called with its arguments in DLPack's form."""

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_XDECREF
from libc.stdint cimport int32_t, uint32_t

from cuplug._engine.arguments.inputs cimport read_again, read_arguments
from cuplug._engine.array.array cimport Array
from cuplug._engine.array.buffer cimport check_origin
from cuplug._engine.base.core cimport (
    CUPLUG_ARGUMENT_ARRAY,
    CUPLUG_ARGUMENT_LIST,
    CUPLUG_CUDA,
    CUPLUG_CUDA_MANAGED,
    cuplug_argument,
)
from cuplug._engine.base.core_call cimport cuplug_frame
from cuplug._engine.base.vectorcall cimport (
    PyVectorcall_Call,
    PyVectorcall_NARGS,
    enable_vectorcall,
    vectorcallfunc,
)
from cuplug._engine.cuda.streams cimport order_streams, refuse_capture
from cuplug._engine.interop.reading cimport MAX_ARGUMENTS, items_of, reading, start_reading
from cuplug._engine.interop.stream_order cimport enter_stream, leave_stream
from cuplug._engine.modules.abi cimport tvm_any, tvm_call
from cuplug._engine.modules.runtime cimport run_function, runtime
from cuplug._engine.modules.values cimport drop, error_of, take_tensors, to_object, to_value

ON_DEFAULT = "another (the module does not receive the stream)"


@cython.final
cdef class ModuleFunction:
    """A function of a tvm-ffi module that has no description.

    It takes arrays of any library, numbers, strings, None and lists of these, by position. Only the
    function itself checks its arguments. It may write to all arrays.

    Attributes
    ----------
    name, plugin, path : str
    """

    cdef vectorcallfunc vectorcall
    cdef void *self
    cdef tvm_call *call
    cdef object made  # its pickled form
    cdef readonly str name
    cdef readonly str plugin
    cdef readonly str path

    def __cinit__(
        self, str name, str plugin, str path, size_t handle, size_t call, made: tuple[Any, ...]
    ):
        self.name, self.plugin, self.path, self.made = name, plugin, path, made
        self.self = <void *>handle
        self.call = <tvm_call *>call
        self.vectorcall = <vectorcallfunc>call_function

    @property
    def __name__(self):
        return self.name

    @property
    def version(self) -> str:
        """Return no version: modules have none."""
        return ""

    def __call__(self, *args, **keywords):
        return PyVectorcall_Call(self, args, keywords)

    def _rebind(self, size_t handle, size_t call):
        self.self, self.call = <void *>handle, <tvm_call *>call

    def __reduce__(self):
        return self.made

    def __repr__(self):
        return f"<function {self.name} of the tvm-ffi module {self.path}>"


cdef ModuleFunction nothing = None  # its fields are not read
enable_vectorcall(ModuleFunction, <char *>&nothing.vectorcall - <char *><PyObject *>nothing)


cdef object call_function(
    PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *keywords
):
    cdef ModuleFunction self = <ModuleFunction>callable
    cdef Py_ssize_t n = PyVectorcall_NARGS(nargsf)
    cdef reading r
    cdef tvm_any values[MAX_ARGUMENTS]
    if keywords != NULL and len(<tuple>keywords):
        raise TypeError(f"{self.name}: got keywords, expected arguments by position")
    if n > MAX_ARGUMENTS:
        raise TypeError(f"{self.name}: got {n} arguments, expected at most {MAX_ARGUMENTS}")
    start_reading(&r)
    if take_tensors(args, n, &r, values):
        return run_on_host(self, &r, values, n)
    try:
        read_arguments(args, <uint32_t>n, &r, 0)
        if r.must_reread:
            read_again(&r, <uint32_t>n)
        return run(self, &r, values, n)
    finally:
        Py_XDECREF(r.kept)


cdef object run(ModuleFunction self, reading *r, tvm_any *values, Py_ssize_t n):
    cdef tvm_any result
    cdef cuplug_frame frame
    cdef Py_ssize_t k, n_made = 0
    cdef int32_t device = -1
    cdef int status
    try:
        for k in range(n):
            if r.args[k].kind == CUPLUG_ARGUMENT_ARRAY:
                note_array(self, k, r.objects[k], &r.args[k], &device)
            elif r.args[k].kind == CUPLUG_ARGUMENT_LIST:
                note_items(self, k, &r.args[k], &device)
            to_value(&r.args[k], r.objects[k], r, self.name, k, &values[k])
            n_made += 1
        if device < 0:
            return run_on_host(self, r, values, n)
        status = run_on_gpu(self, r, values, n, device, &frame, &result)
        if status:
            raise error_of(self.name, status)
        return to_object(&result, r, self.name)
    finally:
        for k in range(n_made):
            drop(&values[k])


cdef object run_on_host(ModuleFunction self, reading *r, const tvm_any *values, Py_ssize_t n):
    cdef tvm_any result
    cdef int status
    with nogil:
        status = run_function(self.self, self.call, values, <int32_t>n, -1, NULL, &result)
    if status:
        raise error_of(self.name, status)
    return to_object(&result, r, self.name)


cdef int run_on_gpu(
    ModuleFunction self, reading *r, const tvm_any *values, Py_ssize_t n, int32_t device,
    cuplug_frame *frame, tvm_any *result
) except *:
    """Run on the first library's current stream, ordered with the streams of other arrays."""
    cdef bint is_told = runtime.set_stream != NULL
    cdef int status
    frame.home.type = frame.device.type = CUPLUG_CUDA
    frame.home.id = frame.device.id = device
    enter_stream(r, frame)
    if not is_told:
        refuse_capture(self.name, frame.stream, ON_DEFAULT)
        order_streams(device, NULL, frame.stream)
    with nogil:
        status = run_function(
            self.self, self.call, values, <int32_t>n, device, frame.stream, result
        )
    if not is_told:
        order_streams(device, frame.stream, NULL)
    if r.n_streams:
        leave_stream(r, frame)
    return status


cdef int note_array(
    ModuleFunction self, Py_ssize_t k, PyObject *obj, const cuplug_argument *a, int32_t *device
) except -1:
    """Find the GPU of a call, and raise the faults of the kernels that wrote its arrays."""
    if a.tensor.device.type != CUPLUG_CUDA and a.tensor.device.type != CUPLUG_CUDA_MANAGED:
        return 0
    if device[0] >= 0 and device[0] != a.tensor.device.id:
        raise ValueError(
            f"{self.name}: argument {k}: got an array on cuda:{a.tensor.device.id}, expected "
            f"cuda:{device[0]} (as the arrays before); move one"
        )
    device[0] = a.tensor.device.id
    if type(<object>obj) is Array:
        check_origin(<Array><object>obj)
    return 0


cdef int note_items(
    ModuleFunction self, Py_ssize_t k, const cuplug_argument *a, int32_t *device
) except -1:
    cdef uint32_t i
    cdef const cuplug_argument *items = <const cuplug_argument *>a.list.items
    for i in range(a.list.n):
        if items[i].kind == CUPLUG_ARGUMENT_ARRAY:
            note_array(self, k, items_of(a)[i], &items[i], device)
    return 0
