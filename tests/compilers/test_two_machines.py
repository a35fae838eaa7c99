# SPDX-License-Identifier: Apache-2.0
"""Machines that share a folder on a network file system, whose locks are local."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from builds import compile_library
from cuplug._source.compilers import cache, temporary
from places import FIXTURES

COMPILES = """
import sys
import cuplug, numpy as np
sys.stdin.readline()
x = np.arange(3.0)
for k in range(4):
    assert cuplug.elementwise("f(x: T) -> T", f"x * {k} - 1")(x).tolist() == [-1, k - 1, 2 * k - 1]
"""
N_COMPILED = 4
WORKS = """
import os, sys
from cuplug._source.compilers import temporary
with temporary.folder(sys.argv[1]) as path:
    print(path, flush=True)
    sys.stdin.readline()
    assert os.path.isdir(path)
"""
SWEEPS = """
import sys
from cuplug._source.compilers import temporary
temporary.sweep(sys.argv[1])
"""


@pytest.fixture
def start(once, tmp_path):
    """Return a function that starts Python text on a machine."""

    def fill(folder: Path) -> None:
        source = FIXTURES / "network_files.c"
        command = ["cc", "-D_GNU_SOURCE", "-O1", "-shared", "-fPIC", str(source)]
        compile_library([*command, "-o", str(folder / "files.so"), "-ldl"])

    library = once("network_files", fill) / "files.so"
    preloaded = f"{os.environ.get('LD_PRELOAD', '')} {library}".strip()

    def start(text: str, machine: int, locks: str, *arguments: str, **variables: str):
        machine_variables = {"MACHINE": str(machine), "LOCKS": locks, "LD_PRELOAD": preloaded}
        return subprocess.Popen(
            [sys.executable, "-c", text, *arguments],
            env=os.environ | machine_variables | variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return start


def end(process: subprocess.Popen) -> None:
    _, errors = process.communicate("\n", timeout=120)
    assert process.returncode == 0, errors


@pytest.mark.parametrize(("locks", "most"), [("local", 2), ("none", 4)])
def test_two_machines_write_one_cache(start, tmp_path, monkeypatch, locks, most):
    """Each compiles at most once; without any locks, each process does."""
    directory, count = tmp_path / "cache", tmp_path / "count"
    compiler = tmp_path / "compiler"
    text = f'case "$*" in *" -c "*) echo 1 >> {count};; esac\nunset LD_PRELOAD\nexec cc "$@"\n'
    compiler.write_text(f"#!/bin/sh\n{text}")
    compiler.chmod(0o755)
    variables = {"CUPLUG_CACHE_DIR": str(directory), "TMPDIR": str(tmp_path), "CC": str(compiler)}
    processes = [start(COMPILES, k, locks, **variables) for k in (1, 2, 1, 2)]
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    for process in processes:
        end(process)
    assert N_COMPILED <= len(count.read_text().split()) <= most * N_COMPILED
    monkeypatch.setenv("CUPLUG_CACHE_DIR", str(directory))
    assert [each.kind for each in cache.entries()].count("so") == N_COMPILED
    n_compiled = count.read_text()
    end(start(COMPILES, 3, locks, **variables))
    assert count.read_text() == n_compiled
    assert not [name for name in os.listdir(directory) if name.startswith(".")]


def test_folders_in_use_on_another_machine(start, tmp_path):
    """A sweep of another machine sees no lock, and removes nothing."""
    process = start(WORKS, 1, "local", str(tmp_path))
    folder = Path(process.stdout.readline().strip())
    end(start(SWEEPS, 2, "local", str(tmp_path)))
    end(start(SWEEPS, 1, "local", str(tmp_path)))
    assert os.listdir(folder) == [temporary.MARKER]
    process.send_signal(signal.SIGKILL)
    process.communicate()
    end(start(SWEEPS, 2, "local", str(tmp_path)))
    assert folder.is_dir()
    end(start(SWEEPS, 1, "local", str(tmp_path)))
    assert not folder.exists()


def test_removed_files_that_are_in_use(start, tmp_path):
    """They exist under another name until they are closed, so the folder is removed later."""
    text = WORKS.replace("sys.stdin.readline()", "held = open(path + '/code', 'w')")
    process = start(text, 1, "local", str(tmp_path))
    folder = Path(process.stdout.readline().strip())
    end(process)
    assert folder.is_dir()
    end(start(SWEEPS, 1, "local", str(tmp_path)))
    assert not folder.exists()
