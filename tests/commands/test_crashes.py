# SPDX-License-Identifier: Apache-2.0
"""`cuplug test` after crashes, without time, with fixtures, and under compute-sanitizer."""

import json
import re
from types import SimpleNamespace

import pytest
from cuplug._integration.commands import property_runner
from cuplug._integration.commands.authoring import show_results
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
STUCK = """
CUPLUG_ENTRY int stuck_host(const cuplug_call *call) {
  for (;;) nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
  return fill(call);
}
CUPLUG_HOST_OPERATOR(stuck_host, "stuck(x: float32[n]) -> float32[n]", "For ever.");
CUPLUG_PLUGIN(stuck, "1.0.0");
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
    expected = r"the process was ended by SIGSEGV; on its own it passes: deterministic, .*"
    assert re.match(expected, failed.text)
    assert "large arrays" in {r.property for r in results if r.ok and r.tried}


def test_a_budget_is_shared_and_reported(monkeypatch, capsys):
    """The first of gather's three signatures would need 100 s for each of its properties."""
    now, given = [0.0], []

    def run_command(command, env, left):
        given.append(left - property_runner.GRACE_S)
        ends, lines = now[0] + given[-1], []
        for name in json.loads(command[-1])["properties"]:
            now[0] += 100.0 if len(given) == 1 and lines else 0.0
            if now[0] > ends:
                now[0] = ends + 2  # until it has ended
                return lines, property_runner.OUT_OF_TIME
            lines.append({"property": name, "ok": True, "text": "", "code": "", "kind": "bad"})
        return lines, ""

    monkeypatch.setattr(property_runner, "_run_command", run_command)
    monkeypatch.setattr(property_runner, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(property_runner, "devices", list)
    results = try_all("gather.gather", budget=360.0)
    assert given == [120.0, 119.0, 238.0]  # the third uses the time that the second left
    found = [r for r in results if r.property != "CUDA"]
    assert not [r for r in found if not r.ok or r.tried == r.text.startswith(LATE)]
    signatures = list(dict.fromkeys(r.signature for r in found))
    assert len(signatures) == 3
    first = [r for r in found if r.signature == signatures[0]]
    n = len(first) - 1
    assert [r for r in found if not r.tried] == first[1:]
    show_results(results, 360.0)
    last = capsys.readouterr().out.splitlines()[-1]
    late = f"{n} did not run or finish: those of gather"
    assert last == f"budget of 360 s: {len(results) - n} checks ran; {late}"


@pytest.mark.slow
def test_a_budget_ends_an_operator_that_is_stuck(build_plugin):
    done = run("test", str(build_plugin(SOURCE + STUCK, "stuck")), "--budget", "0.5")
    assert done.returncode == 0, done.stdout
    assert LATE in done.stdout
    last = done.stdout.splitlines()[-1]
    assert re.fullmatch(
        r"budget of 0\.5 s: \d+ checks ran; \d+ did not run or finish: those of stuck", last
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
