# SPDX-License-Identifier: Apache-2.0
"""The code of the benchmarks: wrong results, failures and targets are reported correctly."""

import importlib
import json
import re
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from places import ROOT

BENCHMARKS = ROOT / "benchmarks"
sys.path.append(str(BENCHMARKS))

import run  # noqa: E402
from measurement import Comparison, Contender, Skip, Target, statement  # noqa: E402
from module import Run, at_once  # noqa: E402
from table import render_comparison, summary  # noqa: E402

VALUES = np.arange(3.0)


def steady(elapsed_ns: float, result: np.ndarray = VALUES) -> Contender:
    """Return a contender whose work always takes this time."""
    return Contender(lambda number: number * elapsed_ns, lambda: result)


def compare(**targets: Target) -> Comparison:
    """Return a comparison of a fast contender, a slow one and three that cannot be measured."""

    def unavailable() -> Contender:
        raise Skip("no such thing here")

    comparison = Comparison("work", "us", "slow", list(targets.values()), VALUES, number=10)
    comparison.add("fast", lambda: steady(2_000.0))
    comparison.add("slow", lambda: steady(4_000.0))
    comparison.add("wrong", lambda: steady(1.0, VALUES + 1))
    comparison.add("absent", unavailable)
    comparison.add("broken", lambda: statement("1 / 0"))
    comparison.measure(seconds=0.0, min_rounds=3)
    return comparison


def test_medians_are_in_the_unit_and_per_call():
    results = compare().as_dict()["results"]
    assert {name: row["median"] for name, row in results.items()} == {"fast": 2.0, "slow": 4.0}
    assert results["fast"]["n"] == 3


def test_what_is_not_measured_has_its_reason():
    data = compare().as_dict()
    assert data["reasons"] == {
        "wrong": "failed: ArithmeticError: its result differs from the expected one",
        "absent": "no such thing here",
        "broken": "failed: ZeroDivisionError: division by zero",
    }
    text = render_comparison(data)
    assert "| absent | not measured: no such thing here |" in text


def test_preparing_takes_nothing_from_the_time_for_measuring():
    one = Run(None, seconds=8.0, quick=True)
    shares = []
    for n_left in 1, 0:
        time.sleep(0.2)
        comparison = Comparison("work", "us", "x")
        comparison.measure = lambda seconds, min_rounds: shares.append(seconds)
        one.measure(comparison, n_left)
    assert shares[0] == 4
    assert 7.9 < shares[1] <= 8


def counted(elapsed_ns: float, runs: list[int]) -> Contender:
    """Return a contender of this duration that counts its runs."""
    return Contender(lambda number: runs.append(number) or number * elapsed_ns, lambda: VALUES)


@pytest.mark.parametrize(
    ("elapsed_s", "is_anew", "n_runs", "n_timed"),
    # the first run is checked, the second is found long; short ones are settled before each round
    [(2.0, False, 2, 1), (0.3, False, 4, 3), (2.0, True, 1, 1), (0.3, True, 3, 3)],
)
def test_who_takes_long_runs_seldom(elapsed_s, is_anew, n_runs, n_timed):
    runs: dict[str, list[int]] = {"quick": [], "long": []}
    number = 1 if is_anew else None
    comparison = Comparison("work", "ms", "quick", expected=VALUES, number=number, is_anew=is_anew)
    comparison.add("quick", lambda: counted(0.2e9, runs["quick"]))
    comparison.add("long", lambda: counted(elapsed_s * 1e9, runs["long"]))
    comparison.measure(seconds=0.0, min_rounds=5)
    row = comparison.as_dict()["results"]["long"]
    assert (len(runs["long"]), row["n"], row["median"]) == (n_runs, n_timed, elapsed_s * 1e3)


def test_a_pause_follows_those_whose_threads_spin(monkeypatch):
    pauses: list[float] = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    comparison = Comparison("work", "us", "numpy", expected=VALUES, pause_s=0.01)
    for name in ("cuplug", "numpy", "torch"):
        comparison.add(name, lambda: steady(10_000.0))
    assert pauses == [0.01, 0.001, 0.001]
    pauses.clear()
    comparison.measure(seconds=0.0, min_rounds=2)
    assert pauses == [0.01, 0.001, 0.001, 0.01, 0.001, 0.01]


def test_a_contender_that_fails_later_loses_its_samples():
    ages = iter([1, 1, 1])
    comparison = Comparison("work", "us", "a", number=1)
    comparison.add("a", lambda: Contender(lambda number: next(ages)))
    comparison.measure(seconds=0.0, min_rounds=5)
    data = comparison.as_dict()
    assert data["results"] == {}
    assert data["reasons"] == {"a": "failed: StopIteration: "}


@pytest.mark.parametrize(
    ("target", "limit", "reached"),
    [
        (Target("fast", "", ("slow",), 0.5), 2.0, True),
        (Target("fast", "", ("slow",), 0.4), 1.6, False),
        (Target("slow", "", ("slow", "fast")), 2.0, False),
        (Target("fast", "", ("absent", "slow"), extra=-1.0), 3.0, True),
        (Target("fast", "", extra=1.5), 1.5, False),
        (Target("fast", "", ("absent",)), None, None),
        (Target("absent", "", ("slow",)), 4.0, None),
        (Target("fast", "", ("fast",), 0.6, control=("slow", "fast")), 2.4, True),
        (Target("fast", "", ("fast",), control=("absent", "fast")), None, None),
    ],
)
def test_targets_are_judged_against_the_best_reference(target, limit, reached):
    judged = compare(one=target).as_dict()["targets"][0]
    assert judged["limit"] == pytest.approx(limit) if limit else judged["limit"] is None
    assert judged["reached"] is reached


def test_the_summary_names_what_is_missed():
    data = compare(
        one=Target("fast", "<= 0.1 x slow", ("slow",), 0.1),
        two=Target("fast", "<= slow", ("slow",)),
        three=Target("absent", "<= slow", ("slow",)),
    ).as_dict()
    lines = summary({"benchmarks": {"work": {"comparisons": [data]}}})
    assert lines == [
        "missed: work: fast took 2.00 us, expected <= 0.1 x slow (here 0.400 us)",
        "targets: 1 reached, 1 missed, 1 not measured",
    ]


def test_what_is_measured_stays_when_the_rest_fails(tmp_path, monkeypatch):
    asked = []

    def measure_some(names, seconds, options):
        asked.append(names)
        data = compare(one=Target("fast", "<= slow", ("slow",))).as_dict()
        yield names[0], {"comparisons": [data], "wall_s": 1.0}
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "run_all", measure_some)
    for resume in (False, True):
        with pytest.raises(KeyboardInterrupt):
            run.main.callback("call", resume, False, 1.0, 0, False, tmp_path)
    rooms = {run.module_path(name).parent.name for name in asked[0]}
    assert (rooms, asked[1]) == ({"call"}, asked[0][1:])
    report = json.loads(next(tmp_path.glob("*.json")).read_text())
    assert report["benchmarks"]["calls"]["comparisons"][0]["title"] == "work"
    assert "### work" in next(tmp_path.glob("*.md")).read_text()


def test_what_other_commits_measured_stays_and_says_so(tmp_path, monkeypatch):
    def measure_one(names, seconds, options):
        yield names[0], {"comparisons": [], "wall_s": 1.0}

    monkeypatch.setattr(run, "run_all", measure_one)
    for commit, only in ("a" * 40, "discovery"), ("b" * 40, "calls"):
        monkeypatch.setenv("CUPLUG_COMMIT", commit)
        run.main.callback(only, False, False, 1.0, 0, False, tmp_path)
    text = next(tmp_path.glob("*.md")).read_text()
    assert text.index("## calls") < text.index("## discovery")
    assert text.count("Measured at commit") == text.count("Measured at commit aaaaaaaaaaaa") == 1
    facts = json.loads(next(tmp_path.glob("*.json")).read_text())["machine"]
    assert run.measured(run.data_path(facts, tmp_path), facts | {"driver": "other"}) == {}


def test_who_takes_long_is_timed_less():
    comparison = Comparison("work", "ms", "a", number=1)
    times = {"fast": 2e7, "nearly slow": 1e8 - 1e6, "slow, far": 2e8, "short": 9e7}
    for name, ns in {**times, "a fifth": 1e8}.items():
        comparison.add(name, lambda ns=ns: Contender(lambda number: ns))
    comparison.measure(seconds=0.0, min_rounds=7)
    counts = {name: row["n"] for name, row in comparison.as_dict()["results"].items()}
    assert counts == {"fast": 7, "nearly slow": 7, "slow, far": 1, "short": 7, "a fifth": 4}


def test_comparisons_share_the_time():
    one, shares = Run(None, seconds=9.0, quick=True), []

    def prepare():
        comparison = Comparison("work", "us", "x")
        comparison.measure = lambda seconds, min_rounds: shares.append(round(seconds, 1))
        return comparison

    one.measure_all(prepare for _ in range(3))
    assert shares == [3.0, 4.5, 9.0]


def test_packages_are_imported_before_threads_use_them(tmp_path, monkeypatch):
    (tmp_path / "slow_package.py").write_text("import threading\nowner = threading.get_ident()\n")
    monkeypatch.syspath_prepend(tmp_path)
    owners = []

    def use():
        owners.append(importlib.import_module("slow_package").owner)

    at_once([use, lambda: 1 / 0, use], ["no_such_package", "slow_package"])
    assert owners == [threading.get_ident()] * 2


@pytest.mark.slow
def test_a_quick_run_writes_table_and_data(tmp_path):
    command = [sys.executable, str(BENCHMARKS / "run.py"), "--quick", "--only", "discovery"]
    command += ["--seconds", "1", "--output", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    report = json.loads(next(tmp_path.glob("*.json")).read_text())
    comparison = report["benchmarks"]["discovery"]["comparisons"][0]
    assert comparison["reasons"] == {}
    assert comparison["results"]["cuplug_list, C"]["median"] > 0
    assert f"### {comparison['title']}" in next(tmp_path.glob("*.md")).read_text()


def test_included_files_are_there():
    sources = [file for end in ("c", "cpp", "cu", "cuh") for file in BENCHMARKS.rglob(f"*.{end}")]
    assert len(sources) > 10
    for source in sources:
        for name in re.findall(r'^#include "(.*)"', source.read_text(), re.MULTILINE):
            assert (source.parent / name).exists(), f"{source}: {name}"
