# SPDX-License-Identifier: Apache-2.0
from cuplug._engine.array.arithmetic cimport Arithmetic


cdef class Values(Arithmetic):
    pass
