# SPDX-License-Identifier: Apache-2.0
"""A pytest plugin that runs the array API tests of SciPy and others on cuplug arrays.

OTHER_ARRAYS is the namespace, "cuplug.array_api" by default, or "array_api_strict" to compare.
Tests in the file NOT_IN_SUITE are omitted. CUPLUG_DEVICE is the device of the arrays.
"""

import os
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

NAMESPACE = os.environ.get("OTHER_ARRAYS", "cuplug.array_api")
EXCLUDED = [
    line
    for line in Path(os.environ.get("NOT_IN_SUITE", os.devnull)).read_text().splitlines()
    if line and not line.startswith("#")
]


def use_in_scipy() -> None:
    """Make the namespace the only value of the fixture `xp`, instead of SciPy's list."""
    fixture = pytest.fixture
    marks = pytest.mark.array_api_backends
    backend = pytest.param(import_module(NAMESPACE), id=NAMESPACE, marks=marks)

    def with_backend(*given, params=None, **keywords):
        return fixture(*given, params=params and [backend], **keywords)

    pytest.fixture = with_backend
    try:
        import_module("scipy.conftest").xp_known_backends.add(NAMESPACE)
    finally:
        pytest.fixture = fixture
    info = type(import_module(NAMESPACE).__array_namespace_info__())
    devices = info.devices
    info.devices = lambda self: [*devices(self)]  # a list before version 2025.12 of the standard


def use_in_sklearn() -> None:
    """Make the namespace the only one in scikit-learn's tests."""
    module = import_module("sklearn.utils._array_api")
    module.yield_namespace_device_dtype_combinations = lambda *given, **keywords: iter(
        [(NAMESPACE, None, None)]
    )
    module.yield_namespaces = lambda *given, **keywords: iter([NAMESPACE])
    own, numpy, strict = (
        module.NamespaceAndDevice(*pair)
        for pair in ((NAMESPACE, None), ("numpy", None), ("array_api_strict", "device1"))
    )
    pairs = [(numpy, own), (own, numpy), (strict, own)]  # of y and of X
    module.yield_mixed_namespace_input_permutations = lambda: iter(
        (y, x, f"{y.xp} to {x.xp}") for y, x in pairs
    )


def use_in_array_api_extra() -> None:
    """Replace CuPy by the namespace in the list of libraries."""
    backends = import_module("array_api_extra._lib._backends").Backend
    backends.CUPY._value_ = NAMESPACE


def use_in_array_api_compat() -> None:
    """Add the namespace to the lists of libraries, as one that needs no wrapper."""
    helpers, own = import_module("tests._helpers"), import_module(NAMESPACE)
    sys.modules[f"array_api_compat.{NAMESPACE}"] = own
    helpers.all_libraries.append(NAMESPACE)
    import_module("tests.test_array_namespace").wrapped_libraries = [*helpers.wrapped_libraries]
    helpers.wrapped_libraries.append(NAMESPACE)
    tests = import_module("tests.test_common")
    tests.is_own_array = lambda x: isinstance(x, type(own.empty(0)))
    tests.is_array_functions[NAMESPACE] = "is_own_array"


def compare_on_host() -> None:
    """Make assertions copy arrays from a GPU; omit what SciPy computes only on the host."""
    array = type(import_module(NAMESPACE).empty(0))

    def on_host(given):
        return given.numpy() if isinstance(given, array) else given

    def with_copies(function):
        return lambda *given, **keywords: function(*map(on_host, given), **keywords)

    for name in dir(np.testing):
        if name.startswith("assert_"):
            setattr(np.testing, name, with_copies(getattr(np.testing, name)))
    scipy = import_module("scipy._lib._array_api")
    scipy._xp_copy_to_numpy = with_copies(scipy._xp_copy_to_numpy)
    import_module("scipy.conftest").xp_skip_cpu_only_backends.add(NAMESPACE)
    if find_spec("sklearn"):
        sklearn = import_module("sklearn.utils._array_api")
        sklearn._convert_to_numpy = with_copies(sklearn._convert_to_numpy)


def pytest_collection_modifyitems(config, items):
    """Omit the tests that the file lists by the start of their names."""

    def is_excluded(item):
        file = str(item.path).rpartition("site-packages/")[2]
        name = f"{file}::{item.nodeid.partition('::')[2]}"
        return any(name.startswith(line) for line in EXCLUDED)

    config.hook.pytest_deselected(items=[item for item in items if is_excluded(item)])
    items[:] = [item for item in items if not is_excluded(item)]


os.environ["SCIPY_ARRAY_API"] = "1"  # both read it when they are imported
use_in_scipy()
if find_spec("sklearn"):
    use_in_sklearn()
if os.environ.get("CUPLUG_DEVICE", "cpu") != "cpu":
    compare_on_host()
if find_spec("array_api_extra"):
    use_in_array_api_extra()
if Path("src/array_api_compat").is_dir():
    use_in_array_api_compat()
