# SPDX-License-Identifier: Apache-2.0
"""Compilers as processes, with limits for time and output, each in its own folder."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from typing import NamedTuple

from cuplug._engine.base import environment
from cuplug._source.compilers import cache, temporary
from cuplug.errors import CompileError

LIMIT_S = 120.0  # per run
MOST_BYTES = 1 << 20  # output that is kept


class Run(NamedTuple):
    """The status of a run, and the beginning of its combined output and errors."""

    returncode: int
    output: str
    succeeded: bool = False
    timed_out: bool = False


def run(
    command: list[str], directory: str, start: str | None = None, made: str | None = None
) -> Run:
    """Run a command, with messages in English and its temporary files in a directory.

    If it takes too long, it and the processes that it started are ended. It starts in `start`, or
    in the directory. A command that does not write the file `made` has failed, whatever its status
    is: if SIGCHLD is ignored, the status is lost.

    Raises
    ------
    CompileError
        The command cannot be started.
    """
    import signal  # imported here, since most code comes from the cache
    import subprocess

    if made is not None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(made)
    plain = {"LC_ALL": "C.UTF-8", "LANGUAGE": "C", "TMPDIR": directory}
    try:
        process = subprocess.Popen(
            command,
            cwd=start or directory,
            env=environment.for_programs(plain),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        if error.errno is None:  # a signal handler raised it
            raise
        other = "" if error.filename in (None, command[0]) else f"{error.filename}: "  # /dev/null
        said = f"{command[0]}: it cannot be started: {other}{error.strerror}"
        raise CompileError(said) from None
    end = time.monotonic() + LIMIT_S
    with process:
        assert process.stdout is not None
        try:
            output = _read(process.stdout.fileno(), command, end)
            process.wait(max(0, end - time.monotonic()))
        except BaseException as error:
            # not yet waited for, so its number is not reused
            os.killpg(process.pid, signal.SIGKILL)
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            return Run(-1, f"{command[0]}: got no end after {LIMIT_S:g} s", timed_out=True)
    succeeded = not process.returncode and (made is None or os.path.isfile(made))
    return Run(process.returncode, output.decode(errors="replace"), succeeded)


def _read(pipe: int, command: list[str], end: float) -> bytes:
    """Read a pipe until it is closed; return the beginning of the data."""
    import select
    import subprocess

    kept = bytearray()
    while (left := end - time.monotonic()) > 0 and select.select([pipe], [], [], left)[0]:
        part = os.read(pipe, 1 << 16)
        if not part:
            return bytes(kept)
        kept += part[: MOST_BYTES - len(kept)]
    raise subprocess.TimeoutExpired(command, LIMIT_S)


@contextlib.contextmanager
def working_directory() -> Iterator[str]:
    """Create a temporary folder that only this user can access; remove it at the end.

    Raises
    ------
    CompileError
        No folder is usable, or the disk is full.
    """
    with temporary.private_folder(temporary_places()) as directory:
        temporary.sweep(os.path.dirname(directory))
        try:
            yield directory
        except OSError as error:
            if error.errno is None:  # a signal handler raised it
                raise
            place = error.filename or directory
            raise CompileError(f"compiling: {place}: {error.strerror}") from None


def temporary_places() -> Iterator[str]:
    """Yield the folders that may hold temporary files, preferred first."""
    named = [environment.variable(name) for name in ("TMPDIR", "TEMP", "TMP")]
    session = environment.variable("XDG_RUNTIME_DIR")
    listed = (*named, *temporary.SYSTEM_PLACES, session)
    yield from dict.fromkeys(place for place in listed if os.path.isabs(place))
    if cache.make_directory():
        yield cache.directory()
