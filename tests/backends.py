# SPDX-License-Identifier: Apache-2.0
"""The ways in which tests call the stock operators. All results are compared with NumPy."""

from collections.abc import Callable
from dataclasses import dataclass

import ml_dtypes
import numpy as np
import pytest

FLOATING = ["float16", "bfloat16", "float32", "float64"]
SIGNED = ["int8", "int16", "int32", "int64"]
UNSIGNED = ["uint8", "uint16", "uint32", "uint64"]
COMPLEX = ["complex64", "complex128"]
FLOAT8 = ["float8_e4m3fn", "float8_e5m2"]


def dtype_of(name: str) -> np.dtype:
    """Return the NumPy dtype of a name, including dtypes of ml_dtypes."""
    return np.dtype(getattr(ml_dtypes, name) if name in ("bfloat16", *FLOAT8) else name)


@dataclass
class Backend:
    """A destination of arrays before a call, and a way to return results."""

    name: str
    put: Callable[[np.ndarray], object]
    take: Callable[[object], np.ndarray]
    keywords: dict
    device: str  # the device on which the operator must have run

    def __call__(self, operator, *arrays, **keywords) -> np.ndarray:
        """Call an operator on NumPy arrays, or lists of them, moved here; return a NumPy array.

        Check the device on which it ran.
        """
        import cuplug

        moved = [self.moved(x) for x in arrays]
        result = operator(*moved, **keywords, **self.keywords)
        assert cuplug.last_call().device == self.device
        if result is None:  # in place: the first array holds the result
            result = moved[0]
        if isinstance(result, tuple):
            return tuple(self.take(x) for x in result)
        assert type(result) is type(moved[0])
        return self.take(result)

    def moved(self, x):
        """Return an array, or a list of arrays, moved here; anything else unchanged."""
        if isinstance(x, list):
            return [self.moved(item) for item in x]
        return self.put(x) if isinstance(x, np.ndarray) else x

    def supports(self, dtype: np.dtype) -> bool:
        """Return whether the library of this backend has a dtype."""
        if self.name == "torch":
            return dtype.name not in ("uint16", "uint32", "uint64")
        return not (self.name == "cupy" and dtype.name in ("bfloat16", *FLOAT8))


def _torch_put(x: np.ndarray):
    import torch

    if x.dtype.name == "bfloat16":
        return torch.from_numpy(np.array(x).view(np.int16)).cuda().view(torch.bfloat16)
    if x.dtype.name in FLOAT8:
        return (
            torch.from_numpy(np.array(x).view(np.uint8)).cuda().view(getattr(torch, x.dtype.name))
        )
    return torch.from_numpy(np.array(x)).cuda()


def _torch_take(x) -> np.ndarray:
    import torch

    if x.dtype == torch.bfloat16:
        return x.view(torch.int16).cpu().numpy().view(ml_dtypes.bfloat16)
    name = str(x.dtype).removeprefix("torch.")
    if name in FLOAT8:
        return x.view(torch.uint8).cpu().numpy().view(dtype_of(name))
    return x.cpu().numpy()


def contents(x) -> np.ndarray:
    """Return the contents of a cuplug array on a GPU, also after a call with a fault."""
    import cuplug

    return cuplug.from_pointer(x.data_ptr, x.shape, x.dtype, x.device, owner=[x]).numpy()


def _make(name: str) -> Backend:
    import cuplug

    if name == "host":
        return Backend(name, lambda x: x, lambda x: x, {"device": "cpu"}, "cpu")
    if name == "staged":
        return Backend(name, lambda x: x, lambda x: x, {"device": "cuda"}, "cuda:0")
    if name == "own":
        return Backend(
            name, lambda x: cuplug.asarray(x, device="cuda"), lambda x: x.numpy(), {}, "cuda:0"
        )
    if name == "torch":
        pytest.importorskip("torch")
        return Backend(name, _torch_put, _torch_take, {}, "cuda:0")
    cupy = pytest.importorskip("cupy")
    return Backend(name, cupy.asarray, cupy.asnumpy, {}, "cuda:0")


# Kernels are the same for all libraries, so compute-sanitizer checks them only with cuplug arrays.
GPU = [pytest.param("own", marks=pytest.mark.gpu)]
GPU += [
    pytest.param(name, marks=[pytest.mark.gpu, pytest.mark.again])
    for name in ("staged", "torch", "cupy")
]


@pytest.fixture(params=["host", *GPU])
def backend(request) -> Backend:
    """Return each backend in turn."""
    return _make(request.param)


def assert_same(result: np.ndarray, expected: np.ndarray, ulps: int = 0) -> None:
    """Compare exactly, with equal NaNs, or with a tolerance of `ulps` units in the last place."""
    assert result.shape == expected.shape
    assert result.dtype == expected.dtype
    if ulps:
        np.testing.assert_allclose(result, expected, rtol=ulps * np.finfo(result.dtype).eps)
        return
    with np.errstate(invalid="ignore"):
        same = (result == expected) | ((result != result) & (expected != expected))
    assert same.all(), f"{np.flatnonzero(~same.ravel())[:5]} differ"
