# SPDX-License-Identifier: Apache-2.0
"""Plugin files on a scheduler, and the workers from which other workers can fetch them.

A worker acquires a source and releases it. Each source serves a few workers at a time, and each
worker with a file becomes a source, so the time grows with the logarithm of the number of workers.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import defaultdict
from typing import Any

from distributed import SchedulerPlugin

__all__ = ["PART_BYTES", "Distribution"]

PART_BYTES = 4 << 20  # per message
_SERVED = 2  # workers at a time


class Distribution(SchedulerPlugin):
    """The files of all registrations. A scheduler has one instance."""

    name = "cuplug-distribution"

    def __init__(self, scheduler: Any) -> None:
        self.scheduler = scheduler
        self.data: dict[str, bytes] = {}
        self.free: dict[str, list[str]] = {}  # addresses, once for each worker that they can serve
        self.lent: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)  # by worker
        self.changed = asyncio.Event()

    @classmethod
    def of(cls, scheduler: Any) -> Distribution:
        """Return the scheduler's instance."""
        if cls.name not in scheduler.plugins:
            own = cls(scheduler)
            scheduler.add_plugin(own)
            served = {"read": own.read, "borrow": own.borrow, "return": own.take_back}
            scheduler.handlers.update({f"cuplug_{name}": call for name, call in served.items()})
        return scheduler.plugins[cls.name]  # type: ignore[no-any-return]

    def add(self, data: bytes) -> str:
        """Store a file, and return its digest."""
        digest = hashlib.sha256(data).hexdigest()
        if digest not in self.data:
            self.data[digest] = data
            self.free[digest] = [self.scheduler.address] * _SERVED
        return digest

    def read(self, digest: str, offset: int) -> bytes:
        """Return the part of a file that starts at an offset."""
        return self.data[digest][offset : offset + PART_BYTES]

    async def borrow(self, digest: str, worker: str) -> str:
        """Return the address of a source, when one can serve the worker."""
        free = self.free[digest]
        while not free:
            self.changed.clear()
            await self.changed.wait()
        if self._is_here(worker):
            self.lent[worker].append((digest, free[0]))
            return free.pop(0)
        return free[0]  # the worker has left

    def take_back(self, digest: str, source: str, worker: str, failed: bool) -> None:
        """Add a source again, unless it has failed, and also the worker that has read from it."""
        if (digest, source) in self.lent[worker]:
            self.lent[worker].remove((digest, source))
            self._add_sources(digest, [] if failed else [source])
        self._add_sources(digest, [worker] * _SERVED)

    def remove_worker(self, scheduler: Any, worker: str, **_: Any) -> None:
        """Release the source that a worker has acquired, and remove the worker as a source."""
        for free in self.free.values():
            free[:] = [source for source in free if source != worker]
        for digest, source in self.lent.pop(worker, ()):
            self._add_sources(digest, [source])

    def _add_sources(self, digest: str, sources: list[str]) -> None:
        self.free[digest] += filter(self._is_here, sources)
        self.changed.set()

    def _is_here(self, address: str) -> bool:
        return address == self.scheduler.address or address in self.scheduler.workers
