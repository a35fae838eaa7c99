# SPDX-License-Identifier: Apache-2.0
"""A new plugin, ready to build and edit, on its own or in a Python package: `cuplug new`."""

from __future__ import annotations

import keyword
import os
import re
from string import Template

from cuplug import __version__
from cuplug._source.compilers.toolkit import WHEELS

DIRECTORY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "templates")
PLUGIN = {"plugin.{suffix}.in": "{name}.{suffix}", "test.py.in": "test_{name}.py"}
PACKAGE = {
    "plugin.{suffix}.in": "plugins/{name}.{suffix}",
    "package-init.py.in": "src/{package}/__init__.py",
    "package-operators.py.in": "src/{package}/operators.py",
    "package-py.typed.in": "src/{package}/py.typed",
    "package-test.py.in": "tests/test_{name}.py",
    "package-README.md.in": "README.md",
    "package-ci.yml.in": ".github/workflows/build.yml",
    "package-gitignore.in": ".gitignore",
}
# For the CPU and GPUs, in C++ and CUDA; only for the CPU, in C.
LANGUAGES = {"cuda": "cu", "c": "c"}
# The build systems of a package: their files, the variable that sets GPU architectures, and the
# packages for a machine without the toolkit.
BACK_ENDS = {
    "setuptools": {"package-setuptools.toml.in": "pyproject.toml"},
    "scikit-build-core": {
        "package-scikit-build-core.toml.in": "pyproject.toml",
        "package-CMakeLists.txt.in": "CMakeLists.txt",
    },
}
# CMake searches nvcc only on PATH, not in the wheels of the toolkit.
WORDS = {
    "setuptools": {"arch": "CUPLUG_ARCH", "nvcc": f" '{WHEELS}'"},
    "scikit-build-core": {"arch": "CUDAARCHS", "nvcc": ""},
}
# Symbols have up to 95 bytes, and a table holds 63 bytes of a name.
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,62}")


def check_name(name: str) -> None:
    """Raise ValueError for a name that is invalid for a plugin or a Python function."""
    if not NAME.fullmatch(name):
        raise ValueError(
            f"new: name: got {name!r}, expected a letter, then letters, digits and underscores, 63 "
            "characters at most"
        )
    if keyword.iskeyword(name):
        raise ValueError(f"new: name: got {name!r}, expected a name that is not a Python keyword")


def write_plugin(name: str, directory: str = ".", language: str = "cuda") -> list[str]:
    """Write the folder `name` with a plugin of one operator, and a test.

    Returns
    -------
    list of str
        The paths of the files.

    Raises
    ------
    ValueError
        The name is invalid.
    FileExistsError
        A file or folder with that name exists. Nothing is written.
    """
    check_name(name)
    words = {"name": name, "suffix": LANGUAGES[language]}
    return _write(PLUGIN, os.path.join(directory, name), words)


def write_package(
    package: str,
    name: str,
    back_end: str = "setuptools",
    directory: str = ".",
    language: str = "cuda",
) -> list[str]:
    """Write the folder `package`: a Python package with a plugin `name` of one operator.

    Returns and raises as `write_plugin` does.
    """
    check_name(package)
    check_name(name)
    for taken, x in (("cuplug", package), ("operators", name)):
        if x == taken:
            raise ValueError(
                f"new: name: got {x!r}, expected another (the package has a module of that name)"
            )
    words = {"package": package, "name": name, "version": __version__}
    words |= {"suffix": LANGUAGES[language]}
    words |= {"distribution": package.lower().replace("_", "-"), **WORDS[back_end]}
    return _write(PACKAGE | BACK_ENDS[back_end], os.path.join(directory, package), words)


def _write(templates: dict[str, str], folder: str, words: dict[str, str]) -> list[str]:
    folder = os.path.normpath(folder)
    if os.path.lexists(folder):
        raise FileExistsError(f"new: got {folder}, which exists, expected a new name")
    os.mkdir(folder)
    written = []
    for template, file in templates.items():
        with open(os.path.join(DIRECTORY, template.format_map(words))) as stream:
            text = Template(stream.read()).substitute(words)
        written.append(os.path.join(folder, file.format_map(words)))
        os.makedirs(os.path.dirname(written[-1]), exist_ok=True)
        with open(written[-1], "x") as stream:
            stream.write(text)
    return written
