# SPDX-License-Identifier: Apache-2.0
from cuplug._engine.base.core cimport cuplug_dtype


cdef enum:
    N_BUILTIN = 32
    OPAQUE = 3  # DLPack's type code

# The core's dtypes by NumPy's type number, below N_BUILTIN; bits are 0 if none corresponds.
cdef const cuplug_dtype *builtin_table() noexcept
# The core's dtype for a NumPy dtype; bits are 0 if none corresponds.
cdef cuplug_dtype dtype_of_descr(object descr) except *
# The same. A structure becomes opaque bytes of its size, for arrays that only kernels accept.
cdef cuplug_dtype dtype_in_memory(object descr) except *
# The NumPy dtype for a dtype of the core; ml_dtypes is imported if necessary.
cdef object descr_of_dtype(cuplug_dtype dtype)
# The core's dtype that an object of NumPy, PyTorch or JAX names; bits are 0 if it names none.
cdef cuplug_dtype dtype_named(object x) except *
# NumPy's type number for a dtype of the core.
cdef int type_number(cuplug_dtype dtype) except -1
# The dtype that a caller requests.
cdef object to_descr(str function, object dtype)
