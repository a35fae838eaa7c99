# SPDX-License-Identifier: Apache-2.0
"""The examples in docstrings: all public names, methods and properties have one, and they work."""

import doctest
import inspect
import re
import textwrap
from pathlib import Path

import cuplug
import cuplug.setuptools
import cuplug.testing
import hypothesis
import numpy as np
import pytest
from cuplug import array_api as xp
from places import FIXTURES

NAMES = sorted(set(cuplug.__all__) - {"array_api", "ops", "random"})
FIELD = type(cuplug.MemoryInfo.free_bytes)  # of a named tuple
TESTED_ON_ARRAYS = {cuplug.Array, cuplug.random.Generator}
ON_BOTH = pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])


def members(cls):
    """Yield the public methods and properties of a class and of its bases in cuplug, by name."""
    for name in dir(cls):
        owner = next(x for x in cls.__mro__ if name in vars(x))
        member = vars(owner)[name]
        if name.startswith("_") or not owner.__module__.startswith("cuplug"):
            continue
        if member.__doc__ is None:
            assert re.search(rf"\b{name}\b", cls.__doc__), f"{cls.__name__}.{name}"
        elif not isinstance(member, FIELD):
            yield f"{cls.__name__}.{name}", member


def array_functions():
    """Yield the public functions and methods that work on arrays, by their names."""
    for room in (xp, xp.fft, xp.linalg):
        found = {name: getattr(room, name) for name in room.__all__}
        yield from ((name, x) for name, x in found.items() if inspect.isroutine(x) or is_ours(x))
    yield from members(cuplug.Array)
    yield from members(cuplug.random.Generator)


def is_ours(x):
    return type(x).__name__ == "ArrayFunction"


def check_examples(name, x, device, **names):
    """Run the examples of a docstring, which must have one."""
    finder = doctest.DocTestFinder(recurse=False)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    [example] = finder.find(x, name, module=False, globs={"cuplug": cuplug, "numpy": np, **names})
    assert example.examples, name
    names_gpu = '"cuda' in example.docstring.partition("Examples\n")[2]
    if device == "cuda" or names_gpu == (device == "emulated"):
        assert runner.run(example).failed == 0, name


@ON_BOTH
def test_examples_of_array_functions_work(device):
    """Each has one, for the host and for a GPU, since they print no devices."""
    found = list(array_functions())
    assert len(found) > 380
    for name, function in found:
        with cuplug.Device(device):
            check_examples(name, function, device, xp=xp)


def check_docstrings(device):
    """Run the examples of all public names, and of their methods and properties.

    On "cpu", omit the examples that name a GPU. On "emulated", run only these.
    """
    found = {name: getattr(cuplug, name) for name in NAMES}
    for module in (cuplug.random, cuplug.setuptools, cuplug.testing):
        found |= {f"{module.__name__}.{name}": getattr(module, name) for name in module.__all__}
    for cls in {x for x in found.values() if isinstance(x, type)} - TESTED_ON_ARRAYS:
        found |= members(cls)
    for name, public in found.items():
        check_examples(name, public, device, hypothesis=hypothesis)


@pytest.fixture
def handles(build_plugin):
    """Return the folder of the plugin that the examples of handles call."""
    return str(build_plugin(FIXTURES / "handles.c", "handles").parent)


@ON_BOTH
def test_examples_of_docstrings_work(device, handles, run_python):
    """Each public name has one. Examples that name a GPU run if one is available.

    In a process of its own, in which no other test has found operators.
    """
    pytest.importorskip("cffi")  # adopt reads prototypes with it
    here = Path(__file__).parent
    text = f"""
        import sys
        sys.path += {[str(here), str(here.parent)]}
        from test_docstring_examples import check_docstrings
        check_docstrings({device!r})
    """
    done = run_python(textwrap.dedent(text), {"LD_LIBRARY_CUPLUG_PATH": handles})
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_examples_of_docstrings_work_on_an_emulated_gpu(run_kernels, emulated_cuda, handles):
    run_kernels(
        f"""
        from emulation import build_plugin
        build_plugin("relu")
        sys.path.append({str(Path(__file__).parent)!r})
        from test_docstring_examples import check_docstrings
        check_docstrings("emulated")
        """,
        LD_LIBRARY_CUPLUG_PATH=f"{emulated_cuda}:{handles}",
    )
