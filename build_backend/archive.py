# SPDX-License-Identifier: Apache-2.0
"""Archives of the same files have the same bytes, whoever packs them, wherever and whenever."""

import base64
import gzip
import hashlib
import os
import re
import tarfile
import time
import zipfile
from collections import Counter
from io import BytesIO
from pathlib import Path

# The first pattern that is found in a path determines its part of a wheel.
PARTS = {
    "core": r"/lib/libcuplug\.so",
    "runtime": r"/lib/libcuplug_runtime",
    "stock plugins": r"/lib/cuplug/",
    "modules": r"\.so$",
    "headers": r"/include/",
    "metadata": r"\.dist-info/",
    "Python": "",
}


def epoch() -> int:
    """Return the time of all files, SOURCE_DATE_EPOCH or the first that a zip archive can hold."""
    return int(os.environ.get("SOURCE_DATE_EPOCH", "315532800"))


def sizes(wheel: Path) -> str:
    """Return the size of each part in the archive, in words."""
    compressed: Counter[str] = Counter()
    with zipfile.ZipFile(wheel) as archive:
        for info in archive.infolist():
            part = next(name for name, text in PARTS.items() if re.search(text, info.filename))
            compressed[part] += info.compress_size
    return ", ".join(f"{part} {compressed[part] / 1e6:.2f}" for part in PARTS)


def add_to_wheel(wheel: Path, files: dict[str, bytes]) -> None:
    """Add files, given by their names in the folder of metadata, and list them in RECORD."""
    with zipfile.ZipFile(wheel) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
        modes = {info.filename: info.external_attr for info in archive.infolist()}
    record = next(name for name in members if name.endswith(".dist-info/RECORD"))
    lines = members.pop(record)
    for name, data in files.items():
        path = record.replace("RECORD", name)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
        lines += f"{path},sha256={digest},{len(data)}\n".encode()
        members[path] = data
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in [*members.items(), (record, lines)]:
            info = zipfile.ZipInfo(path, time.gmtime(epoch())[:6])
            info.external_attr = modes.get(path, 0o100644 << 16)
            archive.writestr(info, data, zipfile.ZIP_DEFLATED)


def settle_sdist(path: Path) -> None:
    """Rewrite a .tar.gz in order, with one time for all and no owners."""
    packed = BytesIO()
    with (
        tarfile.open(path) as old,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as new,
    ):
        for member in sorted(old.getmembers(), key=lambda member: member.name):
            member.mtime, member.uid, member.gid, member.uname, member.gname = epoch(), 0, 0, "", ""
            member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            member.pax_headers = {}
            new.addfile(member, old.extractfile(member) if member.isfile() else None)
    path.write_bytes(gzip.compress(packed.getvalue(), mtime=epoch()))
