# SPDX-License-Identifier: Apache-2.0
"""Calls of adopted functions without Python, by a thunk that was compiled for their type."""

from cpython.pythread cimport (
    PyThread_acquire_lock,
    PyThread_release_lock,
    PyThread_type_lock,
    WAIT_LOCK,
)
from libc.errno cimport errno
from libc.math cimport isfinite, isinf
from libc.stdint cimport (
    int8_t,
    int16_t,
    int32_t,
    int64_t,
    uint8_t,
    uint16_t,
    uint32_t,
    uint64_t,
)
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from cuplug._engine.adoption.watching cimport has_pending, watch
from cuplug._engine.base.core cimport (
    cuplug_call,
    cuplug_element_bytes,
    cuplug_n_elements,
    cuplug_tensor,
)
from cuplug._engine.base.runtime cimport cuplug_entry_error
from cuplug._engine.base.status cimport raise_later

from cuplug._engine.adoption.watching import raise_pending

cdef extern from "<stdlib.h>" nogil:
    int posix_memalign(void **memory, size_t alignment, size_t size)

cdef extern from *:
    """
    typedef struct { _Alignas(64) char bytes[4096]; } cuplug_call_memory;
    """
    ctypedef struct cuplug_call_memory:
        char bytes[4096]

# Sources of parameters, in the order of the enum.
KINDS: tuple[str, ...] = (
    *("nowhere", "array", "integer", "float", "text", "number", "constant", "stream", "handle"),
    *("memory", "block"),
)
cdef enum:
    NOWHERE, ARRAY, INTEGER, FLOAT, TEXT, NUMBER, CONSTANT, STREAM, HANDLE, MEMORY, BLOCK

# Types of stored numbers, in the order of the enum.
TYPES: tuple[str, ...] = (
    *("int8_t", "int16_t", "int32_t", "int64_t", "uint8_t", "uint16_t", "uint32_t", "uint64_t"),
    *("float", "double", "void *"),
)
cdef enum:
    I8, I16, I32, I64, U8, U16, U32, U64, F32, F64, POINTER

CHECKED = ("zero", "one", "nonzero", "nonnegative", "cuda", "errno")  # in the order of the enum
cdef enum:
    ZERO, ONE, NONZERO, NONNEGATIVE, CUDA, ERRNO

MAX_BYTES = 4096  # of memory
MAX_MANY: int = MANY
cdef enum:
    ALIGNMENT = 64  # of copies, as for memory of cuplug
cdef int64_t MAX_SIZE = 1 << 46  # bytes of scratch, the limit


cdef void store(char *to, int type, Slot value) noexcept nogil:
    if type == F64:
        (<double *>to)[0] = value.f
    elif type == F32:
        (<float *>to)[0] = <float>value.f
    elif type == I8 or type == U8:
        (<int8_t *>to)[0] = <int8_t>value.i
    elif type == I16 or type == U16:
        (<int16_t *>to)[0] = <int16_t>value.i
    elif type == I32 or type == U32:
        (<int32_t *>to)[0] = <int32_t>value.i
    elif type == POINTER:
        (<void **>to)[0] = value.p
    else:
        (<int64_t *>to)[0] = value.i


cdef int64_t load(const char *place, int type) noexcept nogil:
    if type == I8:
        return (<const int8_t *>place)[0]
    if type == U8:
        return (<const uint8_t *>place)[0]
    if type == I16:
        return (<const int16_t *>place)[0]
    if type == U16:
        return (<const uint16_t *>place)[0]
    if type == I32:
        return (<const int32_t *>place)[0]
    if type == U32:
        return (<const uint32_t *>place)[0]
    return (<const int64_t *>place)[0]


cdef struct Run:  # the data of one call
    const Program *program
    const cuplug_call *call
    const int64_t *numbers
    void *addresses[MANY]
    void *blocks[MANY]
    char *memory


cdef bint get_value(const Source *x, Run *run, Slot *to) noexcept nogil:
    """Get the value of a parameter; return False if Python has to check it."""
    cdef const cuplug_call *call = run.call
    cdef bint is_none = False
    cdef const Handle *handle
    if x.kind in (INTEGER, FLOAT, TEXT, HANDLE):
        is_none = call.none_mask >> x.at & 1
    if x.kind == ARRAY:
        to.p = run.addresses[x.at]
    elif x.kind == INTEGER:
        to.i = call.scalars[x.at].i
        return not is_none
    elif x.kind == FLOAT:
        to.f = call.scalars[x.at].f
        if x.type == F32 and isfinite(to.f) and isinf(<float>to.f):
            return False
        return not is_none
    elif x.kind == TEXT:
        to.p = NULL if is_none else <void *>call.scalars[x.at].s
    elif x.kind == NUMBER:
        to.i = run.numbers[x.at]
    elif x.kind == CONSTANT:
        to[0] = x.constant
    elif x.kind == STREAM:
        to.p = call.stream
    elif x.kind == HANDLE:
        to.p = NULL
        if not is_none:
            handle = <const Handle *>call.scalars[x.at].handle
            to.p = handle.address
            return handle.key == run.program.accepted[x.at]
    elif x.kind == MEMORY:
        to.p = run.memory + x.at
    else:
        to.p = run.blocks[x.at]
    return True


cdef bint take_memory(const Program *program, Run *run) noexcept nogil:
    """Make scratch, and copies of inputs; return False if Python has to report an error."""
    cdef const Block *x
    cdef int64_t n
    for k in range(program.n_blocks):
        x = &program.blocks[k]
        if x.array < 0:
            n = run.numbers[x.number] if x.number >= 0 else 1
            n = max(n, 1) if n >= 0 else -1
        else:
            n = cuplug_n_elements(&run.call.tensors[x.array])
            if run.addresses[x.array] == NULL:
                continue
        if n < 0 or n > MAX_SIZE // <int64_t>x.n_bytes:
            return False
        if posix_memalign(&run.blocks[k], ALIGNMENT, max(n, 1) * x.n_bytes):
            run.blocks[k] = NULL
            return False
        if x.array < 0:
            memset(run.blocks[k], 0, n * x.n_bytes)
        else:
            memcpy(run.blocks[k], run.addresses[x.array], n * x.n_bytes)
            run.addresses[x.array] = run.blocks[k]
    return True


cdef bint put(const Store *stores, int n, Run *run) noexcept nogil:
    cdef Slot value
    for k in range(n):
        if not get_value(&stores[k].source, run, &value):
            return False
        store(run.memory + stores[k].offset, stores[k].source.type, value)
    return True


cdef int64_t find_rows(const Program *program, Run *run, int64_t *steps) noexcept nogil:
    """Return the number of calls of the function, and each array's bytes from row to row."""
    cdef const cuplug_tensor *x
    cdef int64_t n_rows = 1, n, step
    for at in range(run.call.n_tensors):
        x = &run.call.tensors[at]
        steps[at] = 0
        if not program.by_rows or program.n_own[at] < 0 or run.addresses[at] == NULL:
            continue
        n, step = 1, cuplug_element_bytes(x)
        for axis in range(x.ndim):
            if axis < x.ndim - program.n_own[at]:
                n *= x.shape[axis]
            else:
                step *= x.shape[axis]
        steps[at], n_rows = step, n
    return n_rows


cdef bint is_success(int returns, int64_t result) noexcept nogil:
    if returns == ZERO or returns == CUDA:
        return result == 0
    if returns == ONE:
        return result == 1
    if returns == NONZERO:
        return result != 0
    return returns < 0 or result >= 0


cdef int judge(const Program *program, const cuplug_call *call, int64_t result, int type,
               int error) noexcept with gil:
    """Let Python interpret an unusual result."""
    try:
        (<object>program.adopted).check_result(<uint64_t>result if type == U64 else result, error)
        return 0
    except BaseException as raised:
        return raise_later(raised, cuplug_entry_error(<const cuplug_call *>call))


cdef int raise_raised(const cuplug_call *call) noexcept with gil:
    try:
        raise_pending()
        return 0
    except BaseException as raised:
        return raise_later(raised, cuplug_entry_error(<const cuplug_call *>call))


cdef int call_row(const Program *program, Run *run, Slot *parameters) noexcept nogil:
    cdef Slot result
    cdef int error, status = 0
    cdef int64_t number
    global errno
    result.i = 0
    errno = 0
    program.thunk(program.function, parameters, &result)
    error = errno
    if has_pending():
        status = raise_raised(run.call)
        if status:
            return status
    if program.status >= 0:
        number = load(run.memory + program.status, program.status_type)
        if not is_success(program.returns, number):
            return judge(program, run.call, number, program.status_type, error)
    elif program.value.kind == ARRAY:
        store(<char *>run.addresses[program.value.at], program.value.type, result)
    elif program.value.kind == MEMORY:
        store(run.memory + program.value.at, program.value.type, result)
    elif program.result_type >= 0 and not is_success(program.returns, result.i):
        return judge(program, run.call, result.i, program.result_type, error)
    return 0


cdef int call_rows(const Program *program, Run *run) noexcept nogil:
    cdef Slot parameters[MANY]
    cdef int64_t steps[MANY]
    cdef int status = 0
    cdef int64_t n_rows = find_rows(program, run, steps)
    for row in range(n_rows):
        if not put(program.each, program.n_each, run):
            return NOT_TAKEN  # before the first row: all rows receive these values
        for k in range(program.n_parameters):
            if not get_value(&program.parameters[k], run, &parameters[k]):
                return NOT_TAKEN
        if row == 0 and program.lock != NULL:
            PyThread_acquire_lock(<PyThread_type_lock>program.lock, WAIT_LOCK)
        watch(1)
        status = call_row(program, run, parameters)
        watch(-1)
        if status or row == n_rows - 1:
            break
        for at in range(run.call.n_tensors):
            run.addresses[at] = <char *>run.addresses[at] + steps[at]
    if n_rows > 0 and program.lock != NULL:
        PyThread_release_lock(<PyThread_type_lock>program.lock)
    return status


cdef bint has_work(const Program *program, const cuplug_call *call) noexcept nogil:
    """Return whether any output has elements."""
    for at in range(call.n_tensors):
        if program.is_written[at] and cuplug_n_elements(&call.tensors[at]):
            return True
    return not program.any_written


cdef int run_direct(
    const Program *program, const cuplug_call *call, const int64_t *numbers
) noexcept nogil:
    cdef Run run
    cdef cuplug_call_memory memory
    cdef int status = NOT_TAKEN
    if not has_work(program, call):
        return 0
    run.program, run.call, run.numbers, run.memory = program, call, numbers, memory.bytes
    memset(memory.bytes, 0, program.n_bytes)
    for at in range(call.n_tensors):
        run.addresses[at] = call.tensors[at].data
    for k in range(program.n_blocks):
        run.blocks[k] = NULL
    if take_memory(program, &run) and put(program.once, program.n_once, &run):
        status = call_rows(program, &run)
    for k in range(program.n_blocks):
        free(run.blocks[k])
    return status
