# SPDX-License-Identifier: Apache-2.0
"""Plugins in Python packages: by setuptools, by scikit-build-core, as `cuplug new` writes them."""

import importlib.util
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from cuplug._engine.base.flags import get_cmake_path
from cuplug._integration.commands import scaffold
from places import ROOT
from processes import run as cuplug

HALF = (ROOT / "examples" / "drop_in" / "half.c").read_text()
PROJECT = '[project]\nname = "ours"\nversion = "1.0"\n'
ENTRY = '[project.entry-points."cuplug.plugins"]\nours = "ours"\n'
WHERE = '[tool.setuptools]\npackages = ["ours"]\n'
CALL = "import numpy as np; print(half(np.float32([1, 2, 3])), half.path)"

pytest.importorskip("setuptools", "77.0.3")


def run(command, cwd, path=(), **variables):
    """Run a program that must succeed; return its output."""
    python = os.pathsep.join(map(str, (*path, *filter(None, sys.path))))
    environment = os.environ | {"PYTHONPATH": python, "CUPLUG_ARCH": "90", **variables}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="session")
def installed(once):
    """Return a folder with cuplug's metadata, as after an installation."""

    def write(folder):
        code = "import sys, pathlib, link\nfor name, text in link.metadata().items():\n"
        code += "    pathlib.Path(sys.argv[1], name).write_text(text)"
        metadata = folder / "cuplug-0.1.0.dist-info"
        metadata.mkdir()
        run([sys.executable, "-c", code, str(metadata)], ROOT, [ROOT / "build_backend"])

    return once("installed_metadata", write)


@pytest.fixture
def ours(tmp_path):
    """Return the folder of a package with a plugin, which has a header."""
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours" / "__init__.py").touch()
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "half.c").write_text(HALF.replace("/ 2", "/ DIVISOR"))
    header = tmp_path / "plugins" / "divisor.h"
    header.write_text("#define DIVISOR 2\n")
    return tmp_path


def settings(folder, text):
    """Write a pyproject.toml."""
    options = '\noptions = ["-include", "divisor.h", "-Iplugins"]\n'
    (folder / "pyproject.toml").write_text(PROJECT + ENTRY + WHERE + text + options)


def build(what, folder, installed):
    """Build a wheel or a source archive as `pip` does; return it."""
    code = f"from setuptools import build_meta as b; b.build_{what}('dist')"
    run([sys.executable, "-c", code], folder, [installed])
    (file,) = (folder / "dist").glob("*.whl" if what == "wheel" else "*.tar.gz")
    return file


def unpack(wheel, folder):
    """Install a wheel; return the folder."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    for path in (folder / "site").rglob("*"):
        path.chmod(0o755)
    return folder / "site"


def test_pyproject(ours, installed):
    settings(ours, '[tool.cuplug]\npackage = "ours"\nstubs = "operators"\ntyped = true')
    wheel = build("wheel", ours, installed)
    assert wheel.name.startswith("ours-1.0-py3-none-linux_")
    site = unpack(wheel, ours)
    files = {file.name for file in (site / "ours").iterdir()}
    assert files == {"__init__.py", "libhalf.so", "half_typed.pxd", "operators.pyi"}
    assert "half: _half" in (site / "ours" / "operators.pyi").read_text()
    out = run([sys.executable, "-c", f"from cuplug.ops import half; {CALL}"], site, [site])
    assert out == f"[0.5 1.  1.5] {site}/ours/libhalf.so\n"


def test_source_archives_have_all_that_is_compiled(ours, installed):
    settings(ours, '[tool.cuplug]\npackage = "ours"')
    with tarfile.open(build("sdist", ours, installed)) as archive:
        names = archive.getnames()
    assert {"ours-1.0/plugins/half.c", "ours-1.0/plugins/divisor.h"} <= set(names)


def test_setup_beside_another_extension(ours, installed):
    (ours / "other.c").write_text("#include <Python.h>\nvoid *PyInit_other(void) { return 0; }\n")
    (ours / "setup.py").write_text(
        "from cuplug.setuptools import Plugin\n"
        "from setuptools import Extension, setup\n"
        'half = Plugin("ours.half", ["plugins"], options=["-include", "plugins/divisor.h"])\n'
        'setup(name="ours", version="1.0", packages=["ours"],\n'
        '      ext_modules=[half, Extension("ours.other", ["other.c"])])\n'
    )
    wheel = build("wheel", ours, installed)
    tag = f"cp3{sys.version_info.minor}"
    assert wheel.name.startswith(f"ours-1.0-{tag}-{tag}-")
    names = {Path(name).name.partition(".")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {"libhalf", "other"} <= names


@pytest.fixture
def beside_cython(ours):
    """Add a Cython module to the package that uses its typed functions."""
    pytest.importorskip("Cython")
    (ours / "ours" / "use.pyx").write_text(
        "# cython: language_level=3\n"
        "from ours.half_typed cimport half as _half, view\n"
        "def half(const float[::1] x, float[::1] out):\n"
        "    with nogil:\n"
        "        _half(view(x), view(out))\n"
        "    return out\n"
    )
    (ours / "elsewhere").mkdir()
    (ours / "elsewhere" / "far.h").touch()
    (ours / "ours" / "near.h").touch()
    (ours / "setup.py").write_text(
        "import os, cuplug\n"
        "from cuplug.setuptools import Plugin\n"
        "from setuptools import Extension, setup\n"
        f"far = {str(ours / 'elsewhere' / 'far.h')!r}\n"
        'options = ["-include", "plugins/divisor.h"]\n'
        'half = Plugin("ours.half", ["plugins"], options=options, typed=True, stubs="operators")\n'
        'use = Extension("ours.use", ["ours/use.pyx"], include_dirs=[cuplug.get_include()],\n'
        '                depends=[far, "ours/near.h"])\n'
        'setup(name="ours", version="1.0", packages=["ours"], ext_modules=[use, half])\n'
    )
    (ours / "pyproject.toml").write_text(ENTRY.replace("[project.", "[x."))
    return ours


USE = "import numpy as np; from ours.use import half; x = np.float32([1, 2]);"
USE += "print(np.asarray(half(x, np.zeros(2, 'f4'))))"


@pytest.mark.slow
def test_the_complete_package_of_the_examples(tmp_path, installed):
    pytest.importorskip("Cython")
    package = tmp_path / "package"
    shutil.copytree(ROOT / "examples" / "package", package)
    site = unpack(build("wheel", package, installed), tmp_path)
    names = {file.name.partition(".")[0] for file in (site / "blending").iterdir()}
    assert {"__init__", "libblend", "blend_typed", "operators", "rows"} <= names
    variables = {"LD_LIBRARY_CUPLUG_PATH": "", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"]
    run(command, package, [site], **variables)


@pytest.mark.slow
def test_extensions_may_use_typed_functions_and_files_from_anywhere(beside_cython, installed):
    """An absolute path in `depends`, such as cythonize adds for NumPy, is not in archives."""
    site = unpack(build("wheel", beside_cython, installed), beside_cython)
    assert {"half_typed.pxd", "operators.pyi"} <= {x.name for x in (site / "ours").iterdir()}
    out = run([sys.executable, "-c", USE], site, [site], LD_LIBRARY_CUPLUG_PATH=f"{site}/ours")
    assert out == "[0.5 1. ]\n"
    with tarfile.open(build("sdist", beside_cython, installed)) as archive:
        names = archive.getnames()
        archive.extractall(beside_cython / "unpacked", filter="data")
    files = ("plugins/half.c", "plugins/divisor.h", "ours/use.pyx", "ours/near.h")
    assert {f"ours-1.0/{name}" for name in files} <= set(names)
    assert not any("far.h" in name for name in names)
    build("wheel", beside_cython / "unpacked" / "ours-1.0", installed)


@pytest.mark.slow
def test_cmake_builds_cython_modules_that_use_typed_functions(beside_cython, tmp_path):
    if not shutil.which("cmake"):
        pytest.skip("needs cmake")
    (beside_cython / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\n"
        "project(ours LANGUAGES C)\n"
        f"set(Python_EXECUTABLE {sys.executable})\n"
        "find_package(cuplug REQUIRED)\n"
        "cuplug_add_plugin(half plugins/half.c)\n"
        'target_compile_definitions(half PRIVATE "DIVISOR=2")\n'
        "cuplug_install_plugins(ours TYPED half)\n"
        "cuplug_add_cython_module(ours use ours/use.pyx)\n"
    )
    cmake = ["cmake", "-B", "made", f"-Dcuplug_DIR={get_cmake_path()}"]
    run(cmake, beside_cython)
    run(["cmake", "--build", "made"], beside_cython)
    site = tmp_path / "site"
    run(["cmake", "--install", "made", "--prefix", str(site)], beside_cython)
    installed = {x.name.partition(".")[0] for x in (site / "ours").iterdir()}
    assert installed == {"libhalf", "half_typed", "use"}
    out = run([sys.executable, "-c", USE], site, [site], LD_LIBRARY_CUPLUG_PATH=f"{site}/ours")
    assert out == "[0.5 1. ]\n"


@pytest.mark.slow
def test_editable_installation_beside_cython(beside_cython, installed):
    code = "from setuptools import build_meta as b; b.build_editable('dist')"
    run([sys.executable, "-c", code], beside_cython, [installed])
    names = {file.name for file in (beside_cython / "ours").iterdir()}
    assert {"libhalf.so", "half_typed.pxd", "operators.pyi", "use.pyx"} <= names
    variables = {"LD_LIBRARY_CUPLUG_PATH": str(beside_cython / "ours")}
    assert run([sys.executable, "-c", USE], beside_cython, **variables) == "[0.5 1. ]\n"


def test_in_place(ours, installed):
    settings(ours, '[tool.cuplug]\npackage = "ours"\nstubs = "operators"\ntyped = true')
    code = "from setuptools import setup; setup()"
    run([sys.executable, "-c", code, "-q", "build_ext", "--inplace"], ours, [installed])
    files = {file.name for file in (ours / "ours").iterdir()}
    assert files == {"__init__.py", "libhalf.so", "half_typed.pxd", "operators.pyi"}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("stubs = 'x'", "tool.cuplug: package: got nothing, expected the package that"),
        ("package = 3", "tool.cuplug: package: got 3, expected str"),
        ("package = 'ours'\nplugins = [1]", "plugins: got [1], expected a list of texts"),
        (
            "package = 'ours'\n[tool.cuplug.options]\nhalf = '-O3'",
            "tool.cuplug: options: got '-O3', expected a list of texts",
        ),
        ("package = 'ours'\nfast = true", "got unknown setting fast, expected package, plugins"),
        ("package = 'ours'\nplugins = ['*.cu']", "plugins: got ['*.cu'], expected paths of"),
    ],
)
def test_settings_that_are_wrong(ours, installed, text, sentence):
    settings(ours, f"[tool.cuplug]\n{text}")
    with pytest.raises(AssertionError) as seen:
        build("wheel", ours, installed)
    assert sentence in str(seen.value)


def test_options_of_one_plugin(ours, installed):
    own = '["-include", "divisor.h", "-Iplugins"]'
    table = '[tool.cuplug]\npackage = "ours"\n[tool.cuplug.options]\n'
    settings(ours, f"{table}half = {own}")
    assert "ours/libhalf.so" in zipfile.ZipFile(build("wheel", ours, installed)).namelist()
    settings(ours, f"{table}other = {own}")
    with pytest.raises(AssertionError, match="error: build: .* says"):
        build("wheel", ours, installed)


def test_what_the_compiler_says_ends_the_build(ours, installed):
    (ours / "plugins" / "half.c").write_text(HALF.replace("CUPLUG_OK", "UNKNOWN"))
    settings(ours, '[tool.cuplug]\npackage = "ours"')
    with pytest.raises(AssertionError, match="error: build: .* says(?s:.)*UNKNOWN"):
        build("wheel", ours, installed)


def test_packages_of_others_are_left_alone(ours, installed):
    (ours / "pyproject.toml").write_text(PROJECT + WHERE)
    assert build("wheel", ours, installed).name == "ours-1.0-py3-none-any.whl"


def test_stubs(tmp_path, build_plugin):
    half = build_plugin(ROOT / "examples" / "drop_in" / "half.c", "half")
    done = cuplug("stubs", str(half), "-o", "made", cwd=tmp_path)
    assert done.stdout == "operators: half, in made/half.pyi\n"
    text = (tmp_path / "made" / "half.pyi").read_text()
    assert "half: _half" in text
    assert "def __getattr__" not in text
    compile(text, "half.pyi", "exec")
    done = cuplug("stubs", str(half), "--name", "a-b", cwd=tmp_path)
    assert done.stderr == "cuplug: name: got 'a-b', expected an identifier\n"
    done = cuplug("stubs", "none.so", cwd=tmp_path)
    assert (done.returncode, "none.so: " in done.stderr) == (1, True)


def test_new_package(tmp_path):
    done = cuplug("new", "--package", "ours", "twice", cwd=tmp_path)
    assert done.stdout.endswith("  cuplug test ours\n  pip install --no-build-isolation ./ours\n")
    plugins = tmp_path / "ours" / "plugins"
    (plugins / "twice.cu").unlink()
    (plugins / "half.c").write_text(HALF)
    assert cuplug("build", "ours", cwd=tmp_path).returncode == 0
    assert (plugins / "libhalf.so").is_file()
    for place, name in ((tmp_path, "ours"), (tmp_path / "ours", ".")):
        assert cuplug("check", name, cwd=place).returncode == 0
    done = cuplug("new", "ours", "twice", cwd=tmp_path)
    assert "OPERATOR goes with --package" in done.stderr
    for name in ("cuplug", "a-b"):
        done = cuplug("new", "--package", name, cwd=tmp_path)
        assert (done.returncode, (tmp_path / name).exists()) == (2, False)


@pytest.mark.slow
@pytest.mark.parametrize("language", list(scaffold.LANGUAGES))
@pytest.mark.parametrize("back_end", list(scaffold.BACK_ENDS))
def test_new_package_is_installed_tested_and_repaired(back_end, language, tmp_path, installed):
    pytest.importorskip(back_end.replace("-", "_"))
    files = scaffold.write_package("ours", "twice", back_end, str(tmp_path), language)
    shutil.copy(ROOT / "examples" / "drop_in" / "half.c", tmp_path / "ours" / "plugins")
    pip = [sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "-w", "dist"]
    run([*pip, "./ours"], tmp_path, [installed], CUDAARCHS="90")
    (wheel,) = (tmp_path / "dist").iterdir()
    assert wheel.name.startswith("ours-0.1.0-py3-none-linux_")
    site = unpack(wheel, tmp_path)
    packed = {str(file.relative_to(site / "ours")) for file in (site / "ours").rglob("*")}
    assert packed == {
        *("__init__.py", "operators.py", "operators.pyi", "py.typed", "libtwice.so", "libhalf.so"),
        *("half_typed.pxd", "twice_typed.pxd"),
    }
    test = next(file for file in files if file.endswith("test_twice.py"))
    pytest_ = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", test]
    assert "1 passed" in run(pytest_, tmp_path, [site])
    code = f"from ours import half, twice; {CALL}"
    assert f"{site}/ours/libhalf.so\n" in run([sys.executable, "-c", code], tmp_path, [site])
    other = ["--python-version", "3.99", "--only-binary=:all:", "--no-deps", "--no-index"]
    run([*pip[:3], "install", *other, "--target", "other", str(wheel)], tmp_path)
    assert (tmp_path / "other" / "ours" / "libtwice.so").is_file()
    if importlib.util.find_spec("auditwheel") and shutil.which("patchelf"):
        repair = [sys.executable, "-m", "auditwheel", "repair", "-w", "repaired", str(wheel)]
        run(repair, tmp_path)
        (repaired,) = (tmp_path / "repaired").iterdir()
        assert "-py3-none-manylinux_" in repaired.name


def test_an_old_setuptools_is_named(monkeypatch):
    from cuplug import setuptools as ours
    from setuptools import Distribution
    from setuptools.errors import OptionError

    monkeypatch.setattr(ours, "__version__", "65.5.1")
    plugin = ours.Plugin("ours.twice", ["twice.c"])
    with pytest.raises(OptionError, match=r"^setuptools: got 65\.5\.1, expected 77 or newer: pip "):
        Distribution({"name": "ours", "ext_modules": [plugin]}).finalize_options()
