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

from cuplug import ops
from cuplug.base.flags import include_directory as get_include
from cuplug.base.flags import pkg_config_directory as get_pkg_config_path
from cuplug.base.texts import version
from cuplug.call.operator import Operator
from cuplug.call.run import last_call
from cuplug.cuda.device_array import DeviceArray, asarray, empty
from cuplug.cuda.devices import devices, synchronize
from cuplug.cuda.memory import memory_info, trim
from cuplug.cuda.placement import device
from cuplug.errors import CompileError, CudaError, NotFoundError, PluginError
from cuplug.host.progress import progress
from cuplug.lookup.find import find, load, plugins
from cuplug.lookup.listing import search_path
from cuplug.lookup.prepare import prepare
from cuplug.lookup.reloading import reload

if TYPE_CHECKING:
    from cuplug.adoption.adopt import adopt
    from cuplug.author.building import BuildError, build
    from cuplug.kernels.kernel import Kernel
    from cuplug.kernels.module import Module, compile
    from cuplug.kernels.staged import In, InOut, Out
    from cuplug.source.element_wise import elementwise
    from cuplug.source.from_source import operator
    from cuplug.source.reductions import reduction

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
    "BuildError": "author.building",
    "In": "kernels.staged",
    "InOut": "kernels.staged",
    "Kernel": "kernels.kernel",
    "Module": "kernels.module",
    "Out": "kernels.staged",
    "adopt": "adoption.adopt",
    "build": "author.building",
    "compile": "kernels.module",
    "elementwise": "source.element_wise",
    "operator": "source.from_source",
    "reduction": "source.reductions",
}


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    globals()[name] = value = getattr(import_module(f".{_LATER[name]}", __name__), name)
    return value
