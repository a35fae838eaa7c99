# SPDX-License-Identifier: Apache-2.0
"""The functions of the Python array API standard, for `cuplug.Array`."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, wraps
from importlib import import_module
from typing import Any

import numpy

from cuplug.array.array import Array
from cuplug.array_api.dtypes import NAMES
from cuplug.array_api.elementwise import PLAIN, named

# Module of this room -> what it has of the standard.
_MODULES = {
    "creation": "arange asarray empty empty_like eye from_dlpack full full_like linspace ones "
    "ones_like tril triu zeros zeros_like",
    "dtypes": "astype can_cast finfo iinfo isdtype result_type",
    "elementwise": "abs clip imag real",
    "indexing": "repeat take take_along_axis",
    "inspection": "__array_namespace_info__",
    "manipulation": "broadcast_arrays broadcast_shapes broadcast_to concat expand_dims flip "
    "matrix_transpose meshgrid moveaxis permute_dims reshape roll squeeze stack tile unstack",
    "scans": "cumulative_prod cumulative_sum diff",
    "searching": "argmax argmin nonzero searchsorted where",
    "sorting": "argsort sort unique_all unique_counts unique_inverse unique_values",
    "statistical": "all any count_nonzero max mean min prod std sum var",
}
_CONSTANTS = {"e": math.e, "inf": math.inf, "nan": math.nan, "newaxis": None, "pi": math.pi}

__array_api_version__ = "2024.12"


@lru_cache(256)
def _recorder_of(cls: type) -> Callable[..., Any] | None:
    """Return a class's `__cuplug_function__`: to find that there is none takes longer."""
    return getattr(cls, "__cuplug_function__", None)


def _recorded(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let what stands for an array, of a class with `__cuplug_function__`, record a call of it."""

    @wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        for x in args:
            cls: Any = type(x)
            record = None if cls is Array else _recorder_of(cls)
            if record is not None:
                return record(x, function.__name__, args, keywords)
        return function(*args, **keywords)

    return call


for _module, _names in _MODULES.items():
    _found = import_module(f"{__name__}.{_module}")
    globals().update({name: _recorded(getattr(_found, name)) for name in _names.split()})
globals().update({name: _recorded(named(name)) for name in PLAIN})
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
