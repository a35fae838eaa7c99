# SPDX-License-Identifier: Apache-2.0
"""A cluster on this machine with one worker for each GPU, or n workers that share the CPUs."""

import logging

from distributed import Client, Nanny, Scheduler, SpecCluster


def start(n_workers: int, n_threads: int = 2, memory_limit: str = "auto") -> Client:
    """Start the workers; if GPUs exist, the k-th sees only GPU k."""
    quiet = {"silence_logs": logging.WARNING}
    workers = {}
    for k in range(n_workers):
        variables = {"CUDA_VISIBLE_DEVICES": str(k)}
        options = {"nthreads": n_threads, "memory_limit": memory_limit, "env": variables, **quiet}
        workers[k] = {"cls": Nanny, "options": options}
    scheduler = {"cls": Scheduler, "options": {"dashboard": False}}
    return Client(SpecCluster(workers=workers, scheduler=scheduler, **quiet))
