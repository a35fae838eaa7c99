# SPDX-License-Identifier: Apache-2.0
"""The private Python names of PyTorch that cuplug.torch uses; no other module has any.

`import cuplug.torch` requires the names of autograd, while `cuplug.ops` on detached tensors needs
none. Without the names for kernels in C, calls use kernels in Python.

| name | use | public alternative |
|---|---|---|
| `_C._are_functorch_transforms_active` | calls inside of `torch.func` transforms | none |
| `_C._AutoDispatchBelowAutograd` | calls that autograd does not record again | none |
| `_C._after_ADInplaceOrView_keyset` | calls on, after writes were counted | none |
| `_C._is_fwd_grad_enabled`, `forward_ad._current_level`, `forward_ad._set_fwd_grad_enabled` \
  | forward mode | none |
| `_functorch.utils.enable_single_level_autograd_function`, \
  `autograd.function._SingleLevelFunction` | one level of nested transforms | \
  `torch.autograd.Function`, which takes all levels at once |
| `_ops._OpNamespace` | `torch.ops.cuplug`, whose operators are made at first use | \
  `torch.library.Library`, with all operators at once |
| `_C.DispatchKey`, `OpOverload.py_impl` | kernels for symbolic sizes | `Library.impl`, unboxed |
| `Tensor._base` | writes to views of leaves | none |
| `_C._dispatch_keys`, `_C.DispatchKeySet` | the keys of plain tensors | DLPack reads them |
| `_C._enter_dual_level`, `_C._exit_dual_level`, `_VF._make_dual` | a dual number, as \
  `torch.autograd.forward_ad` imports much | `forward_ad.make_dual` |
| `_C._IncludeDispatchKeyGuard` | a check of libtorch's functions | none |
| `_C._ExcludeDispatchKeyGuard`, `_C._parse_dispatch_key` | operations that `torch.jit.trace` does \
  not record | none |
| `Tensor._make_wrapper_subclass` | a tensor whose operations raise | none |
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from operator import attrgetter
from typing import Any

import torch
import torch._functorch.utils
from torch.autograd import forward_ad

from cuplug._engine.interop.libtorch import is_tracing


def _required(name: str) -> Any:
    try:
        return attrgetter(name)(torch)
    except AttributeError:
        raise ImportError(
            f"cuplug.torch: got PyTorch {torch.__version__} without torch.{name}, expected a "
            "version with it, such as 2.4 to 2.15; call cuplug.ops with detached tensors"
        ) from None


OpNamespace = _required("_ops._OpNamespace")
SingleLevelFunction = _required("autograd.function._SingleLevelFunction")
below_autograd = _required("_C._AutoDispatchBelowAutograd")
is_transformed = _required("_C._are_functorch_transforms_active")
set_forward = _required("autograd.forward_ad._set_fwd_grad_enabled")
single_level = _required("_functorch.utils.enable_single_level_autograd_function")
_has_forward = _required("_C._is_fwd_grad_enabled")
_AFTER_WRITES = _required("_C._after_ADInplaceOrView_keyset")
_Key = _required("_C.DispatchKey")


def has_dual_level() -> bool:
    """Return whether a block of forward mode is entered."""
    return bool(forward_ad._current_level >= 0)


def is_forward() -> bool:
    """Return whether derivatives are computed in forward mode."""
    return bool(forward_ad._current_level >= 0 and _has_forward())


def after_writes(keyset: Any) -> Any:
    """Return the keys with which a call continues after its writes were counted."""
    return keyset & _AFTER_WRITES


def add_kernel(call: Any, key: str, kernel: Any) -> None:
    """Add a kernel to an operator for calls from Python."""
    call.py_impl(getattr(_Key, key))(kernel)


def base_of(x: torch.Tensor) -> torch.Tensor:
    """Return the tensor that x is a view of, or x."""
    return x if x._base is None else x._base


# ---- For kernels in C ----------------------------------------------------------------------------


def keys_of(x: torch.Tensor) -> int:
    """Return the set of a tensor's dispatch keys, as a number."""
    return int(torch._C._dispatch_keys(x).raw_repr())


def set_of(names: Sequence[str]) -> int:
    """Return the set of the keys of these names, as a number."""
    keys = torch._C.DispatchKeySet(getattr(_Key, names[0]))
    for name in names[1:]:
        keys = keys | torch._C.DispatchKeySet(getattr(_Key, name))
    return int(keys.raw_repr())


def number_of(name: str) -> int:
    """Return the number of a dispatch key."""
    return int(getattr(_Key, name))


def key_included(name: str) -> AbstractContextManager[Any]:
    """Return a block in which a dispatch key is included."""
    return torch._C._IncludeDispatchKeyGuard(getattr(_Key, name))  # type: ignore[no-any-return]


def untraced() -> AbstractContextManager[Any]:
    """Return a block in which `torch.jit.trace` records nothing."""
    if not is_tracing():
        return nullcontext()
    tracer = torch._C.DispatchKeySet(torch._C._parse_dispatch_key("Tracer"))
    return torch._C._ExcludeDispatchKeyGuard(tracer)  # type: ignore[no-any-return]


@contextmanager
def dual_number(x: torch.Tensor, tangent: torch.Tensor) -> Iterator[torch.Tensor]:
    """Make a block of forward mode with a dual number."""
    level = torch._C._enter_dual_level()
    try:
        yield torch._VF._make_dual(x, tangent, level=level)
    finally:
        torch._C._exit_dual_level(level=level)


def wrapper(cls: type) -> torch.Tensor:
    """Return a tensor without elements of a class that handles all its operations."""
    return torch.Tensor._make_wrapper_subclass(cls, (0,))
