# SPDX-License-Identifier: Apache-2.0
# The names of __init__.py for type checkers, which do not import modules when names are used.
import builtins
from typing import Any, Final

import numpy as np

from cuplug._engine.array.array import Array
from cuplug._engine.array.make import empty as empty
from cuplug.array_api import fft as fft
from cuplug.array_api import linalg as linalg
from cuplug.array_api.beyond.comparisons import allclose as allclose
from cuplug.array_api.beyond.comparisons import argpartition as argpartition
from cuplug.array_api.beyond.comparisons import argwhere as argwhere
from cuplug.array_api.beyond.comparisons import array_equal as array_equal
from cuplug.array_api.beyond.comparisons import array_equiv as array_equiv
from cuplug.array_api.beyond.comparisons import choose as choose
from cuplug.array_api.beyond.comparisons import compress as compress
from cuplug.array_api.beyond.comparisons import flatnonzero as flatnonzero
from cuplug.array_api.beyond.comparisons import intersect1d as intersect1d
from cuplug.array_api.beyond.comparisons import isclose as isclose
from cuplug.array_api.beyond.comparisons import isin as isin
from cuplug.array_api.beyond.comparisons import partition as partition
from cuplug.array_api.beyond.comparisons import piecewise as piecewise
from cuplug.array_api.beyond.comparisons import select as select
from cuplug.array_api.beyond.comparisons import setdiff1d as setdiff1d
from cuplug.array_api.beyond.comparisons import union1d as union1d
from cuplug.array_api.beyond.comparisons import unique as unique
from cuplug.array_api.beyond.correlations import average as average
from cuplug.array_api.beyond.correlations import corrcoef as corrcoef
from cuplug.array_api.beyond.correlations import cov as cov
from cuplug.array_api.beyond.correlations import ptp as ptp
from cuplug.array_api.beyond.edits import apply_along_axis as apply_along_axis
from cuplug.array_api.beyond.edits import delete as delete
from cuplug.array_api.beyond.edits import diagflat as diagflat
from cuplug.array_api.beyond.edits import dsplit as dsplit
from cuplug.array_api.beyond.edits import extract as extract
from cuplug.array_api.beyond.edits import fill_diagonal as fill_diagonal
from cuplug.array_api.beyond.edits import hsplit as hsplit
from cuplug.array_api.beyond.edits import insert as insert
from cuplug.array_api.beyond.edits import place as place
from cuplug.array_api.beyond.edits import put_along_axis as put_along_axis
from cuplug.array_api.beyond.edits import putmask as putmask
from cuplug.array_api.beyond.edits import resize as resize
from cuplug.array_api.beyond.edits import rollaxis as rollaxis
from cuplug.array_api.beyond.edits import trim_zeros as trim_zeros
from cuplug.array_api.beyond.edits import vectorize as vectorize
from cuplug.array_api.beyond.edits import vsplit as vsplit
from cuplug.array_api.beyond.elementary import angle as angle
from cuplug.array_api.beyond.elementary import ediff1d as ediff1d
from cuplug.array_api.beyond.elementary import fix as fix
from cuplug.array_api.beyond.elementary import iscomplex as iscomplex
from cuplug.array_api.beyond.elementary import isneginf as isneginf
from cuplug.array_api.beyond.elementary import isposinf as isposinf
from cuplug.array_api.beyond.elementary import isreal as isreal
from cuplug.array_api.beyond.elementary import lexsort as lexsort
from cuplug.array_api.beyond.elementary import packbits as packbits
from cuplug.array_api.beyond.elementary import ravel_multi_index as ravel_multi_index
from cuplug.array_api.beyond.elementary import real_if_close as real_if_close
from cuplug.array_api.beyond.elementary import setxor1d as setxor1d
from cuplug.array_api.beyond.elementary import sinc as sinc
from cuplug.array_api.beyond.elementary import unpackbits as unpackbits
from cuplug.array_api.beyond.elementary import unravel_index as unravel_index
from cuplug.array_api.beyond.elementary import unwrap as unwrap
from cuplug.array_api.beyond.grids import c_ as c_
from cuplug.array_api.beyond.grids import diag_indices as diag_indices
from cuplug.array_api.beyond.grids import diag_indices_from as diag_indices_from
from cuplug.array_api.beyond.grids import geomspace as geomspace
from cuplug.array_api.beyond.grids import indices as indices
from cuplug.array_api.beyond.grids import ix_ as ix_
from cuplug.array_api.beyond.grids import linspace as linspace
from cuplug.array_api.beyond.grids import logspace as logspace
from cuplug.array_api.beyond.grids import mgrid as mgrid
from cuplug.array_api.beyond.grids import ogrid as ogrid
from cuplug.array_api.beyond.grids import r_ as r_
from cuplug.array_api.beyond.grids import tri as tri
from cuplug.array_api.beyond.grids import tril_indices as tril_indices
from cuplug.array_api.beyond.grids import tril_indices_from as tril_indices_from
from cuplug.array_api.beyond.grids import triu_indices as triu_indices
from cuplug.array_api.beyond.grids import triu_indices_from as triu_indices_from
from cuplug.array_api.beyond.histograms import bincount as bincount
from cuplug.array_api.beyond.histograms import digitize as digitize
from cuplug.array_api.beyond.histograms import histogram as histogram
from cuplug.array_api.beyond.histograms import histogram2d as histogram2d
from cuplug.array_api.beyond.histograms import histogram_bin_edges as histogram_bin_edges
from cuplug.array_api.beyond.histograms import histogramdd as histogramdd
from cuplug.array_api.beyond.nan_aware import nan_to_num as nan_to_num
from cuplug.array_api.beyond.nan_aware import nanargmax as nanargmax
from cuplug.array_api.beyond.nan_aware import nanargmin as nanargmin
from cuplug.array_api.beyond.nan_aware import nancumprod as nancumprod
from cuplug.array_api.beyond.nan_aware import nancumsum as nancumsum
from cuplug.array_api.beyond.nan_aware import nanmax as nanmax
from cuplug.array_api.beyond.nan_aware import nanmean as nanmean
from cuplug.array_api.beyond.nan_aware import nanmin as nanmin
from cuplug.array_api.beyond.nan_aware import nanprod as nanprod
from cuplug.array_api.beyond.nan_aware import nanstd as nanstd
from cuplug.array_api.beyond.nan_aware import nansum as nansum
from cuplug.array_api.beyond.nan_aware import nanvar as nanvar
from cuplug.array_api.beyond.padding import pad as pad
from cuplug.array_api.beyond.polynomials import poly as poly
from cuplug.array_api.beyond.polynomials import polyadd as polyadd
from cuplug.array_api.beyond.polynomials import polyfit as polyfit
from cuplug.array_api.beyond.polynomials import polymul as polymul
from cuplug.array_api.beyond.polynomials import polysub as polysub
from cuplug.array_api.beyond.polynomials import polyval as polyval
from cuplug.array_api.beyond.polynomials import roots as roots
from cuplug.array_api.beyond.polynomials import vander as vander
from cuplug.array_api.beyond.products import cross as cross
from cuplug.array_api.beyond.products import dot as dot
from cuplug.array_api.beyond.products import einsum as einsum
from cuplug.array_api.beyond.products import inner as inner
from cuplug.array_api.beyond.products import kron as kron
from cuplug.array_api.beyond.products import outer as outer
from cuplug.array_api.beyond.products import vdot as vdot
from cuplug.array_api.beyond.quantiles import median as median
from cuplug.array_api.beyond.quantiles import nanmedian as nanmedian
from cuplug.array_api.beyond.quantiles import nanpercentile as nanpercentile
from cuplug.array_api.beyond.quantiles import nanquantile as nanquantile
from cuplug.array_api.beyond.quantiles import percentile as percentile
from cuplug.array_api.beyond.quantiles import quantile as quantile
from cuplug.array_api.beyond.shaping import append as append
from cuplug.array_api.beyond.shaping import array_split as array_split
from cuplug.array_api.beyond.shaping import atleast_1d as atleast_1d
from cuplug.array_api.beyond.shaping import atleast_2d as atleast_2d
from cuplug.array_api.beyond.shaping import atleast_3d as atleast_3d
from cuplug.array_api.beyond.shaping import column_stack as column_stack
from cuplug.array_api.beyond.shaping import diag as diag
from cuplug.array_api.beyond.shaping import diagonal as diagonal
from cuplug.array_api.beyond.shaping import dstack as dstack
from cuplug.array_api.beyond.shaping import fliplr as fliplr
from cuplug.array_api.beyond.shaping import flipud as flipud
from cuplug.array_api.beyond.shaping import hstack as hstack
from cuplug.array_api.beyond.shaping import identity as identity
from cuplug.array_api.beyond.shaping import ravel as ravel
from cuplug.array_api.beyond.shaping import rot90 as rot90
from cuplug.array_api.beyond.shaping import split as split
from cuplug.array_api.beyond.shaping import swapaxes as swapaxes
from cuplug.array_api.beyond.shaping import trace as trace
from cuplug.array_api.beyond.shaping import vstack as vstack
from cuplug.array_api.beyond.signals import convolve as convolve
from cuplug.array_api.beyond.signals import correlate as correlate
from cuplug.array_api.beyond.signals import gradient as gradient
from cuplug.array_api.beyond.signals import interp as interp
from cuplug.array_api.beyond.signals import trapezoid as trapezoid
from cuplug.array_api.concatenation import concat as concat
from cuplug.array_api.concatenation import roll as roll
from cuplug.array_api.concatenation import stack as stack
from cuplug.array_api.concatenation import tile as tile
from cuplug.array_api.conversion import asarray as asarray
from cuplug.array_api.conversion import from_dlpack as from_dlpack
from cuplug.array_api.creation import __array_namespace_info__ as __array_namespace_info__
from cuplug.array_api.creation import arange as arange
from cuplug.array_api.creation import eye as eye
from cuplug.array_api.creation import tril as tril
from cuplug.array_api.creation import triu as triu
from cuplug.array_api.dtypes import can_cast as can_cast
from cuplug.array_api.dtypes import finfo as finfo
from cuplug.array_api.dtypes import iinfo as iinfo
from cuplug.array_api.dtypes import isdtype as isdtype
from cuplug.array_api.dtypes import result_type as result_type
from cuplug.array_api.filled import empty_like as empty_like
from cuplug.array_api.filled import full as full
from cuplug.array_api.filled import full_like as full_like
from cuplug.array_api.filled import ones as ones
from cuplug.array_api.filled import ones_like as ones_like
from cuplug.array_api.filled import zeros as zeros
from cuplug.array_api.filled import zeros_like as zeros_like
from cuplug.array_api.indexing import repeat as repeat
from cuplug.array_api.indexing import take as take
from cuplug.array_api.indexing import take_along_axis as take_along_axis
from cuplug.array_api.manipulation import broadcast_arrays as broadcast_arrays
from cuplug.array_api.manipulation import broadcast_shapes as broadcast_shapes
from cuplug.array_api.manipulation import meshgrid as meshgrid
from cuplug.array_api.manipulation import moveaxis as moveaxis
from cuplug.array_api.manipulation import unstack as unstack
from cuplug.array_api.products import matmul as matmul
from cuplug.array_api.products import tensordot as tensordot
from cuplug.array_api.products import vecdot as vecdot
from cuplug.array_api.scans import cumulative_prod as cumulative_prod
from cuplug.array_api.scans import cumulative_sum as cumulative_sum
from cuplug.array_api.scans import diff as diff
from cuplug.array_api.sorting import argmax as argmax
from cuplug.array_api.sorting import argmin as argmin
from cuplug.array_api.sorting import argsort as argsort
from cuplug.array_api.sorting import nonzero as nonzero
from cuplug.array_api.sorting import searchsorted as searchsorted
from cuplug.array_api.sorting import sort as sort
from cuplug.array_api.sorting import unique_all as unique_all
from cuplug.array_api.sorting import unique_counts as unique_counts
from cuplug.array_api.sorting import unique_inverse as unique_inverse
from cuplug.array_api.sorting import unique_values as unique_values
from cuplug.array_api.statistical import all as all
from cuplug.array_api.statistical import any as any
from cuplug.array_api.statistical import count_nonzero as count_nonzero
from cuplug.array_api.statistical import max as max
from cuplug.array_api.statistical import mean as mean
from cuplug.array_api.statistical import min as min
from cuplug.array_api.statistical import prod as prod
from cuplug.array_api.statistical import std as std
from cuplug.array_api.statistical import sum as sum
from cuplug.array_api.statistical import var as var
from cuplug.array_api.views import broadcast_to as broadcast_to
from cuplug.array_api.views import expand_dims as expand_dims
from cuplug.array_api.views import flip as flip
from cuplug.array_api.views import matrix_transpose as matrix_transpose
from cuplug.array_api.views import permute_dims as permute_dims
from cuplug.array_api.views import reshape as reshape
from cuplug.array_api.views import squeeze as squeeze

def astype(x: Array, dtype: Any, /, *, copy: builtins.bool = True, device: Any = None) -> Array: ...
def clip(x: Array, /, min: Any = None, max: Any = None) -> Array: ...
def where(condition: Array, x1: Any, x2: Any, /) -> Array: ...
def abs(x: Any, /) -> Array: ...
def acos(x: Any, /) -> Array: ...
def acosh(x: Any, /) -> Array: ...
def add(x1: Any, x2: Any, /) -> Array: ...
def asin(x: Any, /) -> Array: ...
def asinh(x: Any, /) -> Array: ...
def atan(x: Any, /) -> Array: ...
def atan2(x1: Any, x2: Any, /) -> Array: ...
def atanh(x: Any, /) -> Array: ...
def bitwise_and(x1: Any, x2: Any, /) -> Array: ...
def bitwise_invert(x: Any, /) -> Array: ...
def bitwise_left_shift(x1: Any, x2: Any, /) -> Array: ...
def bitwise_or(x1: Any, x2: Any, /) -> Array: ...
def bitwise_right_shift(x1: Any, x2: Any, /) -> Array: ...
def bitwise_xor(x1: Any, x2: Any, /) -> Array: ...
def ceil(x: Any, /) -> Array: ...
def conj(x: Any, /) -> Array: ...
def copysign(x1: Any, x2: Any, /) -> Array: ...
def cos(x: Any, /) -> Array: ...
def cosh(x: Any, /) -> Array: ...
def divide(x1: Any, x2: Any, /) -> Array: ...
def equal(x1: Any, x2: Any, /) -> Array: ...
def exp(x: Any, /) -> Array: ...
def expm1(x: Any, /) -> Array: ...
def floor(x: Any, /) -> Array: ...
def floor_divide(x1: Any, x2: Any, /) -> Array: ...
def greater(x1: Any, x2: Any, /) -> Array: ...
def greater_equal(x1: Any, x2: Any, /) -> Array: ...
def hypot(x1: Any, x2: Any, /) -> Array: ...
def imag(x: Any, /) -> Array: ...
def isfinite(x: Any, /) -> Array: ...
def isinf(x: Any, /) -> Array: ...
def isnan(x: Any, /) -> Array: ...
def less(x1: Any, x2: Any, /) -> Array: ...
def less_equal(x1: Any, x2: Any, /) -> Array: ...
def log(x: Any, /) -> Array: ...
def log10(x: Any, /) -> Array: ...
def log1p(x: Any, /) -> Array: ...
def log2(x: Any, /) -> Array: ...
def logaddexp(x1: Any, x2: Any, /) -> Array: ...
def logical_and(x1: Any, x2: Any, /) -> Array: ...
def logical_not(x: Any, /) -> Array: ...
def logical_or(x1: Any, x2: Any, /) -> Array: ...
def logical_xor(x1: Any, x2: Any, /) -> Array: ...
def maximum(x1: Any, x2: Any, /) -> Array: ...
def minimum(x1: Any, x2: Any, /) -> Array: ...
def multiply(x1: Any, x2: Any, /) -> Array: ...
def negative(x: Any, /) -> Array: ...
def nextafter(x1: Any, x2: Any, /) -> Array: ...
def not_equal(x1: Any, x2: Any, /) -> Array: ...
def positive(x: Any, /) -> Array: ...
def pow(x1: Any, x2: Any, /) -> Array: ...
def real(x: Any, /) -> Array: ...
def reciprocal(x: Any, /) -> Array: ...
def remainder(x1: Any, x2: Any, /) -> Array: ...
def round(x: Any, /) -> Array: ...
def sign(x: Any, /) -> Array: ...
def signbit(x: Any, /) -> Array: ...
def sin(x: Any, /) -> Array: ...
def sinh(x: Any, /) -> Array: ...
def sqrt(x: Any, /) -> Array: ...
def square(x: Any, /) -> Array: ...
def subtract(x1: Any, x2: Any, /) -> Array: ...
def tan(x: Any, /) -> Array: ...
def tanh(x: Any, /) -> Array: ...
def trunc(x: Any, /) -> Array: ...

bool: Final[np.dtype[Any]]
complex128: Final[np.dtype[Any]]
complex64: Final[np.dtype[Any]]
float16: Final[np.dtype[Any]]
float32: Final[np.dtype[Any]]
float64: Final[np.dtype[Any]]
int16: Final[np.dtype[Any]]
int32: Final[np.dtype[Any]]
int64: Final[np.dtype[Any]]
int8: Final[np.dtype[Any]]
uint16: Final[np.dtype[Any]]
uint32: Final[np.dtype[Any]]
uint64: Final[np.dtype[Any]]
uint8: Final[np.dtype[Any]]
e: Final[float]
inf: Final[float]
nan: Final[float]
newaxis: Final[None]
pi: Final[float]
__array_api_version__: Final[str]
__all__: list[str]
