# SPDX-License-Identifier: Apache-2.0
"""Modules that use typed functions, built in each way that docs/cython.md names."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cuplug._engine.base.flags import PACKAGE, get_cmake_path, get_include
from places import ROOT

pytestmark = pytest.mark.slow

WRAPPER = ROOT / "examples" / "typed" / "wrapper.pyx"
USE = """
import numpy as np
from wrapper import gathered

out = np.empty(2, "f4")
gathered(np.float32([1, 2, 3]), np.int32([2, 0]), out)
assert out.tolist() == [3, 1]
"""
SETUP = """
import cuplug
from Cython.Build import cythonize
from setuptools import Extension, setup

wrapper = Extension(
    "wrapper",
    ["wrapper.pyx"],
    include_dirs=[cuplug.get_include()],
    define_macros=[("Py_LIMITED_API", 0x030B0000)],
    py_limited_api=True,
)
setup(ext_modules=cythonize([wrapper], language_level=3))
"""
MESON = """
project('wrapper', 'c', 'cython', version: '1.0')
python = import('python').find_installation(pure: false)
command = [python, '-c', 'import cuplug; print(cuplug.get_include())']
cuplug = include_directories(run_command(command, check: true).stdout().strip())
python.extension_module('wrapper', 'wrapper.pyx', include_directories: cuplug, install: true)
"""
CMAKE = """
cmake_minimum_required(VERSION 3.20)
project(wrapper C)
find_package(cuplug REQUIRED)
find_package(Python REQUIRED COMPONENTS Interpreter Development.Module)
cuplug_add_cython_module(wrapper wrapper wrapper.pyx)
"""
PYXIMPORT = """
import cuplug
import pyximport

pyximport.install(
    setup_args={"include_dirs": cuplug.get_include()}, language_level=3, build_dir="built"
)
"""
PURE = """
import cython
from cython.cimports.cuplug.typed.gather import gather, view


def gathered(source: cython.float[:], index: cython.int[:], out: cython.float[:]):
    with cython.nogil:
        gather(view(source), view(index), view(out))
"""
NOTEBOOK = """
import cuplug
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "cython")
shell.run_cell_magic("cython", f"-I {cuplug.get_include()}", open("wrapper.pyx").read())
gathered = shell.user_ns["gathered"]
"""


def run(command, cwd, **variables):
    """Run a program that must succeed; return its output."""
    python = os.pathsep.join([str(cwd), str(Path(PACKAGE).parent), *filter(None, sys.path)])
    environment = os.environ | {"PYTHONPATH": python, "HOME": str(cwd), **variables}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture
def folder(tmp_path):
    """Return a folder with the module's source."""
    shutil.copy(WRAPPER, tmp_path)
    return tmp_path


def test_cythonize(folder):
    command = [sys.executable, "-m", "Cython.Build.Cythonize", "-3", "-i", "wrapper.pyx"]
    run(command, folder, CFLAGS=f"-I{get_include()}")
    run([sys.executable, "-c", USE], folder)


def test_pure_python_mode(tmp_path):
    (tmp_path / "wrapper.py").write_text(PURE)
    command = [sys.executable, "-m", "Cython.Build.Cythonize", "-3", "-i", "wrapper.py"]
    run(command, tmp_path, CFLAGS=f"-I{get_include()}")
    (tmp_path / "wrapper.py").unlink()
    run([sys.executable, "-c", USE], tmp_path)


def test_pyximport(folder):
    run([sys.executable, "-c", PYXIMPORT + USE], folder)


def test_limited_api_from_a_source_archive(folder):
    (folder / "setup.py").write_text(SETUP)
    (folder / "MANIFEST.in").write_text("include *.pyx *.pxd\n")
    run([sys.executable, "setup.py", "-q", "sdist"], folder)
    (archive,) = (folder / "dist").iterdir()
    shutil.unpack_archive(archive, folder / "unpacked", filter="data")
    (unpacked,) = (folder / "unpacked").iterdir()
    run([sys.executable, "setup.py", "-q", "build_ext", "--inplace"], unpacked)
    (library,) = unpacked.glob("wrapper*.so")
    assert library.name == "wrapper.abi3.so"
    run([sys.executable, "-c", USE], unpacked)


def test_notebook(folder):
    pytest.importorskip("IPython")
    use = USE.replace("from wrapper import gathered\n", "")
    run([sys.executable, "-c", NOTEBOOK + use], folder)


def wheel_of(folder, backend, requires):
    """Write a package with a build backend, build its wheel and unpack it."""
    name = '[project]\nname = "wrapper"\nversion = "1.0"\n'
    build = f'[build-system]\nrequires = {requires}\nbuild-backend = "{backend}"\n'
    (folder / "pyproject.toml").write_text(name + build)
    command = [sys.executable, "-c", f"import {backend} as b; print(b.build_wheel('.'))"]
    wheel = run(command, folder, cuplug_DIR=get_cmake_path()).splitlines()[-1]
    shutil.unpack_archive(folder / wheel, folder / "unpacked", "zip")
    return folder / "unpacked"


def test_meson_python(folder):
    for name in ("mesonpy", "mesonbuild"):
        pytest.importorskip(name)
    if not shutil.which("ninja"):
        pytest.skip("needs ninja")
    (folder / "meson.build").write_text(MESON)
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        user = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", *user, *arguments], cwd=folder, check=True)
    place = wheel_of(folder, "mesonpy", ["meson-python", "cython", "cuplug"])
    run([sys.executable, "-c", USE], place)


def test_scikit_build_core(folder):
    pytest.importorskip("scikit_build_core")
    if not importlib.util.find_spec("cmake") and not shutil.which("cmake"):
        pytest.skip("needs CMake")
    (folder / "CMakeLists.txt").write_text(CMAKE)
    place = wheel_of(folder, "scikit_build_core.build", ["scikit-build-core", "cython", "cuplug"])
    run([sys.executable, "-c", USE.replace("from wrapper", "from wrapper.wrapper")], place)
