# SPDX-License-Identifier: Apache-2.0
from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint32_t

from cuplug._engine.base.core cimport cuplug_call
from cuplug._engine.base.core_call cimport cuplug_term


cdef union Slot:
    int64_t i
    double f
    void *p


ctypedef void (*Thunk)(void *function, const Slot *parameters, Slot *result) noexcept nogil


cdef struct Source:  # the source of a parameter or a member of scratch
    int kind  # of KINDS
    int at  # its number there; of memory, its offset
    int type  # of TYPES, for the parameter or the stored value
    Slot constant


cdef struct Store:  # a number in the memory of a call
    Source source
    int offset


cdef struct Block:  # separate memory: a copied input, or scratch
    int array  # the input; -1 for scratch
    int number  # of scratch: the number that is its size
    size_t n_bytes  # of one element


cdef struct Handle:  # of an operator that makes one
    PyObject *opaque  # an Opaque
    void *address
    PyObject *key  # one object for each type of pointers and library


cdef struct Program:
    PyObject *adopted  # the AdoptedCall for all other work
    const cuplug_term *terms
    uint32_t *types  # of the numbers
    int n_numbers
    bint is_tried  # whether the thunk was compiled, or cannot be
    Thunk thunk
    void *function
    void *lock  # NULL, or the library's lock
    PyObject **accepted  # of each handle: the key of the pointers that fit
    int *n_own  # of each array: dimensions after the loop dimensions, or -1
    bint *is_written
    bint by_rows
    bint any_written
    Source *parameters
    int n_parameters
    Store *once
    int n_once
    Store *each
    int n_each
    Block *blocks
    int n_blocks
    int n_bytes  # of memory
    int status  # the offset of the status in memory, or -1
    int result_type  # of TYPES, -1 for void
    int status_type
    int returns  # of RETURNS; -1 for results that are not compared
    Source value  # the destination of the result: an array or memory; else of kind NOWHERE


# Calls the function without Python. Returns NOT_TAKEN if nothing was done and Python has to make
# the call.
cdef enum:
    NOT_TAKEN = -0x7001
    MANY = 32  # arrays, parameters, numbers

cdef int run_direct(
    const Program *program, const cuplug_call *call, const int64_t *numbers
) noexcept nogil
