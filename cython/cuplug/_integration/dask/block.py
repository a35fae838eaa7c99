# SPDX-License-Identifier: Apache-2.0
"""Blocks of dask arrays: the call of a task, and cuplug arrays in dask's operations on blocks.

Imported with `cuplug.dask`, and by `Array.__array_priority__`, which dask reads before it
concatenates blocks or divides sums.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any

import numpy as np
from dask.array.dispatch import concatenate_lookup, divide_lookup, numel_lookup
from dask.sizeof import sizeof

__all__ = ["Block", "Item", "Place", "gpu_of", "only_block", "sent"]

_CUDA = 2  # DLPack's device types
Place = tuple[int | str, int | None]  # a position or a name; and the index in a list


@dataclass(frozen=True)
class Block:
    """A call with blocks as arrays.

    The operator is pickled by its name and the identity of its code. A scheduler, which only
    forwards tasks, therefore needs no plugin. The process that runs a task finds the operator, or
    raises an error. Arrays that were not dask arrays, at the positions in `whole`, are copied to
    the GPU of the blocks.
    """

    operator: bytes
    args: tuple[Any, ...]
    keywords: dict[str, Any]
    places: tuple[Place, ...]
    whole: frozenset[Place]

    def __call__(self, *blocks: Any) -> Any:
        """Call the operator."""
        args = [_copied(x) for x in self.args]
        keywords = {name: _copied(x) for name, x in self.keywords.items()}
        arrays = [only_block(block) for block in blocks]
        gpu = next(filter(None, map(gpu_of, arrays)), None)
        for place, array in zip(self.places, arrays, strict=True):
            key, item = place
            holder: Any = args if isinstance(key, int) else keywords
            given = sent(array, gpu) if gpu and place in self.whole else array
            if item is None:
                holder[key] = given
            else:
                holder[key][item] = given
        return pickle.loads(self.operator)(*args, **keywords)


@dataclass(frozen=True)
class Item:
    """One of several outputs."""

    number: int

    def __call__(self, outputs: tuple[Any, ...]) -> Any:
        """Select the output."""
        return outputs[self.number]


for _public in (Block, Item):  # the name in pickles, whichever module has it
    _public.__module__ = "cuplug.dask"


def _copied(x: Any) -> Any:
    return list(x) if isinstance(x, list) else x


def only_block(block: Any) -> Any:
    """Return the only block along dimensions that are not split, which dask passes as lists."""
    while isinstance(block, list):
        (block,) = block
    return np.asarray(block) if isinstance(block, np.generic) else block  # as for x.max()


def gpu_of(array: Any) -> str | None:
    """Return the GPU of an array; None for host arrays."""
    place = array.__dlpack_device__() if hasattr(array, "__dlpack_device__") else (0, 0)
    return f"cuda:{place[1]}" if place[0] == _CUDA else None


def sent(array: Any, gpu: str) -> Any:
    """Return NumPy arrays on a GPU, and other arrays unchanged."""
    if not isinstance(array, np.ndarray):
        return array
    from cuplug.array_api.conversion import asarray

    return asarray(array, device=gpu)


# ---- Arrays of cuplug --------------------------------------------------------------------------


@concatenate_lookup.register_lazy("cuplug")
@divide_lookup.register_lazy("cuplug")
@numel_lookup.register_lazy("cuplug")
@sizeof.register_lazy("cuplug")
def _register() -> None:
    """Called when the first cuplug array exists."""
    from cuplug._engine.array.array import Array

    concatenate_lookup.register(Array, _joined)
    divide_lookup.register(Array, _divided)
    numel_lookup.register(Array, _numbers)
    sizeof.register(Array, lambda x: x.nbytes)  # the scheduler uses this size to choose a worker


def _joined(arrays: Any, axis: int = 0) -> Any:
    """Return blocks as one array. Some may be NumPy arrays, such as zeros that dask adds."""
    from cuplug.array_api.concatenation import concat

    device = _device_of(arrays)
    return concat([_own(x, device) for x in arrays], axis=axis)


def _divided(a: Any, b: Any, dtype: Any = None) -> Any:
    device = _device_of((a, b))
    result = _own(a, device) / _own(b, device)
    return result if dtype is None else result.astype(dtype)


def _numbers(x: Any, **keywords: Any) -> Any:
    """Return the number of elements in a mean, as NumPy counts them, on the device of the array."""
    like = np.broadcast_to(np.empty((), x.dtype), x.shape)
    return _own(numel_lookup.dispatch(np.ndarray)(like, **keywords), x.device)


def _device_of(arrays: Any) -> Any:
    from cuplug._engine.array.array import Array

    return next(x.device for x in arrays if isinstance(x, Array))


def _own(x: Any, device: Any) -> Any:
    from cuplug._engine.array.array import Array
    from cuplug.array_api.conversion import asarray

    return x if isinstance(x, Array) else asarray(x, device=device)
