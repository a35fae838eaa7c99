# SPDX-License-Identifier: Apache-2.0
"""The targets of make, and their rebuilds."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from builds import run_at
from cuplug._integration.author.build import USUAL_ARCHITECTURES
from places import ROOT

BUILD = ["make", "-f", "build_backend/build.mk"]
TRANSLATE = ROOT / "build_backend" / "translate.py"


def test_changed_settings_and_headers_rebuild(tmp_path):
    target = f"{tmp_path}/core/base/status.o"
    make = [*BUILD, f"BUILD={tmp_path}", "NVCC=", target]
    assert "compile core/base/status.c" in run_at(make, ROOT)
    assert "compile" not in run_at(make, ROOT)
    assert "compile core/base/status.c" in run_at([*make, "CFLAGS=-O0"], ROOT)
    assert "compile core/base/status.c" in run_at(
        [*make, "CFLAGS=-O0", "-W", "core/base/status.h"], ROOT
    )


def test_settings_of_single_objects_are_of_files_that_are_there():
    rules = (ROOT / "build_backend" / "build.mk").read_text()
    objects = re.findall(r"^\$\(BUILD\)/([\w/]+)\.o:", rules, re.M)
    assert objects
    assert [name for name in objects if not (ROOT / f"{name}.c").exists()] == []


def test_headers_of_numpy_may_move(tmp_path):
    """pip builds in a new environment each time, and removes it."""
    for name in ("first", "second"):
        folder = tmp_path / name
        (folder / "include").mkdir(parents=True)
        text = f"__version__ = '2.0'\ndef get_include(): return {str(folder / 'include')!r}\n"
        (folder / "numpy.py").write_text(text)
        make = [*BUILD, f"BUILD={tmp_path}", "VENV=", "NVCC=", f"PYTHON={sys.executable}"]
        run_at([*make, f"{tmp_path}/python.flags"], ROOT, PYTHONPATH=str(folder))
        _, flag = (tmp_path / "python.flags").read_text().replace('"', "").split()
        assert Path(flag.removeprefix("-I")).samefile(folder / "include")
        (folder / "include").rmdir()


def test_what_was_made_of_files_that_are_gone_goes(tmp_path):
    package = tmp_path / "python" / "cuplug"
    stock = package / "lib" / "cuplug"
    stock.mkdir(parents=True)
    (package / "_engine" / "call").mkdir(parents=True)
    gone = [
        package / "_gone.abi3.so",
        package / "_engine" / "call" / "gone.abi3.so",
        stock / "libgone.so",
    ]
    kept = [
        package / "_memoryviews.abi3.so",
        package / "_engine" / "call" / "run.abi3.so",
        stock / "libgather.so",
    ]
    for file in (*gone, *kept):
        file.touch()
    for room in ("gone", "_engine/gone", "_engine/__pycache__", "random"):
        (package / room / "__pycache__").mkdir(parents=True)
    (package / "ops.py").symlink_to(ROOT / "cython" / "cuplug" / "ops.py")
    (package / "gone.py").symlink_to(ROOT / "cython" / "cuplug" / "gone.py")
    run_at([*BUILD, f"BUILD={tmp_path}", "VENV=", "NVCC=", "stale"], ROOT)
    assert not [*package.rglob("gone")]
    assert (package / "_engine" / "__pycache__").exists()
    assert (package / "random").exists()
    left = {file for file in package.rglob("*") if not file.is_dir()}
    assert left == {*kept, package / "ops.py"}


def test_a_moved_module_is_translated(tmp_path):
    """Its file may be older than the generated C of the others."""
    target = tmp_path / "cython" / "translated"
    command = [*BUILD, "-n", f"BUILD={tmp_path}", "VENV=", "NVCC=", str(target)]
    run_at(command, ROOT)
    for made in (tmp_path / "installed" / "build", target):
        made.parent.mkdir(exist_ok=True)
        made.touch()
    assert "translate the Cython modules" not in run_at(command, ROOT)
    (tmp_path / "translated.config").write_text("cython/cuplug/elsewhere.pyx")
    assert "translate the Cython modules" in run_at(command, ROOT)


def test_a_missing_compiler_ends_the_build(tmp_path):
    command = ["make", f"BUILD={tmp_path}", "CC=no-such-cc", "core"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert "cuplug needs a C compiler (no-such-cc), which was not found: apt-get" in done.stderr


def test_steps_are_counted(tmp_path):
    lines = run_at(["make", "-n", f"BUILD={tmp_path}", "NVCC=", "core"], ROOT).splitlines()
    counts = [match.groups() for line in lines if (match := re.match(r"\[(\d+)/(\d+)\] ", line))]
    n_files = len([*ROOT.glob("core/*/*.c")])
    assert counts == [(str(k), str(n_files + 1)) for k in range(1, n_files + 2)]


@pytest.mark.parametrize(
    ("option", "passed"), [("", f"-j{len(os.sched_getaffinity(0))}"), ("-j1", ""), ("-j3", "")]
)
def test_all_cores_are_used_unless_told_otherwise(option, passed, tmp_path):
    command = ["make", "-n", *option.split(), f"BUILD={tmp_path}", "NVCC=", "core"]
    out = run_at(command, ROOT, OMP_NUM_THREADS="1")
    assert re.findall(r"make.* (-j\S+) .*-f build_backend/build.mk", out) == passed.split()


KNOWN = "compute_80\ncompute_90\ncompute_100\n"


USUAL = [str(x) for x in USUAL_ARCHITECTURES]  # of `cuplug build`


def cuda_commands(folder: Path, gpus: str, *settings: str, known: str = KNOWN) -> str:
    """Return the commands of make for plugins, with an nvcc that supports some architectures."""
    for name, text in (("nvcc", known), ("nvidia-smi", gpus)):
        script = folder / name
        script.write_text(f"#!/bin/sh\nprintf '{text}'\n")
        script.chmod(0o755)
    goals = settings if "demo" in settings else (*settings, "plugins")
    make = [*BUILD, "-n", f"BUILD={folder}/build", f"NVCC={folder}/nvcc", "VENV=", *goals]
    return run_at(make, ROOT, PATH=f"{folder}:{os.environ['PATH']}", CUDA_ARCHS="")


@pytest.mark.parametrize(
    ("gpus", "settings", "wanted"),
    [
        ("", [], USUAL),
        ("No devices were found\n", [], USUAL),
        ("", ["CUDA_ARCHS=native", "demo"], []),
        ("9.0\n", ["demo"], ["90"]),
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


def test_architectures_that_were_chosen_remain(tmp_path):
    def compiled(*settings: str) -> list[str]:
        out = cuda_commands(tmp_path, "8.0\n", *settings)
        return sorted(set(re.findall(r"code=sm_(\d+)", out)))

    assert compiled() == ["80"]
    assert compiled("CUDA_ARCHS=90") == compiled() == ["90"]
    assert compiled("CUDA_ARCHS=native") == compiled() == ["80"]


def test_the_demo_without_a_gpu_leaves_cuda_code_as_it_is(tmp_path):
    for goals, wanted in [(["demo"], []), ([], USUAL), (["demo"], USUAL)]:
        out = cuda_commands(tmp_path, "", *goals)
        assert sorted(set(re.findall(r"code=sm_(\d+)", out))) == wanted


@pytest.mark.parametrize("setting", ["CUDA_ARCHS=all", "CUDA_ARCHS=75-virtual 80 90"])
def test_code_for_all_gpus_is_machine_code_of_generations_and_the_oldest_ptx(setting, tmp_path):
    known = "compute_75\ncompute_80\ncompute_86\ncompute_90\n"
    out = cuda_commands(tmp_path, "", setting, known=known)
    line = next(line for line in out.splitlines() if "-gencode" in line)
    assert re.findall(r",code=(\w+)", line) == ["sm_80", "sm_90", "compute_75"]
    assert "-DCUPLUG_ARCHITECTURES=750,800,900 " in out


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
        run_at(
            [sys.executable, str(ROOT / "build_backend" / "translate.py"), "build", "1", "-Werror"],
            tmp_path,
        )
        after = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.c")}
        assert {path.parent for path in after} == {tmp_path / "build" / "cython" / "cuplug"}
        return {path.stem for path in after if before.get(path) != after[path]}

    assert translated() == {"_cython", "alone", "user"}  # the first: the shared code
    assert translated() == set()
    (package / "shared.pxd").touch()
    assert translated() == {"user"}
    (package / "shared.pxd").unlink()
    with pytest.raises(AssertionError, match=r"shared.pxd' not found"):
        translated()


@pytest.mark.slow
@pytest.mark.parametrize("end", ["os._exit(1)", "time.sleep(900)"])
def test_a_test_that_ends_its_worker_or_never_ends_is_reported(end, tmp_path):
    pytest.importorskip("xdist")
    (options,) = re.findall(r"(?m)^WORKERS := (.*)", (ROOT / "Makefile").read_text())
    cases = "@pytest.mark.parametrize('k', range(9))\ndef test(k):\n"
    (tmp_path / "test_ends.py").write_text(f"import os, time, pytest\n{cases}    {end}\n")
    command = [sys.executable, "-m", "pytest", *options.split(), "-n2", "-p", "conftest"]
    command += ["-p", "no:cacheprovider", "-c", "/dev/null", "--rootdir", ".", "test_ends.py"]
    places = os.pathsep.join([str(ROOT / "tests"), *filter(None, sys.path)])
    variables = {**os.environ, "PYTHONPATH": places, "CUPLUG_TEST_LIMIT_S": "1"}
    done = subprocess.run(
        command, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 1
    assert re.search(r"worker 'gw\d' crashed while running 'test_ends.py::test\[\d\]'", done.stdout)
    assert ("Timeout (0:00:01)!" in done.stderr) == ("sleep" in end)
