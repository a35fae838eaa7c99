# SPDX-License-Identifier: Apache-2.0
"""The cache of compiled code: entries are complete or absent, even if others damage them."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner
from cuplug._engine.base import environment
from cuplug._integration.commands.cli import main
from cuplug._source.compilers import cache
from hypothesis import given
from hypothesis import strategies as st
from processes import NEEDS_ROOT, in_child, run

KEY = cache.key("some", "thing")


@pytest.fixture(autouse=True)
def directory(tmp_path, monkeypatch) -> Path:
    """Return the directory of the cache, which does not exist yet."""
    monkeypatch.setenv("CUPLUG_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("CUPLUG_CACHE_BYTES", raising=False)
    return tmp_path / "cache"


@pytest.mark.parametrize("data", [b"", b"x", b"\0" * 100_000], ids=len)
def test_put_and_get(directory, data):
    assert cache.get(KEY, "cubin") is None
    path = cache.put(KEY, "cubin", data)
    assert path == str(directory / f"{KEY}.cubin") == cache.get_path(KEY, "cubin")
    assert cache.get(KEY, "cubin") == data
    assert cache.get(KEY, "so") is None
    assert os.stat(directory).st_mode & 0o777 == 0o700
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert Path(path).read_bytes().startswith(data)


@given(st.lists(st.text() | st.binary()), st.lists(st.text() | st.binary()))
def test_keys_differ_where_parts_do(a, b):
    plain = [[part.encode() if isinstance(part, str) else part for part in x] for x in (a, b)]
    assert (cache.key(*a) == cache.key(*b)) == (plain[0] == plain[1])


@pytest.mark.parametrize("at", [0, 5, -1, -20, -45])
def test_a_damaged_entry_is_not_there_and_is_removed(at):
    path = Path(cache.put(KEY, "cubin", b"0123456789"))
    whole = bytearray(path.read_bytes())
    whole[at] ^= 1
    path.write_bytes(whole)
    assert cache.get(KEY, "cubin") is None
    assert not path.exists()


def test_a_torn_entry_is_not_there():
    path = Path(cache.put(KEY, "cubin", b"0123456789" * 10))
    whole = path.read_bytes()
    for n in range(len(whole)):
        path.write_bytes(whole[:n])
        assert cache.get(KEY, "cubin") is None
    path.write_bytes(whole)
    assert cache.get(KEY, "cubin") == b"0123456789" * 10


def test_what_others_may_write_is_not_used(directory):
    path = cache.put(KEY, "cubin", b"data")
    os.chmod(path, 0o622)
    assert cache.get(KEY, "cubin") is None
    os.chmod(path, 0o600)
    os.chmod(directory, 0o777)
    assert cache.get(KEY, "cubin") is None
    assert cache.put(KEY, "cubin", b"data") is None


def test_a_folder_above_that_others_may_write(directory):
    cache.put(KEY, "cubin", b"data")
    os.chmod(directory.parent, 0o777)
    assert cache.get(KEY, "cubin") is None
    os.chmod(directory.parent, 0o1777)
    assert cache.get(KEY, "cubin") == b"data"


def test_links_and_pipes_are_not_followed(directory, tmp_path):
    path = Path(cache.put(KEY, "cubin", b"data"))
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert cache.get(KEY, "cubin") is None
    path.unlink()
    os.mkfifo(path)
    assert cache.get(KEY, "cubin") is None


@pytest.mark.parametrize("name", ["file/cache", "file" + "/x" * 30_000, "x" * 300])
def test_a_cache_that_cannot_be_written_is_none(tmp_path, monkeypatch, name):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CUPLUG_CACHE_DIR", str(tmp_path / name))
    assert cache.put(KEY, "cubin", b"data") is None
    assert cache.get(KEY, "cubin") is None
    assert cache.entries() == []
    assert cache.clear() == 0


def test_the_least_recently_used_go_first(monkeypatch):
    monkeypatch.setenv("CUPLUG_CACHE_BYTES", "5000")
    keys = [cache.key(str(k)) for k in range(4)]
    for age, key in enumerate(keys):
        path = cache.put(key, "cubin", b"x" * 1000)
        os.utime(path, (time.time() - 1000 + age,) * 2)
    assert cache.get(keys[0], "cubin")  # used: now the most recent
    cache.put(cache.key("new"), "so", b"y" * 2000)
    kept = [cache.get(key, "cubin") is not None for key in keys]
    assert kept == [True, False, False, True]
    assert sum(entry.n_bytes for entry in cache.entries()) <= 5000
    assert cache.put(KEY, "so", b"z" * 5000) is None


def test_few_puts_look_at_the_whole_directory(monkeypatch):
    n_looks = []
    monkeypatch.setattr(cache, "_evict", lambda keep: n_looks.append(keep))
    monkeypatch.setenv("CUPLUG_CACHE_BYTES", "100000000")
    for k in range(300):
        cache.put(cache.key(str(k)), "cubin", b"x" * 1000)
    assert len(n_looks) < 30  # 0.2 on average
    monkeypatch.setenv("CUPLUG_CACHE_BYTES", "64000")
    cache.put(KEY, "cubin", b"x" * 1000)
    assert n_looks


@NEEDS_ROOT
@pytest.mark.parametrize("privileged", [False, True])
def test_a_user_without_an_entry_has_no_cache(tmp_path, monkeypatch, privileged):
    """As in containers that run with an arbitrary user number."""
    monkeypatch.setattr(environment, "privileged", privileged)
    for name in ("HOME", "CUPLUG_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    tmp_path.chmod(0o777)
    monkeypatch.chdir(tmp_path)

    def work():
        assert environment.home() == "~"
        assert cache.put(KEY, "cubin", b"data") is None
        assert cache.get(KEY, "cubin") is None

    in_child(work, user=123_456)
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_is_removed_later(directory, monkeypatch):
    monkeypatch.setenv("CUPLUG_CACHE_BYTES", "200")
    cache.put(KEY, "cubin", b"data")
    code = """
import os
from cuplug._source.compilers import cache
cache._write = lambda *written: os.kill(os.getpid(), 9)
cache.put(cache.key("killed"), "cubin", b"data")
"""

    def kill():
        code_of_end = subprocess.run([sys.executable, "-c", code]).returncode
        return code_of_end, len(os.listdir(directory))

    assert kill() == (-9, 2)
    cache.put(cache.key("next"), "cubin", b"data")  # one that looks at the whole directory
    assert [entry.n_bytes for entry in cache.entries()] == [4 + cache.TRAILER_BYTES] * 2
    assert len(os.listdir(directory)) == 2
    assert kill() == (-9, 3)
    assert cache.clear() == 2
    assert os.listdir(directory) == []


USERS = [".tmp-notes", "notes.txt", f"{KEY}.so", f"{KEY}.pdf", f"{KEY[:63]}.cubin", KEY]


@pytest.mark.parametrize("name", USERS)
def test_files_of_users_stay(directory, monkeypatch, name):
    """They are older than all entries, and exceed the limit on bytes."""
    monkeypatch.setenv("CUPLUG_CACHE_BYTES", "200")
    directory.mkdir(mode=0o700)
    (directory / name).write_text("precious" * 100)
    os.utime(directory / name, (0, 0))
    for k in range(5):
        cache.put(cache.key(str(k)), "cubin", b"data")
    assert [Path(entry.path).name for entry in cache.entries()] != []
    assert name not in [Path(entry.path).name for entry in cache.entries()]
    cache.clear()
    assert (directory / name).read_text() == "precious" * 100


def test_a_working_directory_that_was_removed(tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    monkeypatch.setenv("CUPLUG_CACHE_DIR", "relative")
    (tmp_path / "gone").rmdir()
    assert cache.put(KEY, "cubin", b"data") is None
    assert cache.get(KEY, "cubin") is None


def test_no_cache(monkeypatch):
    cache.put(KEY, "cubin", b"data")
    monkeypatch.setenv("CUPLUG_CACHE_BYTES", "0")
    assert cache.get(KEY, "cubin") is None
    assert cache.put(KEY, "cubin", b"data") is None
    monkeypatch.setenv("CUPLUG_CACHE_BYTES", "1 GiB")
    with pytest.raises(ValueError, match="CUPLUG_CACHE_BYTES: got '1 GiB', expected a number"):
        cache.get(KEY, "cubin")


@pytest.mark.parametrize(
    ("variables", "wanted"),
    [
        ({"CUPLUG_CACHE_DIR": "/a/b"}, "/a/b"),
        ({"XDG_CACHE_HOME": "/x", "HOME": "/h"}, "/x/cuplug"),
        ({"XDG_CACHE_HOME": "relative", "HOME": "/h"}, "/h/.cache/cuplug"),
        ({"HOME": "/h"}, "/h/.cache/cuplug"),
    ],
)
def test_where_it_is(monkeypatch, variables, wanted):
    for name in ("CUPLUG_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert cache.directory() == wanted


# One of many processes; every entry that it reads is complete.
WRITES_AND_READS = """
import sys
from cuplug._source.compilers import cache
seed = int(sys.argv[1])
for k in range(150):
    key = cache.key(str((k * 7 + seed) % 5))
    data = cache.get(key, "cubin")
    assert data is None or data == key.encode() * 50
    cache.put(key, "cubin", key.encode() * 50)
    if k % 40 == seed:
        cache.clear()
"""


def test_many_processes(monkeypatch):
    monkeypatch.setenv("CUPLUG_CACHE_BYTES", "12000")
    command = [sys.executable, "-c", WRITES_AND_READS]
    processes = [subprocess.Popen([*command, str(seed)]) for seed in range(6)]
    assert [process.wait(120) for process in processes] == [0] * 6


def test_killed_writers_break_nothing():
    code = """
from cuplug._source.compilers import cache
print("ready", flush=True)
while True:
    for k in range(5):
        cache.put(cache.key(str(k)), "cubin", b"x" * 300_000)
"""
    for delay in (0.0, 0.005, 0.02):
        writer = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
        writer.stdout.readline()
        time.sleep(delay)
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        for k in range(5):
            assert cache.get(cache.key(str(k)), "cubin") in (None, b"x" * 300_000)
    assert cache.put(KEY, "cubin", b"data")
    assert cache.get(KEY, "cubin") == b"data"


def run_here(*arguments):
    return CliRunner().invoke(main, arguments)


def test_the_command(directory):
    cache.put(KEY, "cubin", b"data")
    cache.put(KEY, "so", b"data")
    assert run("cache", "path").stdout == f"{directory}\n"
    shown = run_here("cache")
    assert str(directory) in shown.stdout
    assert "code for GPUs" in shown.stdout
    listed = json.loads(run_here("cache", "show", "--json").stdout)
    assert listed["directory"] == str(directory)
    assert listed["kinds"]["cubin"] == {"entries": 1, "bytes": 4 + cache.TRAILER_BYTES}
    assert json.loads(run_here("cache", "clear", "--json").stdout)["removed"] == 2
    assert cache.entries() == []
    assert run_here("cache", "clear").stdout == f"0 file(s) removed from {directory}\n"
    wrong = run("cache", CUPLUG_CACHE_BYTES="many")
    assert wrong.returncode == 1
    assert "CUPLUG_CACHE_BYTES: got 'many'" in wrong.stderr
