# SPDX-License-Identifier: Apache-2.0
"""Counts the instructions of one call by valgrind's callgrind, and writes them as a table.

Unlike the time of a call, the number of instructions does not depend on the machine's load.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import click
import machine
from run import HERE, ROOT, environment, module_path, use_staged_package
from storage import write_data
from table import render_machine, rows

N_CALLS = 1000
EMPTY = "empty loop"
# The first pattern that matches an object's path determines its part.
PARTS = {
    "core": r"/libcuplug(\.so|_runtime)",
    "plugin": r"/(plugins|lib/cuplug)/lib\w+\.so",
    "Cython": r"/cuplug/(?!build/benchmarks)(\w+/)*\w+\.cpython\S*so$|/typed_calls\.\S*so$",
    "NumPy, PyTorch": r"/(numpy|torch)/",
    "interpreter": r"/(lib)?python3[^/]*$",
    "C library": r"/(libc|libm|libpthread|ld-linux[^/]*)\.so",
}


ALLOCATIONS, LOCKS = "heap allocations", "locks of the core"
COUNTED = (*PARTS, "other", ALLOCATIONS, LOCKS)
ALLOCATORS = {"malloc", "calloc", "realloc", "posix_memalign", "aligned_alloc", "operator new"}


def part_of(path: str) -> str:
    """Return the part of a call to which an object file belongs."""
    return next((part for part, pattern in PARTS.items() if re.search(pattern, path)), "other")


def read_profile(text: str) -> tuple[str, Counter[str]]:
    """Return the case of a callgrind profile, and its counts.

    The counts are instructions by part, calls of the allocator by any code, and locks that the core
    takes. The format is described in callgrind's manual, "Callgrind Format Specification": cost
    lines after `ob=` belong to that object; the line after `calls=` is the cost of the callee.
    """
    case, part, callee, called = "", "other", "", False
    names: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for line in text.splitlines():
        if found := re.match(r"desc: Trigger: Client Request: (.*)", line):
            case = found[1]
        elif found := re.match(r"(c?)(ob|fn)=(\(\d+\)) ?(.*)", line):
            kind = found[2] + found[3]
            name = names[kind] = found[4] or names[kind]
            part = part_of(name) if found.group(1, 2) == ("", "ob") else part
            callee = name if found.group(1, 2) == ("c", "fn") else callee
        elif found := re.match(r"calls=(\d+)", line):
            called = True
            counts[ALLOCATIONS] += int(found[1]) if callee in ALLOCATORS else 0
            counts[LOCKS] += int(found[1]) if part == "core" and "mutex_lock" in callee else 0
        elif found := re.match(r"[+\-*\d]\S* (\d+)", line):
            counts[part] += 0 if called else int(found[1])
            called = False
    return case, counts


def count() -> dict[str, dict[str, float]]:
    """Return the instructions per call by part, for each case, without the empty loop's."""
    with tempfile.TemporaryDirectory() as directory:
        command = ["valgrind", "--tool=callgrind", "--instr-atstart=no", "-q"]
        command += [f"--callgrind-out-file={directory}/profile", sys.executable]
        command += [str(module_path("instructions_calls")), str(N_CALLS)]
        variables = environment() | {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"}
        variables |= {"CUPLUG_LOAD_IN_PLACE": "1"}  # for the names of the plugins' files
        # valgrind does not support AVX-512, which expressions would use
        if platform.machine() == "x86_64":
            variables["CC"] = f"{os.environ.get('CC', 'cc')} -mno-avx512f"
        done = subprocess.run(command, env=variables, stderr=subprocess.PIPE, text=True)
        if done.returncode:
            raise click.ClickException(done.stderr.strip().splitlines()[-1])
        profiles = [read_profile(path.read_text()) for path in Path(directory).iterdir()]
    cases = {case: counts for case, counts in profiles if case}
    empty = cases.pop(EMPTY)
    return {case: per_call(counts, empty) for case, counts in sorted(cases.items())}


def per_call(counts: Counter[str], empty: Counter[str]) -> dict[str, float]:
    """Return the counts per call, without the empty loop's."""
    parts = {part: (counts[part] - empty[part]) / N_CALLS for part in COUNTED}
    return {part: round(max(value, 0.0), 1) for part, value in parts.items()}


def render(report: dict[str, Any]) -> str:
    """Return the table as Markdown."""
    body = []
    for case, counts in report["cases"].items():
        total = sum(value for name, value in counts.items() if name not in (ALLOCATIONS, LOCKS))
        body.append([case, f"{total:,.0f}", *(f"{counts[name]:,.0f}" for name in COUNTED)])
    table = rows(["call", "instructions", *COUNTED], body)
    text = "Warm calls on arrays of 16 floats, to a function that does nothing unless it is named; "
    text += f"mean of {N_CALLS}."
    parts_of = ["# Instructions per call", "", text, "", *table, "", "## Machine", ""]
    return "\n".join([*parts_of, render_machine(report["machine"])])


@click.command(help=__doc__)
@click.option("--output", type=click.Path(path_type=Path), default=HERE / "results")
def main(output: Path) -> None:
    """Count and write."""
    if shutil.which("valgrind") is None:
        raise click.ClickException(
            "valgrind was not found; Debian and Ubuntu: apt install valgrind"
        )
    use_staged_package()
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    report = {"machine": machine.describe(ROOT), "cases": count()}
    output.mkdir(parents=True, exist_ok=True)
    base = output / f"instructions-{platform.machine().replace('_', '-')}"
    base.with_suffix(".md").write_text(render(write_data(base.with_suffix(".json"), report)))
    click.echo(base.with_suffix(".md").read_text())


if __name__ == "__main__":
    main()
