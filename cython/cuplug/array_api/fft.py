# SPDX-License-Identifier: Apache-2.0
"""The standard's extension for Fourier transforms: by NumPy on the host, by cuFFT on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cuplug._engine.array.array import Array
from cuplug._engine.array.promotion import DEFAULTS, kind_of, to_dtype
from cuplug._source.compilers.libraries import load_cuda_library
from cuplug.array_api.concatenation import concat, roll
from cuplug.array_api.conversion import asarray
from cuplug.array_api.dtypes import astype, checked, integer
from cuplug.array_api.elementwise import CALLED
from cuplug.array_api.filled import zeros
from cuplug.array_api.functions import stock
from cuplug.array_api.manipulation import moveaxis
from cuplug.array_api.products import on_host
from cuplug.array_api.views import axes_of, axis_of

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

# By the dtype itself: NumPy's name of a dtype takes longer than transforming a few elements.
_IS_SINGLE = {
    np.dtype(name): name in ("float32", "complex64")
    for name in ("float32", "float64", "complex64", "complex128")
}
_NORMS = ("backward", "ortho", "forward")
_OPPOSITE = {"backward": "forward", "ortho": "ortho", "forward": "backward"}


def _checked(name: str, x: Any, norm: str) -> Array:
    if type(x) is not Array:
        checked(f"fft.{name}", "x", x)
    if x.dtype not in _IS_SINGLE:
        wanted = ", ".join(dtype.name for dtype in _IS_SINGLE)
        raise TypeError(f"fft.{name}: x: got {x.dtype}, expected one of {wanted}; use astype")
    if norm not in _NORMS:
        raise ValueError(f"fft.{name}: norm: got {norm!r}, expected one of {_NORMS}")
    found: Array = x
    return found


def _on_host(x: Array, found: Any) -> Array:
    """Return NumPy's result in the precision of x. Before NumPy 2, it is float64."""
    if _IS_SINGLE[x.dtype] and not _IS_SINGLE[found.dtype]:
        found = found.astype(np.complex64 if found.dtype.kind == "c" else np.float32)
    return on_host(found)


# ---- By cuFFT, along one dimension at a time -----------------------------------------------------


def _by_cufft(name: str, x: Array, n: Any, axis: int, norm: str) -> Array:
    """Return a transform along one dimension, in the memory of a GPU."""
    load_cuda_library("cufft", ("12", "11"))
    if name == "hfft":
        return _by_cufft("irfft", CALLED["conj"](x), n, axis, _OPPOSITE[norm])
    if name == "ihfft":
        conjugated: Array = CALLED["conj"](_by_cufft("rfft", x, n, axis, _OPPOSITE[norm]))
        return conjugated
    is_inverse = name in ("ifft", "irfft")
    if name == "rfft" and kind_of(x.dtype) == "complex":
        raise TypeError(f"fft.rfft: x: got {x.dtype}, expected real numbers; use real")
    if name != "rfft":
        x = astype(x, "complex64" if _IS_SINGLE[x.dtype] else "complex128", copy=False)
    lines = moveaxis(x, axis, -1)
    size = lines.shape[-1]
    n = (2 * (size - 1) if name == "irfft" else size) if n is None else integer("fft: n", n)
    if n < 1:
        raise ValueError(f"fft.{name}: n: got {n}, expected at least 1")
    lines = _resized(lines, n // 2 + 1 if name == "irfft" else n)
    given = {"fft": (False,), "ifft": (True,), "rfft": (), "irfft": (n,)}[name]
    found = stock(f"linalg.{name.removeprefix('i') if name == 'ifft' else name}")(lines, *given)
    power = {"backward": float(is_inverse), "ortho": 0.5, "forward": float(not is_inverse)}[norm]
    if power:
        found *= n**-power
    return moveaxis(found, -1, axis)


def _resized(x: Array, n: int) -> Array:
    """Return segments truncated, or padded with zeros."""
    if x.shape[-1] >= n:
        return x[..., :n]
    missing = (*x.shape[:-1], n - x.shape[-1])
    return concat([x, zeros(missing, dtype=x.dtype, device=x.device)], axis=-1)


def _along_several(name: str, x: Array, s: Any, axes: Any, norm: str) -> Array:
    """Return a transform along several dimensions; of real numbers along the last one."""
    numbers = axes_of(f"fft.{name}", axes, x.ndim) if axes is not None else tuple(range(x.ndim))
    sizes = [None] * len(numbers) if s is None else list(s)
    if len(sizes) != len(numbers):
        raise ValueError(
            f"fft.{name}: s: got {len(sizes)} lengths, expected {len(numbers)}, as axes"
        )
    pairs = list(zip(numbers, sizes, strict=True))
    plain = "ifft" if name.startswith("i") else "fft"
    if name == "rfftn":
        axis, n = pairs.pop()
        x = _by_cufft("rfft", x, n, axis, norm)
    last = pairs.pop() if name == "irfftn" else None
    for axis, n in pairs:
        x = _by_cufft(plain, x, n, axis, norm)
    return x if last is None else _by_cufft("irfft", x, last[1], last[0], norm)


# ---- The functions -------------------------------------------------------------------------------


def _one(name: str, what: str, example: str) -> Callable[..., Array]:
    by_numpy = getattr(np.fft, name)

    def transform(
        x: Array, /, *, n: int | None = None, axis: int = -1, norm: str = "backward"
    ) -> Array:
        if _checked(name, x, norm).device.type == "cpu":
            return _on_host(x, by_numpy(x.numpy(), n, axis, norm))
        return _by_cufft(name, x, n, axis_of(f"fft.{name}", axis, x.ndim), norm)

    transform.__name__ = transform.__qualname__ = name
    transform.__doc__ = f"""{what} along one dimension.

    Parameters
    ----------
    x : Array
        Of float32, float64, complex64 or complex128.
    n : int, optional
        The length: x is cut, or padded with zeros.
    axis : int, default -1
    norm : {{"backward", "ortho", "forward"}}, default "backward"
        Whether the inverse transform, both (by roots) or the forward one divide by the length.

    Returns
    -------
    Array
        In the precision of x.

    Examples
    --------
    >>> {example}
    """
    return transform


def _several(name: str, what: str, example: str) -> Callable[..., Array]:
    by_numpy = getattr(np.fft, name)

    def transform(x: Array, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Array:
        if s is not None and axes is None:
            axes = tuple(range(-len(s), 0))
        if _checked(name, x, norm).device.type == "cpu":
            return _on_host(x, by_numpy(x.numpy(), s, axes, norm))
        return _along_several(name, x, s, axes, norm)

    transform.__name__ = transform.__qualname__ = name
    transform.__doc__ = f"""{what} along several dimensions.

    Parameters
    ----------
    x : Array
        Of float32, float64, complex64 or complex128.
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

    Examples
    --------
    >>> {example}
    """
    return transform


fft = _one(
    "fft",
    "Return the discrete Fourier transform",
    "print(xp.fft.fft(xp.asarray([1.0, 0.0, 0.0, 0.0])))\n    [1.+0.j 1.+0.j 1.+0.j 1.+0.j]",
)
ifft = _one(
    "ifft",
    "Return the inverse discrete Fourier transform",
    "print(xp.fft.ifft(xp.asarray([4.0, 0.0, 0.0, 0.0])))\n    [1.+0.j 1.+0.j 1.+0.j 1.+0.j]",
)
rfft = _one(
    "rfft",
    "Return the discrete Fourier transform of real numbers, frequencies from 0 up,",
    "print(xp.fft.rfft(xp.asarray([1.0, 1.0, 1.0, 1.0])))\n    [4.+0.j 0.+0.j 0.+0.j]",
)
irfft = _one(
    "irfft",
    "Return the inverse of `rfft`",
    "print(xp.fft.irfft(xp.asarray([4.0, 0.0, 0.0])))\n    [1. 1. 1. 1.]",
)
hfft = _one(
    "hfft",
    "Return the discrete Fourier transform of a Hermitian signal",
    "print(xp.fft.hfft(xp.asarray([1.0, 1.0, 1.0]), n=4))\n    [4. 0. 0. 0.]",
)
ihfft = _one(
    "ihfft",
    "Return the inverse of `hfft`",
    "print(xp.real(xp.fft.ihfft(xp.asarray([4.0, 0.0, 0.0, 0.0]))))\n    [1. 1. 1.]",
)
fftn = _several(
    "fftn",
    "Return the discrete Fourier transform",
    "print(xp.fft.fftn(xp.asarray([[1.0, 0.0]])))\n    [[1.+0.j 1.+0.j]]",
)
ifftn = _several(
    "ifftn",
    "Return the inverse discrete Fourier transform",
    "print(xp.fft.ifftn(xp.asarray([[2.0, 0.0]])))\n    [[1.+0.j 1.+0.j]]",
)
rfftn = _several(
    "rfftn",
    "Return the discrete Fourier transform of real numbers",
    "print(xp.fft.rfftn(xp.asarray([[1.0, 1.0]])))\n    [[2.+0.j 0.+0.j]]",
)
irfftn = _several(
    "irfftn",
    "Return the inverse of `rfftn`",
    "print(xp.fft.irfftn(xp.asarray([[2.0, 0.0]])))\n    [[1. 1.]]",
)


def _frequencies(name: str, n: int, d: float, dtype: Any, device: Any) -> Array:
    made = getattr(np.fft, name)(n, d)
    wanted = to_dtype(DEFAULTS["real floating"] if dtype is None else dtype)
    return asarray(made.astype(wanted), device=device)


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Array:
    """Return the frequencies of `fft`, for samples at a distance of d.

    Examples
    --------
    >>> print(xp.fft.fftfreq(4, d=0.5))
    [ 0.   0.5 -1.  -0.5]
    """
    return _frequencies("fftfreq", n, d, dtype, device)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Array:
    """Return the frequencies of `rfft`, for samples at a distance of d.

    Examples
    --------
    >>> print(xp.fft.rfftfreq(4))
    [0.   0.25 0.5 ]
    """
    return _frequencies("rfftfreq", n, d, dtype, device)


def _shifted(name: str, x: Array, axes: Any, sign: int) -> Array:
    checked(f"fft.{name}", "x", x)
    numbers = axes_of(f"fft.{name}", axes, x.ndim)
    sizes = [x.shape[k] for k in numbers]
    shifts = tuple(n // 2 if sign > 0 else -(n // 2) for n in sizes)
    return roll(x, shifts, axis=numbers) if numbers else x


def fftshift(x: Array, /, *, axes: Any = None) -> Array:
    """Return frequencies with 0 in the middle.

    Examples
    --------
    >>> print(xp.fft.fftshift(xp.fft.fftfreq(4)))
    [-0.5  -0.25  0.    0.25]
    """
    return _shifted("fftshift", x, axes, 1)


def ifftshift(x: Array, /, *, axes: Any = None) -> Array:
    """Return frequencies with 0 at the start: the inverse of `fftshift`.

    Examples
    --------
    >>> print(xp.fft.ifftshift(xp.asarray([-2, -1, 0, 1])))
    [ 0  1 -2 -1]
    """
    return _shifted("ifftshift", x, axes, -1)
