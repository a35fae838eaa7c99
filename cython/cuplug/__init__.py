# SPDX-License-Identifier: Apache-2.0
"""Drop a CUDA operator in a folder, call it from Python.

    from cuplug.ops import gather

    y = gather(x, idx)  # NumPy, PyTorch, CuPy or cuplug arrays

Operators are shared libraries found on a search path; `cuplug.plugins()` lists them and
`help(gather)` says what one does.
"""

from typing import TYPE_CHECKING

# First, though others import it: called from their depth, its import crossed the end of a piece of
# CPython's stack some 700 times, and each time one was mapped and unmapped.
import numpy as _numpy  # noqa: F401

from . import ops
from ._device_array import DeviceArray, asarray, empty
from ._devices import devices, synchronize
from ._memory import memory_info, prepare, trim
from ._operator import Operator
from ._placement import device
from ._progress import progress
from ._registry import find, last_call, load, plugins, search_path, version
from .errors import CompileError, CudaError, NotFoundError, PluginError
from .flags import include_directory as get_include
from .flags import pkg_config_directory as get_pkg_config_path
from .reloading import reload

if TYPE_CHECKING:
    from ._kernel import Kernel
    from ._staged import In, InOut, Out
    from .adoption import adopt
    from .building import BuildError, build
    from .element_wise import elementwise
    from .from_source import operator
    from .module import Module, compile
    from .reductions import reduction

__version__ = version()

__all__ = [
    "BuildError",
    "CompileError",
    "CudaError",
    "DeviceArray",
    "In",
    "InOut",
    "Kernel",
    "Module",
    "NotFoundError",
    "Operator",
    "Out",
    "PluginError",
    "adopt",
    "asarray",
    "build",
    "compile",
    "device",
    "devices",
    "elementwise",
    "empty",
    "find",
    "get_include",
    "get_pkg_config_path",
    "last_call",
    "load",
    "memory_info",
    "operator",
    "ops",
    "plugins",
    "prepare",
    "progress",
    "reduction",
    "reload",
    "search_path",
    "synchronize",
    "trim",
]

# Imported at their first use, as they import much.
_LATER = {
    "BuildError": "building",
    "In": "_staged",
    "InOut": "_staged",
    "Kernel": "_kernel",
    "Module": "module",
    "Out": "_staged",
    "adopt": "adoption",
    "build": "building",
    "compile": "module",
    "elementwise": "element_wise",
    "operator": "from_source",
    "reduction": "reductions",
}


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    globals()[name] = value = getattr(import_module(f".{_LATER[name]}", __name__), name)
    return value
