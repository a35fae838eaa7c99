# SPDX-License-Identifier: Apache-2.0
"""Compilers as processes: for a bounded time, with a bounded output, in a folder of their own."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from typing import NamedTuple

from cuplug.errors import CompileError

LIMIT_S = 120.0  # of one run
MOST_BYTES = 1 << 20  # of its output, that are kept
PREFIX = "cuplug-code-"
STALE_S = 3600.0  # a folder this old is of a process that was killed


class Run(NamedTuple):
    """What came of a run: its status, and the beginning of its output and errors together."""

    returncode: int
    output: str
    timed_out: bool = False


def run(command: list[str], directory: str, start: str | None = None) -> Run:
    """Run a command, with messages in English and its temporary files in a directory.

    What it started is ended with it when it takes too long. It starts in `start`, or in the
    directory.

    Raises
    ------
    CompileError
        It cannot be started.
    """
    import signal  # these two for what is not in the cache alone
    import subprocess

    environment = {**os.environ, "LC_ALL": "C.UTF-8", "LANGUAGE": "C", "TMPDIR": directory}
    try:
        process = subprocess.Popen(
            command,
            cwd=start or directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        raise CompileError(f"{command[0]}: it cannot be started: {error.strerror}") from None
    end = time.monotonic() + LIMIT_S
    with process:
        assert process.stdout is not None
        try:
            output = _read(process.stdout.fileno(), end)
            process.wait(max(0, end - time.monotonic()))
        except BaseException as error:
            os.killpg(process.pid, signal.SIGKILL)  # not waited for, so the number is its own
            if not isinstance(error, (TimeoutError, subprocess.TimeoutExpired)):
                raise
            return Run(-1, f"{command[0]}: seen no end after {LIMIT_S:g} s", timed_out=True)
    return Run(process.returncode, output.decode(errors="replace"))


def _read(pipe: int, end: float) -> bytes:
    """Return the beginning of what comes through a pipe, when it is closed."""
    import select

    kept = bytearray()
    while (left := end - time.monotonic()) > 0 and select.select([pipe], [], [], left)[0]:
        part = os.read(pipe, 1 << 16)
        if not part:
            return bytes(kept)
        kept += part[: MOST_BYTES - len(kept)]
    raise TimeoutError


@contextlib.contextmanager
def working_directory() -> Iterator[str]:
    """Make a directory, to be removed at the end; remove those that killed processes left.

    Raises
    ------
    CompileError
        The file system does not allow it, or has no room.
    """
    import tempfile

    try:
        with tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True) as directory:
            remove_stale(os.path.dirname(directory), PREFIX)
            yield directory
    except OSError as error:
        place = error.filename or tempfile.gettempdir()
        raise CompileError(f"compiling: {place}: {error.strerror or error}") from None


def remove_stale(parent: str, prefix: str) -> None:
    """Remove the user's folders of a prefix that are so old that a killed process left them."""
    import shutil

    with contextlib.suppress(OSError), os.scandir(parent) as listed:
        for entry in listed:
            if not entry.name.startswith(prefix):
                continue
            with contextlib.suppress(OSError):
                about = entry.stat(follow_symlinks=False)
                if about.st_uid == os.geteuid() and time.time() - about.st_mtime > STALE_S:
                    shutil.rmtree(entry.path, ignore_errors=True)
