# SPDX-License-Identifier: Apache-2.0
"""The compiler flags for authors of plugins and for C programs that use them."""

from __future__ import annotations

import os
from collections.abc import Sequence

from cuplug._engine.base import environment
from cuplug._engine.base.public import public

# The flags with which `cuplug build` compiles and links; the Makefile has the same for the stock
# plugins.
OPTIMIZED = ("-O3",)
HIDDEN = ("-fPIC", "-fvisibility=hidden")
C_FLAGS = ("-std=c11", "-D_GNU_SOURCE", *HIDDEN, "-Wall", "-Wextra")
CXX_FLAGS = ("-std=c++17", *HIDDEN, "-fvisibility-inlines-hidden", "-Wall", "-Wextra")
NVCC_FLAGS = ("-std=c++17", "-lineinfo")
# __device__ lambdas in entries, and constexpr functions of the standard library in kernels.
NVCC_EXTENSIONS = ("--extended-lambda", "--expt-relaxed-constexpr")
LINKER_FLAGS = ("-z", "now", "-z", "defs", "--exclude-libs=ALL")

PACKAGE = os.path.abspath(f"{__file__}/../../..")


@public
def get_include() -> str:
    """Return the directory that contains `cuplug/plugin.h` and `cuplug/host.h`.

    Examples
    --------
    >>> flags = ["-I" + cuplug.get_include()]
    """
    return os.path.join(PACKAGE, "include")


def lib_directory() -> str:
    """Return the directory that holds `libcuplug.so`."""
    return os.path.join(PACKAGE, "lib")


@public
def get_pkg_config_path() -> str:
    """Return the directory of `cuplug.pc`, for PKG_CONFIG_PATH.

    Examples
    --------
    >>> variables = {"PKG_CONFIG_PATH": cuplug.get_pkg_config_path()}
    """
    return os.path.join(PACKAGE, "lib", "pkgconfig")


@public
def get_cmake_path() -> str:
    """Return the directory of `cuplug-config.cmake`, for cuplug_DIR.

    Examples
    --------
    >>> option = "-Dcuplug_DIR=" + cuplug.get_cmake_path()
    """
    return os.path.join(PACKAGE, "lib", "cmake", "cuplug")


def plugin_flags(nvcc: bool = False) -> list[str]:
    """Return the flags that compile a plugin, for a C or C++ compiler or for nvcc."""
    host = ["-fPIC", "-fvisibility=hidden"]
    if nvcc:
        host = ["-Xcompiler", ",".join((*host, "-fvisibility-inlines-hidden"))]
    return ["-shared", *host, f"-I{get_include()}"]


# 90 for 9.0, "90a" for code of only that architecture, "100f" for its family.
Architecture = int | str


def number_of(architecture: Architecture) -> int:
    """Return the number of an architecture: 90 for 90 and for "90a"."""
    return int(str(architecture).rstrip("af"))


def architectures_flag(architectures: Sequence[Architecture], nvcc: bool = False) -> str:
    """Return the flag that lists architectures for the table: 900 for 90, 900a for "90a".

    nvcc takes a comma in `-D` for the end of a macro, except after a backslash.
    """
    listed = (str(x).replace(str(number_of(x)), f"{number_of(x)}0") for x in architectures)
    comma = r"\," if nvcc else ","
    return f"-DCUPLUG_ARCHITECTURES={comma.join(listed)}"


def compiler(architectures: Sequence[Architecture], cxx: bool) -> list[str]:
    """Return the command, without files, that compiles files that are not for nvcc.

    The table there receives the architectures, 90 for 9.0, for which nvcc compiles the rest.
    """
    entries = architectures_flag(architectures) if architectures else "-DCUPLUG_HOST_ONLY"
    command = command_of("CXX", "c++") if cxx else command_of("CC", "cc")
    language = (*CXX_FLAGS, "-x", "c++") if cxx else C_FLAGS
    return [*command, *OPTIMIZED, f"-I{get_include()}", entries, *language]


def nvcc_compiler(nvcc: str, architectures: Sequence[Architecture]) -> list[str]:
    """Return the command for CUDA files: code for each architecture, PTX of the newest number.

    PTX of "90a" and "100f" would not run on newer GPUs. The table receives these architectures,
    since nvcc lists them as 90 and 100.
    """
    host = ",".join((*HIDDEN, "-fvisibility-inlines-hidden", "-Wall"))
    newest = next((x for x in reversed(architectures) if isinstance(x, int)), None)
    code = {x: f"[sm_{x},compute_{x}]" if x == newest else f"sm_{x}" for x in architectures}
    targets = [f"-gencode=arch=compute_{x},code={code[x]}" for x in architectures]
    options = ["--threads", str(len(architectures))] if len(architectures) > 1 else []
    if any(isinstance(x, str) for x in architectures):
        options.append(architectures_flag(architectures, nvcc=True))
    return [
        *(nvcc, *OPTIMIZED, *NVCC_FLAGS, *NVCC_EXTENSIONS, *targets, *options, "-Xcompiler", host),
        f"-I{get_include()}",
    ]


def linker(cxx: bool) -> list[str]:
    """Return the command that links a plugin without CUDA."""
    command = command_of("CXX", "c++") if cxx else command_of("CC", "cc")
    return [*command, "-shared", *(f"-Wl,{flag}" for flag in _joined(LINKER_FLAGS))]


def nvcc_linker(nvcc: str) -> list[str]:
    """Return the command that links a plugin with CUDA and its own CUDA runtime."""
    home = os.path.dirname(os.path.dirname(os.path.abspath(nvcc)))
    # nvcc searches lib64, which is called lib in the toolkit of Python wheels.
    wheels = [] if os.path.isdir(f"{home}/lib64") else [f"-L{home}/lib"]
    options = [part for flag in LINKER_FLAGS for part in ("-Xlinker", flag)]
    return [nvcc, "-shared", "-cudart", "static", *options, *wheels]


def command_of(variable: str, usual: str = "") -> list[str]:
    """Return the command in a variable, or the default.

    Raises
    ------
    ValueError
        A quotation has no end.
    """
    import shlex

    text = environment.variable(variable)
    try:
        return shlex.split(text) or usual.split()
    except ValueError as error:
        raise ValueError(f"{variable}: got {text!r}, expected a command: {error}") from None


def _joined(options: Sequence[str]) -> list[str]:
    """Join `-z now` to `-z,now`."""
    return " ".join(options).replace("-z ", "-z,").split()


def host_flags() -> list[str]:
    """Return the flags that link a C program with the core."""
    directory = lib_directory()
    return [f"-L{directory}", "-lcuplug", f"-Wl,-rpath,{directory}"]
