# SPDX-License-Identifier: Apache-2.0
"""The CUDA toolkit on this machine, if there is one."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass

DIRECTORIES = ("/usr/local/cuda/bin", "/opt/cuda/bin")


@dataclass
class Toolkit:
    """One nvcc."""

    nvcc: str  # path
    version: tuple[int, int] | None  # (13, 0); None where it does not say


def find_toolkit() -> Toolkit | None:
    """Return the toolkit of the first nvcc: $NVCC, PATH, $CUDA_HOME, then the usual places."""
    homes = [os.environ.get(name) for name in ("CUDA_HOME", "CUDA_PATH")]
    directories = [os.path.join(home, "bin") for home in homes if home]
    nvcc = shutil.which(os.environ.get("NVCC") or "nvcc") or shutil.which(
        "nvcc", path=os.pathsep.join([*directories, *DIRECTORIES])
    )
    return Toolkit(nvcc, _version(nvcc)) if nvcc else None


def _version(nvcc: str) -> tuple[int, int] | None:
    try:
        done = subprocess.run(
            [nvcc, "--version"], capture_output=True, text=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r"release (\d+)\.(\d+)", done.stdout)
    return (int(match[1]), int(match[2])) if match else None
