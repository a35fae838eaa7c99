# SPDX-License-Identifier: Apache-2.0
"""Run the tests that need a GPU, several files at once, and some again under compute-sanitizer.

Slow tests also run, except under compute-sanitizer.

python tests/run_on_gpu.py --jobs 8                         # or: make gpu-test GPU_JOBS=8
python tests/run_on_gpu.py --tools memcheck -k "scatter"    # options that follow are pytest's
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYTEST = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:logging"]
SANITIZER = ["compute-sanitizer", "--target-processes", "application-only"]
SANITIZER += ["--launch-timeout", "120", "--error-exitcode", "1", "--tool"]
MARKS = {False: "gpu and not alone", True: "gpu and sanitizer and not alone and not again"}
ALONE = "gpu and alone"
LIMIT_S = 900.0  # of one file
LINES = 40  # of a failure's output that are shown


@dataclass
class Outcome:
    """The outcome of a file, under a tool of compute-sanitizer, or "" for none."""

    tool: str
    file: str
    returncode: int
    text: str
    seconds: float

    @property
    def n_passed(self) -> int:
        """The number of tests that passed."""
        return sum(int(n) for n in re.findall(r"^.*?(\d+) passed.* in [\d.]+s", self.text, re.M))

    @property
    def left_out(self) -> Counter[str]:
        """The number of tests that did not run, by reason."""
        said = re.findall(r"^SKIPPED \[(\d+)\] (.+)$", self.text, re.M)
        line = re.search(r"^Left out: (.+)$", self.text, re.M)
        said += re.findall(r"([\d,]+) tests that (.+?)(?:; |$)", line[1]) if line else []
        counts: Counter[str] = Counter()
        for n, reason in said:
            counts[reason] += int(n.replace(",", ""))
        return counts


def environment(tool: str) -> dict[str, str]:
    """Return the environment in which tests run under a tool."""
    return {**os.environ} if tool else {"CUPLUG_TEST_ALL": "1", **os.environ}


def files(tool: str, mark: str, options: list[str]) -> list[str]:
    """Return the files with tests of a mark that this machine can run."""
    command = [*PYTEST, "--collect-only", "-m", mark, *options]
    listed = subprocess.run(
        command, cwd=ROOT, env=environment(tool), capture_output=True, text=True
    )
    if listed.returncode not in (0, 5):
        raise SystemExit(listed.stdout + listed.stderr)
    return sorted(set(re.findall(r"^(\S+\.py)(?:::|: \d)", listed.stdout, re.M)))


def run(tool: str, file: str, mark: str, options: list[str]) -> Outcome:
    """Run the tests of a file that have a mark."""
    start = time.monotonic()
    command = [*([*SANITIZER, tool] if tool else []), *PYTEST, "-m", mark, *options]
    try:
        done = subprocess.run(
            [*command, file],
            cwd=ROOT,
            env=environment(tool),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=LIMIT_S,
        )
        returncode, text = done.returncode, done.stdout
    except subprocess.TimeoutExpired as error:
        returncode, text = 124, f"{(error.stdout or b'').decode(errors='replace')}\nit hangs"
    return Outcome(tool, file, returncode, text, time.monotonic() - start)


def run_all(tools: list[str], jobs: int, options: list[str]) -> Iterator[Outcome]:
    """Run each file, some with each tool of compute-sanitizer; then exclusive tests."""
    work = [
        (tool, file, MARKS[True]) for tool in tools for file in files(tool, MARKS[True], options)
    ]
    work += [("", file, MARKS[False]) for file in files("", MARKS[False], options)]
    with ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(lambda each: run(*each, options), work)
    for file in files("", ALONE, options):
        yield run("", file, ALONE, options)


def main() -> int:
    """Run the selected tests, and report failures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=4, help="files at once")
    parser.add_argument("--tools", default="memcheck,racecheck", help="of compute-sanitizer")
    given, options = parser.parse_known_args()
    tools = [tool for tool in given.tools.split(",") if tool]
    if tools and not shutil.which(SANITIZER[0]):
        print("compute-sanitizer was not found: its runs are left out")
        tools = []
    outcomes = []
    for each in run_all(tools, given.jobs, options):
        outcomes.append(each)
        is_fine = each.returncode == 0
        print(f"{each.tool or 'pytest'} {each.file}: {each.n_passed} passed, {each.seconds:.0f} s")
        if not is_fine:
            print(f"FAILED with {each.returncode}:", *each.text.splitlines()[-LINES:], sep="\n  ")
    for tool in ["", *tools]:
        own = [each for each in outcomes if each.tool == tool]
        failed = [each.file for each in own if each.returncode]
        n_passed = sum(each.n_passed for each in own)
        n_files = len({each.file for each in own})
        print(f"{tool or 'pytest'}: {n_passed:,} tests of {n_files} files passed", end="")
        print(f"; failed: {', '.join(failed)}" if failed else "")
        for reason, n in sum((each.left_out for each in own), Counter()).most_common():
            print(f"  left out: {n:,} {reason}")
    return int(any(each.returncode for each in outcomes))


if __name__ == "__main__":
    sys.exit(main())
