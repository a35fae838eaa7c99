# SPDX-License-Identifier: Apache-2.0
"""The source of numbers: a key, a sequence and a position, and how operators receive these."""

cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint64_t

from cuplug._engine.array.array cimport Array
from cuplug._engine.array.buffer cimport is_on_gpu, n_elements
from cuplug._engine.array.make cimport new_array
from cuplug._engine.cuda.placement cimport has_default

cdef extern from "Python.h":
    object PyObject_Vectorcall(
        object callable, PyObject *const *args, size_t nargsf, PyObject *keywords
    )

cdef enum:
    N = 6  # arguments of an operator that draws

cdef tuple on_host = ("device",)


@cython.final
cdef class Source:
    """Elements drawn by operators, from a key and a sequence.

    Parameters
    ----------
    key, sequence : int
        Of 64 bits.

    Attributes
    ----------
    position : int
        The number of drawn elements, modulo 2**64.
    """

    cdef object key, sequence
    cdef public uint64_t position

    def __init__(self, key: int, sequence: int):
        self.key, self.sequence = key, sequence

    def draw(self, operator: Operator, shape, dtype, device, first, second) -> Array:
        """Return a new array of numbers that an operator draws, with two parameters."""
        cdef Array x = new_array("empty", shape, dtype, device)
        self.draw_into(operator, x, n_elements(&x.tensor), first, second)
        return x

    def fill(self, operator: Operator, x, n: int, first, second):
        """Draw into an array of any library, which has n elements."""
        self.draw_into(operator, x, n, first, second)

    def order(self, operator: Operator, n: int, device) -> Array:
        """Return the numbers below n in an operator's random order."""
        cdef Array x = new_array("empty", n, "int64", device)
        cdef uint64_t start = self.take(<uint64_t>n_elements(&x.tensor))
        try:
            operator(n, self.key, self.sequence, start, out=x)
        except BaseException:
            self.give_back(start, <uint64_t>n_elements(&x.tensor))
            raise
        return x

    cdef int draw_into(self, object operator, object x, uint64_t n, object a, object b) except -1:
        """Return numbers on the host for host outputs, whatever the default device is."""
        cdef PyObject *arguments[N + 1]
        cdef bint is_placed = has_default and not (
            isinstance(x, Array) and is_on_gpu(&(<Array>x).tensor)
        )
        cdef uint64_t start = self.take(n)
        cdef object place = "cpu", begin = start
        arguments[0], arguments[1] = <PyObject *>x, <PyObject *>self.key
        arguments[2], arguments[3] = <PyObject *>self.sequence, <PyObject *>begin
        arguments[4], arguments[5] = <PyObject *>a, <PyObject *>b
        arguments[N] = <PyObject *>place
        try:
            PyObject_Vectorcall(
                operator, arguments, N, <PyObject *>on_host if is_placed else NULL
            )
        except BaseException:
            self.give_back(start, n)
            raise
        return 0

    cdef uint64_t take(self, uint64_t n) noexcept:
        """Return the position and advance it. The GIL makes this atomic."""
        cdef uint64_t start = self.position
        self.position = start + n
        return start

    cdef void give_back(self, uint64_t start, uint64_t n) noexcept:
        """nothing was drawn"""
        if self.position == start + n:
            self.position = start
