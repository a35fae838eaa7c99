# SPDX-License-Identifier: Apache-2.0
"""The selection of tests, and one line of output for tests that do not run."""

import functools
import gc
import os
import subprocess
import sys
import zlib
from collections import Counter, defaultdict

import numpy as np
import pytest
from places import TESTS

LEFT_OUT = pytest.StashKey[Counter]()  # reason -> number of tests


@functools.cache
def n_gpus() -> int:
    """Count in a separate process: CUDA must not start in the one that runs the tests."""
    code = "import cuplug; print(len(cuplug.devices()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    return int(done.stdout) if done.returncode == 0 else 0


def runs_all() -> bool:
    """Return whether slow tests also run, and all tests at full length."""
    return os.environ.get("CUPLUG_TEST_ALL") == "1"


def is_sanitized() -> bool:
    """Return whether these tests run with the address sanitizer."""
    return "libasan" in os.environ.get("LD_PRELOAD", "")


@functools.cache
def need_numpy_2() -> frozenset[str]:
    """Return the names of tests that compare with NumPy 2, where NumPy is older."""
    if not np.__version__.startswith("1."):
        return frozenset()
    return frozenset((TESTS / "not_with_numpy_1.txt").read_text().splitlines())


def _reason(item: pytest.Item) -> str:
    """Return why a test is skipped; "" if it runs."""
    marks = {mark.name: mark for mark in reversed([*item.iter_markers()])}
    if "gpu" in marks and n_gpus() < marks["gpu"].kwargs.get("n", 1):
        return f"need more GPUs than there are ({n_gpus()})"
    if "large" in marks and os.environ.get("CUPLUG_TEST_LARGE") != "1":
        return "need much memory: set CUPLUG_TEST_LARGE=1"
    if "uninstrumented" in marks and is_sanitized():
        return "are not for sanitizers"
    if not need_numpy_2().isdisjoint({item.nodeid, item.nodeid.partition("[")[0]}):
        return "compare with NumPy 2"
    if "slow" in marks and _runs_few(item.config):
        return "are slow: make test-all runs them"
    return ""


def _further_cases(items: list[pytest.Item]) -> set[pytest.Item]:
    """Return the cases outside the samples, which are the same on every machine."""
    tables = defaultdict(list)
    for item in items:
        if mark := item.get_closest_marker("sample"):
            tables[item.path, item.originalname, mark.args[0]].append(item)
    further = set()
    for (_, _, n), cases in tables.items():
        cases.sort(key=lambda item: zlib.crc32(item.name.encode()))
        further.update(cases[-(-len(cases) // n) :])
    return further


def _runs_few(config: pytest.Config) -> bool:
    asked_for = "slow" in config.option.markexpr or any("::" in arg for arg in config.args)
    return not (runs_all() or asked_for)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Keep the tests of a GPU on one worker: some count its memory."""
    if item.get_closest_marker("gpu"):
        item.add_marker(pytest.mark.xdist_group("gpu"))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect tests that this machine cannot run, among those that -k and -m selected."""
    reasons = [_reason(item) for item in items]
    if _runs_few(config):
        further = _further_cases(
            [x for x, reason in zip(items, reasons, strict=True) if not reason]
        )
        said = "are further cases of long tables: make test-all runs them"
        reasons = [said if x in further else y for x, y in zip(items, reasons, strict=True)]
    counts = config.stash[LEFT_OUT] = Counter(filter(None, reasons))
    getattr(config, "workeroutput", {})["left_out"] = dict(counts)
    left_out = [item for item, reason in zip(items, reasons, strict=True) if reason]
    items[:] = [item for item, reason in zip(items, reasons, strict=True) if not reason]
    if left_out:
        config.hook.pytest_deselected(items=left_out)


def pytest_collection() -> None:
    """Collect no garbage among thousands of new tests: that would take a third of the time."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Exclude the tests from later garbage collections, which some tests request."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node) -> None:
    """Use the counts of an xdist worker; all workers have the same ones."""
    node.config.stash[LEFT_OUT] = Counter(getattr(node, "workeroutput", {}).get("left_out", {}))


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Return success if all tests were deselected."""
    if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and session.config.stash.get(LEFT_OUT, {}):
        session.exitstatus = pytest.ExitCode.OK


def pytest_terminal_summary(terminalreporter, config: pytest.Config) -> None:
    """Report how many tests did not run, and why."""
    counts = config.stash.get(LEFT_OUT, Counter())
    parts = [f"{n:,} tests that {reason}" for reason, n in counts.items()]
    if parts:
        terminalreporter.write_line(f"Left out: {'; '.join(parts)}")
