# SPDX-License-Identifier: Apache-2.0
"""Drop a CUDA operator in a folder, call it from Python.

    from cuplug.ops import gather

    y = gather(x, idx)  # NumPy, PyTorch, CuPy or cuplug arrays

Operators are shared libraries found on a search path; `cuplug.plugins()` lists them and
`help(gather)` says what one does.
"""

from . import ops
from ._device_array import DeviceArray, asarray, empty
from ._devices import devices, synchronize
from ._operator import Operator
from ._placement import device
from ._registry import find, last_call, load, plugins, search_path, version
from .building import BuildError, build
from .errors import CudaError, NotFoundError, PluginError
from .flags import include_directory as get_include
from .flags import pkg_config_directory as get_pkg_config_path
from .reloading import reload

__version__ = version()

__all__ = [
    "BuildError",
    "CudaError",
    "DeviceArray",
    "NotFoundError",
    "Operator",
    "PluginError",
    "asarray",
    "build",
    "device",
    "devices",
    "empty",
    "find",
    "get_include",
    "get_pkg_config_path",
    "last_call",
    "load",
    "ops",
    "plugins",
    "reload",
    "search_path",
    "synchronize",
]
