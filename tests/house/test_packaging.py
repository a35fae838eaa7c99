# SPDX-License-Identifier: Apache-2.0
"""The wheel, the installation for C programs, the example packages, and the build requirements."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from builds import BUILT, run_at
from places import ROOT

COMPILER = os.environ.get("CC", "cc")
EXAMPLES = ROOT / "examples"
BACKEND = ROOT / "build_backend"


def without_network() -> list[str]:
    """Return the prefix that runs a command in an empty network; [] if that is impossible."""
    command = ["unshare", "--map-root-user", "--net"]
    done = subprocess.run(["sh", "-c", f"{' '.join(command)} true"], capture_output=True)
    return [] if done.returncode else command


@pytest.fixture(scope="module")
def wheel(once) -> Path:
    """Build the wheel from a source archive, without nvcc and network, and unpack it."""
    pytest.importorskip("setuptools", "77.0.3")
    return once("wheel", build_wheel) / "unpacked"


def build_wheel(folder: Path) -> None:
    source, out = folder / "source", folder / "wheel"
    ignore = shutil.ignore_patterns("build", ".venv", ".git", "__pycache__", ".whl", "results")
    shutil.copytree(ROOT, source, ignore=ignore)
    code = "import sys; sys.path.insert(0, 'build_backend'); import backend; "
    code += f"print(backend.build_sdist({str(folder)!r}))"
    archive = folder / run_at([sys.executable, "-c", code], source).split()[-1]
    pip = [sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "--no-index"]
    command = [*without_network(), *pip, "-w", str(out), str(archive)]
    run_at(command, folder, NVCC="", PYTHONPATH="")
    (file,) = out.glob("cuplug-*.whl")
    assert "none-any" not in file.name
    with zipfile.ZipFile(file) as archive:
        archive.extractall(folder / "unpacked")


@pytest.mark.slow
def test_a_source_archive_needs_no_network(wheel):
    if not without_network():
        pytest.skip("needs unshare, and the right to a network of one's own")
    assert (wheel / "cuplug" / "lib" / "libcuplug.so.1").is_file()


@pytest.mark.slow
def test_programs_link_with_a_wheel(wheel, tmp_path):
    from elftools.elf.elffile import ELFFile

    flags = ["-Iinclude", f"-L{wheel}/cuplug/lib", "-lcuplug", "-o", str(tmp_path / "host")]
    run_at(["cc", "examples/host.c", *flags], ROOT)
    with open(tmp_path / "host", "rb") as file:
        tags = ELFFile(file).get_section_by_name(".dynamic").iter_tags("DT_NEEDED")
        assert next(tag.needed for tag in tags) == "libcuplug.so.1"


@pytest.mark.slow
def test_wheel_works_alone(wheel, tmp_path):
    code = """
import numpy as np
from cuplug.ops import gather
print(gather(np.arange(3.), np.array([2])))
"""
    assert run_at([sys.executable, "-c", code], tmp_path, PYTHONPATH=str(wheel)) == "[2.]\n"
    listed = run_at([sys.executable, "-m", "cuplug", "list"], tmp_path, PYTHONPATH=str(wheel))
    assert str(wheel) in listed.replace("\n", "")
    for file in (
        "typed/__init__.pxd",
        "typed/gather.pxd",
        "views.pxd",
        "ops.pyi",
        "py.typed",
        "include/cuplug/plugin.h",
        "docs/authors.md",
        "lib/pkgconfig/cuplug.pc",
        "lib/cmake/cuplug/cuplug-config.cmake",
        "lib/cmake/cuplug/cuplug-config-version.cmake",
        "lib/cmake/cuplug/cuplug-plugins.cmake",
        "lib/cmake/cuplug/cuplug-note.cmake",
        "lib/cmake/cuplug/cuplug-build.h.in",
    ):
        assert (wheel / "cuplug" / file).is_file(), file


@pytest.mark.slow
def test_wheel_has_the_core_under_its_soname(wheel):
    library = wheel / "cuplug" / "lib"
    assert (library / "libcuplug.so.1").is_file()
    assert "entry_points.txt" in {path.name for path in wheel.rglob("*")}


def test_one_core_in_a_process(run_python):
    """Python also uses a core that is already loaded, as in a C program."""
    code = """
import ctypes, os, sys
import importlib.util
package = os.path.dirname(importlib.util.find_spec("cuplug").origin)
core = ctypes.CDLL(f"{package}/lib/libcuplug.so.1")
import cuplug
maps = {line.split()[-1] for line in open("/proc/self/maps") if "libcuplug" in line}
print(len(maps))
"""
    assert run_python(code).stdout == "1\n"


@pytest.mark.slow
def test_typed_example(tmp_path, build_plugin, run_python):
    pytest.importorskip("setuptools")
    package = shutil.copytree(EXAMPLES / "typed", tmp_path / "typed")
    plugin = build_plugin(EXAMPLES / "drop_in" / "half.c", "half")
    python = {"PYTHONPATH": os.environ.get("PYTHONPATH", ""), "CFLAGS": "-O0"}
    run_at([sys.executable, "-m", "cuplug", "bind", str(plugin), "-o", "."], package, **python)
    run_at([sys.executable, "setup.py", "-q", "sdist"], package, **python)
    (archive,) = (package / "dist").iterdir()
    shutil.unpack_archive(archive, tmp_path, filter="data")
    package = tmp_path / "blend-1.0.0"
    run_at([sys.executable, "setup.py", "-q", "build_ext", "--inplace"], package, **python)
    code = f"""
import sys; sys.path.insert(0, {str(package)!r})
import numpy as np, blend, wrapper
source, index = np.arange(10, dtype=np.float32), np.array([3, -1, 17], np.int32)
work, out = np.empty(3, np.float32), np.empty(3, np.float32)
blend.half_of(source, index, work, out)
assert out.tolist() == [1.5, 4.5, 3.5], out
wrapper.gathered(source[::-2], index[:2], out[:2])
assert out.tolist() == [3, 1, 3.5], out
try:
    blend.half_of(source, index, work[:2].copy(), out)
except ValueError as error:
    print(error)
"""
    done = run_python(code, env={"LD_LIBRARY_CUPLUG_PATH": str(plugin.parent)})
    assert done.stderr == ""
    assert done.stdout == "gather: out: got float32[2], expected (3,)\n"


def prerequisites(*arguments: str, **variables: str) -> str:
    """Return the message of the check of prerequisites, which must fail."""
    done = subprocess.run(
        ["sh", str(BACKEND / "prerequisites.sh"), *arguments],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    return done.stderr


def fake_python(folder: Path, fails_on: str) -> str:
    """Return a Python that fails on code with a word in it."""
    script = folder / "python"
    script.write_text(
        f'#!/bin/sh\ncase "$2" in *{fails_on}*) exit 1;; esac\nexec "{sys.executable}" "$@"\n'
    )
    script.chmod(0o755)
    return str(script)


def test_missing_prerequisites_are_named():
    assert "apt-get install gcc" in prerequisites("compiler", "no-such-cc", "")
    assert "apt-get install python3" in prerequisites("python", "no-such-python", "")
    without_cxx = prerequisites("compiler", COMPILER, "nvcc", NVCC_CCBIN="no-such-cxx")
    assert "apt-get install g++" in without_cxx


def test_what_nvcc_does_not_take_is_named(tmp_path):
    (tmp_path / "nvcc").write_text("echo a.h: note\necho 'b.h: error: too new'\nexit 1\n")
    error, advice = prerequisites("cuda", "made", "sh", str(tmp_path / "nvcc")).splitlines()
    assert (error, "make NVCC_CCBIN=g++-14" in advice) == ("b.h: error: too new", True)


@pytest.mark.parametrize(
    ("word", "environment", "wanted"),
    [
        ("version_info", ".venv", "Python 3.11 or newer"),
        ("Python.h", ".venv", "apt-get install python3-dev"),
        ("ensurepip", ".venv", "apt-get install python3-venv"),
        ("numpy", "", "pip install numpy"),
        ("setuptools", "", "pip install setuptools"),
        ("Cython", "", "pip install Cython"),
    ],
)
def test_what_a_python_lacks_is_named(word, environment, wanted, tmp_path):
    assert wanted in prerequisites("python", fake_python(tmp_path, word), environment)


def test_an_old_setuptools_is_refused_with_a_sentence():
    code = "import setuptools; setuptools.__version__ = '66.1.1'; import backend; "
    code += "backend.prepare_metadata_for_build_wheel('.')"
    path = os.environ | {"PYTHONPATH": str(BACKEND)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=path, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("cuplug needs setuptools 77.0.3 or newer, got 66.1.1: /")


def test_each_purpose_has_its_packages():
    def packages(*extras: str) -> str:
        return run_at([sys.executable, str(BACKEND / "requirements.py"), *extras], ROOT)

    assert "numpy" in packages()
    for purpose, package in [("dev", "pytest"), ("lint", "ruff"), ("author", "hypothesis")]:
        assert package not in packages()
        assert package in packages(purpose)


def test_each_target_finds_how_to_install_what_it_needs(tmp_path):
    asked = set(re.findall(r"\$\(INSTALLED\)/([a-z-]+)", (ROOT / "Makefile").read_text()))
    assert {"test", "site", "site-test"} <= asked
    made = [f"{tmp_path}/installed/{purpose}" for purpose in sorted(asked)]
    settings = [f"BUILD={tmp_path}", f"VENV={tmp_path}", "NVCC="]
    run_at(["make", "-n", "-f", "build_backend/build.mk", *settings, *made], ROOT)


@pytest.mark.parametrize("name", ["built", "a büilt one"])
def test_environment_has_the_package_and_the_command(name, tmp_path):
    run_at([sys.executable, "-m", "venv", "--without-pip", "an environment"], tmp_path)
    scripts = tmp_path / "an environment" / "bin"
    packages = os.pathsep.join(path for path in sys.path if path and Path(path) != BUILT)
    built = tmp_path / name
    built.symlink_to(BUILT)
    for _ in range(2):
        run_at([str(scripts / "python"), str(BACKEND / "link.py"), str(built)], ROOT)
    (tmp_path / "command").symlink_to(scripts / "cuplug")
    listed = run_at([str(tmp_path / "command"), "list"], ROOT / "cython", PYTHONPATH=packages)
    assert "gather" in listed
    code = "import cuplug; from importlib.metadata import version; print(version('cuplug'))"
    python = [str(scripts / "python"), "-c", code]
    seen = run_at(python, tmp_path, PYTHONPATH=packages, LC_ALL="C")
    (record,) = tmp_path.rglob("cuplug-*.dist-info/RECORD")
    assert record.parent.name == f"cuplug-{seen.strip()}.dist-info"
    written = [Path(line.split(",")[0]) for line in record.read_text().splitlines()]
    assert len(written) == 6
    assert all(path.is_file() for path in written)


def test_the_demo_waits_for_the_plugin_that_it_shows(tmp_path):
    make = ["make", "-n", "-f", "build_backend/build.mk", f"BUILD={tmp_path}", "VENV=", "demo"]
    python = os.path.relpath(sys.executable, ROOT)  # the path of ROOT may have a space
    out = run_at([*make, f"PYTHON={python}"], ROOT)
    assert set(re.findall(r"lib/cuplug/lib(\w+)\.so", out)) == {"gather"}
    assert "call/operator.c" in out
    assert "kernels/launch.c" not in out


def test_the_demo_makes_the_command_that_it_shows(tmp_path):
    make = ["make", "-n", "-f", "build_backend/build.mk", f"BUILD={tmp_path}/build", "demo"]
    assert "build_backend/link.py" in run_at([*make, f"VENV={tmp_path}/venv"], ROOT)


def not_built(folder: Path) -> list[str]:
    """Return the modules that `make demo` leaves for `make`, after a look at the error of one."""
    make = ["make", "-n", "-f", "build_backend/build.mk", f"BUILD={folder}/build", "demo"]
    (files,) = re.findall(r"for each in (.*?); do", run_at([*make, f"VENV={folder}/venv"], ROOT))
    names = [file.partition("/python/")[2][:-3].replace("/", ".") for file in files.split()]
    code = compile((BACKEND / "not_built.py").read_text(), "not_built.py", "exec")
    with pytest.raises(ImportError, match=f"{names[0]}: not built, .* run `make`"):
        exec(code, {"__name__": names[0]})
    return names


def test_what_the_demo_says_to_try_works(tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(EXAMPLES)
    import demo

    missing = f"import sys; sys.modules |= dict.fromkeys({not_built(tmp_path)})"
    (tmp_path / "sitecustomize.py").write_text(missing)
    monkeypatch.syspath_prepend(tmp_path)
    search = shlex.quote(os.pathsep.join(path for path in sys.path if path))
    python = f"PYTHONPATH={search} {shlex.quote(sys.executable)}"
    demo.say_next(f"{python} -m cuplug", python)
    heading, *commands, last = capsys.readouterr().out.splitlines()
    assert heading == "Try next:"
    assert last.startswith("`make` also builds the other stock plugins, ")
    of_a_gpu = "import cuplug; cuplug.asarray([1.5]).numpy(); cuplug.synchronize()"
    commands += [f"{python} -m cuplug doctor", f"{python} -c '{of_a_gpu}'"]
    results = [run_at(["sh", "-c", command], tmp_path) for command in commands]
    assert "leaky_relu" in results[0]
    assert (tmp_path / "half" / "libhalf.so").is_file()
    assert results[2] == "[1.5 0.5]\n"


def test_versions_agree():
    import cuplug

    pkg_config = (ROOT / "core" / "cuplug.pc").read_text()
    assert f"Version: {cuplug.__version__}\n" in pkg_config
    cmake = (ROOT / "core" / "cuplug-config-version.cmake").read_text()
    assert f'set(PACKAGE_VERSION "{cuplug.__version__}")' in cmake


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        (
            "nvcc: nvcc -gencode=arch=compute_80,code=sm_80 -gencode=arch=compute_100f,code=sm_100f"
            " -gencode=arch=compute_75,code=compute_75",
            "CUDA code for 8.0, 10.0f, PTX 7.5",
        ),
        ("nvcc:  -lineinfo", "no CUDA code, as without nvcc"),
    ],
)
def test_an_installation_reports_its_cuda_code(settings, line, tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(ROOT / "build_backend")
    import backend

    (tmp_path / "cuda.config").write_text(settings)
    monkeypatch.setattr(backend, "BUILD", tmp_path)
    backend._report()
    assert capsys.readouterr().out == f"cuplug: {line}\n"
