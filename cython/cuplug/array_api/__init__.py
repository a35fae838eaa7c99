# SPDX-License-Identifier: Apache-2.0
"""The functions of the Python array API standard, for `cuplug.Array`."""

from __future__ import annotations

import math
from importlib import import_module
from typing import Any

import numpy

from cuplug.array_api.dtypes import NAMES
from cuplug.array_api.elementwise import CALLED, PLAIN
from cuplug.array_api.functions import ArrayFunction

# Module of this room -> what it has of the standard.
_MODULES = {
    "creation": "arange asarray empty eye from_dlpack linspace tril triu",
    "filled": "empty_like full full_like ones ones_like zeros zeros_like",
    "dtypes": "astype can_cast finfo iinfo isdtype result_type",
    "elementwise": "clip",
    "indexing": "repeat take take_along_axis",
    "inspection": "__array_namespace_info__",
    "joins": "concat stack tile",
    "manipulation": "broadcast_arrays broadcast_shapes meshgrid moveaxis roll unstack",
    "scans": "cumulative_prod cumulative_sum diff",
    "searching": "argmax argmin nonzero searchsorted where",
    "sorting": "argsort sort unique_all unique_counts unique_inverse unique_values",
    "views": "broadcast_to expand_dims flip matrix_transpose permute_dims reshape squeeze",
    "statistical": "all any count_nonzero max mean min prod std sum var",
}
_CONSTANTS = {"e": math.e, "inf": math.inf, "nan": math.nan, "newaxis": None, "pi": math.pi}

__array_api_version__ = "2024.12"


def _public(function: Any) -> ArrayFunction:
    return function if isinstance(function, ArrayFunction) else ArrayFunction(function)


for _module, _names in _MODULES.items():
    _found = import_module(f"{__name__}.{_module}")
    globals().update({name: _public(getattr(_found, name)) for name in _names.split()})
globals().update({name: CALLED[name] for name in PLAIN})
globals().update({name: numpy.dtype(name) for name in NAMES})
globals().update(_CONSTANTS)

__all__ = sorted([*" ".join(_MODULES.values()).split(), *PLAIN, *NAMES, *_CONSTANTS])


def __getattr__(name: str) -> Any:
    text = f"module {__name__!r} has no attribute {name!r}"
    if name in ("fft", "linalg", "matmul", "tensordot", "vecdot"):
        text += (
            ": linear algebra and Fourier transforms stay with the libraries that have them, which "
            "share its arrays: numpy.asarray(x), torch.from_dlpack(x), cupy.from_dlpack(x)"
        )
    raise AttributeError(text)


def __dir__() -> list[str]:
    return [*__all__, "__array_api_version__"]
