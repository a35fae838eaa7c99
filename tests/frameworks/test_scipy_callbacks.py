# SPDX-License-Identifier: Apache-2.0
"""Operators that SciPy calls by address: examples/typed/callbacks.pyx."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from builds import compile_module
from cuplug._engine.base.flags import PACKAGE
from places import ROOT

pytestmark = pytest.mark.slow  # a module is compiled

START = """
import ctypes

import callbacks
import numpy as np
from scipy import LowLevelCallable, integrate, ndimage

slope = np.array([0.5])
address = slope.ctypes.data_as(ctypes.c_void_p)
bent = LowLevelCallable.from_cython(callbacks, "bent", address)
median = LowLevelCallable.from_cython(callbacks, "median")
image = np.random.default_rng(0).random((20, 30))
"""
VALUES = """
np.testing.assert_allclose(integrate.quad(bent, -1, 2, points=[0])[0], 1.75)
found = ndimage.generic_filter(image, median, size=3)
np.testing.assert_array_equal(found, ndimage.median_filter(image, size=3))
"""
ERRORS = """
def raised(call, *arguments, **options):
    try:
        call(*arguments, **options)
    except Exception as error:
        return error
    raise AssertionError("nothing raised")


error = raised(ndimage.generic_filter, image, median, size=3)
assert isinstance(error, cuplug.PluginError), repr(error)
error = raised(integrate.quad, bent, -1, 1)
assert isinstance(error, SystemError), repr(error)
assert isinstance(error.__cause__, cuplug.PluginError), repr(error.__cause__)
"""
# A plugin with another signature than the one for which the module was compiled.
OTHER = """
#include <cuplug/plugin.h>

CUPLUG_ENTRY int other_host(const cuplug_call *call) { return CUPLUG_OK; }

CUPLUG_HOST_OPERATOR(other_host, "%s(x: float64[n])", "");
CUPLUG_PLUGIN(%s, "1.0.0");
"""


@pytest.fixture(scope="module")
def folder(once):
    """Compile the example; return its folder."""
    source = ROOT / "examples" / "typed" / "callbacks.pyx"
    return once("scipy_callbacks", lambda folder: compile_module(source, folder))


def run(folder, program, **variables):
    path = os.pathsep.join([str(folder), str(Path(PACKAGE).parent), *filter(None, sys.path)])
    environment = os.environ | {"PYTHONPATH": path, **variables}
    command = [sys.executable, "-c", f"import cuplug\n{program}"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_scipy_calls_operators(folder):
    pytest.importorskip("scipy")
    run(folder, START + VALUES)


def test_errors_arrive(folder, build_plugin):
    pytest.importorskip("scipy")
    others = [
        build_plugin(OTHER % (operator, name), name).parent
        for name, operator in (("relu", "leaky_relu"), ("sorting", "sort"))
    ]
    run(folder, START + ERRORS, LD_LIBRARY_CUPLUG_PATH=os.pathsep.join(map(str, others)))


def test_addresses_have_the_names_that_scipy_reads(folder):
    """The same checks as LowLevelCallable, without SciPy."""
    found = run(folder, "import callbacks\nprint(callbacks.__pyx_capi__)")
    assert '"double (double, void *)"' in found
    assert '"int (double *, intptr_t, double *, void *)"' in found


def test_functions_at_the_addresses(folder, monkeypatch):
    monkeypatch.syspath_prepend(str(folder))
    import callbacks

    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype = ctypes.c_void_p
    pointer_of.argtypes = [ctypes.py_object, ctypes.c_char_p]
    capsule = callbacks.__pyx_capi__["median"]
    address = pointer_of(capsule, b"int (double *, intptr_t, double *, void *)")
    pointer, size = ctypes.c_void_p, ctypes.c_ssize_t
    median = ctypes.PYFUNCTYPE(ctypes.c_int, pointer, size, pointer, pointer)(address)
    window, result = np.array([3.0, -1, 7, 5, 0]), np.empty(1)
    assert median(window.ctypes.data, 5, result.ctypes.data, None) == 1
    assert result[0] == np.median(window)
