# SPDX-License-Identifier: Apache-2.0
"""`cuplug test` on twelve kernels: nothing is wrong with them, and each planted defect is found."""

import pytest
from cuplug._integration.commands.property_runner import try_all
from places import ROOT

FOLDER = ROOT / "tests" / "commands" / "kernels"
FIXTURE = str(FOLDER / "kernels_fixture.py")


def results_of(build_plugin, defect, examples=10):
    defines = [f"DEFECT={defect}"]
    path = build_plugin(FOLDER / "kernels.c", "kernels", defines=defines, extra=["-lm"])
    return try_all(str(path), examples, fixture=FIXTURE)


# Which check finds the first, the second and the third defect.
FOUND = {
}


@pytest.mark.slow
def test_nothing_is_wrong_with_the_kernels(build_plugin):
    results = results_of(build_plugin, 0)
    assert [r for r in results if not (r.ok and r.tried)] == []
    assert {r.operator for r in results} == {*FOUND, "plan_of"}
    assert all(r.calls == r.accepted for r in results)


@pytest.mark.slow
@pytest.mark.parametrize("defect", [1, 2, 3])
def test_each_defect_is_found(build_plugin, defect):
    failed = {(r.operator, r.property) for r in results_of(build_plugin, defect) if not r.ok}
    assert {(name, found[defect - 1]) for name, found in FOUND.items()} <= failed
    assert {name for name, _ in failed} == {*FOUND}
