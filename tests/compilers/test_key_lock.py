# SPDX-License-Identifier: Apache-2.0
"""Processes and threads that need the same code: it is compiled once, and all waits end."""

import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from cuplug._source.compilers import cache, key_lock

KEY, OTHER = cache.key("some"), cache.key("other")
MAKES = """
import sys, time
from cuplug._source.compilers import cache, key_lock
key = cache.key("some")
with key_lock.held(key):
    if cache.get(key, "text") is None:
        print("made", flush=True)
        time.sleep(float(sys.argv[1]))
        cache.put(key, "text", b"data")
"""
COMPILES = """
import cuplug, numpy as np
x = np.arange(3.0)
for k in range(5):
    f = cuplug.elementwise("f(x: T) -> T", f"x * {k}", doc="Compiled once.")
    assert (f(x) == x * k).all()
f = cuplug.operator("g(x: float64[n]) -> y: float64[n]", arguments="n, x, y",
    host="void g(long n, const double *x, double *y) { for (; n--;) y[n] = x[n] + 1; }")
assert (f(x) == x + 1).all()
"""


@pytest.fixture(autouse=True)
def directory(tmp_path, monkeypatch) -> Path:
    """Return the directory of the cache, which does not exist yet."""
    monkeypatch.setenv("CUPLUG_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("CUPLUG_CACHE_BYTES", raising=False)
    return tmp_path / "cache"


def start(code, *arguments, **variables):
    command = [sys.executable, "-c", code, *map(str, arguments)]
    environment = os.environ | variables
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def kill(process):
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()


def test_many_processes_compile_once(tmp_path):
    compiler, count = tmp_path / "compiler", tmp_path / "count"
    compiler.write_text(
        f'#!/bin/sh\ncase "$*" in *" -c "*) echo 1 >> {count};; esac\nexec cc "$@"\n'
    )
    compiler.chmod(0o755)
    processes = [start(COMPILES, CC=str(compiler)) for _ in range(5)]
    assert [(process.communicate(), process.returncode)[1] for process in processes] == [0] * 5
    assert len(count.read_text().split()) == 7  # five expressions; a function and its types


def test_one_makes_it_and_the_others_wait():
    processes = [start(MAKES, 1.0) for _ in range(4)]
    said = [process.communicate()[0] for process in processes]
    assert sorted(said) == ["", "", "", "made\n"]


def test_threads_exclude_each_other():
    made = []

    def work():
        with key_lock.held(KEY):
            if cache.get(KEY, "text") is None:
                time.sleep(0.1)
                made.append(cache.put(KEY, "text", b"data"))

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1


def test_a_killed_holder_holds_nothing():
    process = start(MAKES, 600)
    assert process.stdout.readline() == "made\n"
    kill(process)
    with key_lock.held(KEY):
        assert cache.get(KEY, "text") is None


def test_a_holder_that_is_killed_while_others_wait():
    process, waiting = start(MAKES, 600), []
    assert process.stdout.readline() == "made\n"
    waiting = [start(MAKES, 0) for _ in range(2)]
    kill(process)
    assert {other.communicate()[0] for other in waiting} <= {"", "made\n"}
    assert cache.get(KEY, "text") == b"data"


def test_a_stopped_holder_is_not_waited_for_without_end(monkeypatch):
    monkeypatch.setattr(key_lock, "LIMIT_S", 0.2)
    process = start(MAKES, 600)
    try:
        assert process.stdout.readline() == "made\n"
        process.send_signal(signal.SIGSTOP)
        with key_lock.held(KEY):
            assert cache.get(KEY, "text") is None
    finally:
        kill(process)


def test_a_signal_handler_that_raises_while_one_waits(monkeypatch):
    def late(seconds):
        raise TimeoutError("the caller's")

    with key_lock.held(KEY):
        monkeypatch.setattr(time, "sleep", late)
        with pytest.raises(TimeoutError, match="the caller's"), key_lock.held(KEY):
            raise AssertionError("it went on")


def test_other_keys_are_free(monkeypatch):
    def slept(seconds):
        raise AssertionError("it waits")

    monkeypatch.setattr(time, "sleep", slept)
    with key_lock.held(KEY), key_lock.held(OTHER), pytest.raises(AssertionError, match="it waits"):
        key_lock.held(KEY).__enter__()
    with key_lock.held(KEY):  # and this one is free again
        pass


def test_a_lock_ends_though_a_fork_has_the_file(monkeypatch):
    go, done = os.pipe(), None
    with key_lock.held(KEY):
        done = os.fork()
        if not done:
            os.close(go[1])
            os.read(go[0], 1)  # until the parent closes it
            os._exit(0)
    os.close(go[0])
    try:
        monkeypatch.setattr(time, "sleep", lambda seconds: pytest.fail("it waits"))
        with key_lock.held(KEY):
            pass
    finally:
        os.close(go[1])
        os.waitpid(done, 0)


def test_an_error_inside_releases_the_lock(monkeypatch):
    with pytest.raises(OSError, match="mine"), key_lock.held(KEY):
        raise OSError("mine")
    monkeypatch.setattr(time, "sleep", lambda seconds: pytest.fail("it waits"))
    with key_lock.held(KEY):
        pass


@pytest.mark.parametrize("code", [22, 37, 38, 95])
def test_a_file_system_without_locks(monkeypatch, code):
    def fails(*arguments):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "fcntl", fails)
    with key_lock.held(KEY), key_lock.held(KEY):
        assert cache.put(KEY, "text", b"data")


def test_a_cache_that_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    for variables in ({"CUPLUG_CACHE_DIR": str(tmp_path / "file")}, {"CUPLUG_CACHE_BYTES": "0"}):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        with key_lock.held(KEY), key_lock.held(KEY):
            pass


def test_a_link_in_the_place_of_the_file(directory, tmp_path):
    directory.mkdir(mode=0o700)
    (directory / key_lock.FILE).symlink_to(tmp_path / "elsewhere")
    with key_lock.held(KEY):
        assert not (tmp_path / "elsewhere").exists()


def test_locks_are_one_empty_file(directory):
    for k in range(5):
        with key_lock.held(cache.key(str(k))):
            pass
    assert [(x.name, x.stat().st_size) for x in directory.iterdir()] == [("locks", 0)]
    assert cache.clear() == 0
