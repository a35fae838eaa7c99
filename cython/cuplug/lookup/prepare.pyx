# SPDX-License-Identifier: Apache-2.0
"""Operators made ready ahead of their first call."""

from collections.abc import Iterable

from cuplug.base.core cimport (
    CUPLUG_CPU,
    CUPLUG_CUDA,
    cuplug_device,
    cuplug_error,
    cuplug_load_code,
    cuplug_operator,
    cuplug_prepare,
)
from cuplug.base.status cimport raise_error
from cuplug.call.operator cimport Operator
from cuplug.cuda.placement cimport note_use, parse_device

from cuplug.base.public import public
from cuplug.lookup.find import find


@public
def prepare(operators, device=None):
    """Do ahead what the first call of operators does.

    Their code is loaded. With a GPU, CUDA is started, the context and the memory pool are made, it
    is checked that there is code for the GPU, and the driver loads their plugin's kernels. Kernels
    that are compiled at run time are left to the first call.

    Parameters
    ----------
    operators : Operator, str, or sequence of them
        Names are those that `cuplug.find` takes.
    device : str, int or device, optional
        Where they will run.

    Raises
    ------
    NotFoundError, PluginError, CudaError
        As their first call would.
    ValueError
        An operator has no entry for a GPU.
    """
    cdef cuplug_device place
    place.type = CUPLUG_CPU
    if device is not None:
        place = parse_device("prepare", device)
    alone = isinstance(operators, (str, Operator)) or not isinstance(operators, Iterable)
    for op in (operators,) if alone else operators:
        prepare_operator(find(op) if isinstance(op, str) else op, place)


cdef int prepare_operator(object operator, cuplug_device place) except -1:
    if not isinstance(operator, Operator):
        seen = type(operator).__name__
        raise TypeError(f"prepare: operators: seen {seen}, wanted operators or their names")
    cdef cuplug_operator *op = (<Operator>operator).op
    cdef cuplug_error error
    cdef int status
    with nogil:
        if place.type == CUPLUG_CUDA:
            status = cuplug_prepare(op, place.id, &error)
        else:
            status = cuplug_load_code(op, &error)
    if status:
        return raise_error(&error)
    if place.type == CUPLUG_CUDA:
        note_use(place.id)
    return 0
