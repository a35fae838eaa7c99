# SPDX-License-Identifier: Apache-2.0
"""The functions of the CUDA driver that timing needs, without a framework."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator

import numpy as np
from measurement import Contender, Skip

LEGACY_STREAM = None
Handle = ctypes.c_void_p


class Driver:
    """Device 0 with its primary context, which all frameworks share."""

    def __init__(self) -> None:
        try:
            self._library = ctypes.CDLL("libcuda.so.1")
        except OSError:
            raise Skip("no CUDA driver") from None
        device, count, context = ctypes.c_int(), ctypes.c_int(), Handle()
        code = self._library.cuInit(0) or self._library.cuDeviceGetCount(ctypes.byref(count))
        if code or count.value == 0:
            raise Skip(f"no CUDA GPU (CUresult {code}, {count.value} devices)")
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)

    def call(self, name: str, *args: object) -> None:
        """Call a driver function; raise RuntimeError if it reports an error."""
        code = getattr(self._library, name)(*args)
        if code:
            raise RuntimeError(f"{name}: CUresult {code}")

    def synchronize(self) -> None:
        """Wait for all work in the context."""
        self.call("cuCtxSynchronize")

    def event(self) -> Handle:
        """Return a new event that records times."""
        event = Handle()
        self.call("cuEventCreate", ctypes.byref(event), 0)
        return event

    def allocate(self, n_bytes: int) -> ctypes.c_uint64:
        """Return device memory, kept until the process ends."""
        pointer = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(n_bytes))
        return pointer

    def upload(self, array: np.ndarray) -> int:
        """Return the address of a copy of the array on the device."""
        pointer = self.allocate(array.nbytes)
        source, size = Handle(array.ctypes.data), ctypes.c_size_t(array.nbytes)
        self.call("cuMemcpyHtoD_v2", pointer, source, size)
        return pointer.value

    def download(self, address: int, like: np.ndarray) -> np.ndarray:
        """Return the memory at an address, as a new array like another one."""
        array = np.empty_like(like)
        to, size = Handle(array.ctypes.data), ctypes.c_size_t(array.nbytes)
        self.call("cuMemcpyDtoH_v2", to, ctypes.c_uint64(address), size)
        return array

    def copier(self, n_bytes: int) -> Callable[[], None]:
        """Return a function that queues a device copy of random bytes on the legacy stream."""
        to, source = self.allocate(n_bytes), self.allocate(n_bytes)
        block = np.frombuffer(np.random.default_rng(0).bytes(min(n_bytes, 1 << 24)), np.uint8)
        pointer, size = Handle(block.ctypes.data), ctypes.c_size_t
        for start in range(0, n_bytes, block.size):
            count = size(min(block.size, n_bytes - start))
            self.call("cuMemcpyHtoD_v2", ctypes.c_uint64(source.value + start), pointer, count)
        n_copied = size(n_bytes)
        return lambda: self.call("cuMemcpyDtoDAsync_v2", to, source, n_copied, LEGACY_STREAM)

    def free_bytes(self) -> int:
        """Return the free device memory."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value


class DeviceTimer:
    """Time work on the legacy default stream by events.

    A copy before the first event evicts the caches and keeps the device busy until the host has
    queued enough work, so that no launch is waited for.
    """

    def __init__(self, driver: Driver, ahead_bytes: int = 1 << 28) -> None:
        self.driver = driver
        self.copy_ahead = driver.copier(ahead_bytes)
        self.start, self.stop = driver.event(), driver.event()

    def contender(self, calls: Iterator[Callable[[], object]], **more: object) -> Contender:
        """Return a contender that uses the next call in `calls` each time."""

        def time_ns(number: int) -> float:
            batch = [next(calls) for _ in range(number)]
            self.copy_ahead()
            self.driver.call("cuEventRecord", self.start, LEGACY_STREAM)
            for call in batch:
                call()
            self.driver.call("cuEventRecord", self.stop, LEGACY_STREAM)
            self.driver.synchronize()
            elapsed_ms = ctypes.c_float()
            name = "cuEventElapsedTime"
            self.driver.call(name, ctypes.byref(elapsed_ms), self.start, self.stop)
            return elapsed_ms.value * 1e6

        return Contender(time_ns, **more)
