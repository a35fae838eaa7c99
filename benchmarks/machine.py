# SPDX-License-Identifier: Apache-2.0
"""Facts about the machine and the software of a benchmark."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import shlex
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

PEERS = ("cuplug", "numpy", "torch", "cuda-core", "cuda-bindings", "apache-tvm-ffi", "Cython")


def _output(*command: str) -> str | None:
    """Return a command's output; None if it fails or does not exist."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def find_nvcc() -> str | None:
    """Return nvcc: $NVCC, on the path, or in the usual folder of the toolkit."""
    usual = "/usr/local/cuda/bin/nvcc"
    found = shutil.which(os.environ.get("NVCC") or "nvcc")
    return found or (usual if os.access(usual, os.X_OK) else None)


def _field(path: str, key: str) -> str:
    for line in Path(path).read_text().splitlines():
        if line.startswith(key):
            return line.split(":", 1)[1].strip()
    return "unknown"


def _packages() -> dict[str, str]:
    names = {name.lower(): name for name in PEERS}
    found = {}
    for distribution in importlib.metadata.distributions():
        name = (distribution.metadata["Name"] or "").lower()
        if name in names or name.startswith("cupy"):
            found[names.get(name, name)] = distribution.version
    found |= _staged_version()
    missing = {name: "not installed" for name in PEERS if name not in found}
    return dict(sorted((missing | found).items(), key=lambda item: item[0].lower()))


def _staged_version() -> dict[str, str]:
    """Return the version of the measured cuplug, which need not be installed."""
    try:
        import cuplug
    except ImportError:
        return {}
    return {"cuplug": cuplug.__version__}


def _gpus() -> dict[str, str]:
    query = "--query-gpu=name,driver_version,memory.total"
    seen = _output("nvidia-smi", query, "--format=csv,noheader")
    if not seen:
        return {"GPU": "none", "driver": "none"}
    gpus = [[cell.strip() for cell in line.split(",")] for line in seen.splitlines()]
    name, driver, memory = gpus[0]
    return {"GPU": f"{len(gpus)} x {name}, {memory} each", "driver": driver}


def _nvcc_version() -> str:
    nvcc = find_nvcc()
    seen = _output(nvcc, "--version") if nvcc else None
    release = re.search(r"release ([\d.]+), V([\d.]+)", seen or "")
    return release.group(2) if release else "none"


def _commit(root: Path) -> str:
    if told := os.environ.get("CUPLUG_COMMIT"):  # for a copy of the tree without its history
        return told
    commit = _output("git", "-C", str(root), "rev-parse", "HEAD") or "unknown"
    changed = _output("git", "-C", str(root), "status", "--porcelain", "--untracked-files=no")
    return f"{commit} with local changes" if changed else commit


def describe(root: Path) -> dict[str, Any]:
    """Return the facts in the order in which they are shown."""
    cores = len(os.sched_getaffinity(0))
    memory = int(_field("/proc/meminfo", "MemTotal").split()[0]) / (1 << 20)
    gpus = _gpus()
    cpu = _field("/proc/cpuinfo", "model name")
    name = gpus["GPU"].split(",")[0].removeprefix("1 x ") if gpus["GPU"] != "none" else cpu
    compiler = shlex.split(os.environ.get("CC", "")) or ["cc"]
    kernel = ".".join(platform.release().split(".")[:2])
    return {
        "name": f"{name}, {cores} cores",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _commit(root),
        **gpus,
        "CPU": cpu,
        "cores": cores,
        "memory": f"{memory:.0f} GiB",
        "system": f"{platform.system()} {kernel}, {' '.join(platform.libc_ver())}",
        "CUDA toolkit (nvcc)": _nvcc_version(),
        "C compiler": (_output(*compiler, "--version") or "none").split("\n")[0],
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "not set"),
        "Python": platform.python_version(),
        "packages": _packages(),
    }


def slug(name: str) -> str:
    """Return a machine's name as a file name."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
