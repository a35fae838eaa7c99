# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport uint32_t

from cuplug._engine.base.core cimport cuplug_operator
from cuplug._engine.interop.reading cimport reading


# The outputs of a call with the arguments that were read: an Inferred.
cdef object infer_outputs(cuplug_operator *op, reading *r, uint32_t n)
