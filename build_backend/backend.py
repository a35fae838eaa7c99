# SPDX-License-Identifier: Apache-2.0
"""The PEP 517 build back end: `make` builds, then setuptools packages the result."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from archive import settle_sdist
from link import read_version
from setuptools import Distribution, __version__, build_meta

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

BUILD = Path("build/wheel")  # pyproject.toml also names it
PACKAGE = BUILD / "python" / "cuplug"


def _check_setuptools() -> None:
    """Refuse an older one, which cannot read the settings: `--no-build-isolation` takes any."""
    requires = tomllib.loads(Path("pyproject.toml").read_text())["build-system"]["requires"]
    (wanted,) = (name[12:] for name in requires if name.startswith("setuptools>="))
    if [int(part) for part in __version__.split(".")[:3]] < [int(n) for n in wanted.split(".")]:
        advice = f"{sys.executable} -m pip install 'setuptools>={wanted}'"
        sys.exit(f"cuplug needs setuptools {wanted} or newer, got {__version__}: {advice}")


def _prepare() -> None:
    """Leave what pyproject.toml refers to: its packages, and the version of host.h."""
    _check_setuptools()
    PACKAGE.mkdir(parents=True, exist_ok=True)
    (BUILD / "version").write_text(read_version())
    Distribution.has_ext_modules = lambda self: True  # the wheel is for this platform


def _make() -> None:
    """Stage everything for this Python, and nothing that an earlier build left."""
    for staged in [BUILD / "python", *Path("build").glob("lib.*")]:
        shutil.rmtree(staged, ignore_errors=True)
    _prepare()
    settings = ["VENV=", "WERROR=", f"PYTHON={sys.executable}", f"BUILD={BUILD}"]
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}  # it would be packaged
    command = ["make", "--no-print-directory", *settings, "all"]
    subprocess.run(command, check=True, env=environment)
    _report()
    # A wheel holds no symbolic links: the name that -lcuplug looks for is a line for the linker.
    link = PACKAGE / "lib" / "libcuplug.so"
    link.unlink()
    link.write_text("INPUT(libcuplug.so.1)\n")


def _report() -> None:
    """Print which code was compiled for GPUs; pip shows it with -v."""
    codes = re.findall(r"code=(sm|compute)_(\d+)(\d[af]?)", (BUILD / "cuda.config").read_text())
    listed = ", ".join(f"{'PTX ' * (kind == 'compute')}{x}.{y}" for kind, x, y in codes)
    print(f"cuplug: CUDA code for {listed}" if listed else "cuplug: no CUDA code, as without nvcc")


def get_requires_for_build_wheel(config_settings=None):
    """Return nothing: pyproject.toml names all that a build requires."""
    return []


get_requires_for_build_editable = get_requires_for_build_wheel
get_requires_for_build_sdist = get_requires_for_build_wheel


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Build everything, then the wheel."""
    _make()
    return build_meta.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """Build everything, then a wheel that refers to it: the Python sources stay in place."""
    _make()
    return build_meta.build_editable(wheel_directory, config_settings, metadata_directory)


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    """Write the metadata; nothing needs to be built for it."""
    _prepare()
    return build_meta.prepare_metadata_for_build_wheel(metadata_directory, config_settings)


prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


def build_sdist(sdist_directory, config_settings=None):
    """Pack the sources that MANIFEST.in names."""
    _prepare()
    name = build_meta.build_sdist(sdist_directory, config_settings)
    settle_sdist(Path(sdist_directory) / name)
    return name
