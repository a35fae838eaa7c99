# SPDX-License-Identifier: Apache-2.0
"""`cuplug test` on 18 kernels: it finds no error in them, and each planted defect."""

import pytest
from cuplug._integration.commands.property_runner import try_all
from places import ROOT

FOLDER = ROOT / "tests" / "commands" / "kernels"
FIXTURE = str(FOLDER / "kernels_fixture.py")

pytestmark = pytest.mark.slow

SAME, INPUTS, BESIDE, LAYOUTS, FILLED = (
    "deterministic",
    "inputs unchanged",
    "writes in bounds",
    "layouts",
    "outputs filled",
)
READS, EXPECTED = "reads in bounds", "expected results"
# Which check finds the first, the second and the third defect.
FOUND = {
    "rms_norm": (FILLED, BESIDE, INPUTS),
    "rotary": (LAYOUTS, FILLED, "rounding mode"),
    "read_pages": (SAME, INPUTS, FILLED),
    "quantize": (FILLED, "any values", SAME),
    "causal_conv": (SAME, FILLED, BESIDE),
    "matmul": (FILLED, "accepted calls", FILLED),
    "scores": (SAME, SAME, FILLED),
    "fold": (BESIDE, BESIDE, INPUTS),
    "mix": (INPUTS, "empty arrays", SAME),
    "head": (FILLED, BESIDE, "large arrays"),
    "look_up": (INPUTS, FILLED, SAME),
    "blend": (FILLED, BESIDE, INPUTS),
}
FOUND_FURTHER = {
    "adam": (EXPECTED, INPUTS, EXPECTED),
    "select_where": (BESIDE, EXPECTED, READS),
    "histogram": (FILLED, READS, EXPECTED),
    "pool": (LAYOUTS, READS, EXPECTED),
    "scan": ("independent", EXPECTED, FILLED),
    "softplus": ("gradient", "in place", EXPECTED),
}
GUARDED = "CUDA: accesses in bounds"
FOUND_ON_A_GPU = {
    "rms_norm": (GUARDED, GUARDED, GUARDED),
    "rows": ("CUDA: deterministic", GUARDED, GUARDED),
    "look_up": (GUARDED, GUARDED, GUARDED),
}


@pytest.fixture
def results_of(build_plugin):
    """Return a function that tests the kernels of a file with one defect."""

    def results(file, defect, examples=10):
        source = FOLDER / file
        cuda = source.suffix == ".cu"
        extra = [] if cuda else ["-Wl,--no-as-needed", "-lstdc++", "-lm"]
        defines = [f"DEFECT={defect}"]
        path = build_plugin(source, source.stem, defines=defines, cuda=cuda, extra=extra)
        return try_all(str(path), examples, fixture=FIXTURE)

    return results


FILES = {"kernels.c": (FOUND, {"plan_of"}), "further.cpp": (FOUND_FURTHER, {"softplus_backward"})}


@pytest.mark.parametrize("file", FILES)
def test_nothing_is_wrong_with_the_kernels(results_of, file):
    results = results_of(file, 0)
    assert [(r.operator, r.property, r.text) for r in results if not (r.ok and r.tried)] == []
    found, others = FILES[file]
    assert {r.operator for r in results} == {*found, *others}
    assert all(r.calls == r.accepted for r in results)


@pytest.mark.parametrize("defect", [1, 2, 3])
@pytest.mark.parametrize("file", FILES)
def test_each_defect_is_found(results_of, file, defect):
    failed = {(r.operator, r.property) for r in results_of(file, defect) if not r.ok}
    found, _ = FILES[file]
    assert {(name, checks[defect - 1]) for name, checks in found.items()} <= failed
    assert {name for name, _ in failed} == {*found}


@pytest.mark.gpu
def test_nothing_is_wrong_with_the_kernels_on_a_gpu(results_of):
    results = results_of("kernels.cu", 0)
    assert [r for r in results if not r.ok] == []
    assert {r.operator for r in results if r.accepted} == {*FOUND_ON_A_GPU}


@pytest.mark.gpu
@pytest.mark.parametrize("defect", [1, 2, 3])
def test_each_defect_is_found_on_a_gpu(results_of, defect):
    failed = {(r.operator, r.property) for r in results_of("kernels.cu", defect) if not r.ok}
    assert {(name, found[defect - 1]) for name, found in FOUND_ON_A_GPU.items()} <= failed


@pytest.mark.gpu
def test_an_illegal_address_ends_only_its_check(results_of):
    results = [r for r in results_of("kernels.cu", 1) if r.operator == "rows"]
    bad = [r for r in results if r.property == "CUDA: invalid arguments"]
    assert [r.ok for r in bad] == [True]  # it launches nothing
    (memcheck,) = [r for r in results if "memcheck" in r.property] or [None]
    assert memcheck is None or memcheck.text.startswith("Invalid __global__ read of size 4 bytes")
