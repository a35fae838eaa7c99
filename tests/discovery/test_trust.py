# SPDX-License-Identifier: Apache-2.0
"""The allow-list of digests of files that may run."""

import hashlib
import os
import shutil
import struct
from pathlib import Path

import cuplug
import numpy
import pytest
from processes import NEEDS_ROOT
from raw_plugins import assert_refused, compile_fixture, listed, named_plugin, quoted

pytestmark = pytest.mark.usefixtures("place")


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
        ("not a digest\n", "line 1: got no SHA-256 digest, expected 64 hexadecimal digits"),
        (
            "0" * 64 + "\n" + "0" * 65,
            "line 2: got no SHA-256 digest, expected 64 hexadecimal digits",
        ),
        (None, "cannot be opened: No such file or directory"),
    ],
)
def test_allow_list_of_no_use(tmp_path, place, monkeypatch, good_file, content, reason):
    path = shutil.copy(good_file, place / "libraw.so")
    allowed = tmp_path / "allowed"
    if content is not None:
        allowed.write_text(content)
    monkeypatch.setenv("CUPLUG_ALLOW_LIST", str(allowed))
    assert_refused(
        path, f"not accepted, because CUPLUG_ALLOW_LIST cannot be used: {allowed}: {reason}"
    )


def test_relative_allow_list(place, monkeypatch, good_file):
    path = shutil.copy(good_file, place / "libraw.so")
    monkeypatch.setenv("CUPLUG_ALLOW_LIST", "allowed")
    assert listed(path).reason.endswith("cannot be used: allowed: relative path")


# ---- Files that are checked against the list ---------------------------------------------------


@pytest.fixture
def allow(tmp_path, monkeypatch):
    """Return a function that adds files to the list, which is then enabled."""

    def allow(*files):
        digests = [hashlib.sha256(Path(file).read_bytes()).hexdigest() for file in files]
        (tmp_path / "allowed").write_text("".join(f"{digest}\n" for digest in digests))
        monkeypatch.setenv("CUPLUG_ALLOW_LIST", str(tmp_path / "allowed"))

    return allow


def test_what_is_loaded_is_what_is_held_against_the_list(place, allow):
    """Another content of the same size and time, written in place."""
    path = named_plugin(place / "libswap.so", "swap")
    allow(path)
    operator = cuplug.find("swap")
    before = path.stat()
    content = path.read_bytes()
    with open(path, "r+b") as file:
        file.write(content[:-1] + bytes([content[-1] ^ 1]))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(cuplug.PluginError, match=r"libswap\.so: not on the allow-list"):
        operator(numpy.zeros(3, numpy.float32))
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert operator(numpy.zeros(3, numpy.float32)).shape == (3,)


@pytest.mark.parametrize("flag", ["-rpath,$ORIGIN", "-rpath,/opt", "--disable-new-dtags,-rpath,/"])
def test_places_of_dependencies_are_not_covered(place, allow, flag):
    path = named_plugin(place / "libplaces.so", "places", f"-Wl,{flag}")
    assert listed(path).state == "ok"
    allow(path)
    assert_refused(
        path,
        "searches for libraries in its own directories (RPATH, RUNPATH or a path), which "
        "CUPLUG_ALLOW_LIST does not cover; link it without -rpath",
    )


def test_a_dependency_by_its_path_is_not_covered(place, allow):
    needed = compile_fixture("no_table.c", place / "libneeded.so.1")
    path = named_plugin(place / "libby_path.so", "by_path", "-Wl,--no-as-needed", needed)
    allow(path, needed)
    assert listed(path).reason.startswith("searches for libraries in its own directories")


def test_dependencies_whose_names_cannot_be_read_are_not_covered(place, allow):
    """The dynamic section has the address of a string table that the file lacks."""
    path = named_plugin(place / "libtexts.so", "texts", "-Wl,--no-as-needed")
    allow(path)
    assert listed(path).state == "ok"
    image = bytearray(path.read_bytes())
    (headers,), (n,) = struct.unpack_from("<Q", image, 32), struct.unpack_from("<H", image, 56)
    types = {
        struct.unpack_from("<I", image, headers + 56 * k)[0]: headers + 56 * k for k in range(n)
    }
    (at,) = struct.unpack_from("<Q", image, types[2] + 8)  # PT_DYNAMIC
    while struct.unpack_from("<Q", image, at)[0] != 5:  # DT_STRTAB
        at += 16
    struct.pack_into("<Q", image, at + 8, 1 << 60)
    path.write_bytes(image)
    allow(path)
    assert listed(path).reason.startswith("searches for libraries in its own directories")


def test_huge_files_are_not_hashed(place, allow, good_file):
    good = shutil.copy(good_file, place / "libraw.so")
    allow(good)
    other = Path(shutil.copy(good_file, place / "libother.so"))
    os.truncate(other, 1 << 40)
    assert listed(other).reason.startswith('it holds the plugin "raw"')
    os.truncate(good, 1 << 40)
    reason = f"got {1 << 40} bytes, expected at most 1 GiB with CUPLUG_ALLOW_LIST"
    assert listed(good).reason == reason


def test_a_file_that_is_not_on_the_list_shadows_nothing(tmp_path, place, monkeypatch, allow):
    later = tmp_path / "later"
    later.mkdir()
    monkeypatch.setenv("LD_LIBRARY_CUPLUG_PATH", f"{place}:{later}")
    named_plugin(place / "libstand.so", "stand", VERSION=quoted("1.1"))
    path = named_plugin(later / "libstand.so", "stand")
    allow(path)
    assert listed(path).state == "ok"
    assert cuplug.find("stand").path == str(path)


@NEEDS_ROOT
def test_a_list_that_others_may_write(tmp_path, place, allow, good_file):
    path = shutil.copy(good_file, place / "libraw.so")
    allow(path)
    os.chown(tmp_path / "allowed", 12345, -1)
    assert listed(path).reason.startswith(
        "not accepted, because CUPLUG_ALLOW_LIST cannot be used: "
    )
    assert "owned by user 12345" in listed(path).reason
