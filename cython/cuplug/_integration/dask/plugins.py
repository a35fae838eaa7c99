# SPDX-License-Identifier: Apache-2.0
"""Distribution of plugin files to the workers of a cluster: the client's list, and the loading."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import pickle
import time
import weakref
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from distributed import SchedulerPlugin, WorkerPlugin
from distributed.protocol import Serialize, Serialized, deserialize

from cuplug._engine.lookup.find import load
from cuplug._integration.dask.distribution import PART_BYTES, Distribution
from cuplug._source.compilers import cache, key_lock
from cuplug.errors import PluginError

__all__ = ["PluginFiles", "Plugins"]

_TOPIC = "cuplug-plugins"
_KIND = "plugin"  # of entries in the cache
_REPORTED_S = 1.0


def _error_of(wrapped: Any) -> Exception:
    """Return a worker's error as the scheduler receives it: pickled, in one of two wrappers."""
    if isinstance(wrapped, Serialized):
        wrapped = Serialize(deserialize(wrapped.header, wrapped.frames))
    return pickle.loads(wrapped.data)  # type: ignore[no-any-return]


class _File(NamedTuple):
    name: str
    digest: str
    n_bytes: int


class Plugins(SchedulerPlugin):
    """Distribute plugins to all workers of a cluster, including workers that start later.

    `client.register_plugin(cuplug.dask.Plugins(["libmine.so"]))`. The scheduler receives each file
    once. Of the workers that share a cache directory, one fetches it, from the scheduler or from a
    worker that has it. Each worker writes a file into a folder of its own, named by the file's
    SHA-256, and loads it as `cuplug.load` does: ahead of its search path, with the same rules for
    permissions and allow-lists.

    Registrations apply in their order. Files of the last one are found first, even if they were
    registered before. Workers that start later use the same order.

    Parameters
    ----------
    files : iterable of str, os.PathLike, Operator or Plugin
        The files. For an operator or a plugin, this is its file.

    Raises
    ------
    PluginError
        On registration, if a worker rejects a file.
    """

    def __init__(self, files: Iterable[Any]) -> None:
        paths = [Path(os.fspath(getattr(file, "path", file))) for file in files]
        self.files = tuple((path.name, path.read_bytes()) for path in paths)

    async def start(self, scheduler: Any) -> None:
        """Store the files in the scheduler's process, and have all workers load them."""
        distribution = Distribution.of(scheduler)
        listed = tuple(_File(name, distribution.add(data), len(data)) for name, data in self.files)
        self.files = ()
        responses = await scheduler.register_worker_plugin(
            None, pickle.dumps(PluginFiles(listed)), f"cuplug-{uuid4()}", idempotent=False
        )
        for response in responses.values():
            if response["status"] == "error":
                raise _error_of(response["exception"])


class PluginFiles(WorkerPlugin):
    """The part of `Plugins` on a worker: fetches the files that its host lacks, and loads all.

    Parameters
    ----------
    files : tuple
        The name, the SHA-256 and the length of each file.
    """

    def __init__(self, files: tuple[_File, ...]) -> None:
        self.files: tuple[Any, ...] = tuple(map(tuple, files))  # pickles contain no private names

    async def setup(self, worker: Any) -> None:
        """Write the files on the worker's host, and load them in the order of registrations."""
        shelf = _Shelf.of(worker)
        async with shelf.lock:
            paths = [await shelf.path_of(_File(*file)) for file in self.files]
            for path in paths:
                load(path)


for _public in (Plugins, PluginFiles):  # the name in pickles, whichever module has it
    _public.__module__ = "cuplug.dask"


class _Shelf:
    """The files that a worker has written, which other workers may read."""

    def __init__(self, worker: Any) -> None:
        self.worker = weakref.proxy(worker)
        self.lock = asyncio.Lock()  # setups of a worker that starts late run concurrently
        self.paths: dict[str, Path] = {}
        worker.handlers["cuplug_read"] = self.read

    @classmethod
    def of(cls, worker: Any) -> _Shelf:
        """Return the worker's instance."""
        if worker not in _shelves:
            _shelves[worker] = cls(worker)
        return _shelves[worker]

    def read(self, digest: str, offset: int) -> bytes:
        """Return the part of a file that starts at an offset."""
        with open(self.paths[digest], "rb") as file:
            return os.pread(file.fileno(), PART_BYTES, offset)

    async def path_of(self, file: _File) -> Path:
        """Return the path of a file that this worker has written."""
        path = Path(self.worker.local_directory) / "cuplug" / file.digest / file.name
        if not path.exists():  # the folder's name is the digest of its contents
            await self._fill(path, file)
        return path

    async def _fill(self, path: Path, file: _File) -> None:
        """Write a file from the cache, or fetch it.

        Of the workers that share the cache, one fetches it.
        """
        key = cache.key(_KIND, file.digest)
        with contextlib.ExitStack() as stack:
            if (data := cache.get(key, _KIND)) is None:
                await asyncio.to_thread(stack.enter_context, key_lock.held(key))
                data = cache.get(key, _KIND)
            if data is None:
                await self._fetch(path, file)
                cache.put(key, _KIND, path.read_bytes())
            else:
                _write(path, data)

    async def _fetch(self, path: Path, file: _File) -> None:
        """Write a file from the scheduler or another worker, and serve it to others."""
        scheduler, me = self.worker.scheduler, self.worker.address
        source = await scheduler.cuplug_borrow(digest=file.digest, worker=me)
        try:
            data, failed = await self._read_from(source, file), False
        except (OSError, LookupError, PluginError):  # a worker's; the scheduler always has the file
            data, failed = await self._read_from(scheduler.address, file), True
        _write(path, data)
        self.paths[file.digest] = path
        await scheduler.cuplug_return(digest=file.digest, source=source, worker=me, failed=failed)

    async def _read_from(self, source: str, file: _File) -> bytes:
        data, start = bytearray(), time.monotonic()
        reported_s = start
        remote = self.worker.rpc(source)
        while len(data) < file.n_bytes:
            part = await remote.cuplug_read(digest=file.digest, offset=len(data))
            if not part:
                break
            data += part
            now_s = time.monotonic()
            if now_s - reported_s > _REPORTED_S or len(data) == file.n_bytes:
                reported_s = now_s
                self._report(file, source, len(data), now_s - start)
        if hashlib.sha256(data).hexdigest() != file.digest:
            raise PluginError(f"{file.name}: got other bytes from {source}, expected {file.digest}")
        return bytes(data)

    def _report(self, file: _File, source: str, n_bytes: int, seconds: float) -> None:
        """Report progress and rate to the scheduler and all subscribers."""
        of = {"file": file.name, "worker": self.worker.address, "source": source}
        rate = {"bytes_per_s": n_bytes / max(seconds, 1e-6)}
        self.worker.log_event(_TOPIC, {**of, "bytes": n_bytes, "of_bytes": file.n_bytes, **rate})


_shelves: weakref.WeakKeyDictionary[Any, _Shelf] = weakref.WeakKeyDictionary()


def _write(final: Path, data: bytes) -> None:
    """Write a temporary file and rename it, so nobody sees an incomplete file."""
    folder, temporary = final.parent, final.with_name(f".{final.name}-{os.getpid()}")
    for made in (folder.parent, folder):
        made.mkdir(mode=0o700, exist_ok=True)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "wb") as file:
        file.write(data)
    temporary.rename(final)
