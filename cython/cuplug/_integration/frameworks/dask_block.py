# SPDX-License-Identifier: Apache-2.0
"""What one task of dask runs: a call of an operator as an object, which is given blocks later."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any

import numpy as np

from cuplug._integration.frameworks import dask_types  # noqa: F401  (dask knows cuplug's arrays)

__all__ = ["Block", "Item", "Place"]

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
        arrays = [_only(block) for block in blocks]
        gpu = next(filter(None, map(_gpu_of, arrays)), None)
        for place, array in zip(self.places, arrays, strict=True):
            key, item = place
            holder: Any = args if isinstance(key, int) else keywords
            given = _sent(array, gpu) if gpu and place in self.whole else array
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


def _only(block: Any) -> Any:
    """Return the one block along dimensions that are not cut: dask has lists of them."""
    while isinstance(block, list):
        (block,) = block
    return np.asarray(block) if isinstance(block, np.generic) else block  # as of x.max()


def _gpu_of(array: Any) -> str | None:
    """Return the GPU that an array is on, if it is on one."""
    place = array.__dlpack_device__() if hasattr(array, "__dlpack_device__") else (0, 0)
    return f"cuda:{place[1]}" if place[0] == _CUDA else None


def _sent(array: Any, gpu: str) -> Any:
    """Return an array of NumPy on a GPU, and others as they are."""
    if not isinstance(array, np.ndarray):
        return array
    from cuplug.array_api.conversion import asarray

    return asarray(array, device=gpu)
