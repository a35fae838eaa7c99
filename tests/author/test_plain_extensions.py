# SPDX-License-Identifier: Apache-2.0
"""Extensions in C and C++ that call operators and are not linked: examples/typed/plain.c."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig

import cuplug
import numpy as np
import pytest
from builds import COMPILER, compile_library
from cuplug._engine.base import flags
from places import ROOT

SOURCE = ROOT / "examples" / "typed" / "plain.c"
WARNINGS = ["-Wall", "-Wextra", "-Werror"]


def compile_extension(folder, source=SOURCE, compiler=COMPILER, options=()):
    """Compile the extension with warnings as errors and no library."""
    includes = [f"-I{flags.get_include()}", f"-I{sysconfig.get_path('include')}"]
    command = [*compiler, *options, *WARNINGS, "-shared", "-fPIC", *includes, str(source)]
    compile_library([*command, "-o", str(folder / "plain.abi3.so")])


@pytest.fixture(scope="module")
def folder(once):
    """Compile the example; return its folder."""
    return once("plain_extension", compile_extension)


@pytest.fixture(scope="module")
def plain(folder):
    """Return the compiled example."""
    sys.path.insert(0, str(folder))
    try:
        import plain
    finally:
        sys.path.remove(str(folder))
    return plain


def on_host(x):
    return cuplug.asarray(x, device="cpu")


def test_nothing_is_linked(folder):
    command = ["readelf", "--dynamic", str(folder / "plain.abi3.so")]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert not re.search("RPATH|RUNPATH|cuplug", found), found


def test_buffers(plain):
    x = np.arange(-3, 4, dtype="f4")
    out = np.full(7, np.nan, "f4")
    plain.rectify(x, out)
    np.testing.assert_array_equal(out, np.maximum(x, 0))


def test_arrays(plain):
    x = np.arange(-60, 60, dtype="f8").reshape(2, 3, 4, 5)[:, ::2]
    out = cuplug.empty(x.shape, "float64", device="cpu")
    plain.rectify_array(on_host(x), out)
    np.testing.assert_array_equal(out.numpy(), np.maximum(x, 0))


def test_errors_are_those_of_python(plain):
    with pytest.raises(ValueError, match="relu: out: "):
        plain.rectify(np.zeros(3, "f4"), np.zeros(4, "f4"))
    with pytest.raises(TypeError, match="expected a cuplug.Array; use cuplug.asarray"):
        plain.rectify_array(np.zeros(3, "f4"), on_host(np.zeros(3, "f4")))


PROGRAM = """
import numpy as np
import plain

out = np.empty(2, "f4")
plain.rectify(np.float32([-1, 2]), out)
assert out.tolist() == [0, 2]
"""
# As after an update that lacks a function.
OTHER_PACKAGE = """
import cuplug._memoryviews as functions

functions.__pyx_capi__["free_view"] = functions.__pyx_capi__["call"]
try:
    import plain
except ImportError as error:
    assert 'without the function "free_view"' in str(error), error
else:
    raise AssertionError("nothing raised")
"""


def run(folder, program):
    path = os.pathsep.join([str(folder), *filter(None, sys.path)])
    command = [sys.executable, "-c", program]
    done = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_packages_that_lack_a_function(folder):
    run(folder, OTHER_PACKAGE)


@pytest.mark.parametrize("language", ["c", "c++"])
def test_full_api_and_both_languages(language, tmp_path):
    compiler = COMPILER if language == "c" else [os.environ.get("CXX", "c++")]
    if not shutil.which(compiler[0]):
        pytest.skip(f"needs {compiler[0]}")
    source = tmp_path / SOURCE.name
    source.write_text(re.sub("#define Py_LIMITED_API.*", "", SOURCE.read_text()))
    compile_extension(tmp_path, source, compiler, ["-x", language])
    run(tmp_path, PROGRAM)
