# SPDX-License-Identifier: Apache-2.0
"""NumPy ufuncs called with cuplug arrays."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from cuplug._engine.array.array import Array
from cuplug._engine.array.promotion import NUMBERS, is_typed_number, kind_of
from cuplug._source.expressions.functions import named
from cuplug.array_api.beyond.host_values import with_lists
from cuplug.array_api.beyond.outputs import written
from cuplug.array_api.conversion import asarray
from cuplug.array_api.dtypes import astype, checked_order
from cuplug.array_api.elementwise import CALLED, binary

standard = import_module("cuplug.array_api")
_REDUCED = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min"}
_REDUCED |= {"logical_and": "all", "logical_or": "any"}
# Kinds of numbers for which NumPy's ufunc differs from the standard's function of that name.
_NUMPY_ALONE: dict[str, tuple[str, ...]] = {"rint": ("int", "uint"), "reciprocal": ("int", "uint")}
_NUMPY_ALONE |= dict.fromkeys(("ceil", "floor", "trunc"), ("bool",))
_NUMPY_ALONE |= {"conjugate": ("bool",), "copysign": ("bool",), "signbit": ("bool",)}
_OF_REDUCTIONS = {"axis", "dtype", "initial", "keepdims", "out", "where"}
# Comparisons do not support complex numbers, like those in `beyond`.
_ORDERED = {"fmax", "fmin", "greater", "greater_equal", "less", "less_equal", "maximum", "minimum"}


def call_ufunc(function: Any, method: str, inputs: tuple[Any, ...], keywords: Any) -> Any:
    """Return the result of a NumPy ufunc; for arrays and numbers only, on the arrays' device.

    NumPy computes functions that cuplug does not have in host memory. The results are NumPy arrays
    if one of the arguments is.
    """
    given = keywords.get("out") or ()
    if method in ("__call__", "outer", "reduceat"):
        inputs = tuple(with_lists(inputs))
    is_ours = all(
        isinstance(x, (Array, *NUMBERS)) or is_typed_number(x)
        for x in (*inputs, *(x for x in given if x is not None))
    )
    if is_ours:
        for x in inputs if function.__name__ in _ORDERED else ():
            if isinstance(x, Array):
                checked_order(f"numpy.{function.__name__}", x)
        own = _own(function, method, inputs, keywords)
        if own is not None:
            return own
    seen = {"out": tuple(map(_seen_by_numpy, given))} if given else {}
    found = getattr(function, method)(*map(_seen_by_numpy, inputs), **(keywords | seen))
    if method == "at":
        return None
    results = found if isinstance(found, tuple) else (found,)
    given = given or (None,) * len(results)
    results = tuple(_chosen(x, y, is_ours) for x, y in zip(results, given, strict=True))
    return results if isinstance(found, tuple) else results[0]


def _chosen(found: Any, out: Any, is_ours: bool) -> Any:
    if out is not None:
        return out
    return asarray(found, device="cpu") if is_ours else found


def _own(function: Any, method: str, inputs: tuple[Any, ...], keywords: Any) -> Any:
    """Return the results of cuplug functions; None if none exists for such arguments."""
    name = function.__name__
    if method == "reduce" and name in _REDUCED and keywords.keys() <= _OF_REDUCTIONS:
        known = {"axis": 0} | keywords | {"out": keywords.get("out", (None,))[0]}
        return getattr(inputs[0], _REDUCED[name])(**known)
    if method != "__call__" or not keywords.keys() <= {"out"}:
        return None
    if name in ("matmul", "vecdot"):
        # Another library's array may compute it.
        call = getattr(standard, name) if all(isinstance(x, Array) for x in inputs) else None
    else:
        call = _divided if function is np.divmod else CALLED.get(named(name))
    if isinstance(inputs[0], Array) and kind_of(inputs[0].dtype) in _NUMPY_ALONE.get(name, ()):
        call = None
    if call is None:
        return None
    if name.startswith("logical_"):
        inputs = tuple(
            binary("not_equal", x, 0) if isinstance(x, Array) else bool(x) for x in inputs
        )
    return written(call(*_as_narrow_floats(function, inputs)), keywords.get("out"))


def _as_narrow_floats(function: Any, inputs: Any) -> Any:
    """Return bools and narrow integers as floats narrower than float64, as NumPy's ufunc does."""
    arrays = [x for x in inputs if isinstance(x, Array)]
    if any(x.dtype.itemsize >= 4 or x.dtype.kind not in "biu" for x in arrays):
        return inputs
    given = [getattr(x, "dtype", type(x)) for x in inputs]
    given = [np.dtype(of) if of is bool else of for of in given]
    dtypes = function.resolve_dtypes((*given, *(None,) * function.nout))
    return [
        astype(x, to) if to.kind == "f" and isinstance(x, Array) else x
        for x, to in zip(inputs, dtypes, strict=False)
    ]


def _divided(x: Any, y: Any) -> tuple[Array, Array]:
    return binary("floor_divide", x, y), binary("remainder", x, y)


def _seen_by_numpy(x: Any) -> Any:
    return np.asarray(x) if isinstance(x, Array) else x
