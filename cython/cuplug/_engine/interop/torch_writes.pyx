# SPDX-License-Identifier: Apache-2.0
"""PyTorch's version counters: autograd compares them to find tensors that were written.

libtorch exports the C++ function that counts. Its name is not promised, and it throws a C++
exception for an inference tensor, which has no counter. So it is called only for tensors with a
counter, after it has counted correctly in a check. Otherwise PyTorch's Python function counts.

It adds atomically, which takes most of its time, as views of one tensor share a counter. If the
tensor that a call writes to is its only owner, no other thread may write to that memory during the
call, and cuplug adds one itself.
"""

import sys

from cpython.object cimport PyObject
from libc.stdint cimport uint32_t

from cuplug._engine.interop.kinds cimport array_kind, type_of
from cuplug._engine.interop.libtorch cimport find_symbols

cdef enum:
    MAX_IMPL_BYTES = 512  # of a c10::TensorImpl, which at::Tensor points to
    # Offsets in a counter, a c10::intrusive_ptr_target: the number of its owners, and the version.
    OWNERS = 8
    VERSION = 16

ctypedef void (*bump_function)(void *tensor) noexcept
ctypedef void *(*counter_function)(void *tensor) noexcept

ctypedef struct functions:
    counter_function counter
    bump_function bump

cdef bump_function bump = NULL
cdef size_t counter_offset  # of the pointer to the counter in a c10::TensorImpl
cdef bint owners_are_known = False  # OWNERS and VERSION are correct
cdef object increment = None  # PyTorch's Python function; None: nothing has been written yet


cdef bint count_write(PyObject *obj, const array_kind *kind) noexcept:
    cdef char *counter
    if kind == NULL or bump == NULL or not kind.tensor_place or type_of(obj) != kind.type:
        return False
    counter = counter_of(obj, kind.tensor_place)
    if counter == NULL:
        return False
    if owners_are_known and number_at(counter, OWNERS)[0] == 1:
        number_at(counter, VERSION)[0] += 1
    else:
        bump(<char *>obj + kind.tensor_place)
    return True


cdef inline char *counter_of(PyObject *obj, size_t place) noexcept:
    cdef char *impl = (<char **>(<char *>obj + place))[0]
    return (<char **>(impl + counter_offset))[0]


cdef inline uint32_t *number_at(char *counter, size_t offset) noexcept:
    return <uint32_t *>(counter + offset)


cdef int count_in_python(object tensor, const array_kind *kind, str place) except -1:
    global increment
    torch = sys.modules["torch"]
    if increment is None:
        increment = python_function(torch)
        if kind.tensor_place:
            find_functions(torch, kind.tensor_place)
    if tensor.is_inference() and not torch.is_inference_mode_enabled():
        raise RuntimeError(
            f"{place}: got an inference tensor outside torch.inference_mode, expected a normal "
            "tensor to write to; pass x.clone()"
        )
    increment(tensor)
    return 0


cdef object python_function(object torch):
    graph = getattr(getattr(torch, "autograd", None), "graph", None)
    found = getattr(graph, "increment_version", None)  # from PyTorch 2.1 on
    return write_nothing if found is None else found


def write_nothing(x):
    """Count a write by writing no elements to a view, which has the same counter."""
    x.detach().unsqueeze(0)[:0].zero_()


cdef int find_functions(object torch, size_t place) except -1:
    global bump, counter_offset, owners_are_known
    cdef functions found
    names = (b"autograd::version_counter", b"autograd::bump_version")
    if not find_symbols((b"libtorch_cpu.so",), names, <void **>&found):
        return 0
    try:
        offset = offset_of_counter(torch, place, found.counter)
        if offset and counts_right(torch, place, found.bump):
            counter_offset, bump = offset, found.bump
            owners_are_known = owners_are_right(torch, place)
    except Exception:  # this PyTorch lacks some of them: its Python function counts
        return 0
    return 0


cdef size_t offset_of_counter(object torch, size_t place, counter_function counter) except? 0:
    """Return 0 if the offset differs among tensors or does not show inference tensors."""
    cdef size_t offset = 0
    cdef char *impl
    cdef char *at
    cdef object x = None
    for is_inference in (False, True):
        with torch.inference_mode(is_inference):
            x = torch.zeros(2, device="cpu")
        impl = (<char **>(<char *><PyObject *>x + place))[0]
        at = <char *>counter(<char *><PyObject *>x + place)
        if not impl < at < impl + MAX_IMPL_BYTES or offset and at - impl != <Py_ssize_t>offset:
            return 0
        if ((<void **>at)[0] == NULL) != is_inference:
            return 0
        offset = at - impl
    return offset


cdef bint counts_right(object torch, size_t place, bump_function found) except -1:
    cdef object x = None
    with torch.inference_mode(False):
        x = torch.zeros(2, device="cpu")
    view, other, before = x[:1], torch.zeros(1, device="cpu"), x._version
    found(<char *><PyObject *>view + place)
    return x._version == before + 1 and other._version == 0


cdef bint owners_are_right(object torch, size_t place) except -1:
    """Return whether views are owners and the version is at the expected offset."""
    cdef object x = None
    cdef char *counter
    with torch.inference_mode(False):
        x = torch.zeros(2, device="cpu")
        counter = counter_of(<PyObject *>x, place)
        for version in range(3):
            if number_at(counter, OWNERS)[0] != 1 or number_at(counter, VERSION)[0] != version:
                return False
            x.zero_()
        for share in (lambda: x[:1], x.detach):
            kept = share()
            if number_at(counter, OWNERS)[0] != 2:
                return False
            del kept
        return number_at(counter, OWNERS)[0] == 1
