# SPDX-License-Identifier: Apache-2.0
"""Locks that keep processes from compiling the same code at the same time.

They only save work: a process that cannot lock, or has waited too long, compiles for itself. A lock
covers one byte of one file in the cache, at an offset computed from the key, so no lock files are
left over. It belongs to an open file. The system releases it when its process ends, and it also
excludes other threads of the same process.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
import time
from collections.abc import Iterator

from cuplug._source.compilers import cache

FILE = "locks"
LIMIT_S = 60.0  # a holder that takes longer may be stopped
_FIRST_POLL_S, _LONGEST_POLL_S = 0.002, 0.05
_KEY_DIGITS = 15  # hexadecimal: offsets of files have 63 bits


@contextlib.contextmanager
def held(key: str) -> Iterator[None]:
    """Hold the lock of a key while creating data that the cache will store.

    If another holder comes first, wait until it has finished and do not hold the lock afterwards:
    if the result is not in the cache then, it cannot be cached, and the waiting processes need not
    take turns.
    """
    with contextlib.ExitStack() as stack:
        try:
            _wait(stack, key)
        except OSError as error:
            if error.errno is None:  # a signal handler raised it
                raise
        yield


def _wait(stack: contextlib.ExitStack, key: str) -> None:
    """Acquire the lock if it is free. Otherwise wait for its release, at most for LIMIT_S."""
    if not cache.limit() or not cache.make_directory():
        return
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    file = os.open(os.path.join(cache.directory(), FILE), flags, 0o600)
    stack.callback(os.close, file)
    offset = int(key[:_KEY_DIGITS], 16)
    if _lock(file, offset):
        stack.callback(_set, file, fcntl.F_UNLCK, offset)  # a forked process may have the file open
        return
    pause, end = _FIRST_POLL_S, time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        time.sleep(pause)
        if _lock(file, offset):
            _set(file, fcntl.F_UNLCK, offset)
            return
        pause = min(2 * pause, _LONGEST_POLL_S)


def _lock(file: int, offset: int) -> bool:
    try:
        _set(file, fcntl.F_WRLCK, offset)
    except (BlockingIOError, PermissionError):  # EAGAIN or EACCES: another holds it
        return False
    return True


def _set(file: int, kind: int, offset: int) -> None:
    """Set or release the lock of one byte: a `struct flock` of 64-bit Linux."""
    fcntl.fcntl(file, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", kind, os.SEEK_SET, offset, 1, 0))
