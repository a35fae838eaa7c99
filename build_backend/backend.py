# SPDX-License-Identifier: Apache-2.0
"""The PEP 517 build back end: `make`, then setuptools packages what it built."""

import os
import re
import subprocess
import sys
from pathlib import Path

from setuptools import Distribution, build_meta
from setuptools.build_meta import get_requires_for_build_sdist, get_requires_for_build_wheel

__all__ = [
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_wheel",
]

STAGED = f"build/wheel-{sys.implementation.cache_tag}"


def _configure(packages: list[str]) -> None:
    """Tell setuptools the version (its one home is host.h) and what the wheel holds."""
    header = Path("include/cuplug/host.h").read_text()
    version = re.search(r'#define CUPLUG_VERSION "([^"]+)"', header).group(1)
    Distribution.has_ext_modules = lambda self: True
    finalize = Distribution.finalize_options

    def finalize_options(self):
        finalize(self)
        self.metadata.version = version
        self.packages = packages
        self.package_dir = {"": f"{STAGED}/python"} if packages else {}
        self.package_data = {package: _package_data() for package in packages}

    Distribution.finalize_options = finalize_options


def _package_data() -> list[str]:
    """Return all that was staged, relative to the package."""
    package = Path(STAGED, "python", "cuplug")
    files = (path.relative_to(package) for path in package.rglob("*") if path.is_file())
    return sorted(str(path) for path in files if "__pycache__" not in path.parts)


def _make() -> None:
    jobs = f"-j{os.cpu_count() or 1}"
    settings = ["VENV=", f"PYTHON={sys.executable}", f"BUILD={STAGED}"]
    subprocess.run(["make", "--no-print-directory", jobs, *settings, "all"], check=True)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Build everything for this Python, then the wheel."""
    _make()
    _configure(["cuplug"])
    return build_meta.build_wheel(wheel_directory, config_settings, metadata_directory)


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    """Write the metadata; nothing needs to be built for it."""
    _configure([])
    return build_meta.prepare_metadata_for_build_wheel(metadata_directory, config_settings)


def build_sdist(sdist_directory, config_settings=None):
    """Pack the sources that MANIFEST.in names."""
    _configure([])
    return build_meta.build_sdist(sdist_directory, config_settings)
