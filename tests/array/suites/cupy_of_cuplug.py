# SPDX-License-Identifier: Apache-2.0
"""A pytest plugin that runs CuPy's tests, which compare with NumPy, on cuplug arrays.

`cupy.f` is NumPy's function f, which cuplug must compute, and `cupy.testing` comes from the folder
CUPY. Tests that use a name that NumPy does not have are skipped, and tests in the file NOT_IN_SUITE
are omitted.
"""

import functools
import math
import os
import sys
import types
from importlib import import_module
from importlib.util import spec_from_loader
from pathlib import Path

import cuplug
import numpy
import pytest
from cuplug import array_api
from cuplug.array_api.beyond import numpy_creation

EXCLUDED = [
    line
    for line in Path(os.environ.get("NOT_IN_SUITE", os.devnull)).read_text().splitlines()
    if line and not line.startswith("#")
]
# Text of a failure -> reason to skip the test: it tests CuPy itself, or a documented difference.
NOT_MEANT = {
    "object has no attribute 'data'": "CuPy's attribute `data`",
    "_index_32_bits": "CuPy's attribute `_index_32_bits`",
    "DummyObjectWithCudaArrayInterface": "memory of a GPU",
    "unexpected keyword argument 'blocking'": "CuPy's parameter `blocking`",
    "argmax() got an unexpected keyword argument 'dtype'": "CuPy's parameter `dtype`",
    "argmin() got an unexpected keyword argument 'dtype'": "CuPy's parameter `dtype`",
    "NotImplementedError not raised": "a limit of CuPy's",
    "DID NOT RAISE NotImplementedError": "a limit of CuPy's",
    "expected real numbers for": "complex numbers are not converted to real ones",
    "Regex pattern did not match": "the words of an error",
    "got structures of dtype": "structures are for kernels",
    "has no subclasses": "cuplug.Array has no subclasses",
    "'numpy.random._generator' has no attribute": "CuPy's random states",
    "got complex numbers, expected numbers that have an order": "complex numbers have no order",
    "complex64, expected real numbers; use real": "complex numbers have no order",
    "complex128, expected real numbers; use real": "complex numbers have no order",
    "expected a value in the range of": "integers beyond a dtype raise ValueError",
}
# Functions that create arrays, and the argument whose type makes NumPy call cuplug.
MADE, LIKE = numpy_creation.MADE, cuplug.empty(0)
# Functions that create arrays, which NumPy never delegates.
OWN = {"diag_indices", "geomspace", "indices", "linspace", "logspace", "tril_indices"}
OWN |= {"triu_indices"}
test = types.SimpleNamespace(is_running=False, absent=None)


class Absent(types.ModuleType):
    """A name that NumPy lacks: tests may refer to it when they are collected, but not use it."""

    __path__ = ()
    is_hip = False
    is_available = staticmethod(lambda: False)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        found = Absent(f"{self.__name__}.{name}")
        return found.used() if test.is_running else found

    def used(self, *_given, **_keywords):
        if test.is_running:
            test.absent = f"not of NumPy and cuplug: {self.__name__}"
            pytest.skip(f"not of NumPy and cuplug: {self.__name__}")
        return self

    def is_so(self, *_other):
        return self.used() is None

    __call__ = __enter__ = __getitem__ = __or__ = __iter__ = used
    __lt__ = __le__ = __gt__ = __ge__ = __exit__ = is_so
    __add__ = __mul__ = used

    def __int__(self):
        return int(self.is_so())

    def __mro_entries__(self, bases):
        return (object,)


class ArrayType(type):
    def __instancecheck__(cls, x):
        return isinstance(x, cuplug.Array) and cls is Array


class Array(metaclass=ArrayType):
    """`cupy.ndarray`, from which tests derive classes when they are collected."""

    def __new__(cls, shape, dtype=float, buffer=None, offset=0, strides=None, order="C"):
        if cls is not Array or buffer is not None or strides is not None:
            raise TypeError("cuplug.Array is not made of memory, and has no subclasses")
        return sys.modules["cupy"].empty(shape, dtype, order)


class Space(types.ModuleType):
    """A module `cupy` or a submodule, with NumPy's names."""

    def __init__(self, name, theirs, **own):
        super().__init__(name)
        self.theirs = theirs
        vars(self).update(own)
        sys.modules[name] = self

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if not hasattr(self.theirs, name):
            return Absent(f"{self.__name__}.{name}").used()
        return of_numpy(getattr(self.theirs, name))


class OfNumpy:
    """A NumPy function whose results must be cuplug arrays."""

    def __init__(self, function):
        self.function = function
        functools.update_wrapper(self, function)

    def __call__(self, *args, **keywords):
        function = self.function
        if self.__name__ in MADE:
            keywords["like"] = LIKE
        elif self.__name__ in OWN:
            function = getattr(array_api, self.__name__)
        found = ours(function(*args, **keywords))
        many = found if isinstance(found, (tuple, list)) else (found,)
        if test.is_running and not any(isinstance(x, cuplug.Array) for x in (*many, *args)):
            Absent(f"cupy.{self.__name__} without arrays").used()
        if isinstance(found, numpy.ndarray):
            raise TypeError(f"{self.__name__}: NumPy computed it")
        return found

    def __getattr__(self, name):
        return of_numpy(getattr(self.function, name))

    def __get__(self, instance, _type):
        return self if instance is None else types.MethodType(self, instance)


def of_numpy(x):
    is_function = callable(x) and not isinstance(x, type)
    return OfNumpy(x) if is_function else x


def ours(x):
    """Return results whose scalars are arrays without dimensions, as in CuPy."""
    if isinstance(x, (tuple, list)):
        found = [ours(each) for each in x]
        return type(x)(*found) if hasattr(x, "_fields") else type(x)(found)
    return array_api.asarray(x) if isinstance(x, numpy.generic) else x


class Finder:
    """Imports CuPy modules as `Absent`, except `cupy.testing`."""

    def find_spec(self, name, path=None, target=None):
        of_cupy = name.startswith(("cupy.", "cupyx", "cupy_backends"))
        if of_cupy and not name.startswith("cupy.testing"):
            return spec_from_loader(name, self)
        return None

    def create_module(self, spec):
        return Absent(spec.name)

    def exec_module(self, module):
        pass


def as_numpy(x, *_given, **_keywords):
    return x.get() if isinstance(x, cuplug.Array) else numpy.asarray(x)


def module_of(*arrays):
    is_ours = any(isinstance(x, cuplug.Array) for x in arrays)
    return sys.modules["cupy"] if is_ours else numpy


def use_as_cupy() -> None:
    """Install the modules `cupy` and `cupyx`."""
    sys.meta_path.insert(0, Finder())
    cupy = Space(
        "cupy",
        numpy,
        __path__=[f"{os.environ['CUPY']}/cupy"],
        ndarray=Array,
        asnumpy=as_numpy,
        get_array_module=module_of,
        **{name: getattr(array_api, name) for name in ("c_", "mgrid", "ogrid", "r_", "vectorize")},
    )
    for name in ("linalg", "fft", "exceptions", "random", "lib", "polynomial"):
        setattr(cupy, name, Space(f"cupy.{name}", getattr(numpy, name), __path__=()))
    import_module("cupy._core.internal").prod = math.prod
    import_module("cupy._util").PerformanceWarning = RuntimeWarning
    import_module("cupyx.scipy.sparse").issparse = lambda x: False
    cupy.testing = import_module("cupy.testing")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item, nextitem):
    test.is_running, test.absent = True, None
    try:
        return (yield)
    finally:
        test.is_running = False


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Skip failed tests that used names that NumPy does not have, or that test CuPy itself."""
    report = yield
    if report.failed:
        seen = str(report.longrepr)
        reason = next((name for text, name in NOT_MEANT.items() if text in seen), test.absent)
        if reason:
            report.outcome = "skipped"
            report.longrepr = (str(item.path), 0, f"Skipped: {reason}")
    return report


def pytest_ignore_collect(collection_path, config):
    """Omit files that the list contains, which cannot be collected."""
    return any(collection_path == config.rootpath / line for line in EXCLUDED) or None


def pytest_collection_modifyitems(config, items):
    """Omit the tests that the file lists by the start of their names."""
    left_out = [item for item in items if item.nodeid.startswith(tuple(EXCLUDED))]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


use_as_cupy()
