# SPDX-License-Identifier: Apache-2.0
from cpython.object cimport PyObject

from cuplug._engine.interop.kinds cimport array_kind


# Counts a write to a tensor of PyTorch, as PyTorch's in-place functions do: autograd then reports
# that a value it saved has changed. Returns False if only `count_in_python` can count it, if the
# object has another kind, and for NULL.
cdef bint count_write(PyObject *obj, const array_kind *kind) noexcept
# Raises RuntimeError for an inference tensor outside torch.inference_mode. Messages begin with
# `place`.
cdef int count_in_python(object tensor, const array_kind *kind, str place) except -1
