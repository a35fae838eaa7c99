# SPDX-License-Identifier: Apache-2.0
"""A plugin of pytest: runs Dask's tests of CuPy's arrays on cuplug's arrays.

`cupy.f` is NumPy's function f of cuplug's arrays, or that of `cuplug.array_api` if it makes arrays.
Tests in the file NOT_IN_SUITE are left out.
"""

import os
import sys
import types
from pathlib import Path

import cuplug
import numpy
from cuplug import array_api

LINES = Path(os.environ.get("NOT_IN_SUITE", os.devnull)).read_text().splitlines()
EXCLUDED = tuple(line for line in LINES if line and not line.startswith("#"))


def ours(x):
    """Return arrays and scalars of NumPy as cuplug's arrays."""
    if isinstance(x, tuple):
        return tuple(map(ours, x))
    return array_api.asarray(x) if isinstance(x, (numpy.ndarray, numpy.generic)) else x


def of_numpy(function):
    """Return a function of NumPy's with results of cuplug's."""
    return lambda *args, **keywords: ours(function(*args, **keywords))


class Space(types.ModuleType):
    """A module `cupy` or one within: functions of cuplug's, or of NumPy's."""

    def __init__(self, name, theirs, **values):
        super().__init__(name)
        self.theirs = theirs
        vars(self).update(values)
        sys.modules[name] = self

    def __getattr__(self, name):
        found = getattr(self.theirs, name)
        if isinstance(found, type) or not callable(found):
            return found
        makes = name in ("arange", "asarray", "empty", "eye", "full", "ones", "zeros")
        return getattr(array_api, name) if makes else of_numpy(found)


class Generator:
    """A random generator of NumPy's, whose arrays are cuplug's."""

    def __init__(self, *seeds):
        self.theirs = numpy.random.default_rng(*seeds)

    def __getattr__(self, name):
        return of_numpy(getattr(self.theirs, name))


numbers = Space("cupy.random", numpy.random, default_rng=Generator)
cuda = types.ModuleType("cupy.cuda")
cuda.runtime = types.SimpleNamespace(CUDARuntimeError=RuntimeError, getDeviceCount=int)
Space(
    "cupy",
    numpy,
    __path__=(),
    __version__="13.0.0",
    ndarray=cuplug.Array,
    array=array_api.asarray,
    asnumpy=numpy.asarray,
    cuda=cuda,
    linalg=Space("cupy.linalg", numpy.linalg),
    random=numbers,
)


def pytest_collection_modifyitems(config, items):
    """Leave out what the file lists, by the start of a test's name."""
    names = {item: f"{item.path.name}::{item.name}" for item in items}
    out = [item for item in items if names[item].startswith(EXCLUDED)] if EXCLUDED else []
    config.hook.pytest_deselected(items=out)
    items[:] = [item for item in items if item not in {*out}]
