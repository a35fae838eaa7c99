# SPDX-License-Identifier: Apache-2.0
"""An author's first minutes: compile outside the repository, drop the file in a folder, call it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from places import ROOT

DROP_IN = ROOT / "examples" / "drop_in"
CALL = """
import numpy as np, cuplug
from cuplug.ops import {name}
x = np.arange(6, dtype=np.float32).reshape(2, 3)
assert np.array_equal({name}(x{more}), x / np.float32({by}))
print(cuplug.last_call().device, {name}.path)
"""


def shell(command: str, folder: Path) -> None:
    """Run a command as an author would, with `cuplug` on the path."""
    script = folder / "cuplug"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m cuplug "$@"\n')
    script.chmod(0o755)
    path = f"{folder}:{os.environ['PATH']}"
    done = subprocess.run(
        command,
        shell=True,
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "compiling",
    [
        "gcc $(cuplug --cflags) half.c -o libhalf.so",
        "gcc -c $(cuplug --cflags) half.c && gcc -shared half.o -o libhalf.so",
    ],
    ids=["one step", "two steps"],
)
def test_with_gcc(compiling, tmp_path, run_python):
    shutil.copy(DROP_IN / "half.c", tmp_path)
    shell(f"{compiling} && cuplug check libhalf.so", tmp_path)
    done = run_python(
        CALL.format(name="half", by=2, more=""), env={"LD_LIBRARY_CUPLUG_PATH": str(tmp_path)}
    )
    assert (done.stdout, done.stderr) == (f"cpu {tmp_path}/libhalf.so\n", "")


def test_is_short():
    lines = [line for line in (DROP_IN / "half.c").read_text().splitlines() if line.strip()]
    assert len(lines) <= 20


@pytest.mark.gpu
def test_with_nvcc(tmp_path, run_python):
    if not shutil.which("nvcc"):
        pytest.skip("needs nvcc on PATH")
    shutil.copy(DROP_IN / "third.cu", tmp_path)
    shell("nvcc -arch=native $(cuplug --cflags --nvcc) third.cu -o libthird.so", tmp_path)
    shell("cuplug check libthird.so", tmp_path)
    code = CALL.format(name="third", by=3, more=", device='cuda'")
    done = run_python(code, env={"LD_LIBRARY_CUPLUG_PATH": str(tmp_path)})
    assert (done.stdout, done.stderr) == (f"cuda:0 {tmp_path}/libthird.so\n", "")
