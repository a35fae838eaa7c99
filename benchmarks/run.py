# SPDX-License-Identifier: Apache-2.0
"""Runs the benchmark modules, each in its own process, and writes one table of them all."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import machine
from module import TIME
from storage import write_data
from table import render, summary

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
BYTE_CODE = ROOT / "build" / "benchmarks" / "byte-code"
QUICK_SECONDS = 40.0
RUN = ("date", "commit")  # facts that differ between runs on one machine
# Each module with its share of the time. Modules are in rooms, named after the measured ones.
MODULES = {
    "calls": 2,
    "call_threads": 1,
    "calls_cuda": 4,
    "chain_cuda": 2,
    "graphs": 1,
    "jax_programs": 2,
    "first_use": 4,
    "authoring": 3,
    "discovery": 1,
    "gather_host": 3,
    "host_ops": 3,
    "host_sizes": 1,
    "host_threads": 3,
    "host_busy": 1,
    "team": 1,
    "kernels": 4,
    "rows_cuda": 6,
    "cub_cuda": 2,
    "gradients": 3,
    "array_ops": 6,
    "array_functions": 6,
    "expressions": 4,
    "expressions_host": 4,
    "layouts_cuda": 4,
    "reductions_host": 5,
    "reductions_cuda": 5,
    "compiling": 5,
    "torch_ops": 1,
    "transfers": 3,
    "transfer_sizes": 4,
    "transfers_at_once": 3,
}


def use_staged_package() -> None:
    """Make this process and the modules import cuplug from build/ if it is not installed."""
    staged = str(ROOT / "build" / "python")
    if importlib.util.find_spec("cuplug") is None:
        sys.path.append(staged)
        paths = [staged, *filter(None, [os.environ.get("PYTHONPATH")])]
        os.environ["PYTHONPATH"] = os.pathsep.join(paths)


def module_path(name: str) -> Path:
    """Return the file of a module, in any room."""
    return next(HERE.glob(f"*/{name}.py"))


def environment() -> dict[str, str]:
    """Return the variables with which a module finds this folder, the rooms and byte code.

    If packages are installed without byte code, each process would compile its imports.
    """
    rooms = [HERE, *sorted(path for path in HERE.iterdir() if path.is_dir())]
    paths = [*map(str, rooms), *filter(None, [os.environ.get("PYTHONPATH")])]
    own = {"PYTHONPATH": os.pathsep.join(paths), "PYTHONPYCACHEPREFIX": str(BYTE_CODE)}
    return {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"} | own


def run_module(name: str, seconds: float, options: list[str]) -> dict[str, Any]:
    """Run one module; return its output, with the reason if it did not complete."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "data.json"
        command = [sys.executable, str(module_path(name)), "--json", str(path)]
        command += ["--seconds", str(seconds), *options]
        reason, start = None, time.monotonic()
        try:
            done = subprocess.run(
                command,
                env=environment(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
                timeout=3 * seconds + 240,
            )
            if done.returncode:
                last = (done.stderr.strip().splitlines() or ["no message"])[-1]
                reason = f"it ended with status {done.returncode}: {last[:300]}"
        except subprocess.TimeoutExpired:
            reason = "it did not come to its end in time"
        empty: dict[str, Any] = {"comparisons": []}
        data = json.loads(path.read_text()) if path.exists() else empty
    data["wall_s"] = round(time.monotonic() - start, 1)
    return data | ({"skipped": reason} if reason else {})


def run_all(
    names: list[str], seconds: float, options: list[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Run modules one after the other; `seconds` are for each share of the time."""
    for name in names:
        share = seconds * MODULES[name]
        click.echo(f"{name}: {share:.0f} s", err=True)
        yield name, run_module(name, share, options)


def show_all(names: list[str], seconds: float, options: list[str]) -> None:
    """Run modules whose tables go to the screen."""
    for name in names:
        command = [sys.executable, str(module_path(name)), "--seconds", str(seconds / len(names))]
        subprocess.run([*command, *options], env=environment(), check=True)


def data_path(facts: dict[str, Any], output: Path) -> Path:
    """Return the file of a machine's data."""
    return output / f"{machine.slug(facts['name'])}.json"


def write(report: dict[str, Any], output: Path) -> list[Path]:
    """Write the data and the table; return both paths."""
    output.mkdir(parents=True, exist_ok=True)
    data = data_path(report["machine"], output)
    text = data.with_suffix(".md")
    text.write_text(render(write_data(data, report)))
    return [data, text]


def chosen(only: str | None) -> list[str]:
    """Return the names of the modules to run, given names or rooms; raise for unknown ones."""
    if not only:
        return list(MODULES)
    rooms = {name: module_path(name).parent.name for name in MODULES}
    wanted = only.split(",")
    for name in wanted:
        if name not in MODULES and name not in rooms.values():
            known = ", ".join([*MODULES, *dict.fromkeys(rooms.values())])
            raise click.BadParameter(f"{name!r} is no benchmark: {known}", param_hint="--only")
    return [name for name, room in rooms.items() if name in wanted or room in wanted]


def measured(path: Path, facts: dict[str, Any]) -> dict[str, Any]:
    """Return the results of earlier runs on the same machine, with the same versions.

    Each result contains its time and commit.
    """
    if not path.exists():
        return {}
    before = json.loads(path.read_text())
    run = {key: facts[key] for key in RUN}
    if before["machine"] | run != facts:
        return {}
    run = {key: before["machine"][key] for key in RUN}
    return {name: run | data for name, data in before["benchmarks"].items()}


@click.command(help=__doc__)
@click.option("--only", help="Names of benchmarks or of rooms of them, separated by commas.")
@click.option("--resume", is_flag=True, help="Leave out what was measured of this commit.")
@click.option("--quick", is_flag=True, help="Small sizes, few rounds: to see whether it works.")
@click.option("--seconds", type=TIME, default=60.0, show_default=True, help="For measuring.")
@click.option("--memory", default=0, help="GiB of memory to use; else what the system says.")
@click.option("--show", is_flag=True, help="Show the tables on the screen; write nothing.")
@click.option("--output", type=click.Path(path_type=Path), default=HERE / "results")
def main(
    only: str | None,
    resume: bool,
    quick: bool,
    seconds: float,
    memory: int,
    show: bool,
    output: Path,
) -> None:
    """Run the benchmarks."""
    names = chosen(only)
    use_staged_package()
    if show:
        return show_all(names, seconds, ["--memory", str(memory), *(["--quick"] if quick else [])])
    facts = machine.describe(ROOT)
    run = {key: facts[key] for key in RUN}
    before = {} if quick else measured(data_path(facts, output), facts)
    done = {name for name in before if resume and before[name]["commit"] == run["commit"]}
    options = ["--memory", str(memory), *(["--quick"] if quick else [])]
    share = (min(seconds, QUICK_SECONDS) if quick else seconds) / sum(MODULES[x] for x in names)
    report: dict[str, Any] = {"machine": facts, "benchmarks": before}
    for name, data in run_all([x for x in names if x not in done], share, options):
        found = {**report["benchmarks"], name: run | data}
        report["benchmarks"] = {name: found[name] for name in MODULES if name in found}
        paths = write(report, output)  # results are kept, whatever happens afterwards
        click.echo(f"{data['wall_s']:.0f} s; written: {', '.join(map(str, paths))}", err=True)
    for name, data in report["benchmarks"].items():
        if "skipped" in data:
            click.echo(f"{name}: not measured: {data['skipped']}")
    for line in summary(report):
        click.echo(line)


if __name__ == "__main__":
    main()
