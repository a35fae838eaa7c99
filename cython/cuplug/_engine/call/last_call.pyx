# SPDX-License-Identifier: Apache-2.0
"""A record of the last call of a thread."""

import os
import sys
from collections import namedtuple

from libc.stdint cimport int32_t

from cuplug._engine.base.core cimport (
    CUPLUG_ALL_GPUS, CUPLUG_CUDA, cuplug_operator, cuplug_operator_name, cuplug_operator_path,
)
from cuplug._engine.base.core_call cimport cuplug_frame

from cuplug._engine.base import environment
from cuplug._engine.base.public import public

cdef extern from *:
    """
    typedef struct {
      void *op;
      int32_t device_type, device_id, offloaded;
    } cuplug_last_run;
    static __thread cuplug_last_run cuplug_last;
    """
    ctypedef struct cuplug_last_run:
        void *op
        int32_t device_type
        int32_t device_id
        int32_t offloaded
    cuplug_last_run cuplug_last

is_verbose = environment.variable("CUPLUG_VERBOSE", "0") not in ("", "0")


LastCall: tuple[str, str, bool, str] = public(
    namedtuple("LastCall", "operator device offloaded path")
)
LastCall.__doc__ = """A record of this thread's last call.

Attributes
----------
operator : str
    The operator's name.
device : str
    Its device, "cpu", "cuda:0" or `"cuda:*"`.
offloaded : bool
    True if arrays of the host were offloaded to the GPU.
path : str
    The plugin's file.

Examples
--------
>>> y = cuplug.ops.relu(numpy.ones(3, "float32"), device="cpu")
>>> cuplug.last_call().operator
'relu'
"""


@public
def last_call() -> LastCall | None:
    """Describe this thread's last call.

    Returns
    -------
    LastCall or None
        Operator, device ("cpu", "cuda:0" or `"cuda:*"`), True if host arrays were offloaded to the
        GPU, and the plugin's file. None before the first call.

    Examples
    --------
    >>> y = cuplug.ops.relu(numpy.ones(3, "float32"), device="cpu")
    >>> cuplug.last_call().device
    'cpu'
    """
    cdef const cuplug_operator *op = <cuplug_operator *>cuplug_last.op
    if op == NULL:
        return None
    device = place_name(cuplug_last.device_type, cuplug_last.device_id)
    name, path = cuplug_operator_name(op).decode(), os.fsdecode(cuplug_operator_path(op))
    return LastCall(name, device, cuplug_last.offloaded != 0, path)


cdef str place_name(int32_t device_type, int32_t number):
    if device_type != CUPLUG_CUDA:
        return "cpu"
    return "cuda:*" if number == CUPLUG_ALL_GPUS else f"cuda:{number}"


cdef void note_last(const cuplug_frame *frame) noexcept nogil:
    cuplug_last.op = frame.op
    cuplug_last.device_type = frame.device.type
    cuplug_last.device_id = frame.device.id
    cuplug_last.offloaded = frame.offloaded


cdef int print_run(const cuplug_frame *frame) except -1:
    place = place_name(frame.device.type, frame.device.id)
    offloaded = ", offloaded through pinned memory" if frame.offloaded else ""
    name = cuplug_operator_name(frame.op).decode()
    path = os.fsdecode(cuplug_operator_path(frame.op))
    print(f"cuplug: {name}: ran on {place}{offloaded} ({path})", file=sys.stderr)
    return 0
