# SPDX-License-Identifier: Apache-2.0
"""The compiler flags for authors of plugins and for C programs that use them."""

from __future__ import annotations

import os

PACKAGE = os.path.dirname(os.path.abspath(__file__))


def include_directory() -> str:
    """Return the directory that holds `cuplug/plugin.h` and `cuplug/host.h`."""
    return os.path.join(PACKAGE, "include")


def library_directory() -> str:
    """Return the directory that holds `libcuplug.so`."""
    return os.path.join(PACKAGE, "lib")


def pkg_config_directory() -> str:
    """Return the directory of `cuplug.pc`, for PKG_CONFIG_PATH."""
    return os.path.join(PACKAGE, "lib", "pkgconfig")


def plugin_flags(nvcc: bool = False) -> str:
    """Return the flags that compile a plugin, for a C or C++ compiler or for nvcc."""
    include = f"-I{include_directory()}"
    if nvcc:
        return f"-shared -Xcompiler -fPIC,-fvisibility=hidden,-fvisibility-inlines-hidden {include}"
    return f"-shared -fPIC -fvisibility=hidden {include}"


def host_flags() -> str:
    """Return the flags that link a C program with the core."""
    directory = library_directory()
    return f"-L{directory} -lcuplug -Wl,-rpath,{directory}"
