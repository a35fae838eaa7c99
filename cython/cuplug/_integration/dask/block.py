# SPDX-License-Identifier: Apache-2.0
"""Blocks of dask arrays: the call of a task, and how dask joins, counts and weighs those of cuplug.

Imported with `cuplug.dask`, and by `Array.__array_priority__`, which dask reads before it joins
blocks or divides sums.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any

import numpy as np
from dask.array.dispatch import concatenate_lookup, divide_lookup, numel_lookup
from dask.sizeof import sizeof

__all__ = ["Block", "Item", "Place", "gpu_of", "only_block", "sent"]

_CUDA = 2  # as DLPack numbers kinds of devices
Place = tuple[int | str, int | None]  # a position or a name; and where it is in a list


@dataclass(frozen=True)
class Block:
    """A call in which blocks take the places of arrays.

    The operator is kept pickled, as its name and what tells its code: a scheduler, which passes
    tasks on, needs no plugin. The process that runs a task finds the operator there, or refuses.
    Arrays that were no dask arrays, the places in `whole`, go to the GPU where the blocks are.
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
    """One output of several."""

    number: int

    def __call__(self, outputs: tuple[Any, ...]) -> Any:
        """Take it."""
        return outputs[self.number]


for _public in (Block, Item):  # what pickles name, whichever module they are in
    _public.__module__ = "cuplug.dask"


def _copied(x: Any) -> Any:
    return list(x) if isinstance(x, list) else x


def only_block(block: Any) -> Any:
    """Return the one block along dimensions that are not cut: dask has lists of them."""
    while isinstance(block, list):
        (block,) = block
    return np.asarray(block) if isinstance(block, np.generic) else block  # as of x.max()


def gpu_of(array: Any) -> str | None:
    """Return the GPU that an array is on, if it is on one."""
    place = array.__dlpack_device__() if hasattr(array, "__dlpack_device__") else (0, 0)
    return f"cuda:{place[1]}" if place[0] == _CUDA else None


def sent(array: Any, gpu: str) -> Any:
    """Return an array of NumPy on a GPU, and others as they are."""
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
    """Asked for when the first array of cuplug is there."""
    from cuplug._engine.array.array import Array

    concatenate_lookup.register(Array, _joined)
    divide_lookup.register(Array, _divided)
    numel_lookup.register(Array, _numbers)
    sizeof.register(Array, lambda x: x.nbytes)  # by which a scheduler weighs where a task runs


def _joined(arrays: Any, axis: int = 0) -> Any:
    """Return blocks as one array; some may be of NumPy, as zeros that dask puts before others."""
    from cuplug.array_api.concatenation import concat

    device = _device_of(arrays)
    return concat([_own(x, device) for x in arrays], axis=axis)


def _divided(a: Any, b: Any, dtype: Any = None) -> Any:
    device = _device_of((a, b))
    result = _own(a, device) / _own(b, device)
    return result if dtype is None else result.astype(dtype)


def _numbers(x: Any, **keywords: Any) -> Any:
    """Return how many elements a mean is of: as NumPy counts them, where the array is."""
    like = np.broadcast_to(np.empty((), x.dtype), x.shape)
    return _own(numel_lookup.dispatch(np.ndarray)(like, **keywords), x.device)


def _device_of(arrays: Any) -> Any:
    from cuplug._engine.array.array import Array

    return next(x.device for x in arrays if isinstance(x, Array))


def _own(x: Any, device: Any) -> Any:
    from cuplug._engine.array.array import Array
    from cuplug.array_api.conversion import asarray

    return x if isinstance(x, Array) else asarray(x, device=device)
