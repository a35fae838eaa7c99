# SPDX-License-Identifier: Apache-2.0
"""The protocol that reads the arrays of a type, found once for each type."""

import sys

cimport cython
from cpython.buffer cimport PyObject_CheckBuffer
from cpython.mem cimport PyMem_RawMalloc
from cpython.object cimport PyObject
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_IsValid
from cpython.ref cimport Py_INCREF
from libc.string cimport memset

from cuplug._engine.array.array cimport Array
from cuplug._engine.base.dlpack cimport DLPACK_MAJOR, dlpack_exchange, dlpack_exchange_header
from cuplug._engine.interop.libtorch cimport find_tensor

import numpy

from cuplug._engine.interop.unsupported import is_traced_class
from cuplug._engine.signature.spec import ArraySpec

cdef enum:
    N_SLOTS = 256  # a power of two
    MAX_KINDS = 192  # if it is full, types are inspected in each call: the table does not grow

# Open addressing by type pointer. Slots are filled once, under the lock.
cdef array_kind *slots[N_SLOTS]
cdef int n_kinds = 0
cdef cython.pymutex lock
# Indexed by the numbers in kinds.pxd.
cdef tuple cupy_names = ("dtype", "shape", "strides", "_c_contiguous", "ptr", "device_id")
cdef array_kind numpy_arrays
numpy_arrays.protocol = NUMPY


cdef const array_kind *numpy_kind() noexcept:
    return &numpy_arrays


cdef inline size_t first_slot(const void *type) noexcept:
    return (<size_t>type >> 4) & (N_SLOTS - 1)


cdef const array_kind *find_kind(PyObject *obj, array_kind *made) except? NULL:
    cdef PyObject *type = type_of(obj)
    cdef size_t at = first_slot(type)
    cdef array_kind *kind = cuplug_load_kind(&slots[at])
    while kind != NULL:
        if kind.type == type:
            return kind
        at = (at + 1) & (N_SLOTS - 1)
        kind = cuplug_load_kind(&slots[at])
    memset(made, 0, sizeof(array_kind))
    describe_kind(<object>obj, <object>type, made)
    if made.protocol == NO_ARRAY:
        return NULL
    with lock:
        return publish(made, type)


cdef const array_kind *publish(array_kind *kind, PyObject *type) except? NULL:
    """Keep a new kind, with a reference to its type, unless another thread was faster.

    If the table is full, return the kind itself.
    """
    global n_kinds
    cdef int k
    cdef size_t at = first_slot(type)
    while slots[at] != NULL:
        if slots[at].type == type:
            return slots[at]
        at = (at + 1) & (N_SLOTS - 1)
    if n_kinds == MAX_KINDS:
        return kind
    cdef array_kind *kept = <array_kind *>PyMem_RawMalloc(sizeof(array_kind))
    if kept == NULL:
        raise MemoryError()
    kept[0] = kind[0]
    kept.type = type
    Py_INCREF(<object>type)
    if kept.requires_grad != NULL:
        Py_INCREF(<object>kept.requires_grad)
    if kept.cupy.memory_type != NULL:
        Py_INCREF(<object>kept.cupy.memory_type)
        for k in range(N_CUPY_ATTRIBUTES):
            Py_INCREF(<object>kept.cupy.of[k])
    if kept.owner == NULL:
        kept.owner = kept
    n_kinds += 1
    cuplug_store_kind(&slots[at], kept)
    return kept


cdef int describe_kind(object obj, object cls, array_kind *kind) except -1:
    kind.is_torch = is_of(cls, "torch", "Tensor")
    if cls is Array:
        kind.protocol = OWN
    elif cls is ArraySpec:
        kind.protocol = SPEC
    elif issubclass(cls, numpy.ndarray):
        kind.protocol = NUMPY
    elif issubclass(cls, numpy.generic) or is_traced_class(cls):
        kind.protocol = NO_ARRAY
    elif find_exchange(cls, kind):
        kind.protocol = EXCHANGE
        kind.owner = kind.exchange
    elif kind.is_torch:
        kind.protocol = TORCH
        kind.owner = <void *>sys.modules["torch"]
    elif is_of(cls, "cupy", "ndarray"):
        kind.protocol = CUPY
        find_cupy_getters(obj, cls, &kind.cupy)
    elif hasattr(cls, "__dlpack__") and hasattr(cls, "__dlpack_device__"):
        kind.protocol = DLPACK
        if is_of(cls, "tvm_ffi", "Tensor"):
            kind.tvm_place = find_tvm_place()
    elif hasattr(obj, "__cuda_array_interface__"):
        kind.protocol = CUDA_INTERFACE
    elif PyObject_CheckBuffer(obj):
        kind.protocol = BUFFER
    if kind.is_torch:
        kind.requires_grad = find_getter(cls, "requires_grad")
        kind.tensor_place = find_tensor(obj, cls)
    return 0


cdef bint is_of(object cls, str library, str name) except -1:
    """Return whether a type is or derives from a library's class, which stubs may lack."""
    wanted = getattr(sys.modules.get(library), name, None)
    return isinstance(wanted, type) and issubclass(cls, wanted)


cdef size_t find_tvm_place() except? 0:
    """Find the offset with a tensor that reports its object; only version 0.1 has this layout."""
    library = sys.modules["tvm_ffi"]
    if not getattr(library, "__version__", "").startswith("0.1."):
        return 0
    tensor = library.from_dlpack(numpy.empty(1))
    cdef size_t wanted = getattr(tensor, "id_", 0)
    cdef size_t place, end = type(tensor).__basicsize__
    for place in range(sizeof(PyObject), end - sizeof(void *) + 1, sizeof(void *)):
        if wanted and (<size_t *>(<char *><PyObject *>tensor + place))[0] == wanted:
            return place
    return 0


cdef int find_cupy_getters(object array, object cls, cupy_getters *found) except -1:
    cdef int k
    memory_type = type(array.data)
    for k, name in enumerate(cupy_names):
        found.of[k] = find_getter(cls if k < N_CUPY_OF_ARRAY else memory_type, name)
        if found.of[k] == NULL:
            return 0
    found.memory_type = <PyObject *>memory_type
    return 0


cdef bint find_exchange(object cls, array_kind *kind) except -1:
    """Find the exchange API of a type, in the version that cuplug supports."""
    capsule = getattr(cls, "__dlpack_c_exchange_api__", None)
    if capsule is None or not PyCapsule_IsValid(capsule, "dlpack_exchange_api"):
        return False
    cdef dlpack_exchange_header *header = <dlpack_exchange_header *>PyCapsule_GetPointer(
        capsule, "dlpack_exchange_api"
    )
    while header != NULL and header.version.major != DLPACK_MAJOR:
        header = header.previous
    kind.exchange = <dlpack_exchange *>header
    return header != NULL
