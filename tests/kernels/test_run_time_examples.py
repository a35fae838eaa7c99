# SPDX-License-Identifier: Apache-2.0
"""The programs of examples/run_time: on the emulated GPU if they need no other library, and on a
GPU."""

import runpy

import pytest
from emulated_driver import need_nvrtc
from places import ROOT

DIRECTORY = ROOT / "examples" / "run_time"
PROGRAMS = sorted(path.stem for path in DIRECTORY.glob("*.py"))
LIBRARIES = {"relu_torch": "torch"}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({*PROGRAMS} - {*LIBRARIES, "expressions"}))
def test_on_the_emulated_gpu(run_kernels, name):
    """Each compares its results with NumPy."""
    run_kernels(f"import runpy; runpy.run_path({str(DIRECTORY / name) + '.py'!r})['main']()")


def test_expressions_on_this_machine():
    runpy.run_path(f"{DIRECTORY}/expressions.py")["main"]()


@pytest.mark.gpu
@pytest.mark.parametrize("name", PROGRAMS)
def test_on_a_gpu(name):
    need_nvrtc()
    if name in LIBRARIES:
        pytest.importorskip(LIBRARIES[name])
    runpy.run_path(f"{DIRECTORY}/{name}.py")["main"]()


@pytest.mark.gpu
def test_pointers_of_cupy():
    pytest.importorskip("cupy")
    need_nvrtc()
    runpy.run_path(f"{DIRECTORY}/foreign_pointers.py")["with_cupy"]()
