# SPDX-License-Identifier: Apache-2.0
"""PyTorch's version counters: autograd compares them to find tensors that were written.

libtorch exports the C++ function that counts. Its name is not promised, and it throws a C++
exception for an inference tensor, which has no counter. So it is called only for tensors with a
counter, after it has counted right in tests; otherwise PyTorch's Python function counts.
"""

import sys

from cpython.object cimport PyObject

from cuplug._engine.interop.kinds cimport array_kind, type_of
from cuplug._engine.interop.libtorch cimport find_symbols

cdef enum:
    MAX_IMPL_BYTES = 512  # of a c10::TensorImpl, which at::Tensor points to

ctypedef void (*bump_function)(void *tensor) noexcept
ctypedef void *(*counter_function)(void *tensor) noexcept

ctypedef struct functions:
    counter_function counter
    bump_function bump

cdef bump_function bump = NULL
cdef size_t counter_offset  # of the pointer to the counter in a c10::TensorImpl
cdef object increment = None  # PyTorch's Python function; None: nothing has been written yet


cdef bint count_write(PyObject *obj, const array_kind *kind) noexcept:
    cdef char *impl
    if bump == NULL or not kind.tensor_place or type_of(obj) != kind.type:
        return False
    impl = (<char **>(<char *>obj + kind.tensor_place))[0]
    if (<void **>(impl + counter_offset))[0] == NULL:
        return False
    bump(<char *>obj + kind.tensor_place)
    return True


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
    """Count a write by one of no elements, to a view, which has the same counter."""
    x.detach().unsqueeze(0)[:0].zero_()


cdef int find_functions(object torch, size_t place) except -1:
    global bump, counter_offset
    cdef functions found
    names = (b"autograd::version_counter", b"autograd::bump_version")
    if not find_symbols((b"libtorch_cpu.so",), names, <void **>&found):
        return 0
    try:
        offset = offset_of_counter(torch, place, found.counter)
        if offset and counts_right(torch, place, found.bump):
            counter_offset, bump = offset, found.bump
    except Exception:  # a PyTorch that lacks some of it: its Python function counts
        return 0
    return 0


cdef size_t offset_of_counter(object torch, size_t place, counter_function counter) except? 0:
    """0 if it differs among tensors, or does not tell inference tensors from others."""
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
