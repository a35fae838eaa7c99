# SPDX-License-Identifier: Apache-2.0
"""The places of temporary folders: only where no other user can replace them."""

import os
import tempfile
from pathlib import Path

import cuplug
import pytest
from cuplug._source.compilers import processes, temporary
from processes import NEEDS_ROOT, NOBODY, enter_user_namespace, in_child


@pytest.fixture
def public():
    """Return a folder that all users can reach, unlike tmp_path."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


@pytest.mark.parametrize("mode", [0o777, 0o775])
@pytest.mark.parametrize("depth", [0, 1])
def test_a_folder_that_others_can_replace_is_not_used(tmp_path, mode, depth):
    unsafe, safe = tmp_path / "unsafe" / "below", tmp_path / "safe"
    unsafe.mkdir(parents=True, mode=0o755)
    safe.mkdir()
    (unsafe, unsafe.parent)[depth].chmod(mode)
    with temporary.private_folder([str(unsafe), str(safe)]) as path:
        assert os.path.dirname(path) == str(safe)
    (unsafe, unsafe.parent)[depth].chmod(0o1777)
    with temporary.private_folder([str(unsafe), str(safe)]) as path:
        assert os.path.dirname(path) == str(unsafe)


@NEEDS_ROOT
@pytest.mark.parametrize("owner", [1234, 0, NOBODY])
def test_whose_folders_an_ordinary_user_uses(public, owner):
    folder = public / "folder"
    folder.mkdir()
    folder.chmod(0o1777)
    os.chown(folder, owner, owner)

    def work():
        with temporary.private_folder([str(folder)]) as path:
            assert os.stat(path).st_uid == NOBODY

    def refused():
        with pytest.raises(cuplug.CompileError, match="owned by user 1234"):
            work()

    in_child(refused if owner == 1234 else work, NOBODY)


@NEEDS_ROOT
def test_a_user_namespace_without_root(public):
    """Its /tmp is used, and no folder whose owner may be another user."""
    os.chown(public, 1234, 1234)
    public.chmod(0o1777)

    def work():
        enter_user_namespace(4321)
        with temporary.private_folder(["/tmp"]) as path:
            assert os.path.dirname(path) == "/tmp"
        with pytest.raises(cuplug.CompileError), temporary.private_folder([str(public)]):
            pass

    in_child(work, 4321)


def test_places_of_the_system_in_the_first_namespace(monkeypatch):
    def refuse(path):
        raise cuplug.PluginError("owned by user 65534")

    if Path("/proc/self/uid_map").read_text().split() != ["0", "0", str(2**32 - 1)]:
        pytest.skip("runs in a user namespace")
    monkeypatch.setattr(temporary, "check_owner", refuse)
    with pytest.raises(cuplug.CompileError, match="65534"), temporary.private_folder(["/tmp"]):
        pass


def test_no_place_is_usable(tmp_path):
    (tmp_path / "file").touch()
    places = [str(tmp_path / "none"), str(tmp_path / "file")]
    with pytest.raises(cuplug.CompileError) as raised, temporary.private_folder(places):
        pass
    assert str(raised.value) == (
        "compile: no folder for temporary files is usable; set TMPDIR to a folder that only you "
        f"can write\n  {places[0]}: No such file or directory\n  {places[1]}: Not a directory"
    )


def places(monkeypatch, **variables):
    for name in ("TMPDIR", "TEMP", "TMP", "XDG_RUNTIME_DIR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, str(value))
    return list(processes.temporary_places())


def test_the_places(tmp_path, monkeypatch):
    usual, cache = ["/tmp", "/var/tmp", "/dev/shm"], str(tmp_path / "cache")
    monkeypatch.setenv("CUPLUG_CACHE_DIR", cache)
    assert places(monkeypatch) == [*usual, cache]
    assert places(monkeypatch, TMPDIR="/a", TMP="/b") == ["/a", "/b", *usual, cache]
    assert places(monkeypatch, XDG_RUNTIME_DIR="/run/1") == [*usual, "/run/1", cache]
    assert places(monkeypatch, TMPDIR="relative") == [*usual, cache]
    monkeypatch.setenv("CUPLUG_CACHE_DIR", "/proc/none")
    assert places(monkeypatch, TMPDIR="/tmp") == usual


def test_a_process_without_a_place(run_python):
    """Plugins work. Code that must be compiled raises one error, without its causes."""
    done = run_python("""
import cuplug, numpy as np
from cuplug._source.compilers import processes
processes.temporary_places = lambda: iter(["/proc/none"])
x = np.float32([-1, 2])
assert cuplug.find("relu")(x).tolist() == [0, 2]
assert cuplug.plugins()
cuplug.elementwise("f(x: T) -> T", "x * 3 + 1", doc="Without a place.")(x)
""")
    assert done.returncode == 1
    assert done.stderr.count("Traceback") == 1
    assert done.stderr.splitlines()[-2:] == [
        "cuplug.CompileError: compile: no folder for temporary files is usable; set TMPDIR to a "
        "folder that only you can write",
        "  /proc/none: No such file or directory",
    ]
