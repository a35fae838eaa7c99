# SPDX-License-Identifier: Apache-2.0
"""Temporary folders: cuplug removes only its files, and only if others cannot replace them."""

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import cuplug
import numpy as np
import pytest
from cuplug._source.compilers import processes, temporary
from processes import NEEDS_ROOT, NOBODY, in_child

HOLDS = """
import sys, time
from cuplug._source.compilers import temporary
with temporary.folder(sys.argv[1]) as folder:
    print(folder, flush=True)
    time.sleep(600)
"""


def holder(parent):
    """Start a process that uses a folder of `parent`; return both."""
    command = [sys.executable, "-c", HOLDS, str(parent)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    return process, Path(process.stdout.readline().strip())


def kill(process):
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()


def killed(parent):
    """Return the folder of `parent` that a killed process used."""
    child = os.fork()
    if not child:
        context = temporary.folder(str(parent))
        context.__enter__()
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    return max(parent.glob(f"{temporary.PREFIX}*"), key=lambda path: path.stat().st_ctime_ns)


@pytest.fixture
def left(tmp_path):
    """Return a folder that a killed process left in tmp_path, with files, folders and links."""
    folder = killed(tmp_path)
    (folder / "source.c").write_text("text")
    (folder / "below" / "deeper").mkdir(parents=True)
    (folder / "below" / "deeper" / "file").write_text("text")
    return folder


@pytest.fixture
def thesis(tmp_path):
    """Return a user's file, in a separate folder."""
    path = tmp_path / "precious" / "thesis.txt"
    path.parent.mkdir(mode=0o700)
    path.write_text("precious")
    return path


@pytest.fixture
def public():
    """Return a folder that all users can reach, unlike tmp_path."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


def test_a_folder_and_its_end(tmp_path, thesis):
    with temporary.folder(str(tmp_path)) as path:
        assert os.stat(path).st_mode & 0o777 == 0o700
        Path(path, "below").mkdir()
        Path(path, "below", "file").write_text("text")
        Path(path, "link").symlink_to(thesis.parent)
        with temporary.folder(str(tmp_path)) as other:
            assert other != path
        assert os.path.exists(path)
    assert os.listdir(tmp_path) == ["precious"]
    assert thesis.read_text() == "precious"
    with pytest.raises(OSError, match="No such file"), temporary.folder(str(tmp_path / "none")):
        pass


def test_an_error_inside_is_passed_on(tmp_path):
    with pytest.raises(OSError, match="mine"), temporary.folder(str(tmp_path)):
        raise OSError("mine")
    with pytest.raises(OSError, match="mine"), temporary.private_folder([str(tmp_path)]):
        raise OSError("mine")
    assert os.listdir(tmp_path) == []


def test_what_a_killed_process_left_is_removed(tmp_path, left, thesis):
    (left / "link").symlink_to(thesis.parent)
    (left / "below" / "link").symlink_to(thesis)
    temporary.sweep(str(tmp_path))
    assert os.listdir(tmp_path) == ["precious"]
    assert thesis.read_text() == "precious"


@pytest.mark.parametrize("time", [0, 2**33], ids=["past", "future"])
def test_what_is_in_use_stays_whatever_the_clocks_say(tmp_path, time):
    process, folder = holder(tmp_path)
    try:
        for path in (folder / temporary.MARKER, folder):
            os.utime(path, (time, time))
        temporary.sweep(str(tmp_path))
        assert folder.exists()
    finally:
        kill(process)
    temporary.sweep(str(tmp_path))
    assert not folder.exists()


NAME = temporary.PREFIX + "0" * 32
PLAIN_NAMES = ["cuplug-code-samples", ".cuplug-notes", ".cuplug-temporary-notes", NAME]


@pytest.mark.parametrize("name", PLAIN_NAMES)
@pytest.mark.parametrize("marker", [None, "", f"cuplug temporary folder 1\n{NAME}\n1\n"])
def test_folders_of_users_stay(tmp_path, name, marker):
    folder = tmp_path / name
    folder.mkdir(mode=0o700)
    (folder / "thesis.txt").write_text("precious")
    if marker is not None:
        (folder / temporary.MARKER).write_text(marker)
        (folder / temporary.MARKER).chmod(0o600)
    os.utime(folder, (0, 0))
    temporary.sweep(str(tmp_path))
    assert (folder / "thesis.txt").read_text() == "precious"


def copied(left):
    """Replace the folder by a copy, like a restored backup."""
    shutil.copytree(left, left.with_name("copy"), symlinks=True)
    shutil.rmtree(left)
    left.with_name("copy").rename(left)


def renamed(left):
    left.rename(left.with_name(NAME))


def linked(left):
    left.rename(left.with_name("elsewhere"))
    left.symlink_to(left.with_name("elsewhere"))


def marker_linked(left):
    marker = left / temporary.MARKER
    marker.rename(left.with_name("marker"))
    marker.symlink_to(left.with_name("marker"))


def marker_is_pipe(left):
    (left / temporary.MARKER).unlink()
    os.mkfifo(left / temporary.MARKER, 0o600)


def shared(left):
    left.chmod(0o755)


def marker_shared(left):
    (left / temporary.MARKER).chmod(0o644)


def given_away(left):
    os.chown(left, NOBODY, NOBODY)


def marker_given_away(left):
    os.chown(left / temporary.MARKER, NOBODY, NOBODY)


CHANGES = [copied, renamed, linked, marker_linked, marker_is_pipe, shared, marker_shared]
CHANGES += [pytest.param(x, marks=NEEDS_ROOT) for x in (given_away, marker_given_away)]


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_no_longer_as_it_was_created_stays(tmp_path, left, change):
    change(left)
    temporary.sweep(str(tmp_path))
    assert len(list(tmp_path.rglob("source.c"))) == 1


@NEEDS_ROOT
def test_another_user_removes_nothing(public):
    public.chmod(0o777)
    folder = killed(public)
    in_child(lambda: temporary.sweep(str(public)), NOBODY)
    assert os.listdir(folder) == [temporary.MARKER]
    given_away(folder)
    given_away(folder / temporary.MARKER)
    temporary.sweep(str(public))
    assert os.listdir(folder) == [temporary.MARKER]


def test_a_marker_that_changes_under_the_lock(tmp_path, left, monkeypatch):
    """Another process has removed the folder, and a user has created one of the same name."""
    lock = fcntl.flock

    def replaced(marker, kind):
        lock(marker, kind)
        (left / temporary.MARKER).rename(tmp_path / "old")
        (left / temporary.MARKER).write_text((tmp_path / "old").read_text())

    monkeypatch.setattr(fcntl, "flock", replaced)
    temporary.sweep(str(tmp_path))
    assert (left / "source.c").exists()


def test_a_new_folder_that_is_replaced_at_once(tmp_path, thesis, monkeypatch):
    make = os.mkdir

    def replaced_by(target):
        def mkdir(name, mode, dir_fd):
            make(name, mode, dir_fd=dir_fd)
            os.rmdir(name, dir_fd=dir_fd)
            target(name, dir_fd)

        return mkdir

    def link(name, above):
        os.symlink(thesis.parent, name, dir_fd=above)

    def move(name, above):
        os.rename(thesis.parent, name, dst_dir_fd=above)

    for target in (link, move):
        monkeypatch.setattr(os, "mkdir", replaced_by(target))
        with pytest.raises(OSError, match="Not a directory|another process"):
            temporary.folder(str(tmp_path)).__enter__()
        assert [x.read_text() for x in tmp_path.rglob("thesis.txt")] == ["precious"]


def test_a_folder_that_is_replaced_while_it_is_used(tmp_path, thesis):
    with temporary.folder(str(tmp_path)) as path:
        Path(path, "source.c").write_text("text")
        os.rename(path, tmp_path / "moved")
        os.rename(thesis.parent, path)
    assert [x.read_text() for x in tmp_path.rglob("thesis.txt")] == ["precious"]
    assert not list(tmp_path.rglob("source.c"))


def test_without_locks_nothing_but_the_process_removes_it(tmp_path, monkeypatch):
    def no_locks(marker, kind):
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    with temporary.folder(str(tmp_path)) as path:
        assert os.listdir(path) == []
        monkeypatch.undo()
        temporary.sweep(str(tmp_path))
        assert os.path.exists(path)
    assert os.listdir(tmp_path) == []


def test_a_fork_leaves_the_folder_to_its_parent(tmp_path):
    context = temporary.folder(str(tmp_path))
    path = context.__enter__()
    Path(path, "source.c").write_text("text")
    in_child(lambda: context.__exit__(None, None, None))
    assert sorted(os.listdir(path)) == [temporary.MARKER, "source.c"]
    context.__exit__(None, None, None)
    assert os.listdir(tmp_path) == []


def test_many_sweep_at_once_while_others_work(tmp_path):
    """Any sweep removes abandoned folders, and keeps folders in use."""
    code = """
import os, sys
from cuplug._source.compilers import temporary
parent = sys.argv[1]
for k in range(60):
    with temporary.folder(parent) as path:
        open(os.path.join(path, "source.c"), "w").close()
        temporary.sweep(parent)
        assert sorted(os.listdir(path)) == [temporary.MARKER, "source.c"], os.listdir(path)
"""
    for _ in range(4):
        killed(tmp_path)
    command = [sys.executable, "-c", code, str(tmp_path)]
    others = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    ends = [process.communicate()[1] for process in others]
    assert [process.returncode for process in others] == [0] * 4, ends
    assert os.listdir(tmp_path) == []


def test_threads_use_folders_of_their_own(tmp_path):
    seen = []

    def work():
        for _ in range(20):
            with temporary.folder(str(tmp_path)) as path:
                temporary.sweep(str(tmp_path))
                seen.append(path)
                assert os.path.exists(path)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(seen)) == 120
    assert os.listdir(tmp_path) == []


SWAPS = """
import os, sys, time
where, user = sys.argv[1], int(sys.argv[2])
os.setgroups([]); os.setgid(user); os.setuid(user); os.umask(0)
print("ready", flush=True)
while True:
    for name in os.listdir(where):
        if ".old" in name or ".new" in name:
            continue
        try:
            os.mkdir(f"{where}/{name}.new")
            os.rename(f"{where}/{name}", f"{where}/{name}.old")
            os.rename(f"{where}/{name}.new", f"{where}/{name}")
        except OSError:
            pass
"""


@NEEDS_ROOT
def test_compilation_where_another_user_replaces_folders(public, monkeypatch):
    """The compiler never reads a file of that user's."""
    unsafe = public / "unsafe"
    unsafe.mkdir()
    unsafe.chmod(0o777)
    monkeypatch.setenv("TMPDIR", str(unsafe))
    monkeypatch.setenv("CUPLUG_CACHE_DIR", str(public / "cache"))
    seen, run = [], processes.run

    def watched(command, directory, **made):
        seen.append((directory, os.stat(directory).st_uid))
        return run(command, directory, **made)

    monkeypatch.setattr("cuplug._source.compilers.host_compiler.run", watched)
    command = [sys.executable, "-c", SWAPS, str(unsafe), str(NOBODY)]
    attacker = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        attacker.stdout.readline()
        for k in range(2):
            f = cuplug.elementwise("f(x: T) -> T", f"x + {k}", doc="Attacked.")
            assert f(np.zeros(2)).tolist() == [k, k]
    finally:
        attacker.kill()
        attacker.wait()
        attacker.stdout.close()
    assert seen
    assert all(os.path.dirname(path) != str(unsafe) for path, _ in seen if path != "/")
    assert {owner for _, owner in seen} == {os.geteuid()}
