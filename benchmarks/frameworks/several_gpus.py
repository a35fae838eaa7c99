# SPDX-License-Identifier: Apache-2.0
"""Throughput of several GPUs in one machine, as one page with the facts of the machine.

    python benchmarks/frameworks/several_gpus.py --gpus 1,2 --store /data/store

Runs dask_scaling.py, jax_scaling.py and the example on a store that is larger than memory, each in
its own process, and collects their output.
"""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import click

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE.parent))

import machine  # noqa: E402
from table import render_machine  # noqa: E402


def printed(program: Path, *options: str) -> str:
    """Return a program's output, or its exit status."""
    command = [sys.executable, str(program), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    last = (done.stderr.strip().splitlines() or ["no message"])[-1]
    return done.stdout if not done.returncode else f"Status {done.returncode}: {last[:300]}\n"


def described() -> dict[str, Any]:
    """Return the facts of the machine, with the versions of the measured packages."""
    facts = machine.describe(ROOT)
    facts["packages"] |= {
        name: importlib.metadata.version(name) for name in ("dask", "jax", "zarr")
    }
    return facts


def measured(gpus: str, store: Path, gigabytes: float, elements: int, calls: int) -> dict[str, str]:
    """Run all programs; return the output of each, by title."""
    size = ["--elements", str(elements)]
    most, n_threads = gpus.rsplit(",", 1)[-1], str(max(1, len(os.sched_getaffinity(0)) // 4))
    options = ["--gigabytes", f"{gigabytes:g}", "--folder", str(store), "--workers", most]
    return {
        "Dask: blocks that stay on the GPUs": printed(
            HERE / "dask_scaling.py", "--workers", gpus, "--calls", str(calls), *size
        ),
        "JAX: an array that is spread": printed(HERE / "jax_scaling.py", "--devices", gpus, *size),
        "A store that is larger than memory": printed(
            ROOT / "examples" / "larger_than_memory.py", *options, "--threads", n_threads
        ),
    }


@click.command()
@click.option("--gpus", default="1,2,4", help="Numbers of GPUs.")
@click.option("--store", default="store", type=click.Path(path_type=Path), help="A folder.")
@click.option("--gigabytes", default=64.0, help="Of the store.")
@click.option("--elements", default=1 << 28, help="Of a block of Dask's, and of JAX's array.")
@click.option("--calls", default=100, help="Of an operator on a block of Dask's.")
@click.option("--output", default="benchmarks/results", type=click.Path(path_type=Path))
def main(gpus: str, store: Path, gigabytes: float, elements: int, calls: int, output: Path) -> None:
    """Write the results to `several-gpus-<machine>.md`."""
    facts = described()
    parts = [f"# Several GPUs: {facts['name']}", "", render_machine(facts)]
    for title, printed_text in measured(gpus, store, gigabytes, elements, calls).items():
        parts += [f"## {title}", "", printed_text]
    text = "\n".join(parts)
    output.mkdir(parents=True, exist_ok=True)
    path = output / f"several-gpus-{machine.slug(facts['name'])}.md"
    path.write_text(text)
    click.echo(f"{text}\n{path}")


if __name__ == "__main__":
    main()
