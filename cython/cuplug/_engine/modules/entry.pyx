# SPDX-License-Identifier: Apache-2.0
"""Described functions of modules as operators: their definition, and the entry that calls them."""

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from cuplug._engine.base.core cimport (
    CUPLUG_CUDA,
    CUPLUG_OVERLOAD_NO_SPLIT,
    cuplug_call,
    cuplug_error,
    cuplug_scalar,
    cuplug_tensor,
)
from cuplug._engine.base.core_call cimport cuplug_term
from cuplug._engine.base.runtime cimport (
    cuplug_definition_overload,
    cuplug_entry_error,
    cuplug_entry_number,
)
from cuplug._engine.base.status cimport raise_later
from cuplug._engine.call.define cimport define
from cuplug._engine.cuda.streams cimport order_streams, refuse_capture
from cuplug._engine.modules.abi cimport (
    TVM_BOOL,
    TVM_FLOAT,
    TVM_INT,
    TVM_NONE,
    TVM_OBJECT,
    TVM_RAW_TEXT,
    TVM_TENSOR,
    tvm_any,
    tvm_call,
    tvm_free_tensor,
    tvm_is_shared,
    tvm_make_tensor,
    tvm_object,
    tvm_release,
)
from cuplug._engine.modules.runtime cimport run_function, runtime
from cuplug._engine.modules.values cimport error_of
from cuplug._engine.signature.terms cimport allocate, set_term

from cuplug._engine.base.dtypes import DTYPES
from cuplug.errors import PluginError

cdef enum:
    MAX_VALUES = 64

# The source of an argument of the function.
cdef enum:
    FROM_ARRAY
    FROM_INT
    FROM_FLOAT
    FROM_BOOL
    FROM_TEXT
    FROM_NUMBER

KINDS = {
    "array": FROM_ARRAY, "int": FROM_INT, "float": FROM_FLOAT, "bool": FROM_BOOL,
    "text": FROM_TEXT, "number": FROM_NUMBER,
}
cdef uint32_t INT64 = DTYPES["int64"].id

ctypedef struct source:
    int kind
    int at
    cuplug_term term

# The code of a loaded module. Never freed, as calls may be in progress.
ctypedef struct code:
    void *self
    tvm_call *call

# Never freed, like the operator.
ctypedef struct described:
    code *code  # replaced as a whole, while calls on other threads read it
    const char *name
    int n
    source sources[MAX_VALUES]

cdef extern from *:
    """
    #define cuplug_load_code(place) __atomic_load_n(place, __ATOMIC_ACQUIRE)
    #define cuplug_store_code(place, value) __atomic_store_n(place, value, __ATOMIC_RELEASE)
    """
    code *load_code "cuplug_load_code"(code **place) noexcept nogil
    void store_code "cuplug_store_code"(code **place, code *fresh) noexcept nogil

ON_DEFAULT = "another (the module does not receive the stream)"


cdef void free_tensor(void *self, int what) noexcept nogil:
    if what & 2:
        tvm_free_tensor(self)


cdef int fill(const cuplug_call *call, const source *s, tvm_any *value) noexcept nogil:
    cdef const cuplug_tensor *x
    value.type = TVM_NONE
    value.n_small = 0
    value.value.i = 0
    if s.kind == FROM_ARRAY:
        x = &call.tensors[s.at]
        if x.ndim < 0:  # an optional one that is absent
            return 0
        value.type = TVM_TENSOR
        value.value.p = tvm_make_tensor(x, NULL, free_tensor)
        return fail_by_memory(call) if value.value.p == NULL else 0
    if s.kind == FROM_NUMBER:
        value.type = TVM_INT
        return cuplug_entry_number(call, &s.term, b"arguments", INT64, &value.value.i)
    if call.none_mask >> s.at & 1:
        return 0
    if s.kind == FROM_FLOAT:
        value.type = TVM_FLOAT
        value.value.f = call.scalars[s.at].f
    elif s.kind == FROM_TEXT:
        value.type = TVM_RAW_TEXT
        value.value.p = call.scalars[s.at].s
    else:
        value.type = TVM_BOOL if s.kind == FROM_BOOL else TVM_INT
        value.value.i = call.scalars[s.at].i
    return 0


cdef int fail_by_memory(const cuplug_call *call) noexcept with gil:
    return raise_later(MemoryError(), cuplug_entry_error(call))


cdef int fail_by_function(
    const cuplug_call *call, const described *function, int status
) noexcept with gil:
    return raise_later(error_of(function.name.decode(), status), cuplug_entry_error(call))


cdef int fail_by_reference(
    const cuplug_call *call, const described *function
) noexcept with gil:
    name = function.name.decode()
    return raise_later(
        PluginError(
            f"{name}: got a function that keeps a reference to an array, expected none after the "
            "call; call it without a description"
        ),
        cuplug_entry_error(call),
    )


cdef int run_described(const cuplug_call *call) noexcept nogil:
    """Run the entry for the host or a GPU."""
    cdef tvm_any values[MAX_VALUES]
    cdef const described *function = <const described *>call.context
    cdef int k, n_made = 0, status = 0
    cdef bint is_shared = False
    while n_made < function.n and not status:
        status = fill(call, &function.sources[n_made], &values[n_made])
        n_made += 1
    if not status:
        status = call_function(call, function, values)
    for k in range(n_made):
        if values[k].type == TVM_TENSOR and values[k].value.p != NULL:
            is_shared |= tvm_is_shared(<tvm_object *>values[k].value.p)
            tvm_release(<tvm_object *>values[k].value.p)
    return fail_by_reference(call, function) if is_shared and not status else status


cdef int call_function(
    const cuplug_call *call, const described *function, const tvm_any *values
) noexcept nogil:
    cdef int32_t device = call.device.id if call.device.type == CUPLUG_CUDA else -1
    cdef bint on_default = device >= 0 and runtime.set_stream == NULL
    cdef const code *current = load_code(<code **>&function.code)
    cdef tvm_any result
    cdef int status
    if on_default and order(call, function, True):
        return 1
    status = run_function(
        current.self, current.call, values, function.n, device, call.stream, &result
    )
    if on_default and order(call, function, False):
        return 1
    if status:
        return fail_by_function(call, function, status)
    if result.type >= TVM_OBJECT:
        tvm_release(<tvm_object *>result.value.p)
    return 0


cdef int order(
    const cuplug_call *call, const described *function, bint is_before
) noexcept with gil:
    """Order the default stream, the only one that the module uses, with the call's stream."""
    try:
        if is_before:
            refuse_capture(function.name.decode(), call.stream, ON_DEFAULT)
            order_streams(call.device.id, NULL, call.stream)
        else:
            order_streams(call.device.id, call.stream, NULL)
        return 0
    except BaseException as error:
        return raise_later(error, cuplug_entry_error(call))


def define_described(
    str signature, list sources, size_t handle, size_t call, str place, str plugin, str path,
    str doc, made: PublicCall,
) -> tuple[Operator, int]:
    """Define an operator that calls a function of a module.

    `sources` are triples: a key of KINDS, the number of the array or the scalar, and for a number
    its formula.Term. Returns the operator, and the address for `rebind_described`.
    """
    cdef described *function = <described *>allocate(1, sizeof(described))
    cdef cuplug_definition_overload row
    cdef bytes text = signature.encode()
    cdef bytes name = signature.partition("(")[0].strip().encode()
    cdef char *kept = <char *>allocate(len(name) + 1, 1)
    cdef Py_ssize_t k
    for k in range(len(name)):
        kept[k] = name[k]
    rebind_described(<size_t>function, handle, call)
    function.name = kept
    function.n = <int>len(sources)
    for k, (kind, at, term) in enumerate(sources):
        function.sources[k].kind = KINDS[kind]
        function.sources[k].at = at
        if term is not None:
            set_term(&function.sources[k].term, term)
    row.signature = text
    row.host = row.cuda = run_described
    if place == "cuda":
        row.host = NULL
    elif place == "host":
        row.cuda = NULL
    row.context = function
    row.reshape = NULL
    row.flags = CUPLUG_OVERLOAD_NO_SPLIT
    row.null_strides_when_contiguous = 0
    row.scans = 0
    row.takes_handles = 0
    row.close = NULL
    row.gradient = row.linear = NULL
    return define(&row, 1, plugin, NULL, path, doc, made), <size_t>function


def rebind_described(size_t at, size_t handle, size_t call):
    """Let an operator run other code; the address is from `define_described`."""
    cdef described *function = <described *>at
    cdef code *fresh = <code *>allocate(1, sizeof(code))
    fresh.self = <void *>handle
    fresh.call = <tvm_call *>call
    store_code(&function.code, fresh)
