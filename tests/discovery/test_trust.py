# SPDX-License-Identifier: Apache-2.0
"""Who may write a plugin, and the allow-list of digests."""

import hashlib
import os
import shutil
from pathlib import Path

import cuplug
import pytest
from processes import NEEDS_ROOT
from raw_plugins import assert_refused, listed, named_plugin

pytestmark = pytest.mark.usefixtures("place")


# ---- Who may write -----------------------------------------------------------------------------


def test_world_writable_file(place, monkeypatch, good_file):
    path = Path(shutil.copy(good_file, place / "libraw.so"))
    path.chmod(0o757)
    reason = (
        "anyone may write it (mode 757): take that right away with chmod o-w, or "
        "set CUPLUG_ALLOW_UNSAFE=1"
    )
    assert_refused(path, reason)
    assert listed(path).name == "raw"
    monkeypatch.setenv("CUPLUG_ALLOW_UNSAFE", "yes")
    assert listed(path).reason == reason
    monkeypatch.setenv("CUPLUG_ALLOW_UNSAFE", "1")
    assert listed(path).state == "ok"


def test_group_writable_file(place, good_file):
    path = Path(shutil.copy(good_file, place / "libraw.so"))
    path.chmod(0o775)
    assert listed(path).state == "ok"


def test_world_writable_directory(place, good_file):
    shutil.copy(good_file, place / "libraw.so")
    place.chmod(0o777)
    (record,) = (d for d in cuplug.search_path() if d.path == str(place))
    assert record.state == "rejected"
    assert record.reason.startswith("anyone may write it (mode 777)")
    assert not [r for r in cuplug.plugins() if Path(r.path).parent == place]


@NEEDS_ROOT
def test_other_owner(place, good_file):
    path = shutil.copy(good_file, place / "libraw.so")
    os.chown(path, 12345, 0)
    assert_refused(
        path, "owned by user 12345, root or user 0 is wanted; CUPLUG_ALLOW_UNSAFE=1 allows it"
    )
    os.chown(place, 12345, 0)
    (record,) = (d for d in cuplug.search_path() if d.path == str(place))
    assert record.state == "rejected"


# ---- The allow-list ----------------------------------------------------------------------------


def test_allow_list(tmp_path, place, monkeypatch):
    path = named_plugin(place / "libpinned.so", "pinned")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    allowed = tmp_path / "allowed"
    allowed.write_text("# nothing\n\n" + "0" * 64 + "  x\n")
    monkeypatch.setenv("CUPLUG_ALLOW_LIST", str(allowed))
    assert_refused(path, f"not on the allow-list of CUPLUG_ALLOW_LIST: its SHA-256 is {digest}")
    allowed.write_text(f"{'0' * 64}  x\r\n{digest.upper()}  libpinned.so")
    assert listed(path).state == "ok"
    assert cuplug.load(str(path)).name == "pinned"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("not a digest\n", "line 1: no SHA-256 digest of 64 hexadecimal digits"),
        ("0" * 64 + "\n" + "0" * 65, "line 2: no SHA-256 digest of 64 hexadecimal digits"),
        (None, "cannot be opened: No such file or directory"),
    ],
)
def test_allow_list_of_no_use(tmp_path, place, monkeypatch, good_file, content, reason):
    path = shutil.copy(good_file, place / "libraw.so")
    allowed = tmp_path / "allowed"
    if content is not None:
        allowed.write_text(content)
    monkeypatch.setenv("CUPLUG_ALLOW_LIST", str(allowed))
    assert_refused(path, f"not accepted, as CUPLUG_ALLOW_LIST is of no use: {allowed}: {reason}")


def test_relative_allow_list(place, monkeypatch, good_file):
    path = shutil.copy(good_file, place / "libraw.so")
    monkeypatch.setenv("CUPLUG_ALLOW_LIST", "allowed")
    assert listed(path).reason.endswith("of no use: allowed: relative path")
