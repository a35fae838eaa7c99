# SPDX-License-Identifier: Apache-2.0
"""Plugins that change rounding, flush subnormal numbers or trap affect only themselves."""

import threading
from pathlib import Path

import cuplug
import numpy as np
import pytest
from cuplug._engine.call.run import n_rounding_changes
from cuplug._integration.author.check import check_file
from places import FIXTURES

OPERATORS = ("round_up", "flush", "trap", "flush_in_loop")
SUBNORMAL = np.float32([1e-40])


def how_it_computes():
    """Return results that change with rounding, flushing and traps."""
    with np.errstate(all="ignore"):
        third = np.float64([1.0]) / 3
        both = [third[0], -third[0], (SUBNORMAL * 1)[0], (np.float64([1e-310]) * 1)[0]]
        return [x.tobytes() for x in both] + [np.isnan(np.float64([0.0]) / 0)[0]]


@pytest.fixture(scope="module")
def plugin(build_plugin):
    extra = ["-D_GNU_SOURCE", "-pthread", "-lm"]
    return cuplug.load(str(build_plugin(FIXTURES / "rounding.c", "rounding", extra=extra)))


@pytest.mark.parametrize("name", OPERATORS)
def test_an_entry_changes_its_own_computing_alone(plugin, name):
    before = how_it_computes()
    x = np.full(1 << 20, 3, np.float32)
    n_before = n_rounding_changes()
    for _ in range(3):
        assert (getattr(plugin, name)(x) == 1.5).all()
    assert how_it_computes() == before
    assert n_rounding_changes() > n_before
    # Bodies of loops on the pool's threads have this thread's state.
    tiny = np.full(1 << 20, 4e-40, np.float32)
    assert (plugin.keep(tiny) != 0).all()
    halved = cuplug.elementwise("halved(x: T) -> T", "x / 2")(tiny)
    assert (halved == np.float32(2e-40)).all()


def test_an_entry_that_changes_nothing_is_not_counted(plugin):
    n_before = n_rounding_changes()
    plugin.keep(np.ones(3, np.float32))
    assert n_rounding_changes() == n_before


SOURCE = """
#include <cuplug/plugin.h>
#include <fenv.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
__attribute__((constructor)) static void set_fast_math(void) { _mm_setcsr(_mm_getcsr() | 0x8040); }
#else
__attribute__((constructor)) static void set_fast_math(void) {
  unsigned long long fpcr;
  __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
  __asm__ volatile("msr fpcr, %0" : : "r"(fpcr | 1ull << 24));
}
#endif
CUPLUG_ENTRY int fast_host(const cuplug_call *call) { (void)call; return CUPLUG_OK; }
CUPLUG_HOST_OPERATOR(fast_host, "fast(x: float32[n]) -> y: float32[n]", "Computes nothing.");
CUPLUG_PLUGIN(fast, "1.0.0");
__attribute__((visibility("default"))) double halve(double x);
double halve(double x) { return x / 2; }
"""


@pytest.fixture(scope="module")
def fast(build_plugin):
    return str(build_plugin(SOURCE, "fast", extra=["-O2"]))


def test_constructors_change_no_thread(fast):
    before = how_it_computes()
    cuplug.load(fast).fast(np.ones(3, np.float32))
    assert how_it_computes() == before
    seen = []
    thread = threading.Thread(target=lambda: seen.append(how_it_computes()))
    thread.start()
    thread.join()
    assert seen == [before]


def test_constructors_of_adopted_libraries_change_no_thread(fast, tmp_path):
    pytest.importorskip("cffi")
    before = how_it_computes()
    copy = tmp_path / "libadopted_fast.so"
    copy.write_bytes(Path(fast).read_bytes())
    copy.chmod(0o755)
    cuplug.adopt(
        copy,
        {
            "prototypes": "double halve(double x);",
            "halve": {
                "signature": "halve(x: float) -> y: float64[]",
                "arguments": "x",
                "returns": "y",
            },
        },
    )
    assert how_it_computes() == before


def test_check_reports_constructors(fast, build_plugin):
    def levels(path):
        return [finding.level for finding in check_file(path) if finding.rule == "rounding"]

    assert levels(fast) == ["warning"]
    sound = build_plugin(FIXTURES / "flawed.c", "flawed", extra=["-lm"])
    assert levels(str(sound)) == ["ok"]
    plain = SOURCE.replace("__attribute__((constructor))", "__attribute__((used))")
    follows = build_plugin(plain, "follows", extra=["-O2"])  # the code of a constructor
    assert levels(str(follows)) == ["ok"]


def test_check_reports_constructors_of_private_libraries(fast, build_plugin, tmp_path):
    private = tmp_path / "libfast_private.so"
    private.write_bytes(Path(fast).read_bytes())
    extra = [str(private), "-Wl,--no-as-needed", f"-Wl,-rpath,{tmp_path}"]
    path = build_plugin(FIXTURES / "flawed.c", "flawed", extra=["-Wl,--no-as-needed", *extra])
    (found,) = [finding for finding in check_file(str(path)) if finding.rule == "rounding"]
    assert "libfast_private.so" in found.text
