# SPDX-License-Identifier: Apache-2.0
"""Calls on arrays that are spread over several devices, cut along independent dimensions.

Each device works on what it has. Along other dimensions arrays are brought together first.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

from jax.experimental.custom_partitioning import custom_partitioning
from jax.sharding import NamedSharding, PartitionSpec

__all__ = ["partitioned"]


def partitioned(
    run: Callable[..., Any], operands: list[list[str]], results: list[list[str]]
) -> Callable[..., Any]:
    """Return a function that XLA's partitioner may cut.

    Parameters
    ----------
    run : callable
        What each device does.
    operands, results : list of list of str
        A name for each dimension of each array: those of one name are cut alike, "" is not cut.
    """

    def partition(mesh: Any, arg_shapes: Any, result_shape: Any) -> Any:
        axes = dict(zip(results[0], tuple(result_shape[0].sharding.spec), strict=False))
        made, given = (
            tuple(NamedSharding(mesh, _spread(names, axes)) for names in arrays)
            for arrays in (results, operands)
        )
        return mesh, run_alike, made, given

    def run_alike(*arrays: Any) -> tuple[Any, ...]:
        return tuple(run(*arrays))

    factors = _factors(results[0])
    others = (f"a{k}" for k in itertools.count())
    left, right = ([_named(x, factors, others) for x in side] for side in (operands, results))
    rule = " -> ".join(", ".join(map(" ".join, side)) for side in (left, right))
    whole = {name for x in (*left, *right) for name in x if name.startswith("a")}
    cut = custom_partitioning(run_alike)
    cut.def_partition(partition, sharding_rule=rule, need_replication_factors=tuple(sorted(whole)))
    return cut


def _spread(names: list[str], axes: dict[str, Any]) -> PartitionSpec:
    """Return over which axes of the mesh an array is spread."""
    return PartitionSpec(*(axes[name] if name and name in axes else None for name in names))


def _factors(names: list[str]) -> dict[str, str]:
    """Return what Shardy calls each name: a letter and a number."""
    return {name: f"i{k}" for k, name in enumerate(names) if name}


def _named(names: list[str], factors: dict[str, str], others: Iterator[str]) -> list[str]:
    return [factors[name] if name else next(others) for name in names]
