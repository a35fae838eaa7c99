# SPDX-License-Identifier: Apache-2.0
"""Debuggers and backtraces: code that runs from a copy in memory has its file's name."""

import os
import shutil
import subprocess
import sys

import pytest
from places import FIXTURES

needs_gdb = pytest.mark.skipif(not shutil.which("gdb"), reason="needs gdb")

CALL = """
import sys, cuplug, numpy as np
cuplug.load(sys.argv[1]).debugged(np.zeros(int(sys.argv[2]), np.float32))
"""


@pytest.fixture
def plugin(build_plugin):
    """Return the path of a plugin that stops with arrays of 2 and 3 elements."""
    return str(build_plugin(FIXTURES / "debugged.c", "debugged", extra=["-g", "-D_GNU_SOURCE"]))


def gdb(*arguments):
    """Run gdb to its end, without the terminal; return its output."""
    command = ["gdb", "-nx", "-q", "-batch", "-ex", "set debuginfod enabled off", *arguments]
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=120,
        start_new_session=True,
    )
    if "ptrace: Operation not permitted" in done.stdout:
        pytest.skip("processes may not be traced here")
    return done.stdout


def names_the_frame(output, plugin):
    """Return whether a backtrace has the function, with its source and its library."""
    return "stop_in_plugin" in output and "debugged.c:" in output and plugin in output


SHOW = ["-ex", "bt 8", "-ex", "info sharedlibrary debugged"]


@pytest.mark.uninstrumented
@needs_gdb
def test_a_process_that_gdb_runs(plugin):
    output = gdb("-ex", "run", *SHOW, "--args", sys.executable, "-c", CALL, plugin, "2")
    assert "stop_in_plugin (n=2)" in output, output
    assert "debugged.c:" in output, output


@pytest.mark.uninstrumented
@needs_gdb
def test_a_process_that_gdb_attaches_to_and_its_core_file(plugin, tmp_path):
    command = [sys.executable, "-c", CALL, plugin, "3"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "ready\n"
            output = gdb("-p", str(process.pid), *SHOW, "-ex", f"gcore {tmp_path}/core")
        finally:
            process.kill()
    assert names_the_frame(output, plugin), output
    assert os.path.exists(tmp_path / "core"), output
    assert names_the_frame(gdb(sys.executable, str(tmp_path / "core"), *SHOW), plugin)


def test_dladdr_names_the_file(plugin, run_python):
    done = run_python(f"import sys\nsys.argv[1:] = [{plugin!r}, '1']\n{CALL}")
    assert done.stdout == f"{os.path.realpath(plugin)}\n", done.stderr
