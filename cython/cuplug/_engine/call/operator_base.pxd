# SPDX-License-Identifier: Apache-2.0
from cuplug._engine.base.core cimport cuplug_operator

cdef object token


cdef class Described:
    cdef cuplug_operator *op  # lives as long as the process
