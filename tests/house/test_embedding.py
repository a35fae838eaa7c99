# SPDX-License-Identifier: Apache-2.0
"""Python and cuplug embedded in a C program: the interpreter ends, and the library is unloaded."""

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from builds import COMPILER, compile_library
from places import FIXTURES
from processes import environment

CALLS = """
import numpy as np, cuplug
from cuplug.ops import gather
x = np.arange(2e6)
print(gather(x, np.array([3, 1])), cuplug.asarray(x[:3]).sum())
kept = cuplug.elementwise("f(x: T) -> T", "2 * x")(x)  # with threads
print(kept[-1], flush=True)
"""
SAID = "[3. 1.] 3.0\n3999998.0\nended with 0\n"
pytestmark = pytest.mark.skipif(
    not sysconfig.get_config_var("Py_ENABLE_SHARED"), reason="needs libpython as a shared library"
)


@pytest.fixture
def run(once):
    """Return a function that runs texts in one program."""

    def fill(folder: Path) -> None:
        source, libraries = str(FIXTURES / "embedding.c"), sysconfig.get_config_var("LIBDIR")
        python = [f"-I{sysconfig.get_paths()['include']}", f"-L{libraries}"]
        python += [f"-lpython{sysconfig.get_config_var('LDVERSION')}", f"-Wl,-rpath,{libraries}"]
        shared = ["-shared", "-fPIC", "-o", str(folder / "libembedding.so")]
        compile_library([*COMPILER, source, *python, *shared])
        compile_library([*COMPILER, "-DPROGRAM", source, "-ldl", "-o", str(folder / "program")])

    folder = once("embedding", fill)

    def run(*texts: str) -> subprocess.CompletedProcess:
        command = [str(folder / "program"), str(folder / "libembedding.so"), sys.executable]
        return subprocess.run(
            [*command, *texts], env=environment(), capture_output=True, text=True, timeout=120
        )

    return run


def test_an_interpreter_that_ends_before_the_program(run):
    done = run(CALLS)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{SAID}unloaded\n", "")


def test_an_interpreter_after_another(run):
    """NumPy, and so cuplug, works in only one interpreter of a process; others raise an error."""
    done = run(CALLS, CALLS, "print('others work', flush=True)")
    assert done.returncode == 0
    assert done.stdout == f"{SAID}ended with 1\nothers work\nended with 0\nunloaded\n"
    assert "numpy" in done.stderr
