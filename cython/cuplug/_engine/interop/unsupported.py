# SPDX-License-Identifier: Apache-2.0
"""Objects that represent arrays and have no memory of their own to read, and their libraries."""

from __future__ import annotations

import sys
from typing import Any

from cuplug._engine.interop.libtorch import is_of_transform

__all__ = ["advice_on", "advice_on_freed", "advice_on_tensor", "is_traced_class"]

_COMPILED = "(cuplug.torch takes it, with PyTorch 2.4 or newer)"
# By the names of the library and of a class or a base class. These have no elements yet, and cannot
# represent a number either:
_TRACED = {
    (
        "jax",
        "Tracer",
    ): "a traced array of JAX, which has no elements yet (call the operator outside "
    "of jit, grad and vmap, or through jax.pure_callback)",
    ("torch", "Proxy"): f"a proxy of torch.fx, which has no elements {_COMPILED}",
    ("torch", "FakeTensor"): f"a fake tensor of PyTorch, which has no elements {_COMPILED}",
    ("torch", "FunctionalTensor"): f"a tensor that PyTorch traces {_COMPILED}",
    ("dask", "Array"): "a dask array, which is not computed yet (pass x.compute(), or call the "
    "operator on its blocks with x.map_blocks)",
}
_TRANSFORMED = {
    "is_batchedtensor": f"a tensor inside of torch.vmap, which stands for many {_COMPILED}",
    "is_gradtrackingtensor": f"a tensor inside of a transform of torch.func {_COMPILED}",
}
_WRAPPED = {
    ("xarray", "DataArray"): "an array of xarray (use xarray.apply_ufunc, or pass x.values)",
    ("xarray", "Variable"): "a variable of xarray (use xarray.apply_ufunc, or pass x.values)",
    ("xarray", "Dataset"): "a data set of xarray (use xarray.apply_ufunc, or pass x[name].values)",
    ("pandas", "NDFrame"): "a table or column of pandas (pass x.to_numpy())",
    ("pandas", "Index"): "an index of pandas (pass x.to_numpy())",
    ("pandas", "ExtensionArray"): "an array of pandas (pass x.to_numpy())",
}


def is_traced_class(cls: type) -> bool:
    """Return whether arrays of a class have no elements yet: PyTorch warns if these are read."""
    return any(name in _TRACED for name in _names(cls))


def _names(cls: type) -> list[tuple[str, str]]:
    return [(base.__module__.partition(".")[0], base.__name__) for base in cls.__mro__]


def advice_on(x: Any) -> tuple[str, str] | None:
    """Return an object's library, its kind and the object to pass instead; None for others.

    An object without dimensions may represent a number.
    """
    names = _names(type(x))
    for name in names:
        if name in _TRACED:
            return name[0], _TRACED[name]
        if name in _WRAPPED and getattr(x, "ndim", True):
            return name[0], _WRAPPED[name]
    text = _of_transform(x) if ("torch", "Tensor") in names else None
    return None if text is None else ("torch", text)


def _of_transform(x: Any) -> str | None:
    """Check for torch.vmap and torch.func.grad, whose tensors have PyTorch's own type."""
    for name, text in _TRANSFORMED.items():
        if is_of_transform(x, name):
            return text
    return None


def advice_on_tensor(x: Any) -> str | None:
    """Return the kind of a tensor or JAX array without plain memory, and the object to pass."""
    if _is_deleted(x):
        return "an array of JAX that was deleted or donated (pass one that still has its memory)"
    tensor = getattr(sys.modules.get("torch"), "Tensor", None)
    is_tensor = isinstance(tensor, type) and isinstance(x, tensor)
    return _of_memory(x) if is_tensor else None


def _is_deleted(x: Any) -> bool:
    array = getattr(sys.modules.get("jax"), "Array", None)
    is_array = isinstance(array, type) and isinstance(x, array)
    return bool(is_array and x.is_deleted())


def _of_memory(x: Any) -> str | None:
    if x.is_nested:
        return "a nested tensor (pass its tensors, x.unbind(), or x.to_padded_tensor(0.0))"
    if x.is_meta:
        return (
            "a meta tensor, which has no elements (pass one on a device; operator.infer gives "
            "shapes, and cuplug.torch takes it)"
        )
    if str(x.layout) != "torch.strided":
        return f"a tensor of layout {x.layout} (pass x.to_dense())"
    if type(x).__name__ == "MaskedTensor":
        return "a masked tensor, whose mask would be lost (pass x.get_data() or x.to_tensor(0))"
    if x.is_quantized:
        return f"a quantized tensor of {x.dtype} (pass x.dequantize() or x.int_repr())"
    return None


def advice_on_freed(x: Any) -> str | None:
    """Describe a tensor whose storage was freed, as FSDP does; return None if it was not."""
    if not _freed(x):
        return None
    return (
        f"{type(x).__name__} of shape {tuple(x.shape)} whose storage was freed (resize it with "
        "x.untyped_storage().resize_ and fill it, or gather the parameters of FSDP first)"
    )


def _freed(x: Any) -> bool:
    try:
        return bool(x.numel() and not x.untyped_storage().nbytes())
    except Exception:  # it has no storage, or a traced one
        return False
