# SPDX-License-Identifier: Apache-2.0
"""CUDA libraries that stock plugins call. They are loaded before a plugin needs them."""

from __future__ import annotations

import ctypes
import glob
import os
import sys
from collections.abc import Iterator
from functools import cache

from cuplug._engine.base import environment


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
    homes = [environment.variable(name) for name in ("CUDA_HOME", "CUDA_PATH")]
    for home in (*homes, "/usr/local/cuda"):
        yield from glob.glob(os.path.join(glob.escape(home), "lib*", file)) if home else ()
    for entry in sys.path:
        folder = os.path.join(glob.escape(entry), "nvidia", "*", "lib")
        yield from sorted(glob.glob(os.path.join(folder, file)), reverse=True) if entry else ()
