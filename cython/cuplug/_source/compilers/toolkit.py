# SPDX-License-Identifier: Apache-2.0
"""The CUDA toolkit of this machine, if it exists."""

from __future__ import annotations

import glob
import os
import re
import shutil
import subprocess
import sysconfig
from dataclasses import dataclass

from cuplug._engine.base import environment

WHEELS = "cuda-toolkit[nvcc,cudart,cccl]"  # pip packages of nvcc and its headers
DIRECTORIES = ("/usr/local/cuda/bin", "/opt/cuda/bin")


@dataclass
class Toolkit:
    """One nvcc."""

    nvcc: str  # the path
    version: tuple[int, int] | None  # such as (13, 0); None if unknown


def find_toolkit() -> Toolkit | None:
    """Return the toolkit of the nvcc that `find_nvcc` returns."""
    nvcc = find_nvcc()
    return Toolkit(nvcc, _version(nvcc)) if nvcc else None


def find_nvcc() -> str | None:
    """Return the path of nvcc.

    Searches $CUDACXX, $NVCC, PATH, $CUDA_HOME, the usual directories, the wheels, and
    cuda-pathfinder's directories.
    """
    homes = [environment.variable(name) for name in ("CUDA_HOME", "CUDA_PATH")]
    directories = [os.path.join(home, "bin") for home in homes if home]
    named = environment.variable("CUDACXX") or environment.variable("NVCC") or "nvcc"
    return (
        shutil.which(named, path=environment.path())
        or shutil.which(
            "nvcc", path=os.pathsep.join([*directories, *DIRECTORIES, *_wheel_directories()])
        )
        or ask_pathfinder("find_nvidia_binary_utility", "nvcc")
    )


def ask_pathfinder(function: str, name: str) -> str | None:
    """Return the result of a function of cuda-pathfinder, which also searches Conda environments.

    Without the package, the result is None. With raised privileges it is also None, since the
    package reads the environment. The package's search for libraries is not used, since it loads
    them.
    """
    if environment.privileged:
        return None
    try:
        from cuda import pathfinder

        found = getattr(pathfinder, function)(name)
    except Exception:
        return None
    return None if found is None else str(found)


def _wheel_directories() -> list[str]:
    """Return the wheel directories with nvcc, newest first."""
    packages = {sysconfig.get_path(name) for name in ("purelib", "platlib")}
    found = [path for root in packages for path in glob.glob(f"{root}/nvidia/cu*/bin")]
    return sorted(found, reverse=True)


def _version(nvcc: str) -> tuple[int, int] | None:
    try:
        done = subprocess.run(
            [nvcc, "--version"],
            env=environment.for_programs({}),
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None
    except OSError as error:
        if error.errno is None:  # a signal handler raised it
            raise
        return None
    match = re.search(r"release (\d+)\.(\d+)", done.stdout)
    return (int(match[1]), int(match[2])) if match else None
