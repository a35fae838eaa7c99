# SPDX-License-Identifier: Apache-2.0
"""Loading of libraries: compiled code, and CUDA's libraries before a stock plugin needs them."""

from __future__ import annotations

import ctypes
import itertools
import os
import sys
from collections.abc import Iterator
from functools import cache

from cuplug._engine.base import environment
from cuplug._engine.base.libraries import open_library

_n_copies = itertools.count(1)


def load_code(path: str) -> ctypes.CDLL:
    """Load compiled code, from a copy in memory if files of its file system cannot be run."""
    try:
        return ctypes.CDLL(path)
    except OSError as error:
        if "failed to map segment" not in str(error):
            raise
    try:
        memory = os.memfd_create("cuplug")
    except OSError as error:
        raise OSError(
            f"got {path}, where no file can be executed (noexec), and no file in memory "
            f"({error.strerror}); set TMPDIR to a folder on another file system"
        ) from None
    with open(path, "rb") as file, open(memory, "wb", buffering=0) as copy:
        copy.write(file.read())
        # Each path has another spelling, with ".." unlike the core's. For a path that it knows, the
        # dynamic linker would return the library that is already loaded.
        slashes = f"{next(_n_copies):b}".replace("0", "/").replace("1", "/./")
        name = f"/proc/{os.readlink('/proc/self')}/fd/../fd{slashes}{copy.fileno()}"
        return ctypes.CDLL(path, handle=open_library(name))


@cache
def load_cuda_library(name: str, majors: tuple[str, ...]) -> str | None:
    """Load a CUDA library, unless the process has it, so that a plugin finds it by its name.

    Searches the dynamic linker's directories, the toolkits in $CUDA_HOME and $CUDA_PATH, the wheels
    of Python packages, and /usr/local/cuda.

    Parameters
    ----------
    name : str
        "cublasLt".
    majors : tuple of str
        The accepted versions of its binary interface, preferred first.

    Returns
    -------
    str or None
        The file's name or path; None if it is not found, which the plugin reports.
    """
    files = [f"lib{name}.so.{major}" for major in majors]
    for mode in (ctypes.RTLD_LOCAL | os.RTLD_NOLOAD, ctypes.RTLD_LOCAL):
        for file in files:
            if _load(file, mode):
                return file
    paths = (path for file in files for path in _paths(file))
    return next((path for path in paths if _load(path, ctypes.RTLD_LOCAL)), None)


def _load(path: str, mode: int) -> bool:
    try:
        ctypes.CDLL(path, mode)
    except OSError:
        return False
    return True


def _paths(file: str) -> Iterator[str]:
    import glob  # compiled code needs none

    homes = [environment.variable(name) for name in ("CUDA_HOME", "CUDA_PATH")]
    for home in (*homes, "/usr/local/cuda"):
        yield from glob.glob(os.path.join(glob.escape(home), "lib*", file)) if home else ()
    for entry in sys.path:
        folder = os.path.join(glob.escape(entry), "nvidia", "*", "lib")
        yield from sorted(glob.glob(os.path.join(folder, file)), reverse=True) if entry else ()
