# SPDX-License-Identifier: Apache-2.0
"""Scaling of jax.shard_map over the GPUs of a machine: one array, sharded over them.

    python benchmarks/frameworks/jax_scaling.py --devices 1,2,4

Each number of devices processes the same array, in one program that calls an operator many times.
Programs follow each other without a wait, so that late starts on a device are hidden.
"""

from __future__ import annotations

import time

import click
import jax
from cuplug.jax import leaky_relu

N_PROGRAMS = 5  # consecutive calls


def seconds(n_devices: int, n_elements: int, n_calls: int) -> float:
    """Return the shortest time of three runs of a program, after an uncounted one."""
    mesh = jax.make_mesh((n_devices,), ("i",), devices=jax.devices()[:n_devices])
    parts = jax.sharding.PartitionSpec("i")
    x = jax.numpy.ones(n_elements, device=jax.NamedSharding(mesh, parts))

    def calls(x: jax.Array) -> jax.Array:
        for _ in range(n_calls):
            x = leaky_relu(x, 0.5)
        return x

    spread = jax.shard_map(calls, mesh=mesh, in_specs=parts, out_specs=parts)
    program = jax.jit(spread, donate_argnums=0)
    times = []
    for _ in range(4):
        begin = time.perf_counter()
        for _ in range(N_PROGRAMS):
            x = program(x)
        x.block_until_ready()
        times.append((time.perf_counter() - begin) / N_PROGRAMS)
    return min(times[1:])


@click.command()
@click.option("--devices", default="1,2,4", help="Numbers of devices.")
@click.option("--elements", default=1 << 30, help="Of the array, 4 bytes each.")
@click.option("--calls", default=100, help="Of the operator, one after the other, in a program.")
def main(devices: str, elements: int, calls: int) -> None:
    """Print the time for each number of devices, and the speedup over the first."""
    print("| devices | seconds | times as fast | bytes per second |")
    print("|---|---|---|---|")
    first = 0.0
    for n in map(int, devices.split(",")):
        taken = seconds(n, elements, calls)
        first = first or taken
        rate = 8 * elements * calls / taken
        print(f"| {n} | {taken:.4f} | {first / taken:.2f} | {rate / 1e9:,.0f} GB |", flush=True)


if __name__ == "__main__":
    main()
