# SPDX-License-Identifier: Apache-2.0
"""CUDA's libraries that stock plugins call: loaded into the process before a plugin needs them."""

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
    """Load a library of CUDA, unless the process has it, so that a plugin finds it by its name.

    It is searched where the dynamic linker looks, in the toolkits of $CUDA_HOME and $CUDA_PATH, in
    the wheels of Python's packages, and in /usr/local/cuda.

    Parameters
    ----------
    name : str
        "cublasLt".
    majors : tuple of str
        The versions of its binary interface that will do, the preferred one first.

    Returns
    -------
    str or None
        The file's name or path; None if there is none, which the plugin reports.
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
