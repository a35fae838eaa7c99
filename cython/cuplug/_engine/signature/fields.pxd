# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport uint32_t

from cuplug._engine.base.core cimport cuplug_error
from cuplug._engine.base.core_call cimport cuplug_signature

ctypedef int (*parser)(
    const char *, cuplug_signature **, uint32_t *, cuplug_error *
) noexcept nogil

# Returns a signature that the caller frees; raises SignatureError with the position of the error.
cdef cuplug_signature *parse(str text, parser parse_text) except NULL
# The text in UTF-8; raises SignatureError for a zero byte, where it would end for the core.
cdef bytes encode(str text, str what)
