# SPDX-License-Identifier: Apache-2.0
"""Code that `cuplug warm` copies to a folder runs without compilers."""

import os
import subprocess
import sys

import cuplug
import numpy as np
import pytest
from cuplug._source.compilers import cache, jit, linking, nvrtc, shipped

PROGRAM = """
import cuplug, numpy as np
x = np.arange(3.0)
f = cuplug.elementwise("f(x: T) -> T", "x * 7 + 1", doc="Shipped.")
g = cuplug.operator("g(x: float64[n]) -> y: float64[n]", arguments="n, x, y",
    host="void g(long n, const double *x, double *y) { for (; n--;) y[n] = x[n] + 1; }")
print(f(x).tolist(), g(x).tolist())
"""
WANTED = "[1.0, 8.0, 15.0] [1.0, 2.0, 3.0]\n"
SOURCE = "__global__ void twice(float *x) { x[threadIdx.x] *= 2; }"


@pytest.fixture
def folder(tmp_path):
    """Return a folder with the code of the program."""
    command = [sys.executable, "-m", "cuplug", "warm", "compiled", sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(WANTED)
    assert "compiled: " in done.stdout
    return tmp_path / "compiled"


@pytest.fixture
def without_compilers(run_python, tmp_path):
    """Return a function that runs the program with a path of shipped code."""
    environment = {"CC": "/nowhere/cc", "CUPLUG_CACHE_DIR": str(tmp_path / "empty")}

    def run(path):
        return run_python(PROGRAM, environment | {"CUPLUG_WARM_PATH": str(path)})

    return run


def test_shipped_code_runs_without_compilers(folder, without_compilers, tmp_path):
    done = without_compilers(f"{tmp_path}/none:{folder}")
    assert (done.stdout, done.stderr) == (WANTED, "")
    assert not (tmp_path / "empty").exists()
    missing = without_compilers("")
    assert "no C compiler: CC=/nowhere/cc does not exist" in missing.stderr


@pytest.mark.parametrize("harm", ["torn", "writable", "link", "folder"])
def test_files_that_are_not_to_be_trusted_are_left_alone(folder, without_compilers, harm):
    for path in folder.iterdir():
        if harm == "torn":
            path.write_bytes(path.read_bytes()[:-1])
        elif harm == "writable":
            path.chmod(0o666)
        elif harm == "link":
            target = path.rename(folder.parent / path.name)
            path.symlink_to(target)
    if harm == "folder":
        folder.chmod(0o777)
    assert "no C compiler" in without_compilers(folder).stderr


def test_code_that_does_not_load_is_compiled(folder, run_python):
    for path in folder.glob("*.so"):
        cache.write_entry(str(path), str(folder), b"of another system", 0o644)
    assert run_python(PROGRAM, {"CUPLUG_WARM_PATH": str(folder)}).stdout == WANTED


def test_a_failing_program_keeps_its_status(tmp_path):
    command = [sys.executable, "-m", "cuplug", "warm", "x", sys.executable, "-c", "exit(7)"]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True).returncode == 7


def test_code_with_headers_of_the_user_is_not_shipped(tmp_path, monkeypatch):
    monkeypatch.setenv(shipped.TARGET, str(tmp_path))
    (tmp_path / "own.h").write_text("#define OWN 5\n")
    function = cuplug.operator(
        "h(x: float64[n]) -> y: float64[n]",
        arguments="n, x, y",
        host=f'#include "{tmp_path}/own.h"\n'
        "void h(long n, const double *x, double *y) { for (; n--;) y[n] = x[n] + OWN; }",
    )
    assert function(np.ones(1)).tolist() == [6.0]
    assert not [*tmp_path.glob("*.so")]


@pytest.fixture
def no_memory(monkeypatch):
    """Remove all code from the memory of the process, and use an empty cache."""
    monkeypatch.setenv("CUPLUG_CACHE_BYTES", "0")
    monkeypatch.setattr(jit, "_memory", {})


def compile_it():
    return jit.compile_to_binary(SOURCE, ["twice"], ["-lineinfo"], "90")


def link_it():
    return linking.compile_to_binary(
        {"a.cu": SOURCE}, {}, ["twice"], [], "90", "module", None, "nvrtc"
    )


@pytest.mark.parametrize("make", [compile_it, link_it])
def test_code_for_gpus(tmp_path, monkeypatch, no_memory, make):
    try:
        nvrtc.find()
    except cuplug.CompileError:
        pytest.skip("no NVRTC")
    monkeypatch.setenv(shipped.TARGET, str(tmp_path))
    made = make()
    assert len([*tmp_path.glob("*.cubin")]) == 1
    monkeypatch.delenv(shipped.TARGET)
    monkeypatch.setenv(shipped.PATH, str(tmp_path))

    def missing():
        raise cuplug.CompileError("no NVRTC")

    monkeypatch.setattr(nvrtc, "find", missing)
    jit._memory.clear()
    found = make()
    assert (found.image, found.lowered, found.types) == (made.image, made.lowered, made.types)
    with pytest.raises(cuplug.CompileError, match="no NVRTC"):
        jit.compile_to_binary(SOURCE.replace("2", "3"), ["twice"], ["-lineinfo"], "90")
    monkeypatch.setenv(shipped.PATH, os.devnull)
    jit._memory.clear()
    with pytest.raises(cuplug.CompileError, match="no NVRTC"):
        make()
