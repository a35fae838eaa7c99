# SPDX-License-Identifier: Apache-2.0
"""Operators in processes of MPI: mpiexec -n 2 python examples/mpi_norm.py."""

import cuplug
import numpy
from mpi4py import MPI

squares = cuplug.reduction("squares(x: float64) -> float64", map="x * x", reduce="a + b")


def main() -> None:
    """Compute the norm of a vector. Each process has a part of it."""
    world = MPI.COMM_WORLD
    part = cuplug.asarray(numpy.arange(world.rank, 1000.0, world.size))
    total = numpy.zeros(1)
    world.Allreduce(squares(part, keepdims=True), total)
    print(f"rank {world.rank}: {numpy.sqrt(total[0]):.3f}", flush=True)


if __name__ == "__main__":
    main()
