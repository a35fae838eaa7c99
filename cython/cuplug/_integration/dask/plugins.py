# SPDX-License-Identifier: Apache-2.0
"""Plugin files brought to the workers of a cluster."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from distributed import WorkerPlugin

from cuplug._engine.lookup.find import load

__all__ = ["Plugins"]


class Plugins(WorkerPlugin):
    """Bring plugins to all workers of a cluster, those that come later included.

    `client.register_plugin(cuplug.dask.Plugins(["libmine.so"]))`. Each worker writes a file into a
    folder of its own, named by the file's SHA-256, and takes it as `cuplug.load` does: ahead of its
    search path, by the same rules of who may write it and of what an allow-list has.

    Each registration counts, in their order: the files of the last one are found first, also if
    they were registered before, and workers that come later do the same.

    Parameters
    ----------
    files : iterable of str, os.PathLike, Operator or Plugin
        The files; of an operator or a plugin, its file.

    Raises
    ------
    PluginError
        When it is registered: a worker refuses a file.
    """

    __module__ = "cuplug.dask"  # whichever module it is in

    def __init__(self, files: Iterable[Any]) -> None:
        paths = [Path(os.fspath(getattr(file, "path", file))) for file in files]
        self.files = tuple((path.name, path.read_bytes()) for path in paths)

    def setup(self, worker: Any) -> None:
        """Write the files where a worker runs, and load them."""
        for name, data in self.files:
            load(_write(Path(worker.local_directory) / "cuplug" / _digest(data), name, data))


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _write(folder: Path, name: str, data: bytes) -> Path:
    """Write a file aside and rename it: nobody sees half of it."""
    final, temporary = folder / name, folder / f".{name}-{os.getpid()}"
    if final.exists():  # the folder is named by what it holds
        return final
    for made in (folder.parent, folder):
        made.mkdir(mode=0o700, exist_ok=True)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "wb") as file:
        file.write(data)
    return temporary.rename(final)
