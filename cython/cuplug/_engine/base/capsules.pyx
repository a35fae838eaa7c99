# SPDX-License-Identifier: Apache-2.0
"""Arrays for other libraries, as capsules of DLPack."""

from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
from cpython.object cimport PyObject
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_IsValid, PyCapsule_New
from cpython.ref cimport Py_INCREF, Py_XDECREF

from cuplug._engine.base.dlpack cimport DLPACK_MAJOR, DLPACK_READ_ONLY
from cuplug._engine.base.dlpack cimport dlpack_managed_tensor, dlpack_versioned_tensor
from cuplug._engine.base.core cimport CUPLUG_CPU, cuplug_tensor

from operator import index

cdef extern from "Python.h":
    int Py_IsInitialized() nogil


cdef object export(
    object owner, const cuplug_tensor *x, object max_version, bint is_read_only
):
    if max_version is not None and two_integers("max_version", max_version)[0] >= DLPACK_MAJOR:
        return export_versioned(owner, x, is_read_only)
    if is_read_only:
        wanted = "expected a writable one before DLPack 1; use x.copy() or max_version=(1, 0)"
        raise BufferError(f"__dlpack__: got a read-only array, {wanted}")
    return export_unversioned(owner, x)


cdef tuple two_integers(str argument, object value):
    """Read an argument of __dlpack__ that must be a pair."""
    try:
        first, second = value
        return index(first), index(second)
    except (TypeError, ValueError):
        pass
    raise TypeError(f"__dlpack__: {argument}: got {value!r:.60}, expected two integers")


cdef object export_versioned(object owner, const cuplug_tensor *x, bint is_read_only):
    cdef dlpack_versioned_tensor *managed = <dlpack_versioned_tensor *>PyMem_RawMalloc(
        sizeof(dlpack_versioned_tensor)
    )
    if managed == NULL:
        raise MemoryError()
    managed.version.major = DLPACK_MAJOR
    managed.version.minor = 0
    managed.flags = DLPACK_READ_ONLY if is_read_only else 0
    managed.tensor = x[0]
    managed.context = <void *>owner
    managed.deleter = delete_versioned
    Py_INCREF(owner)
    return PyCapsule_New(managed, "dltensor_versioned", drop_versioned)


cdef void drop_owner(void *owner) noexcept with gil:
    Py_XDECREF(<PyObject *>owner)


cdef void delete_versioned(dlpack_versioned_tensor *managed) noexcept nogil:
    if Py_IsInitialized():  # other libraries may release it after the interpreter has ended
        drop_owner(managed.context)
    PyMem_RawFree(managed)


cdef void drop_versioned(object capsule) noexcept:
    if PyCapsule_IsValid(capsule, "dltensor_versioned"):
        delete_versioned(
            <dlpack_versioned_tensor *>PyCapsule_GetPointer(capsule, "dltensor_versioned")
        )


cdef object export_unversioned(object owner, const cuplug_tensor *x):
    cdef dlpack_managed_tensor *managed = <dlpack_managed_tensor *>PyMem_RawMalloc(
        sizeof(dlpack_managed_tensor)
    )
    if managed == NULL:
        raise MemoryError()
    managed.tensor = x[0]
    managed.context = <void *>owner
    managed.deleter = delete_unversioned
    Py_INCREF(owner)
    return PyCapsule_New(managed, "dltensor", drop_unversioned)


cdef void delete_unversioned(dlpack_managed_tensor *managed) noexcept nogil:
    if Py_IsInitialized():
        drop_owner(managed.context)
    PyMem_RawFree(managed)


cdef void drop_unversioned(object capsule) noexcept:
    if PyCapsule_IsValid(capsule, "dltensor"):
        delete_unversioned(<dlpack_managed_tensor *>PyCapsule_GetPointer(capsule, "dltensor"))


cdef class HostArray:
    """Export a NumPy array of any dtype: NumPy's own export lacks bfloat16 and float8."""

    def __dlpack_device__(self):
        return CUPLUG_CPU, 0

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        return export(self, &self.tensor, max_version, False)
