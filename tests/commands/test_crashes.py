# SPDX-License-Identifier: Apache-2.0
"""`cuplug test` after crashes, without time, with fixtures, and under compute-sanitizer."""

import re

import pytest
from cuplug._integration.commands.property_runner import LATE, first_error, try_all
from processes import run

SOURCE = """/* SPDX-License-Identifier: Apache-2.0 */
#include <cuplug/plugin.h>
#include <string.h>
#include <time.h>

CUPLUG_ENTRY int fill(const cuplug_call *call) {
  const cuplug_tensor *y = call->outputs;
  memset(y->data, 0, (size_t)(cuplug_n_elements(y) * cuplug_element_bytes(y)));
  return CUPLUG_OK;
}
"""
WEARS_OUT = """
CUPLUG_ENTRY int wears_out_host(const cuplug_call *call) {
  static _Atomic int n_calls;
  if (++n_calls > 40) *(volatile int *)8 = 1;
  return fill(call);
}
CUPLUG_HOST_OPERATOR(wears_out_host, "wears_out(x: float32[n]) -> float32[n]", "Forty calls.");
CUPLUG_PLUGIN(wears_out, "1.0.0");
"""
SLOW = """
CUPLUG_ENTRY int slow_host(const cuplug_call *call) {
  nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
  return fill(call);
}
CUPLUG_ENTRY int stuck_host(const cuplug_call *call) {
  for (;;) nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
  return fill(call);
}
CUPLUG_HOST_OPERATOR(slow_host, "slow(x: float32[n]) -> float32[n]", "A tenth of a second.");
CUPLUG_HOST_OPERATOR(stuck_host, "stuck(x: float32[n]) -> float32[n]", "For ever.");
CUPLUG_PLUGIN(slow, "1.0.0");
"""
OVERLOADS = """
CUPLUG_ENTRY int any_host(const cuplug_call *call) { return fill(call); }
CUPLUG_HOST_OPERATOR(any_host, "g(x: T[n]) -> T[n] where T: floating", "Any.");
CUPLUG_HOST_OPERATOR(any_host, "g(x: float64[n]) -> float64[n]", "Never reached.");
CUPLUG_HOST_OPERATOR(any_host, "h(x: T[n]) -> T[n] where T: floating", "Any.");
CUPLUG_HOST_OPERATOR(any_host, "h(x: T[n], y: T[n] = None) -> T[n] where T: floating", "With y.");
CUPLUG_PLUGIN(overloads, "1.0.0");
"""


@pytest.mark.slow
def test_a_crash_by_an_earlier_check_is_one_error(build_plugin):
    results = try_all(str(build_plugin(SOURCE + WEARS_OUT, "wears_out")), examples=5)
    (failed,) = [r for r in results if not r.ok]
    expected = r"the process was ended by SIGSEGV; on its own it passes: the same result again, .*"
    assert re.match(expected, failed.text)
    assert "large arrays" in {r.property for r in results if r.ok and r.tried}


@pytest.mark.slow
def test_a_budget_is_kept_and_reported(build_plugin):
    path = str(build_plugin(SOURCE + SLOW, "slow"))
    done = run("test", path, "--budget", "8", "--examples", "5")
    assert done.returncode == 0, done.stdout
    slow, _, stuck = done.stdout.partition("stuck(x")
    assert "ok    the same result again" in slow
    assert LATE in slow
    assert LATE in stuck
    last = done.stdout.splitlines()[-1]
    assert re.fullmatch(
        r"budget of 8 s: \d+ checks ran; \d+ did not run or finish: those of slow, stuck", last
    )


@pytest.mark.slow
def test_overloads_are_reached_or_the_one_in_front_is_named(build_plugin):
    seen = []
    path = str(build_plugin(SOURCE + OVERLOADS, "overloads"))
    results = try_all(path, examples=3, report=lambda *progress: seen.append(progress))
    n = len({r.signature for r in results})
    assert [(k, of) for k, of, _ in seen] == [(k, n) for k in range(1, n + 1)]
    assert [r for r in results if not r.ok] == []
    untried = [r for r in results if not r.tried]
    assert {r.signature for r in untried} == {"g(x: float64[n]) -> float64[n]"}
    front = "g(x: T[n]) -> T[n] where T: floating"
    assert {r.text for r in untried} == {
        f"not tried: {front} takes the calls, as it is tried before"
    }


def test_a_fixture_that_is_not_python(build_plugin, tmp_path):
    path = str(build_plugin(SOURCE + OVERLOADS, "overloads"))
    file = tmp_path / "fixture.py"
    with pytest.raises(ValueError, match=r"^--fixture: got .*, expected a Python file \(.*No such"):
        try_all(path, fixture=str(file))
    file.write_text("def x(:\n")
    with pytest.raises(ValueError, match=r"^--fixture: got .*, expected a Python file \(inval"):
        try_all(path, fixture=str(file))


@pytest.mark.slow
def test_a_fixture_next_to_the_library_is_used(build_plugin, tmp_path):
    built = build_plugin(SOURCE + OVERLOADS, "overloads")
    path = tmp_path / built.name
    path.write_bytes(built.read_bytes())
    path.with_suffix(".fixture.py").write_text("def g_x(shape, rows): return shape\n")
    results = try_all(str(path), examples=2)
    texts = {r.text for r in results if not r.ok and r.operator == "g"}
    assert len(texts) == 1
    assert re.search(r"fixture.py: g_x: got the parameter rows, expected one of device, d", *texts)
    assert [r for r in results if not r.ok and r.operator == "h"] == []


LOG = """========= COMPUTE-SANITIZER
========= Target application forked
========= Invalid __global__ write of size 4 bytes
=========     at scale_kernel(float *)+0x90
=========     by thread (3,0,0) in block (0,0,0)
=========     Address 0x7f6b2d400404 is out of bounds
=========     and is 5 bytes after the nearest allocation at 0x7f6b2d400000 of size 1024 bytes
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: cuLaunchKernel [0x7f6b]
=========
========= Invalid __global__ read of size 8 bytes
=========     at other_kernel()+0x10
========= ERROR SUMMARY: 2 errors
"""


def test_the_first_error_of_memcheck_is_quoted():
    assert first_error(LOG).splitlines() == [
        "Invalid __global__ write of size 4 bytes",
        "at scale_kernel(float *)+0x90",
        "by thread (3,0,0) in block (0,0,0)",
        "Address 0x7f6b2d400404 is out of bounds",
        "and is 5 bytes after the nearest allocation at 0x7f6b2d400000 of size 1024 bytes",
    ]
    banners = [line for line in LOG.splitlines() if "Invalid" not in line]
    assert first_error("\n".join(banners)) == ""
