# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport uint32_t

from cuplug._engine.base.core cimport cuplug_error
from cuplug._engine.base.core_call cimport cuplug_signature

ctypedef int (*parser)(
    const char *, cuplug_signature **, uint32_t *, cuplug_error *
) noexcept nogil

# A signature, to be freed; SignatureError with the place of what is wrong.
cdef cuplug_signature *parse(str text, parser parse_text) except NULL
# The bytes of a text, which ends with them for the core.
cdef bytes encode(str text, str what)
