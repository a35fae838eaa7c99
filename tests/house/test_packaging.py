# SPDX-License-Identifier: Apache-2.0
"""The wheel, the installation for C programs, the example packages, and what the build asks for."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from builds import BUILT
from places import ROOT

COMPILER = os.environ.get("CC", "cc")
EXAMPLES = ROOT / "examples"
BACKEND = ROOT / "build_backend"
BUILD = ["make", "-f", "build_backend/build.mk"]


def run(command: list, cwd: Path, **variables: str) -> str:
    """Run a command that must succeed; return what it printed."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}
    done = subprocess.run(
        command, cwd=cwd, env=environment | variables, capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, f"{done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout


def without_network() -> list[str]:
    """Return what starts a command in a network where nobody is; [] if there can be none."""
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
    archive = folder / run([sys.executable, "-c", code], source).split()[-1]
    pip = [sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "--no-index"]
    command = [*without_network(), *pip, "-w", str(out), str(archive)]
    run(command, folder, NVCC="", PYTHONPATH="")
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
    run(["cc", "examples/host.c", *flags], ROOT)
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
    assert run([sys.executable, "-c", code], tmp_path, PYTHONPATH=str(wheel)) == "[2.]\n"
    listed = run([sys.executable, "-m", "cuplug", "list"], tmp_path, PYTHONPATH=str(wheel))
    assert str(wheel) in listed.replace("\n", "")
    for file in (
        "typed.pxd",
        "ops.pyi",
        "py.typed",
        "include/cuplug/plugin.h",
        "docs/authors.md",
        "lib/pkgconfig/cuplug.pc",
        "lib/cmake/cuplug/cuplug-config.cmake",
        "lib/cmake/cuplug/cuplug-config-version.cmake",
        "lib/cmake/cuplug/cuplug-plugins.cmake",
    ):
        assert (wheel / "cuplug" / file).is_file(), file


@pytest.mark.slow
def test_wheel_has_the_core_under_its_soname(wheel):
    library = wheel / "cuplug" / "lib"
    assert (library / "libcuplug.so.1").is_file()
    assert "entry_points.txt" in {path.name for path in wheel.rglob("*")}


def test_one_core_in_a_process(run_python):
    """A core that is there already, as in a C host, serves Python too."""
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
    run([sys.executable, "-m", "cuplug", "bind", str(plugin), "-o", "."], package, **python)
    run([sys.executable, "setup.py", "-q", "build_ext", "--inplace"], package, **python)
    code = f"""
import sys; sys.path.insert(0, {str(package)!r})
import numpy as np, blend
source, index = np.arange(10, dtype=np.float32), np.array([3, -1, 17], np.int32)
work, out = np.empty(3, np.float32), np.empty(3, np.float32)
blend.half_of(source, index, work, out)
assert out.tolist() == [1.5, 4.5, 3.5], out
try:
    blend.half_of(source, index, work[:2].copy(), out)
except ValueError as error:
    print(error)
"""
    done = run_python(code, env={"LD_LIBRARY_CUPLUG_PATH": str(plugin.parent)})
    assert done.stderr == ""
    assert done.stdout == "gather: out: seen float32[2], wanted (3,)\n"


def prerequisites(*arguments: str, **variables: str) -> str:
    """Return what the check of prerequisites says; it must fail."""
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
        f'#!/bin/sh\ncase "$2" in *{fails_on}*) exit 1;; esac\nexec {sys.executable} "$@"\n'
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
    assert done.stderr.startswith("cuplug needs setuptools 77.0.3 or newer, seen 66.1.1: /")


def test_changed_settings_and_headers_rebuild(tmp_path):
    target = f"{tmp_path}/core/base/status.o"
    make = [*BUILD, f"BUILD={tmp_path}", "NVCC=", target]
    assert "compile core/base/status.c" in run(make, ROOT)
    assert "compile" not in run(make, ROOT)
    assert "compile core/base/status.c" in run([*make, "CFLAGS=-O0"], ROOT)
    assert "compile core/base/status.c" in run(
        [*make, "CFLAGS=-O0", "-W", "core/base/status.h"], ROOT
    )


def test_what_was_made_of_files_that_are_gone_goes(tmp_path):
    package = tmp_path / "python" / "cuplug"
    stock = package / "lib" / "cuplug"
    stock.mkdir(parents=True)
    (package / "call").mkdir()
    gone = [package / "_gone.abi3.so", package / "call" / "gone.abi3.so", stock / "libgone.so"]
    kept = [
        package / "_memoryviews.abi3.so",
        package / "call" / "run.abi3.so",
        stock / "libgather.so",
    ]
    for file in (*gone, *kept):
        file.touch()
    (package / "ops.py").symlink_to(ROOT / "cython" / "cuplug" / "ops.py")
    (package / "gone.py").symlink_to(ROOT / "cython" / "cuplug" / "gone.py")
    run([*BUILD, f"BUILD={tmp_path}", "VENV=", "NVCC=", "stale"], ROOT)
    left = {file for file in package.rglob("*") if not file.is_dir()}
    assert left == {*kept, package / "ops.py"}


def test_a_moved_module_is_translated(tmp_path):
    """Its file may be older than what was translated of the others."""
    target = tmp_path / "cython" / "translated"
    command = [*BUILD, "-n", f"BUILD={tmp_path}", "VENV=", "NVCC=", str(target)]
    run(command, ROOT)
    for made in (tmp_path / "installed" / "build", target):
        made.parent.mkdir(exist_ok=True)
        made.touch()
    assert "translate the Cython modules" not in run(command, ROOT)
    (tmp_path / "translated.config").write_text("cython/cuplug/elsewhere.pyx")
    assert "translate the Cython modules" in run(command, ROOT)


def test_a_missing_compiler_ends_the_build(tmp_path):
    command = ["make", f"BUILD={tmp_path}", "CC=no-such-cc", "core"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert "cuplug needs a C compiler (no-such-cc), which was not found: apt-get" in done.stderr


def test_steps_are_counted(tmp_path):
    lines = run(["make", "-n", f"BUILD={tmp_path}", "NVCC=", "core"], ROOT).splitlines()
    counts = [match.groups() for line in lines if (match := re.match(r"\[(\d+)/(\d+)\] ", line))]
    n_files = len([*ROOT.glob("core/*/*.c")])
    assert counts == [(str(k), str(n_files + 1)) for k in range(1, n_files + 2)]


@pytest.mark.parametrize(
    ("option", "passed"), [("", f"-j{len(os.sched_getaffinity(0))}"), ("-j1", ""), ("-j3", "")]
)
def test_all_cores_are_used_unless_told_otherwise(option, passed, tmp_path):
    command = ["make", "-n", *option.split(), f"BUILD={tmp_path}", "NVCC=", "core"]
    out = run(command, ROOT, OMP_NUM_THREADS="1")
    assert re.findall(r"make.* (-j\S+) .*-f build_backend/build.mk", out) == passed.split()


KNOWN = "compute_80\ncompute_90\ncompute_100\n"


def cuda_commands(folder: Path, gpus: str, *settings: str, known: str = KNOWN) -> str:
    """Return what make would run for plugins, with an nvcc that knows some architectures."""
    for name, text in (("nvcc", known), ("nvidia-smi", gpus)):
        script = folder / name
        script.write_text(f"#!/bin/sh\nprintf '{text}'\n")
        script.chmod(0o755)
    make = ["make", "-n", f"BUILD={folder}/build", f"NVCC={folder}/nvcc", *settings, "plugins"]
    return run(make, ROOT, PATH=f"{folder}:{os.environ['PATH']}", CUDA_ARCHS="")


@pytest.mark.parametrize(
    ("gpus", "settings", "wanted"),
    [
        ("", [], []),
        ("No devices were found\n", [], []),
        ("9.0\n9.0\n", [], ["90"]),
        ("8.0\n9.0\n", ["CUDA_ARCHS=native"], ["80", "90"]),
        ("12.0\n12.1\n", [], ["100"]),
        ("8.0\n", ["CUDA_ARCHS=75 90"], ["75", "90"]),
        ("9.0\n", ["NVCC="], []),
    ],
)
def test_cuda_code_is_for_the_gpus_that_are_here(gpus, settings, wanted, tmp_path):
    out = cuda_commands(tmp_path, gpus, *settings)
    line = next((line for line in out.splitlines() if "-gencode" in line), "")
    assert re.findall(r"code=sm_(\d+)", line) == wanted
    assert re.findall(r"code=compute_(\d+)", line) == wanted[-1:]
    listed = ",".join(f"{arch}0" for arch in wanted)
    assert (f"-DCUPLUG_ARCHITECTURES={listed} " if wanted else "-DCUPLUG_HOST_ONLY ") in out
    assert ("CUDA code is left out" in out) == (not wanted)


@pytest.mark.parametrize("setting", ["CUDA_ARCHS=all", "CUDA_ARCHS=75-virtual 80 90"])
def test_code_for_all_gpus_is_machine_code_of_generations_and_the_oldest_ptx(setting, tmp_path):
    known = "compute_75\ncompute_80\ncompute_86\ncompute_90\n"
    out = cuda_commands(tmp_path, "", setting, known=known)
    line = next(line for line in out.splitlines() if "-gencode" in line)
    assert re.findall(r",code=(\w+)", line) == ["sm_80", "sm_90", "compute_75"]
    assert "-DCUPLUG_ARCHITECTURES=750,800,900 " in out


def test_each_purpose_has_its_packages():
    def packages(*extras: str) -> str:
        return run([sys.executable, str(BACKEND / "requirements.py"), *extras], ROOT)

    assert "numpy" in packages()
    for purpose, package in [("dev", "pytest"), ("lint", "ruff"), ("author", "hypothesis")]:
        assert package not in packages()
        assert package in packages(purpose)


def test_each_target_finds_how_to_install_what_it_needs(tmp_path):
    asked = set(re.findall(r"\$\(INSTALLED\)/([a-z-]+)", (ROOT / "Makefile").read_text()))
    assert {"test", "site", "site-test"} <= asked
    made = [f"{tmp_path}/installed/{purpose}" for purpose in sorted(asked)]
    settings = [f"BUILD={tmp_path}", f"VENV={tmp_path}", "NVCC="]
    run(["make", "-n", "-f", "build_backend/build.mk", *settings, *made], ROOT)


@pytest.mark.slow
def test_translation_follows_what_modules_are_made_of(tmp_path):
    package = tmp_path / "cython" / "cuplug"
    package.mkdir(parents=True)
    (tmp_path / "build").mkdir()
    (package / "__init__.py").touch()
    (package / "shared.pxd").write_text("cdef struct pair:\n    int a\n    int b\n")
    (package / "user.pyx").write_text("from cuplug.shared cimport pair\ncdef pair p\n")
    (package / "alone.pyx").write_text("cdef int n\n")

    def translated() -> set[str]:
        before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.c")}
        run([sys.executable, str(BACKEND / "translate.py"), "build", "1", "-Werror"], tmp_path)
        after = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.c")}
        assert {path.parent for path in after} == {tmp_path / "build" / "cython" / "cuplug"}
        return {path.stem for path in after if before.get(path) != after[path]}

    assert translated() == {"_cython", "alone", "user"}  # the first: what all modules share
    assert translated() == set()
    (package / "shared.pxd").touch()
    assert translated() == {"user"}
    (package / "shared.pxd").unlink()
    with pytest.raises(AssertionError, match=r"shared.pxd' not found"):
        translated()


def test_environment_has_the_package_and_the_command(tmp_path):
    run([sys.executable, "-m", "venv", "--without-pip", "an environment"], tmp_path)
    scripts = tmp_path / "an environment" / "bin"
    packages = os.pathsep.join(path for path in sys.path if path and Path(path) != BUILT)
    for _ in range(2):
        run([str(scripts / "python"), str(BACKEND / "link.py"), str(BUILT)], ROOT)
    (tmp_path / "command").symlink_to(scripts / "cuplug")
    listed = run([str(tmp_path / "command"), "list"], ROOT / "cython", PYTHONPATH=packages)
    assert "gather" in listed
    code = "import cuplug; from importlib.metadata import version; print(version('cuplug'))"
    seen = run([str(scripts / "python"), "-c", code], tmp_path, PYTHONPATH=packages)
    (record,) = tmp_path.rglob("cuplug-*.dist-info/RECORD")
    assert record.parent.name == f"cuplug-{seen.strip()}.dist-info"
    written = [Path(line.split(",")[0]) for line in record.read_text().splitlines()]
    assert len(written) == 6
    assert all(path.is_file() for path in written)


def test_the_demo_waits_for_the_plugins_that_it_shows(tmp_path):
    make = ["make", "-n", "-f", "build_backend/build.mk", f"BUILD={tmp_path}", "VENV=", "demo"]
    out = run([*make, f"PYTHON={sys.executable}"], ROOT)
    assert set(re.findall(r"lib/cuplug/lib(\w+)\.so", out)) == {"gather", "relu"}
    assert "call/operator.c" in out


def test_what_the_demo_says_to_try_works(tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(EXAMPLES)
    import demo

    python = f"PYTHONPATH={os.pathsep.join(path for path in sys.path if path)} {sys.executable}"
    demo.say_next(f"{python} -m cuplug", python)
    heading, *commands, last = capsys.readouterr().out.splitlines()
    assert (heading, last) == ("Try next:", "`make` builds the other stock plugins, too.")
    results = [run(["sh", "-c", command], tmp_path) for command in commands]
    assert "leaky_relu" in results[0]
    assert (tmp_path / "half" / "libhalf.so").is_file()
    assert results[2] == "[0. 2.]\n"


def test_versions_agree():
    import cuplug

    pkg_config = (ROOT / "core" / "cuplug.pc").read_text()
    assert f"Version: {cuplug.__version__}\n" in pkg_config
    cmake = (ROOT / "core" / "cuplug-config-version.cmake").read_text()
    assert f'set(PACKAGE_VERSION "{cuplug.__version__}")' in cmake
