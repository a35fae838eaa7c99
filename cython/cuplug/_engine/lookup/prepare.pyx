# SPDX-License-Identifier: Apache-2.0
"""Operators prepared ahead of their first call."""

from collections.abc import Iterable

from libc.stdint cimport int32_t

from cuplug._engine.base.core cimport (
    CUPLUG_ALL_GPUS,
    CUPLUG_CPU,
    CUPLUG_CUDA,
    cuplug_device,
    cuplug_error,
    cuplug_n_devices,
    cuplug_operator,
    cuplug_prepare,
)
from cuplug._engine.base.status cimport raise_error
from cuplug._engine.call.operator cimport Operator
from cuplug._engine.cuda.placement cimport parse_places

from cuplug._engine.base.public import public
from cuplug._engine.lookup.find import find


@public
def prepare(operators: Operator | str | Iterable[Operator | str], device=None):
    """Do ahead of time the work of the first call of operators.

    Their code is loaded, and their states are created. With a GPU, CUDA is started, the context
    and the memory pool are created, the code for the GPU is checked, and the driver loads their
    plugin's kernels. Kernels that are compiled at run time are compiled at the first call.

    Parameters
    ----------
    operators : Operator, str, or sequence of them
        Operators, or names as for `cuplug.find`.
    device : str, int or Device, optional
        The device on which they will run.

    Raises
    ------
    NotFoundError, PluginError, CudaError
        As at the first call.
    ValueError
        If an operator has no entry for a GPU.

    Examples
    --------
    >>> cuplug.prepare(["gather", "relu"], device="cpu")
    """
    cdef cuplug_device place
    cdef int32_t n = 0
    place.type, place.id = CUPLUG_CPU, 0
    if device is not None:
        place = parse_places("prepare", device)
    alone = isinstance(operators, (str, Operator)) or not isinstance(operators, Iterable)
    given = (operators,) if alone else operators
    wanted = [find(op) if isinstance(op, str) else op for op in given]
    numbers = [place.id]
    if place.type == CUPLUG_CUDA and place.id == CUPLUG_ALL_GPUS:
        cuplug_n_devices(&n, NULL, NULL)
        numbers = range(max(n, 1))
    for place.id in numbers:
        for op in wanted:
            prepare_operator(op, place)


cdef int prepare_operator(object operator, cuplug_device place) except -1:
    if not isinstance(operator, Operator):
        seen = type(operator).__name__
        raise TypeError(f"prepare: operators: got {seen}, expected operators or their names")
    cdef cuplug_operator *op = (<Operator>operator).op
    cdef cuplug_error error
    cdef int status
    with nogil:
        status = cuplug_prepare(op, place, &error)
    if status:
        return raise_error(&error)
    return 0
