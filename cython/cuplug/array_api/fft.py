# SPDX-License-Identifier: Apache-2.0
"""The standard's extension for Fourier transforms: NumPy's, on the memory of the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cuplug._engine.array.array import Array
from cuplug._engine.array.promotion import DEFAULTS, to_dtype
from cuplug.array_api.concatenation import roll
from cuplug.array_api.conversion import asarray
from cuplug.array_api.dtypes import checked
from cuplug.array_api.products import on_host
from cuplug.array_api.views import axes_of

__all__ = [
    "fft",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfftn",
    "rfft",
    "rfftfreq",
    "rfftn",
]

_SINGLE = {"float32": "float32", "complex64": "float32"}
_DTYPES = ("float32", "float64", "complex64", "complex128")
_NORMS = ("backward", "ortho", "forward")


def _transformed(name: str, x: Array, **given: Any) -> Array:
    """Return what a function of numpy.fft gives, in the precision of its argument."""
    checked(f"fft.{name}", "x", x)
    if x.device.type != "cpu":
        raise TypeError(
            f"fft.{name}: x: got an array in GPU memory, expected one of the host; "
            'use x.to_device("cpu")'
        )
    if x.dtype.name not in _DTYPES:
        wanted = ", ".join(_DTYPES)
        raise TypeError(f"fft.{name}: x: got {x.dtype}, expected one of {wanted}; use astype")
    if given["norm"] not in _NORMS:
        raise ValueError(f"fft.{name}: norm: got {given['norm']!r}, expected one of {_NORMS}")
    found = getattr(np.fft, name)(x.numpy(), **given)
    single = {"c": np.complex64, "f": np.float32}[found.dtype.kind]
    return on_host(found.astype(single, copy=False) if x.dtype.name in _SINGLE else found)


def _one(name: str, what: str) -> Callable[..., Array]:
    def transform(
        x: Array, /, *, n: int | None = None, axis: int = -1, norm: str = "backward"
    ) -> Array:
        return _transformed(name, x, n=n, axis=axis, norm=norm)

    transform.__name__ = transform.__qualname__ = name
    transform.__doc__ = f"""{what} along one dimension.

    Parameters
    ----------
    x : Array
        Of float32, float64, complex64 or complex128, on the host.
    n : int, optional
        The length: x is cut, or padded with zeros.
    axis : int, default -1
    norm : {{"backward", "ortho", "forward"}}, default "backward"
        Whether the inverse transform, both (by roots) or the forward one divide by the length.

    Returns
    -------
    Array
        In the precision of x.
    """
    return transform


def _several(name: str, what: str) -> Callable[..., Array]:
    def transform(x: Array, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Array:
        if s is not None and axes is None:
            axes = tuple(range(-len(s), 0))
        return _transformed(name, x, s=s, axes=axes, norm=norm)

    transform.__name__ = transform.__qualname__ = name
    transform.__doc__ = f"""{what} along several dimensions.

    Parameters
    ----------
    x : Array
        Of float32, float64, complex64 or complex128, on the host.
    s : tuple of int, optional
        The lengths: x is cut, or padded with zeros.
    axes : tuple of int, optional
        By default the last ones, as many as `s` has, or all.
    norm : {{"backward", "ortho", "forward"}}, default "backward"
        Whether the inverse transform, both (by roots) or the forward one divide by the lengths.

    Returns
    -------
    Array
        In the precision of x.
    """
    return transform


fft = _one("fft", "Return the discrete Fourier transform")
ifft = _one("ifft", "Return the inverse discrete Fourier transform")
rfft = _one("rfft", "Return the discrete Fourier transform of real numbers, frequencies from 0 up,")
irfft = _one("irfft", "Return the inverse of `rfft`")
hfft = _one("hfft", "Return the discrete Fourier transform of a Hermitian signal")
ihfft = _one("ihfft", "Return the inverse of `hfft`")
fftn = _several("fftn", "Return the discrete Fourier transform")
ifftn = _several("ifftn", "Return the inverse discrete Fourier transform")
rfftn = _several("rfftn", "Return the discrete Fourier transform of real numbers")
irfftn = _several("irfftn", "Return the inverse of `rfftn`")


def _frequencies(name: str, n: int, d: float, dtype: Any, device: Any) -> Array:
    made = getattr(np.fft, name)(n, d)
    wanted = to_dtype(DEFAULTS["real floating"] if dtype is None else dtype)
    return asarray(made.astype(wanted), device=device)


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Array:
    """Return the frequencies of `fft`, for samples at a distance of d."""
    return _frequencies("fftfreq", n, d, dtype, device)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Array:
    """Return the frequencies of `rfft`, for samples at a distance of d."""
    return _frequencies("rfftfreq", n, d, dtype, device)


def _shifted(name: str, x: Array, axes: Any, sign: int) -> Array:
    checked(f"fft.{name}", "x", x)
    numbers = axes_of(f"fft.{name}", axes, x.ndim)
    sizes = [x.shape[k] for k in numbers]
    shifts = tuple(n // 2 if sign > 0 else -(n // 2) for n in sizes)
    return roll(x, shifts, axis=numbers) if numbers else x


def fftshift(x: Array, /, *, axes: Any = None) -> Array:
    """Return frequencies with 0 in the middle."""
    return _shifted("fftshift", x, axes, 1)


def ifftshift(x: Array, /, *, axes: Any = None) -> Array:
    """Return frequencies with 0 at the start: the inverse of `fftshift`."""
    return _shifted("ifftshift", x, axes, -1)
