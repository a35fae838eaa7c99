# SPDX-License-Identifier: Apache-2.0
"""The locations of NVRTC and CUDA's headers."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Sequence
from functools import cache, cached_property

from cuplug._engine.base import environment, flags
from cuplug._engine.base.libraries import find_loaded, open_library
from cuplug.errors import CompileError

# In nvidia/ of the packages' directory: CUDA 13 and newer; CUDA 12.
LIBRARIES = ("cu{major}/lib", "cuda_nvrtc/lib")
HEADERS = ("cuda_runtime/include", "cuda_cccl/include")
MAJORS = range(19, 12, -1)
FILES = [f"libnvrtc.so.{major}" for major in (*MAJORS, 12)]
# Headers that replace the C and C++ standard library, and <cub/cub.cuh>.
_STANDARD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "standard")
STANDARD_C, STANDARD_CPP = (os.path.join(_STANDARD, name) for name in ("c", "cpp"))
# The standard headers that include no CUDA header and declare nothing that --minimal omits.
_LIGHT = """assert.h cassert cfloat climits cstdint cstdio float.h limits.h math.h stdbool.h
    stddef.h stdint.h stdio.h stdlib.h string.h sys/types.h"""
LIGHT = frozenset(_LIGHT.split())
# Kernels written for nvcc use glibc's `uint`, which it declares everywhere.
INCLUDED = "--pre-include=sys/types.h"
# As with nvcc, a source may use `int64_t` without a header. It is included only if the source does
# not compile otherwise, since a source may define such a name as another type.
WITHOUT_STDINT = re.compile(
    r'identifier "u?int(?:_least|_fast)?(?:8|16|32|64|ptr|max)_t" is undefined'
)
STDINT = "--pre-include=stdint.h"
NAMES = "__nv_name_map"  # the file of name expressions, in messages


class Compiler:
    """An NVRTC, and the directories of headers: cuplug's, CUDA's next to the NVRTC, and others."""

    def __init__(self, path: str, include: tuple[str, ...]) -> None:
        self.path = path
        self.include = include

    @cached_property
    def identity(self) -> str:
        """Return a text that changes with the compiler or its headers. Opens neither."""
        seen = [os.path.realpath(self.path), *self.include]
        statuses = [os.stat(path) for path in seen]
        return "\n".join(
            f"{p} {s.st_size} {s.st_mtime_ns}" for p, s in zip(seen, statuses, strict=True)
        )


@cache
def find() -> Compiler:
    """Return this process's NVRTC, with its headers.

    Raises
    ------
    CompileError
        It does not exist.
    """
    packages = [os.path.join(entry, "nvidia") for entry in sys.path if entry]
    packages = [directory for directory in packages if os.path.isdir(directory)]
    libraries = [
        os.path.join(directory, below.format(major=major))
        for directory in packages
        for below in LIBRARIES
        for major in (MAJORS if "{" in below else (0,))
    ]
    path = find_compiler(libraries)
    beside = _headers_beside(path)
    headers = dict.fromkeys([*beside, *_other_headers(packages)])
    own = flags.get_include()
    return Compiler(path, (own, STANDARD_C, STANDARD_CPP, *headers))


def find_compiler(directories: Sequence[str]) -> str:
    """Return the path of NVRTC.

    The loaded one, else the first in $CUDA_HOME, $CUDA_PATH, these directories, /usr/local/cuda and
    the dynamic linker's path. Loads a library only in the last case.
    """
    homes = [environment.variable(name) for name in ("CUDA_HOME", "CUDA_PATH")]
    toolkits = [*_libraries_in(homes), *directories, *_libraries_in(["/usr/local/cuda"])]
    paths = (os.path.join(each, file) for each in toolkits for file in FILES)
    found = find_loaded("libnvrtc.so.") or next((p for p in paths if os.access(p, os.R_OK)), None)
    return found or _load_by_name()


def _libraries_in(homes: Sequence[str]) -> list[str]:
    return [f"{home}/{below}" for home in homes if home[:1] == "/" for below in ("lib64", "lib")]


def _load_by_name() -> str:
    """Load the NVRTC that only the dynamic linker finds, and return its path."""
    for file in FILES:
        with contextlib.suppress(OSError):
            open_library(file)
            return find_loaded("libnvrtc.so.")
    raise CompileError(
        f"there is no NVRTC, the compiler of CUDA source: {FILES[-1]} or newer was not found in "
        "$CUDA_HOME, $CUDA_PATH, the nvidia-cuda-nvrtc packages of Python, /usr/local/cuda or on "
        "the library path; install the CUDA toolkit or the Python package nvidia-cuda-nvrtc"
    )


def _headers_beside(path: str) -> list[str]:
    """Return the directories of CUDA headers that belong to a library."""
    above = os.path.dirname(os.path.dirname(os.path.abspath(path)))
    packages = os.path.dirname(above)
    homes = [environment.variable(name) for name in ("CUDA_HOME", "CUDA_PATH")]
    places = [os.path.join(above, "include"), *(os.path.join(packages, h) for h in HEADERS)]
    places += [os.path.join(home, "include") for home in (*homes, "/usr/local/cuda") if home]
    runtime = next((p for p in places if os.path.exists(os.path.join(p, "cuda_fp16.h"))), None)
    runtime = runtime or _ask_pathfinder("cudart")
    libraries = [p for place in places for p in (os.path.join(place, "cccl"), place)]
    cccl = next((p for p in libraries if os.path.exists(os.path.join(p, "cuda/std"))), None)
    cccl = cccl or _ask_pathfinder("cccl")
    return [directory for directory in dict.fromkeys((runtime, cccl)) if directory]


def _ask_pathfinder(name: str) -> str | None:
    """Return the directory in which cuda-pathfinder finds headers."""
    from cuplug._source.compilers.toolkit import ask_pathfinder  # imports subprocess and more

    return ask_pathfinder("find_nvidia_header_directory", name)


def _other_headers(packages: list[str]) -> list[str]:
    """Return the other directories of CUDA headers, in an order that does not depend on imports.

    PyTorch's wheels lack some headers, such as <curand_kernel.h>. The process uses PyTorch's NVRTC
    once PyTorch is imported.
    """
    homes = [os.environ.get(name, "") for name in ("CUDA_HOME", "CUDA_PATH")]
    toolkits = [os.path.join(home, "include") for home in (*homes, "/usr/local/cuda") if home]
    wheels = [f"{each}/{name}/include" for each in packages for name in _names_in(each)]
    places = [path for each in (*toolkits, *wheels) for path in (f"{each}/cccl", each)]
    return [path for path in places if os.path.isdir(path)]


def _names_in(directory: str) -> list[str]:
    """Return the names in a directory, which may not exist; `glob` takes longer to import."""
    try:
        return sorted(os.listdir(directory))
    except OSError:
        return []
