# SPDX-License-Identifier: Apache-2.0
"""A cluster on this machine with one worker for each GPU, or for each of n shares of the CPUs."""

from distributed import Client, Nanny, Scheduler, SpecCluster


def start(n_workers: int, n_threads: int = 2) -> Client:
    """Start the workers; the k-th sees GPU k alone, where there are GPUs."""
    workers = {
        k: {
            "cls": Nanny,
            "options": {"nthreads": n_threads, "env": {"CUDA_VISIBLE_DEVICES": str(k)}},
        }
        for k in range(n_workers)
    }
    scheduler = {"cls": Scheduler, "options": {"dashboard_address": None}}
    return Client(SpecCluster(workers=workers, scheduler=scheduler))
