# SPDX-License-Identifier: Apache-2.0
"""Build a wheel for each Python that is here: wheels.py FOLDER PYTHON...

They are linked for glibc 2.28, whatever this machine has, and hold machine code for all GPUs that
nvcc knows. The same sources, compilers and pyproject.toml give the same bytes. With CROSS=aarch64
they are for another machine, which CC and NVCC_CCBIN compile for; a build of the same sources for
this one is made first, unless CROSS_FROM names its folder.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from archive import add_to_wheel, epoch, sizes
from requirements import packages
from sbom import NAME, bundled, describe

GLIBC = "2.28"
LIMIT_MB = 20
WORK = Path("build/wheels")
CROSS = os.environ.get("CROSS", "")
# Of the compilers for another machine, or of `make`: a build for this one has its own.
FOREIGN = ("CC", "CFLAGS", "CROSS", "LDFLAGS", "LINKER", "NVCC", "NVCC_CCBIN", "NVCCFLAGS")
OF_MAKE = ("PYTHONPATH", "MAKEFLAGS", "MAKELEVEL", "MFLAGS")
ASK = """
import sys, sysconfig
t = "t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
print(sys.implementation.cache_tag + t, sysconfig.get_platform().removeprefix("linux-"))
sys.exit(sys.version_info < (3, 11))
"""


def tag_of(python: str) -> tuple[str, str] | None:
    """Return a Python's tag and machine, ("cpython-313t", "x86_64"); None where it cannot serve."""
    if shutil.which(python) is None:
        return None
    done = subprocess.run([python, "-c", ASK], capture_output=True, text=True)
    if done.returncode:
        return None
    tag, machine = done.stdout.split()
    return tag, machine


def make_environment(python: str, tag: str) -> str:
    """Return the Python of a virtual environment with the fixed versions that a build requires."""
    made = WORK / tag / "bin" / "python"
    if not made.exists():
        subprocess.run([python, "-m", "venv", WORK / tag], check=True)
    pip = [made, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *packages("wheels-build")], check=True)
    return str(made.absolute())


def settings(machine: str) -> dict[str, str]:
    """Return the environment of a build."""
    linker = f"{sys.executable} -m ziglang cc -target {machine}-linux-gnu.{GLIBC} -s"
    linker += " -Wl,--gc-sections"  # leaves out what zig brings and nothing calls
    defaults = {"SOURCE_DATE_EPOCH": str(epoch()), "LINKER": linker}
    defaults |= {"CUDA_ARCHS": "all", "NVCCFLAGS": "", "MODULES_O": "-Os"}
    scripts = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return defaults | without(OF_MAKE) | {"PATH": scripts}


def without(names: tuple[str, ...]) -> dict[str, str]:
    """Return the environment without some variables."""
    return {key: value for key, value in os.environ.items() if key not in names}


def build_native(python: str) -> dict[str, str]:
    """Build the files for this machine that cross builds use; return settings that name them."""
    native = os.environ.get("CROSS_FROM", "")
    if not native:
        native = str(Path(python).parent.parent / "native")
        made = [f"BUILD={native}", f"PYTHON={python}", "VENV=", "NVCC=", "python"]
        command = ["make", f"-j{os.cpu_count()}", "-f", "build_backend/build.mk", *made]
        subprocess.run(command, check=True, env=without(FOREIGN + OF_MAKE))
    return {"CROSS_FROM": native, "_PYTHON_HOST_PLATFORM": f"linux-{CROSS}"}


def build_wheel(python: str, machine: str, folder: Path) -> Path:
    """Build the wheel of one Python and repair it; return the file."""
    variables = settings(machine) | (build_native(python) if CROSS else {})
    raw = WORK / "raw"
    shutil.rmtree(raw, ignore_errors=True)
    pip = [python, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check"]
    options = ["--no-build-isolation", "--no-deps", "--no-cache-dir", "-w", raw, "."]
    subprocess.run([*pip, *options], check=True, env=variables)
    (wheel,) = raw.glob("*.whl")
    parts = bundled(python, variables["CC"], variables["NVCC"], GLIBC)
    add_to_wheel(wheel, {f"sboms/{NAME}": describe(parts)})
    # auditwheel takes names for its own machine; for another it finds the oldest that fits.
    platform = "auto" if CROSS else f"manylinux_{GLIBC.replace('.', '_')}_{machine}"
    repair = [sys.executable, "-m", "auditwheel", "repair", "--only-plat", "--plat", platform]
    repair += ["--zip-compression-level", "9"]
    repaired = WORK / "repaired"
    shutil.rmtree(repaired, ignore_errors=True)
    subprocess.run([*repair, "-w", repaired, wheel], check=True, env=variables)
    (wheel,) = repaired.glob("*.whl")
    return Path(shutil.move(wheel, folder / wheel.name))


def main() -> None:
    """Build all; environments come first, since a newer Cython translates all modules again."""
    folder = Path(sys.argv[1])
    found = {python: tag_of(python) for python in sys.argv[2:]}
    for python in [python for python, what in found.items() if what is None]:
        print(f"{python} is left out: it is not here, or older than 3.11", flush=True)
    wanted = {what: python for python, what in found.items() if what}
    if not wanted:
        sys.exit("There is none to build a wheel for: PYTHONS names them")
    environments = {what: make_environment(python, what[0]) for what, python in wanted.items()}
    folder.mkdir(parents=True, exist_ok=True)
    for (_, machine), python in environments.items():
        wheel = build_wheel(python, CROSS or machine, folder)
        size_mb = wheel.stat().st_size / 1e6
        print(f"{wheel}: {size_mb:.2f} MB, of that", sizes(wheel), flush=True)
        if size_mb > LIMIT_MB:
            sys.exit(f"{wheel}: {size_mb:.2f} MB, expected at most {LIMIT_MB} MB")


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.exit(f"This command failed: {' '.join(map(str, error.cmd))}")
