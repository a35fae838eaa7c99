# SPDX-License-Identifier: Apache-2.0
"""Calls on arrays that are spread over several devices, cut along their loop dimensions.

Each device works on what it has. Along other dimensions arrays are brought together first.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from jax.experimental.custom_partitioning import custom_partitioning
from jax.sharding import NamedSharding, PartitionSpec

__all__ = ["Looped", "partitioned"]


@dataclass(frozen=True)
class Looped:
    """The shape of an array, and where its loop dimensions are; None: it has none."""

    shape: tuple[int, ...]
    at: slice | None

    def names(self, others: Iterator[str]) -> list[str]:
        """Return a name for each dimension: "l1" for the last one of the loop, and so on."""
        return [self._name(k) or next(others) for k in range(len(self.shape))]

    def _name(self, k: int) -> str:
        is_cut = self.at and self.at.start <= k < self.at.stop and self.shape[k] != 1
        return f"l{self.at.stop - k}" if self.at and is_cut else ""

    def spread(self, loop: dict[str, Any]) -> PartitionSpec:
        """Return over which axes of the mesh it is spread, where those of the loop are known."""
        return PartitionSpec(*(loop.get(self._name(k)) for k in range(len(self.shape))))


def partitioned(
    run: Callable[..., Any], operands: list[Looped], results: list[Looped]
) -> Callable[..., Any]:
    """Return a function that XLA's partitioner may cut; `run` is what each device does."""

    def partition(mesh: Any, arg_shapes: Any, result_shape: Any) -> Any:
        spec = tuple(result_shape[0].sharding.spec)
        loop = dict(zip(results[0].names(itertools.repeat("")), spec, strict=False))
        made, given = (
            tuple(NamedSharding(mesh, x.spread(loop)) for x in arrays)
            for arrays in (results, operands)
        )
        return mesh, run_alike, made, given

    def run_alike(*arrays: Any) -> tuple[Any, ...]:
        return tuple(run(*arrays))

    names = (f"a{k}" for k in itertools.count())
    left, right = ([x.names(names) for x in arrays] for arrays in (operands, results))
    rule = " -> ".join(", ".join(map(" ".join, side)) for side in (left, right))
    whole = {name for x in (*left, *right) for name in x if name.startswith("a")}
    cut = custom_partitioning(run_alike)
    cut.def_partition(partition, sharding_rule=rule, need_replication_factors=tuple(sorted(whole)))
    return cut
