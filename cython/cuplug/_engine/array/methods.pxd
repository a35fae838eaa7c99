# SPDX-License-Identifier: Apache-2.0
from cuplug._engine.array.values cimport Values


cdef class Methods(Values):
    pass
