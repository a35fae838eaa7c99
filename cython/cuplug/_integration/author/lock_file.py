# SPDX-License-Identifier: Apache-2.0
"""Digests of plugins and their libraries: written by `cuplug lock`, compared later.

The file has the format of sha256sum, and can be used as CUPLUG_ALLOW_LIST. ssh-keygen signs and
verifies it, so no private key is read here.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from cuplug._engine.adoption.description import SUFFIX
from cuplug._engine.base import environment
from cuplug._engine.lookup.records import PluginFile
from cuplug._engine.modules.runtime import LIBRARY, find_runtime
from cuplug._integration.author.elf import ElfError, linked, open_regular, read_library
from cuplug.errors import NotFoundError, PluginError

__all__ = ["Compared", "compare", "read_lock", "sign", "write_lock"]

SIGNATURE = ".sig"  # after the name of the lock, as ssh-keygen writes it
PURPOSE = "cuplug-lock"  # signatures for other purposes are not valid for a lock
MAX_BYTES = 16 << 20  # as for CUPLUG_ALLOW_LIST
LINE = re.compile(r"([0-9a-f]{64}) [ *](.+)")
SAME, CHANGED, MISSING = "same", "changed", "missing"


@dataclass
class Compared:
    """One file of a lock, and the file that is now found by its name."""

    file: str
    state: str  # "same", "changed" or "missing"
    path: str = ""  # of the found file

    def as_dict(self) -> dict[str, str]:
        """Return the file for JSON."""
        return asdict(self)


def write_lock(path: str, plugins: Iterable[PluginFile], version: str) -> list[str]:
    """Write the digests of plugins and of the libraries that they link; return the files.

    Raises
    ------
    PluginError
        A linked library is not found, or cannot be read.
    """
    lines = [f"# Written by cuplug lock {version}; CUPLUG_ALLOW_LIST takes this file."]
    listed: dict[str, list[str]] = {}  # library -> the plugins that need it
    files = []
    for plugin in plugins:
        lines.append(f"# {plugin.name} {plugin.version}: {', '.join(plugin.operators)}".rstrip())
        for file in _own_files(plugin):
            lines.append(f"{_digest(file)}  {file}")
            files.append(file)
        for file in _linked_files(plugin.path):
            listed.setdefault(file, []).append(plugin.name)
    for file, names in sorted(listed.items()):
        lines += [f"# linked by {', '.join(names)}", f"{_digest(file)}  {file}"]
    with open(path, "w", encoding="utf-8") as stream:
        stream.write("\n".join(lines) + "\n")
    with contextlib.suppress(FileNotFoundError):  # of an earlier lock
        os.unlink(path + SIGNATURE)
    return [*files, *sorted(listed)]


def sign(path: str, key: str) -> str:
    """Sign a lock with a private key, or with the agent's key for a public one.

    Returns
    -------
    str
        The file of the signature.

    Raises
    ------
    PluginError
        ssh-keygen, whose messages and questions are on standard error, did not sign.
    """
    # The path is absolute because it may begin with "-".
    _ssh_keygen("sign", "-q", "-n", PURPOSE, "-f", key, os.path.abspath(path))
    if not os.path.exists(path + SIGNATURE):
        raise PluginError(f"{path}: ssh-keygen did not sign it with {key}; see its message above")
    return path + SIGNATURE


def _verify(path: str, data: bytes, signers: str) -> str:
    """Return the signer of a lock, by the name that a file of allowed signers has for the key."""
    signature = path + SIGNATURE
    if not os.path.isfile(signers):
        raise NotFoundError(f"{signers}: no such file, expected names and public keys of signers")
    if not os.path.isfile(signature):
        raise PluginError(
            f"{path}: got no signature {signature}, expected one of {signers}; sign the lock with "
            "`cuplug lock --sign KEY`"
        )
    files = ("-f", signers, "-s", signature)
    names, said = _ssh_keygen("find-principals", *files, given=b"")
    if not names:
        raise PluginError(
            f"{path}: got a signature whose key is not valid, expected a key of {signers} ({said})"
        )
    for name in names.splitlines():
        verdict, said = _ssh_keygen("verify", "-n", PURPOSE, "-I", name, *files, given=data)
        # The exit status is lost if SIGCHLD is ignored.
        if verdict.startswith(f'Good "{PURPOSE}" signature for '):
            return name
    raise PluginError(
        f"{path}: got a lock that differs from the signed one, or a signature for another purpose "
        f"({said}); restore the lock, or sign it again with `cuplug lock --sign KEY`"
    )


def _ssh_keygen(verb: str, *arguments: str, given: bytes | None = None) -> tuple[str, str]:
    """Return the output and the messages; without input, ssh-keygen uses the terminal."""
    import subprocess

    try:
        done = subprocess.run(
            ["ssh-keygen", "-Y", verb, *arguments],
            input=given,
            stdout=subprocess.PIPE,
            stderr=None if given is None else subprocess.PIPE,
            env=environment.for_programs({}),
            check=False,
        )
    except OSError as error:
        reason = f"ssh-keygen: {error.strerror}; install OpenSSH 8.2 or newer"
        raise PluginError(f"{reason} (sudo apt install openssh-client)") from None
    output, messages = done.stdout, done.stderr or b""
    return output.decode(errors="replace"), messages.decode(errors="replace").strip()


def read_lock(path: str, signers: str | None = None) -> tuple[dict[str, str], str | None]:
    """Return the digests in a lock, by file name, and its signer.

    Raises
    ------
    NotFoundError, PluginError
        The file does not exist or is not a lock, or no allowed signer has signed it.
    """
    try:
        with open_regular(path) as stream:
            data = stream.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise PluginError(f"{path}: got more than 16 MiB, expected a lock")
        signer = None if signers is None else _verify(path, data, signers)
        lines = data.decode().split("\n")
    except FileNotFoundError:
        raise NotFoundError(f"{path}: no such file: `cuplug lock` writes it") from None
    except (OSError, ElfError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise PluginError(f"{path}: {reason}") from None
    except UnicodeDecodeError:
        raise PluginError(f"{path}: got bytes that are no text, expected a lock") from None
    digests = {}
    for number, line in enumerate(lines, 1):
        match = LINE.fullmatch(line)
        if match:
            digests[os.path.basename(match[2])] = match[1]
        elif line.strip() and not line.startswith("#"):
            raise PluginError(f"{path}: line {number}: got {line!r}, expected a digest and a file")
    return digests, signer


def compare(digests: dict[str, str], plugins: Iterable[PluginFile]) -> list[Compared]:
    """Compare a lock with the plugins that are used now. Plugins that it lacks are skipped."""
    found: dict[str, str] = {}
    for plugin in plugins:
        if os.path.basename(plugin.path) in digests:
            for file in (*_own_files(plugin), *_linked_files(plugin.path)):
                found.setdefault(os.path.basename(file), file)
    compared = []
    for name, digest in digests.items():
        path = found.pop(name, "")
        state = MISSING if not path else SAME if _digest(path) == digest else CHANGED
        compared.append(Compared(name, state, path))
    # Libraries that are linked now and were not linked then.
    return [*compared, *(Compared(name, CHANGED, path) for name, path in found.items())]


def _own_files(plugin: PluginFile) -> list[str]:
    """Return a plugin's file, and the description next to a library that is not a plugin."""
    beside = plugin.path.removesuffix(".so") + SUFFIX
    has_one = plugin.kind == "adopted" or (plugin.kind == "module" and os.path.lexists(beside))
    return [plugin.path, *([beside] if has_one else [])]


def _linked_files(path: str) -> list[str]:
    try:
        found, missing = linked(read_library(path, whole=False), whole=False)
    except (OSError, ElfError) as error:
        raise PluginError(f"{path}: {error}") from None
    runtime = find_runtime() if LIBRARY in missing else ""  # in the package of tvm-ffi
    if lacking := [x for x in missing if x != LIBRARY or not os.path.isabs(runtime)]:
        raise PluginError(f"{path}: missing libraries: {', '.join(lacking)}; install them")
    return [library.path for library in found] + [runtime] * bool(runtime)


def _digest(path: str) -> str:
    with open_regular(path) as file:
        digest = hashlib.sha256()
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
