# SPDX-License-Identifier: Apache-2.0
"""A pytest plugin that runs Dask's tests of CuPy arrays on cuplug arrays.

`cupy.f` is NumPy's function f for cuplug arrays, or `cuplug.array_api.f` if it creates arrays.
Tests in the file NOT_IN_SUITE are omitted.
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
    """Return NumPy arrays and scalars as cuplug arrays."""
    if isinstance(x, tuple):
        return tuple(map(ours, x))
    return array_api.asarray(x) if isinstance(x, (numpy.ndarray, numpy.generic)) else x


def of_numpy(function):
    """Return a NumPy function whose results are cuplug arrays."""
    return lambda *args, **keywords: ours(function(*args, **keywords))


class Space(types.ModuleType):
    """A module `cupy` or a submodule: functions of cuplug or NumPy."""

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
    """A NumPy random generator that returns cuplug arrays."""

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
    """Omit the tests that the file lists by the start of their names."""
    names = {item: f"{item.path.name}::{item.name}" for item in items}
    out = [item for item in items if names[item].startswith(EXCLUDED)] if EXCLUDED else []
    config.hook.pytest_deselected(items=out)
    items[:] = [item for item in items if item not in {*out}]
