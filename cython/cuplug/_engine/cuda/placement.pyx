# SPDX-License-Identifier: Apache-2.0
"""The device of a call, by the argument `device`, the context manager or the environment."""

import os
from contextvars import ContextVar

from libc.stdint cimport int32_t

from cuplug._engine.base.core cimport (
    CUPLUG_ALL_GPUS,
    CUPLUG_CPU,
    CUPLUG_CUDA,
    cuplug_device,
    cuplug_device_info,
    cuplug_error,
    cuplug_n_devices,
    cuplug_query_device,
)
from cuplug._engine.base.core_call cimport cuplug_query_attribute
from cuplug._engine.base.status cimport raise_error

from cuplug._engine.base import environment
from cuplug._engine.base.public import public
from cuplug._engine.cuda.attributes import NUMBERS

cdef enum:
    MAX_GPUS = 64  # as in the core: a bit for each

cdef bint has_default = False
# The device of the innermost enclosing `with` block, as its type and number, and the one chosen
# outside it. One object may be entered by several threads and tasks at once.
cdef object chosen = ContextVar("cuplug_device", default=None)
cdef cuplug_device from_environment


cdef cuplug_device make_device(int device_type, object number) except *:
    cdef cuplug_device device
    if not 0 <= number < MAX_GPUS:
        is_long = number.bit_length() > 128  # Python may reject writing it
        seen = "a number beyond 128 bits" if is_long else f"number {number}"
        raise ValueError(f"device: got {seen}, expected that of a GPU, from 0")
    device.type = device_type
    device.id = number
    return device


cdef cuplug_device read_device(object device) except *:
    if isinstance(device, Device):
        return (<Device>device).place
    if type(device) is str and device == "cpu":
        return make_device(CUPLUG_CPU, 0)
    if isinstance(device, str):
        return parse_name(str(device))
    if isinstance(device, int) and not isinstance(device, bool):
        return make_device(CUPLUG_CUDA, device)
    kind = getattr(device, "type", None)
    if isinstance(kind, str):  # torch.device, and cuplug's
        index = getattr(device, "index", None)
        return parse_name(str(kind) if index is None else f"{kind}:{index}")
    number = getattr(device, "id", None)
    if isinstance(number, int):  # cupy.cuda.Device
        return make_device(CUPLUG_CUDA, number)
    raise TypeError(f"device: got {device!r}, expected 'cpu', 'cuda', 'cuda:1' or the like")


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
    raise ValueError(f"device: got {name!r}, expected 'cpu', 'cuda', 'cuda:1' or the like")


cdef cuplug_device parse_places(str function, object device) except *:
    try:
        return read_device(device)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{function}: {error}") from None


cdef cuplug_device parse_device(str function, object device) except *:
    cdef cuplug_device parsed = parse_places(function, device)
    if parsed.id == CUPLUG_ALL_GPUS:
        raise ValueError(f"{function}: device: got 'cuda:*', expected one GPU, or 'cpu'")
    return parsed


cdef cuplug_device parse_gpu(str function, object device) except *:
    cdef cuplug_device parsed = parse_device(function, device)
    if parsed.type != CUPLUG_CUDA:
        raise ValueError(f"{function}: device: got {device!r}, expected a GPU")
    return parsed


def gpu_number(str function, device) -> int:
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
    if device.id == CUPLUG_ALL_GPUS:  # an array is on a single GPU
        device.id = 0
    return device


def read_environment():
    """Set the default from CUPLUG_DEVICE; done once, at import."""
    global from_environment, has_default
    name = environment.variable("CUPLUG_DEVICE")
    if not name:
        return
    try:
        from_environment = parse_name(name)
        has_default = True
    except ValueError as error:
        raise ValueError(f"CUPLUG_DEVICE: {error}") from None


cdef class Device:
    """Device(device)\n--\n
    A GPU, or the host: the device of an array, or of host arrays' calls in a `with` block.

    Arrays on a GPU always run on that GPU. The object is equal to its name, "cuda:1" or "cpu", and
    accepted everywhere a device is.

    Parameters
    ----------
    device : str, int or Device
        "cpu", "cuda", "cuda:1", a GPU's number, or a device object of PyTorch or CuPy. With
        `"cuda:*"`, each call is split along its loop dimensions and runs on all GPUs.

    Attributes
    ----------
    type : str
        "cuda" or "cpu".
    index : int or None
        The GPU's number; None for the host, and for all GPUs.
    name : str
        The name of the GPU. The host has neither this nor the following attributes.
    compute_capability : int
        Times 10: 90 for 9.0.
    memory_bytes, driver_version : int
        The bytes of its memory; the CUDA version of the driver, x 1000.
    attributes : dict
        All attributes that the driver reports, by the names in the CUDA documentation:
        `attributes["MULTIPROCESSOR_COUNT"]` is CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT. It has no
        attributes that the driver does not know yet.

    Examples
    --------
    >>> cuplug.Device("cpu") == "cpu"
    True
    >>> with cuplug.Device("cpu"):
    ...     y = cuplug.ops.relu(numpy.ones(3))
    """

    cdef cuplug_device place

    def __cinit__(self, device):
        self.place = read_device(device)

    @property
    def type(self) -> str:
        return "cuda" if self.place.type == CUPLUG_CUDA else "cpu"

    @property
    def index(self) -> int | None:
        is_one = self.place.type == CUPLUG_CUDA and self.place.id != CUPLUG_ALL_GPUS
        return self.place.id if is_one else None

    @property
    def name(self) -> str:
        return info_of(self, "name").name.decode(errors="replace")

    @property
    def compute_capability(self) -> int:
        return info_of(self, "compute_capability").compute_capability

    @property
    def memory_bytes(self) -> int:
        return info_of(self, "memory_bytes").memory_bytes

    @property
    def driver_version(self) -> int:
        cdef int32_t version = 0
        info_of(self, "driver_version")
        cuplug_n_devices(NULL, &version, NULL)
        return version

    @property
    def attributes(self) -> dict[str, int]:
        cdef cuplug_error error
        cdef int32_t value = 0, is_known = 0
        info_of(self, "attributes")
        found = {}
        for name, number in NUMBERS.items():
            if cuplug_query_attribute(self.place.id, number, &value, &is_known, &error):
                raise_error(&error)
            if is_known:
                found[name] = value
        return found

    def __enter__(self):
        global has_default
        has_default = True
        chosen.set(((self.place.type, self.place.id), chosen.get()))
        return self

    def __exit__(self, *exception):
        chosen.set(chosen.get()[1])

    def __reduce__(self):
        return Device, (str(self),)

    def __str__(self):
        if self.place.type == CUPLUG_CPU:
            return "cpu"
        return "cuda:*" if self.place.id == CUPLUG_ALL_GPUS else f"cuda:{self.place.id}"

    def __repr__(self):
        return f"cuplug.Device({str(self)!r})"

    def __eq__(self, other):
        cdef cuplug_device place
        if isinstance(other, Device):
            place = (<Device>other).place
            return self.place.type == place.type and self.place.id == place.id
        return str(self) == str(other)

    def __hash__(self):
        return hash(str(self))


cdef cuplug_device_info info_of(Device device, str what) except *:
    """Return the attributes that the driver reports of a GPU."""
    cdef cuplug_device_info info
    cdef cuplug_error error
    if device.place.type != CUPLUG_CUDA or device.place.id == CUPLUG_ALL_GPUS:
        raise AttributeError(f"Device: {what}: got {device}, expected one GPU")
    info.struct_bytes = sizeof(info)
    if cuplug_query_device(device.place.id, &info, &error):
        raise_error(&error)
    return info


public(Device)
HOST: Device = Device("cpu")
read_environment()
