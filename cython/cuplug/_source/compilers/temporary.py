# SPDX-License-Identifier: Apache-2.0
"""Temporary folders: their places, their creation, and their removal after a crash.

cuplug recognizes its own folders by the name and by a marker file inside, which repeats the name
and gives the inode of the folder and the host. While the folder is in use, its process holds a lock
on the marker. The system releases the lock when the process ends, so clocks and process numbers do
not matter. If no marker exists (on a file system without locks), only the process itself removes
the folder. Other hosts never do, because a network file system may not show them the lock. Folders
are checked and emptied through descriptors, and links are not followed.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import stat
from collections.abc import Iterable, Iterator

from cuplug._engine.discovery.fields import check_owner
from cuplug.errors import CompileError, NotFoundError, PluginError

SYSTEM_PLACES = ("/tmp", "/var/tmp", "/dev/shm")
PREFIX = ".cuplug-temporary-"
MARKER = "cuplug-temporary-folder"
_NAME = re.compile(re.escape(PREFIX) + r"[0-9a-f]{32}")
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_MARKER = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK  # NFS locks only files open for writing
_MARKER_BYTES = 200  # larger than any marker


@contextlib.contextmanager
def folder(parent: str) -> Iterator[str]:
    """Create a folder in `parent`, and remove it with its contents at the end.

    Raises
    ------
    OSError
        The folder cannot be created.
    """
    name = PREFIX + os.urandom(16).hex()
    with _opened(parent, os.O_PATH | os.O_DIRECTORY) as above:
        os.mkdir(name, 0o700, dir_fd=above)
        try:
            with _opened(name, _FOLDER, above) as own:
                _check_new(own)
                yield from _use(name, own, os.path.join(parent, name))
        finally:
            with contextlib.suppress(OSError):  # remains if it cannot be removed
                os.rmdir(name, dir_fd=above)


@contextlib.contextmanager
def private_folder(parents: Iterable[str]) -> Iterator[str]:
    """Create a folder as `folder` does, in the first of `parents` where nobody can replace it.

    Only root and this user may write the parents of the folder, unless the sticky bit protects it.

    Raises
    ------
    CompileError
        No parent is usable. The message names each with the reason.
    """
    reasons = []
    for parent in parents:
        with contextlib.ExitStack() as stack:
            path, reason = _enter(stack, parent)
            if path:
                yield path
                return
            reasons.append(f"\n  {parent}: {reason}")
    raise CompileError(
        "compile: no folder for temporary files is usable; set TMPDIR to a folder that only you "
        f"can write{''.join(reasons)}"
    )


def sweep(parent: str) -> None:
    """Remove this user's temporary folders that killed processes left in `parent`."""
    with contextlib.suppress(OSError), _opened(parent, os.O_RDONLY | os.O_DIRECTORY) as above:
        for name in os.listdir(above):
            if _NAME.fullmatch(name):
                with contextlib.suppress(OSError):
                    _remove_left(name, above)


def _enter(stack: contextlib.ExitStack, parent: str) -> tuple[str, str]:
    """Create a folder in `parent`; return its path, or "" and the reason why it is not usable."""
    try:
        path = stack.enter_context(folder(parent))
        check_owner(path)
    except OSError as error:
        return "", error.strerror or str(error)
    except (NotFoundError, PluginError) as error:
        return (path, "") if _is_of_system(parent) else ("", str(error))
    return path, ""


def _is_of_system(parent: str) -> bool:
    """Return whether root's folder appears as another user's.

    In a user namespace, such as in rootless containers, files of users without a number there
    appear as files of the overflow user.
    """
    from pathlib import Path  # takes longer to import than this whole module

    try:
        numbers = Path("/proc/self/uid_map").read_text().split()
        overflow = int(Path("/proc/sys/kernel/overflowuid").read_text())
        above = [os.lstat(path) for path in (parent, *map(str, Path(parent).parents))]
    except OSError:
        return False
    return (
        parent in SYSTEM_PLACES
        and numbers != ["0", "0", str(2**32 - 1)]
        and all(stat.S_ISDIR(x.st_mode) for x in above)
        and all(x.st_uid in (0, os.geteuid(), overflow) for x in above)
        and all(x.st_mode & stat.S_ISVTX or not x.st_mode & 0o022 for x in above)
    )


@contextlib.contextmanager
def _opened(path: str, flags: int, above: int | None = None) -> Iterator[int]:
    descriptor = os.open(path, flags | os.O_CLOEXEC, 0o600, dir_fd=above)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _check_new(own: int) -> None:
    """Raise OSError if the folder is not the one just created."""
    about = os.fstat(own)
    if about.st_uid != os.geteuid() or about.st_mode & 0o077 or os.listdir(own):
        raise PermissionError(1, "another process replaced the new folder")


def _use(name: str, own: int, path: str) -> Iterator[str]:
    """Yield the path of a new folder, and empty it while the marker is still locked."""
    process = os.getpid()
    with contextlib.ExitStack() as stack:
        try:
            _mark(name, own, stack)
            yield path
        finally:
            if os.getpid() == process:  # a fork leaves the folder to its parent
                _empty(own)


def _text(name: str, own: int) -> bytes:
    about = f"{name}\n{os.fstat(own).st_ino}\n{os.uname().nodename}\n"
    return f"cuplug temporary folder 1\n{about}".encode(errors="surrogateescape")


def _mark(name: str, own: int, stack: contextlib.ExitStack) -> None:
    """Put the marker into a folder, locked before it has its name."""
    unfinished = f"{MARKER}.new"
    marker = stack.enter_context(_opened(unfinished, _MARKER | os.O_CREAT | os.O_EXCL, own))
    os.write(marker, _text(name, own))
    try:
        fcntl.flock(marker, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.unlink(unfinished, dir_fd=own)
    else:
        os.rename(unfinished, MARKER, src_dir_fd=own, dst_dir_fd=own)


def _remove_left(name: str, above: int) -> None:
    """Remove a folder if cuplug created it for this user and no process uses it."""
    with _opened(name, _FOLDER, above) as own, _opened(MARKER, _MARKER, own) as marker:
        fcntl.flock(marker, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not _is_own(name, own, marker):
            return
        _empty(own)
    os.rmdir(name, dir_fd=above)  # now: NFS keeps removed files until they are closed


def _is_own(name: str, own: int, marker: int) -> bool:
    seen, held = os.stat(MARKER, dir_fd=own, follow_symlinks=False), os.fstat(marker)
    private = all(x.st_uid == os.geteuid() and not x.st_mode & 0o077 for x in (os.fstat(own), held))
    return (
        private
        and stat.S_ISREG(held.st_mode)
        and os.path.samestat(seen, held)
        and os.read(marker, _MARKER_BYTES) == _text(name, own)
    )


def _empty(own: int) -> None:
    """Remove the contents of a folder, the marker last, so that another process can resume."""
    _remove_all(own, but=MARKER)
    with contextlib.suppress(OSError):
        if os.listdir(own) == [MARKER]:
            os.unlink(MARKER, dir_fd=own)


def _remove_all(own: int, but: str = "") -> None:
    for name in os.listdir(own):
        with contextlib.suppress(OSError):
            if name == but:
                continue
            if not stat.S_ISDIR(os.stat(name, dir_fd=own, follow_symlinks=False).st_mode):
                os.unlink(name, dir_fd=own)
                continue
            with _opened(name, _FOLDER, own) as below:
                _remove_all(below)
            os.rmdir(name, dir_fd=own)
