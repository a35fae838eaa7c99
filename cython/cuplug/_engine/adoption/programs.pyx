# SPDX-License-Identifier: Apache-2.0
"""The programs and handles of calls without Python, as set up from Python."""

from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memset

from cuplug._engine.adoption.direct cimport (
    MANY,
    Block,
    Handle,
    Program,
    Source,
    Store,
    Thunk,
)
from cuplug._engine.adoption.watching cimport ThreadLock
from cuplug._engine.base.core_call cimport cuplug_term
from cuplug._engine.signature.terms cimport allocate, set_term

from cuplug._engine.adoption.direct import CHECKED, KINDS, TYPES


cdef dict _keys = {}  # one object for each type of pointers and library


cdef Handle *make_handle(object opaque) except NULL:
    cdef Handle *made = <Handle *>PyMem_RawMalloc(sizeof(Handle))
    if made == NULL:
        raise MemoryError()
    key = (opaque.type, opaque.library)
    key = _keys.setdefault(key, key)
    made.key = <PyObject *>key
    made.address = <void *><size_t>opaque.address
    Py_INCREF(opaque)
    made.opaque = <PyObject *>opaque
    return made


cdef object take_handle(Handle *handle):
    opaque = <object>handle.opaque
    Py_DECREF(opaque)
    PyMem_RawFree(handle)
    return opaque


cdef int set_source(Source *to, tuple given) except -1:
    kind, at, type, value = given
    to.kind, to.at, to.type = KINDS.index(kind), at, TYPES.index(type) if type else -1
    if isinstance(value, float):
        to.constant.f = value
    else:
        to.constant.i = <int64_t>(value & 0xFFFFFFFFFFFFFFFF)
    return 0


cdef Store *make_stores(list given) except NULL:
    cdef Store *made = <Store *>allocate(len(given), sizeof(Store))
    for k, (offset, source) in enumerate(given):
        made[k].offset = offset
        set_source(&made[k].source, source)
    return made


cdef Program *make_program(object adopted) except NULL:
    """Make a program for calls without Python, without its thunk. It is never freed."""
    cdef Program *program = <Program *>allocate(1, sizeof(Program))
    cdef int n = len(adopted.numbers)
    cdef cuplug_term *terms = <cuplug_term *>allocate(n, sizeof(cuplug_term))
    program.types = <uint32_t *>allocate(n, sizeof(uint32_t))
    for k, (term, type) in enumerate(adopted.numbers):
        set_term(&terms[k], term)
        program.types[k] = type
    program.terms, program.n_numbers = terms, n
    Py_INCREF(adopted)
    program.adopted = <PyObject *>adopted
    return program


def set_thunk(size_t program_at, size_t thunk, way: Way):
    """Make calls follow `way`, a `ways.Way`, with a compiled thunk."""
    cdef Program *program = <Program *>program_at
    program.parameters = <Source *>allocate(len(way.parameters), sizeof(Source))
    for k, source in enumerate(way.parameters):
        set_source(&program.parameters[k], source)
    program.n_parameters = len(way.parameters)
    program.once, program.n_once = make_stores(way.once), len(way.once)
    program.each, program.n_each = make_stores(way.each), len(way.each)
    program.blocks = <Block *>allocate(len(way.blocks), sizeof(Block))
    for k, (array, number, n_bytes) in enumerate(way.blocks):
        program.blocks[k].array = array
        program.blocks[k].number = number
        program.blocks[k].n_bytes = n_bytes
    program.n_blocks, program.n_bytes = len(way.blocks), way.n_bytes
    program.accepted = <PyObject **>allocate(MANY, sizeof(void *))
    program.n_own = <int *>allocate(len(way.n_own), sizeof(int))
    program.is_written = <bint *>allocate(len(way.n_own), sizeof(bint))
    for k, n_own in enumerate(way.n_own):
        program.n_own[k] = n_own
    for k in way.written:
        program.is_written[k] = True
    program.any_written = len(way.written) > 0
    program.by_rows = way.by_rows
    program.status = way.status
    program.status_type = TYPES.index(way.status_type) if way.status_type else -1
    program.result_type = TYPES.index(way.result_type) if way.result_type else -1
    program.returns = CHECKED.index(way.returns) if way.returns in CHECKED else -1
    set_source(&program.value, way.value)
    if way.lock is not None:
        program.lock = <void *>(<ThreadLock>way.lock).lock
    program.thunk = <Thunk><void *>thunk  # last: other threads check it


def set_function(size_t program_at, size_t function):
    """Let calls run a function; pointers of its library must then be accepted again."""
    cdef Program *program = <Program *>program_at
    program.function = <void *>function
    if program.accepted != NULL:
        memset(program.accepted, 0, MANY * sizeof(void *))


def accept(size_t program_at, int at, str type, str library):
    """Let calls without Python pass such pointers for the scalar `at`, a handle."""
    cdef Program *program = <Program *>program_at
    if program != NULL and program.accepted != NULL:
        key = _keys[type, library]
        program.accepted[at] = <PyObject *>key
