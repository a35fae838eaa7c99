# SPDX-License-Identifier: Apache-2.0
"""Run attacks for some minutes, each in its own process, and count the outcomes.

python tests/hostile/run.py --minutes 60          # or: make hostile MINUTES=60
python tests/hostile/run.py --only lying_tensors --seed 7
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

FILES = (
    *("damaged_files", "lying_arguments", "races", "poor_machines", "random_programs"),
    *("surroundings", "foreign_state", "many_arrays"),
)
LIMIT_S = 400.0  # of one attack; a longer one counts as hung


@dataclass
class Count:
    """The outcomes of an attack."""

    runs: int = 0
    tried: int = 0
    deaths: int = 0
    hangs: int = 0
    wrong: int = 0


def names() -> list[str]:
    """Return the attacks, in the order of their files."""
    from attacks import ATTACKS

    sys.path.append(
        str(Path(__file__).resolve().parents[1])
    )  # the folder with modules that tests share
    for file in FILES:
        importlib.import_module(file)
    return list(ATTACKS)


def run_one(name: str, seed: int) -> None:
    """Run an attack in this process and print its number of attempts."""
    names()
    from attacks import ATTACKS

    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("CUPLUG_CACHE_DIR", str(Path(folder) / "kept"))
        space = Path(folder) / "space"
        space.mkdir()
        print(ATTACKS[name](random.Random(seed), space))


def run_apart(name: str, seed: int, count: Count) -> str:
    """Run an attack in a separate process; return its output if it failed."""
    command = [sys.executable, "-X", "faulthandler", __file__, "--one", name, "--seed", str(seed)]
    count.runs += 1
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        count.hangs += 1
        return f"no end after {LIMIT_S:.0f} s"
    if done.returncode == 0:
        count.tried += int(done.stdout.split()[-1])
        return ""
    if done.returncode < 0:
        count.deaths += 1
        return f"{signal.Signals(-done.returncode).name}\n{done.stderr[-3000:]}"
    count.wrong += 1
    return done.stderr[-3000:]


def report(counts: dict[str, Count]) -> None:
    """Print a table of the outcomes."""
    print(f"{'attack':28} {'runs':>5} {'tried':>10} {'deaths':>7} {'hangs':>6} {'wrong':>6}")
    whole = Count()
    for name, count in counts.items():
        print(_line(name, count))
        for field in vars(whole):
            setattr(whole, field, getattr(whole, field) + getattr(count, field))
    print(_line("all", whole))


def _line(name: str, count: Count) -> str:
    numbers = f"{count.runs:5} {count.tried:10,} {count.deaths:7} {count.hangs:6} {count.wrong:6}"
    return f"{name:28} {numbers}"


def main() -> int:
    """Run the attacks that the command line selects; return 1 if any failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=0.0, help="0: each attack once")
    parser.add_argument("--only", help="the attacks whose names contain this")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--output", type=Path, help="a file for the counts, as JSON")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        run_one(options.one, options.seed)
        return 0
    counts = {name: Count() for name in names() if not options.only or options.only in name}
    seed, end, failed = options.seed, time.monotonic() + 60 * options.minutes, False
    while True:
        for name, count in counts.items():
            if said := run_apart(name, seed, count):
                failed = True
                print(f"{name}, --seed {seed}:\n{said}\n", flush=True)
        seed += 1
        if time.monotonic() >= end:
            break
    report(counts)
    if options.output:
        options.output.write_text(json.dumps({k: vars(v) for k, v in counts.items()}, indent=2))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
