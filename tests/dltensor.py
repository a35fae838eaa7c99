# SPDX-License-Identifier: Apache-2.0
"""DLPack's `DLTensor`, with fields that tests set, and arrays with only DLPack's methods."""

import ctypes


class Tensor(ctypes.Structure):
    """An array, as in a capsule."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    )


class OnlyDLPack:
    """An array of the host that NumPy can read only through `from_dlpack`."""

    def __init__(self, x):
        self.x = x

    def __dlpack__(self, **options):
        return self.x.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.x.__dlpack_device__()
