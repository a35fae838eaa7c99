# SPDX-License-Identifier: Apache-2.0
"""NumPy's dtypes and the core's."""

cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport uint32_t

from cuplug._engine.base.core cimport cuplug_dtype
from cuplug._engine.base.numpy_api cimport (
    NPY_LONG,
    NPY_LONGLONG,
    NPY_ULONG,
    NPY_ULONGLONG,
    NPY_USERDEF,
    NPY_VOID,
    PyArray_Descr,
)

import numpy

from cuplug._engine.base.dtypes import BY_ID, DTYPES

cdef extern from *:
    """
    #define cuplug_load_count(place) __atomic_load_n((place), __ATOMIC_ACQUIRE)
    #define cuplug_store_count(place, n) __atomic_store_n((place), (n), __ATOMIC_RELEASE)
    #define cuplug_load_descr cuplug_load_count
    #define cuplug_store_descr cuplug_store_count
    """
    PyObject *cuplug_load_descr(PyObject **place) noexcept
    void cuplug_store_descr(PyObject **place, PyObject *descr) noexcept
    int cuplug_load_count(int *place) noexcept
    void cuplug_store_count(int *place, int n) noexcept

cdef enum:
    N_USER = 16
    N_CODES = 32  # DLPack's, with room for more

# By NumPy's type number; bits are 0 if the core has no such dtype.
cdef cuplug_dtype builtin_dtypes[N_BUILTIN]
# Type numbers that packages such as ml_dtypes were given in this process.
cdef int user_type_nums[N_USER]
cdef cuplug_dtype user_dtypes[N_USER]
cdef int n_user_dtypes = 0
cdef dict descrs = {}  # by type id; dtypes of one lane are also in the table, without references
cdef PyObject *descr_table[N_CODES][17]  # by code and bytes
cdef dict named = {}  # by the core's names: creating one takes longer
cdef cython.pymutex lock


cdef int fill_dtypes() except -1:
    for x in DTYPES.values():
        if x.n_packed > 1:
            continue  # structures, which share one number
        try:
            descr = numpy.dtype(x.name)
            fill_dtype((<PyArray_Descr *>descr).type_num, x.id)
        except TypeError:
            pass  # bfloat16 and float8 have no number before ml_dtypes is imported
    return 0


cdef void fill_dtype(int type_num, uint32_t type_id) noexcept:
    if 0 <= type_num < N_BUILTIN:
        builtin_dtypes[type_num] = split_id(type_id)
    if type_num == NPY_LONG:
        builtin_dtypes[NPY_LONGLONG] = builtin_dtypes[NPY_LONG]
    if type_num == NPY_ULONG:
        builtin_dtypes[NPY_ULONGLONG] = builtin_dtypes[NPY_ULONG]


cdef inline cuplug_dtype split_id(uint32_t type_id) noexcept:
    cdef cuplug_dtype dtype
    dtype.code = type_id >> 24
    dtype.bits = type_id >> 16 & 0xFF
    dtype.lanes = type_id & 0xFFFF
    return dtype


fill_dtypes()


cdef const cuplug_dtype *builtin_table() noexcept:
    return builtin_dtypes


cdef cuplug_dtype dtype_of_number(int type_num) noexcept:
    cdef cuplug_dtype none
    cdef int k
    if type_num < N_BUILTIN:
        return builtin_dtypes[type_num]
    for k in range(cuplug_load_count(&n_user_dtypes)):
        if user_type_nums[k] == type_num:
            return user_dtypes[k]
    none.code = none.bits = none.lanes = 0
    return none


cdef cuplug_dtype dtype_of_descr(object descr) except *:
    cdef int type_num = (<PyArray_Descr *>descr).type_num
    cdef cuplug_dtype dtype = dtype_of_number(type_num)
    if type_num == NPY_VOID:
        packed = pair_of(descr)
        return dtype if packed is None else split_id(packed.id)
    if dtype.bits or type_num < NPY_USERDEF or not is_ml_dtype(descr):
        return dtype
    known = DTYPES.get(descr.name)
    if known is not None:
        dtype = split_id(known.id)
        add_user_dtype(type_num, dtype)
    return dtype


cdef cuplug_dtype dtype_named(object x) except *:
    cdef cuplug_dtype none
    none.code = none.bits = none.lanes = 0
    if type(x).__name__ == "dtype" and type(x).__module__ == "torch":
        known = DTYPES.get(str(x).rpartition(".")[2])
        return none if known is None else split_id(known.id)
    if isinstance(x, type) or isinstance(getattr(x, "dtype", None), numpy.dtype):  # as in jax.numpy
        try:
            x = numpy.dtype(x)
        except (TypeError, ValueError):
            return none
    return dtype_of_descr(x) if isinstance(x, numpy.dtype) and x.isnative else none


def dtype_name(x) -> str:
    """Return the name of the dtype that an object names: "float32"; "" if it names none."""
    cdef cuplug_dtype dtype
    if isinstance(x, str):
        return x if x in DTYPES else ""
    dtype = dtype_named(x)
    known = BY_ID.get(dtype.code << 24 | dtype.bits << 16 | dtype.lanes)
    return "" if known is None else known.name


cdef cuplug_dtype dtype_in_memory(object descr) except *:
    cdef cuplug_dtype dtype = dtype_of_descr(descr)
    if dtype.bits:
        return dtype
    is_plain = descr.names is not None and descr.isnative and not descr.hasobject
    if is_plain and 0 < descr.itemsize < 1 << 16:
        dtype.code, dtype.bits, dtype.lanes = OPAQUE, 8, descr.itemsize
    return dtype


cdef object pair_of(object descr):
    """Return the dtype of packed pairs that a structure represents; None for other structures."""
    names = descr.names
    if names is None or len(names) != 1 or descr.itemsize != 1:
        return None
    packed = DTYPES.get(names[0])
    return packed if packed is not None and packed.n_packed > 1 else None


def name_of_descr(descr) -> str:
    """Return the name of a NumPy dtype; for a structure of packed pairs, the name of the pairs."""
    packed = pair_of(descr)
    return descr.name if packed is None else packed.name


cdef bint is_ml_dtype(object descr):
    return descr.type.__module__.partition(".")[0] == "ml_dtypes"


cdef int add_user_dtype(int type_num, cuplug_dtype dtype) except -1:
    cdef int n
    with lock:
        n = n_user_dtypes
        if n < N_USER:
            user_type_nums[n] = type_num
            user_dtypes[n] = dtype
            cuplug_store_count(&n_user_dtypes, n + 1)
    return 0


cdef object descr_of_dtype(cuplug_dtype dtype):
    cdef uint32_t type_id = dtype.code << 24 | dtype.bits << 16 | dtype.lanes
    cdef PyObject *known
    cdef bint is_plain = dtype.lanes == 1 and dtype.code < N_CODES and dtype.bits <= 128
    if is_plain:
        known = cuplug_load_descr(&descr_table[dtype.code][dtype.bits >> 3])
        if known != NULL:
            return <object>known
    descr = descrs.get(type_id)
    if descr is None:
        descr = descrs.setdefault(type_id, find_descr(type_id))
    if is_plain:
        cuplug_store_descr(&descr_table[dtype.code][dtype.bits >> 3], <PyObject *>descr)
    return descr


cdef object find_descr(uint32_t type_id):
    if type_id >> 24 == OPAQUE and type_id >> 16 & 0xFF == 8:
        return numpy.dtype((numpy.void, type_id & 0xFFFF))
    if type_id not in BY_ID:
        raise TypeError(f"there is no dtype of DLPack code {type_id >> 24}")
    return numpy_dtype(BY_ID[type_id].name)


def numpy_dtype(name: str) -> np.dtype[Any]:
    """Return the NumPy dtype of a dtype's name; ml_dtypes is imported if necessary.

    A packed pair is a structure of one byte, whose field has the dtype's name.
    """
    known = DTYPES.get(name)
    if known is not None and known.n_packed > 1:
        return numpy.dtype([(name, known.stored.removesuffix("_t"))])
    try:
        return numpy.dtype(name)
    except TypeError:
        pass
    try:
        import ml_dtypes
    except ImportError:
        raise TypeError(f"NumPy arrays of {name} need the package ml_dtypes") from None
    if not hasattr(ml_dtypes, name):
        seen = f"ml_dtypes {ml_dtypes.__version__}, which has no {name}"
        raise TypeError(f"got {seen}, expected a newer version; pip install --upgrade ml_dtypes")
    return numpy.dtype(getattr(ml_dtypes, name))


cdef int type_number(cuplug_dtype dtype) except -1:
    cdef int k
    for k in range(N_BUILTIN):
        if builtin_dtypes[k].code == dtype.code and builtin_dtypes[k].bits == dtype.bits:
            return k
    descr = descr_of_dtype(dtype)
    return (<PyArray_Descr *>descr).type_num


cdef object to_descr(str function, object dtype):
    if type(dtype) is str:
        known = named.get(dtype)
        if known is not None:
            return known
        if dtype in DTYPES:
            return named.setdefault(dtype, numpy_dtype(dtype))
    try:
        if dtype is not None:  # NumPy interprets it as float64
            return numpy.dtype(dtype)
    except (TypeError, ValueError):
        pass
    raise TypeError(f"{function}: dtype: got {dtype!r}, expected a dtype of NumPy or ml_dtypes")
