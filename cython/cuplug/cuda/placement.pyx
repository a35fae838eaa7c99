# SPDX-License-Identifier: Apache-2.0
"""Where a call is to run, the argument `device`, the context manager, the environment; and where an
array is.
"""

import os
from contextvars import ContextVar

from libc.stdint cimport int32_t

from cuplug.base.core cimport (
    CUPLUG_ALL_GPUS,
    CUPLUG_CPU,
    CUPLUG_CUDA,
    cuplug_device,
    cuplug_n_devices,
)

from cuplug.base.public import public
cdef enum:
    MAX_GPUS = 64  # as in the core: a bit for each

cdef bint has_default = False
# Of the `with` blocks around: the innermost one's device, as its type and number, and what was
# chosen around it. One object may be entered by several threads and tasks at once.
cdef object chosen = ContextVar("cuplug_device", default=None)
cdef cuplug_device from_environment


cdef cuplug_device make_device(int device_type, object number) except *:
    cdef cuplug_device device
    if not 0 <= number < MAX_GPUS:
        is_long = number.bit_length() > 128  # which Python may not write
        seen = "a number beyond 128 bits" if is_long else f"number {number}"
        raise ValueError(f"device: seen {seen}, wanted that of a GPU, from 0")
    device.type = device_type
    device.id = number
    return device


cdef cuplug_device read_device(object device) except *:
    if device is HOST or type(device) is str and device == "cpu":
        return make_device(CUPLUG_CPU, 0)
    if isinstance(device, str):
        return parse_name(str(device))
    if isinstance(device, int) and not isinstance(device, bool):
        return make_device(CUPLUG_CUDA, device)
    kind = getattr(device, "type", None)
    if isinstance(kind, str):  # torch.device and our own
        index = getattr(device, "index", None)
        return parse_name(str(kind) if index is None else f"{kind}:{index}")
    number = getattr(device, "id", None)
    if isinstance(number, int):  # cupy.cuda.Device
        return make_device(CUPLUG_CUDA, number)
    raise TypeError(f"device: seen {device!r}, wanted 'cpu', 'cuda', 'cuda:1' or the like")


cdef cuplug_device parse_name(str name) except *:
    cdef cuplug_device place
    kind, colon, number = name.partition(":")
    if kind == "cpu" and number in ("", "0"):
        return make_device(CUPLUG_CPU, 0)
    if kind == "cuda" and not colon:
        return make_device(CUPLUG_CUDA, 0)
    if kind == "cuda" and number == "*":
        place = make_device(CUPLUG_CUDA, 0)
        place.id = CUPLUG_ALL_GPUS
        return place
    if kind == "cuda" and number.isascii() and number.isdigit() and len(number) <= 5:
        return make_device(CUPLUG_CUDA, int(number))
    raise ValueError(f"device: seen {name!r}, wanted 'cpu', 'cuda', 'cuda:1' or the like")


cdef cuplug_device parse_places(str function, object device) except *:
    try:
        return read_device(device)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{function}: {error}") from None


cdef cuplug_device parse_device(str function, object device) except *:
    cdef cuplug_device parsed = parse_places(function, device)
    if parsed.id == CUPLUG_ALL_GPUS:
        raise ValueError(f"{function}: device: seen 'cuda:*', wanted one GPU, or 'cpu'")
    return parsed


cdef cuplug_device parse_gpu(str function, object device) except *:
    cdef cuplug_device parsed = parse_device(function, device)
    if parsed.type != CUPLUG_CUDA:
        raise ValueError(f"{function}: device: seen {device!r}, wanted a GPU")
    return parsed


def gpu_number(str function, device):
    """Return the number of a GPU that a caller names."""
    return parse_gpu(function, device).id


cdef int default_device(cuplug_device *device) except -1:
    device[0] = from_environment
    innermost = chosen.get()
    if innermost is not None:
        device.type, device.id = innermost[0]
    return 0


cdef cuplug_device where_arrays_go() except *:
    cdef cuplug_device device
    cdef int32_t n = 0
    default_device(&device)
    if not device.type:
        cuplug_n_devices(&n, NULL, NULL)
        device.type = CUPLUG_CUDA if n else CUPLUG_CPU
        device.id = 0
    if device.id == CUPLUG_ALL_GPUS:  # an array is on one
        device.id = 0
    return device


def read_environment():
    """Take CUPLUG_DEVICE as the default; done once, at import."""
    global from_environment, has_default
    name = os.environ.get("CUPLUG_DEVICE")
    if not name:
        return
    try:
        from_environment = parse_name(name)
        has_default = True
    except ValueError as error:
        raise ValueError(f"CUPLUG_DEVICE: {error}") from None


@public
class Placement:
    """Where an array is: `type` is "cuda" or "cpu", `index` the GPU's number, None for the host."""

    __slots__ = ("index", "type")

    def __init__(self, type, index):
        self.type = type
        self.index = index

    def __reduce__(self):
        return Placement, (self.type, self.index)

    def __str__(self):
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __repr__(self):
        return f"<device {self}>"

    def __eq__(self, other):
        if type(other) is Placement:
            return self.type == other.type and self.index == other.index
        return str(self) == str(other)

    def __hash__(self):
        return hash(str(self))


HOST = Placement("cpu", None)


@public
class device:
    """Where host arrays run inside a `with` block: `with cuplug.device("cuda"): ...`.

    Arrays on a GPU run where they are in any case.

    Parameters
    ----------
    name : str, int or device
        "cpu", "cuda", "cuda:1", a GPU's number, or a device object of PyTorch or CuPy; `"cuda:*"`:
        each call is cut along its loop dimensions, and goes through all GPUs.
    """

    def __init__(self, name):
        cdef cuplug_device place = read_device(name)
        self._name = name
        self._place = place.type, place.id

    def __repr__(self):
        return f"cuplug.device({self._name!r})"

    def __enter__(self):
        global has_default
        has_default = True
        chosen.set((self._place, chosen.get()))
        return self

    def __exit__(self, *exception):
        chosen.set(chosen.get()[1])


read_environment()
