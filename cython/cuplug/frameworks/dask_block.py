# SPDX-License-Identifier: Apache-2.0
"""What one task of dask runs: a call of an operator as an object, which is given blocks later."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any

import numpy as np
from dask.array.dispatch import concatenate_lookup

__all__ = ["Block", "Item", "Place"]

Place = tuple[int | str, int | None]  # a position or a name; and where it is in a list


@concatenate_lookup.register_lazy("cuplug")
def _join_as_cuplug_does() -> None:
    """What `compute` makes of several blocks; asked for when the first array of cuplug is there."""
    from cuplug.array.array import Array
    from cuplug.array_api.joins import concat

    concatenate_lookup.register(Array, concat)


@dataclass(frozen=True)
class Block:
    """A call in which blocks take the places of arrays.

    The operator is kept pickled, as its name and what tells its code: a scheduler, which passes
    tasks on, needs no plugin. The process that runs a task finds the operator there, or refuses.
    """

    operator: bytes
    args: tuple[Any, ...]
    keywords: dict[str, Any]
    places: tuple[Place, ...]

    def __call__(self, *blocks: Any) -> Any:
        """Call the operator."""
        args = [_copied(x) for x in self.args]
        keywords = {name: _copied(x) for name, x in self.keywords.items()}
        for (key, item), block in zip(self.places, blocks, strict=True):
            holder: Any = args if isinstance(key, int) else keywords
            if item is None:
                holder[key] = _only(block)
            else:
                holder[key][item] = _only(block)
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
