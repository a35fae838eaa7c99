# SPDX-License-Identifier: Apache-2.0
"""The functions of the Python array API standard, for `cuplug.Array`."""

from __future__ import annotations

import math
from importlib import import_module
from typing import Any

import numpy

from cuplug.array_api.dtypes import NAMES
from cuplug.array_api.functions import ArrayFunction

# Module of this room -> its functions of the standard. It is imported at their first use.
_MODULES = {
    "conversion": "asarray from_dlpack",
    "creation": "__array_namespace_info__ arange empty eye tril triu",
    "filled": "empty_like full full_like ones ones_like zeros zeros_like",
    "dtypes": "astype can_cast finfo iinfo isdtype result_type",
    "elementwise": """
        abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_invert
        bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor ceil clip conj copysign
        cos cosh divide equal exp expm1 floor floor_divide greater greater_equal hypot imag
        isfinite isinf isnan less less_equal log log10 log1p log2 logaddexp logical_and
        logical_not logical_or logical_xor maximum minimum multiply negative nextafter
        not_equal positive pow real reciprocal remainder round sign signbit sin sinh sqrt
        square subtract tan tanh trunc
    """,
    "indexing": "repeat take take_along_axis",
    "concatenation": "concat roll stack tile",
    "manipulation": "broadcast_arrays broadcast_shapes meshgrid moveaxis unstack",
    "products": "matmul tensordot vecdot",
    "scans": "cumulative_prod cumulative_sum diff",
    "sorting": """
        argmax argmin argsort nonzero searchsorted sort unique_all unique_counts
        unique_inverse unique_values where
    """,
    "views": "broadcast_to expand_dims flip matrix_transpose permute_dims reshape squeeze",
    "statistical": "all any count_nonzero max mean min prod std sum var",
}
# Functions of NumPy that the standard lacks.
_MODULES |= {
    "beyond.comparisons": """
        allclose argpartition argwhere array_equal array_equiv choose compress flatnonzero
        intersect1d isclose isin partition piecewise select setdiff1d union1d unique
    """,
    "beyond.correlations": "average corrcoef cov ptp",
    "beyond.edits": """
        apply_along_axis delete diagflat dsplit extract fill_diagonal hsplit insert place
        put_along_axis putmask resize rollaxis trim_zeros vectorize vsplit
    """,
    "beyond.elementary": """
        angle ediff1d fix iscomplex isneginf isposinf isreal lexsort packbits ravel_multi_index
        real_if_close setxor1d sinc unpackbits unravel_index unwrap
    """,
    "beyond.grids": """
        c_ diag_indices diag_indices_from geomspace indices ix_ linspace logspace mgrid ogrid r_ tri
        tril_indices tril_indices_from triu_indices triu_indices_from
    """,
    "beyond.histograms": """
        bincount digitize histogram histogram2d histogram_bin_edges histogramdd
    """,
    "beyond.nan_aware": """
        nan_to_num nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmin nanprod nanstd
        nansum nanvar
    """,
    "beyond.padding": "pad",
    "beyond.polynomials": "poly polyadd polyfit polymul polysub polyval roots vander",
    "beyond.products": "cross dot einsum inner kron outer vdot",
    "beyond.quantiles": """
        median nanmedian nanpercentile nanquantile percentile quantile
    """,
    "beyond.shaping": """
        append array_split atleast_1d atleast_2d atleast_3d column_stack diag diagonal dstack fliplr
        flipud hstack identity ravel rot90 split swapaxes trace vstack
    """,
    "beyond.signals": "convolve correlate gradient interp trapezoid",
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names.split()}
_CONSTANTS = {"e": math.e, "inf": math.inf, "nan": math.nan, "newaxis": None, "pi": math.pi}
# NumPy's names for functions of the standard, in addition to `expressions.ALIASES`.
_NAMES_OF_NUMPY = {
    "array": "asarray",
    "concatenate": "concat",
    "cumprod": "cumulative_prod",
    "cumsum": "cumulative_sum",
    "transpose": "permute_dims",
}
__array_api_version__ = "2025.12"

_HALVES = {"float16": numpy.dtype("float16")}  # beyond the standard

globals().update({name: numpy.dtype(name) for name in NAMES})
globals().update(_HALVES)
globals().update(_CONSTANTS)

_EXTENSIONS = ("fft", "linalg")

__all__ = sorted([*_HOMES, *NAMES, *_HALVES, *_CONSTANTS, *_EXTENSIONS, "__array_api_version__"])


def __getattr__(name: str) -> Any:
    if name in _EXTENSIONS:
        return import_module(f"{__name__}.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{_elsewhere(name)}")
    module = import_module(f"{__name__}.{_HOMES[name]}")
    found = getattr(module, "CALLED", {}).get(name) or getattr(module, name)
    is_ready = isinstance(found, ArrayFunction) or not callable(found)
    public = found if is_ready else ArrayFunction(found)
    return globals().setdefault(name, public)


def _elsewhere(name: str) -> str:
    """Return the hint for an unknown name."""
    from cuplug._source.expressions.functions import named

    own = _NAMES_OF_NUMPY.get(name) or named(name)
    return f": the standard calls it {own}" if own in _HOMES else ""


def __dir__() -> list[str]:
    return __all__
