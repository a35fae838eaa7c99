# SPDX-License-Identifier: Apache-2.0
"""The functions of the Python array API standard, for `cuplug.Array`."""

from __future__ import annotations

import math as _math

import numpy as _np

from cuplug.array.make import empty
from cuplug.array_api.creation import (
    arange,
    asarray,
    empty_like,
    eye,
    from_dlpack,
    full,
    full_like,
    linspace,
    ones,
    ones_like,
    tril,
    triu,
    zeros,
    zeros_like,
)
from cuplug.array_api.dtypes import NAMES as _NAMES
from cuplug.array_api.dtypes import astype, can_cast, finfo, iinfo, isdtype, result_type
from cuplug.array_api.elementwise import abs, clip, imag, real
from cuplug.array_api.elementwise import named as _named
from cuplug.array_api.expressions import FUNCTIONS as _FUNCTIONS
from cuplug.array_api.indexing import take, take_along_axis
from cuplug.array_api.inspection import __array_namespace_info__
from cuplug.array_api.manipulation import (
    broadcast_arrays,
    broadcast_shapes,
    broadcast_to,
    concat,
    expand_dims,
    flip,
    matrix_transpose,
    meshgrid,
    moveaxis,
    permute_dims,
    reshape,
    roll,
    squeeze,
    stack,
    tile,
    unstack,
)
from cuplug.array_api.searching import nonzero, where
from cuplug.array_api.statistical import (
    all,
    any,
    count_nonzero,
    max,
    mean,
    min,
    prod,
    std,
    sum,
    var,
)

__array_api_version__ = "2024.12"
e, inf, nan, newaxis, pi = _math.e, _math.inf, _math.nan, None, _math.pi

_OWN = ("abs", "complex_abs", "imag", "real")  # of which more is to be said than an expression
globals().update({name: _named(name) for name in _FUNCTIONS if name not in _OWN})
globals().update({name: _np.dtype(name) for name in _NAMES})


def __dir__() -> list[str]:
    hidden = ("annotations", "named")
    return [name for name in globals() if name not in hidden and not name.startswith("_")]
