# SPDX-License-Identifier: Apache-2.0
from cuplug._engine.adoption.direct cimport Handle, Program

cdef Program *make_program(object adopted) except NULL
cdef Handle *make_handle(object opaque) except NULL
cdef object take_handle(Handle *handle)  # and free it
