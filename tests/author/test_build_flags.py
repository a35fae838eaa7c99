# SPDX-License-Identifier: Apache-2.0
"""The flags that `cuplug build` passes to compilers, and the GPUs that it reports for a plugin."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import cuplug
import pytest
from cuplug._engine.discovery.table import read_table
from cuplug._integration.author import build, fatbin
from cuplug._integration.author.sources import find_source
from cuplug._source.compilers import toolkit
from places import ROOT
from processes import run

HALF = (ROOT / "examples" / "drop_in" / "half.c").read_text()
needs_nvcc = pytest.mark.skipif(not toolkit.find_nvcc(), reason="needs nvcc")

LAMBDA = """
#include <cuplug/plugin.h>
#include <limits>
template <class F> __global__ void each(F f) { f(threadIdx.x); }
CUPLUG_ENTRY int top_cuda(const cuplug_call *call) {
  float *y = (float *)call->outputs->data;
  each<<<1, 2>>>([=] __device__(int i) { y[i] = std::numeric_limits<float>::max(); });
  return cuplug_launched(call);
}
CUPLUG_CUDA_OPERATOR(top_cuda, "top() -> float32[2]", "The largest numbers.");
CUPLUG_PLUGIN(top, "1.0.0");
"""


@pytest.mark.slow
@needs_nvcc
def test_lambdas_constexpr_functions_and_code_for_one_gpu(tmp_path):
    (tmp_path / "top.cu").write_text(LAMBDA)
    done = run("build", "top.cu", "--arch", "90a", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "\n9.0a: compute capability 9.0 only\n" in done.stdout
    assert cuplug.load(tmp_path / "libtop.so").top.architectures == ("900a",)
    for command in (["list"], ["info", "top"]):
        done = run(*command, cwd=tmp_path, LD_LIBRARY_CUPLUG_PATH=str(tmp_path))
        assert " 9.0a" in done.stdout


def test_gpus_that_code_for_some_excludes():
    assert {x: fatbin.runs_on(x) for x in (90, "90a", "100f", "103a", "120a")} == {
        90: "",
        "90a": "compute capability 9.0 only",
        "100f": "compute capability 10.x from 10.0 on, and no other",
        "103a": "compute capability 10.3 only",
        "120a": "compute capability 12.0 only",
    }


def test_symbols_of_one_copy_are_left_to_gcc(tmp_path, monkeypatch):
    commands = []
    monkeypatch.setattr(build, "_output_of", lambda command, made: commands.append(command) or "")
    for name, compiler in (("half.c", ""), ("half.cpp", ""), ("half.cpp", "clang++")):
        monkeypatch.setenv("CXX", compiler)
        (tmp_path / name).write_text(HALF)
        path = str(tmp_path / name)
        build._compile(find_source(path), None, (), (), str(tmp_path / "libhalf.so"))
    assert ["-fno-gnu-unique" in command for command in commands] == [False, True, False]


def recorded(name, folder, **variables):
    """Return the plugin's record of its build."""
    variables["LD_LIBRARY_CUPLUG_PATH"] = str(folder)
    return json.loads(run("info", name, "--json", **variables).stdout)["build"]


def git(folder, *arguments):
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.com"]
    done = subprocess.run(
        ["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def test_a_plugin_records_its_build(tmp_path):
    folder = tmp_path / "of ada"
    folder.mkdir()
    (folder / "half.c").write_text(HALF)
    options = ["-g", f"-L{folder}", f"-DHOME={folder}", "-Wl,-rpath,$ORIGIN/../x", "-Isrc/ada"]
    library = folder / "libhalf.so"
    cuplug.build(folder / "half.c", options=options)
    first = library.read_bytes()
    build = recorded("half", folder)
    assert set(build) == {"compiler", "flags"}
    assert re.match(r"GCC \d+\.\d+|.*[Cc]lang", build["compiler"])
    assert build["flags"].startswith("-O3 -DCUPLUG_HOST_ONLY -std=c11")
    assert build["flags"].endswith(" -g -L... -DHOME=... -Wl,-rpath,$ORIGIN/../x -I...")
    assert b".cuplug-temporary" not in first
    cuplug.build(folder / "half.c", options=options)
    assert library.read_bytes() == first


def test_a_plugin_records_its_commit(tmp_path):
    if not shutil.which("git"):
        pytest.skip("no git")
    for name in ("half.c", "other.h"):
        (tmp_path / name).write_text(HALF)
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "other.h")
    git(tmp_path, "commit", "-qm", "first")

    def build():
        cuplug.build(tmp_path / "half.c")
        found = recorded("half", tmp_path)
        return found.get("commit"), found.get("modified")

    assert build() == (None, None)  # git does not track it
    git(tmp_path, "add", "half.c")
    git(tmp_path, "commit", "-qm", "second")
    commit = git(tmp_path, "rev-parse", "HEAD")
    assert build() == build() == (commit, False)  # the library is not tracked
    (tmp_path / "other.h").write_text("")
    assert build() == (commit, True)
    shown = run("info", "half", LD_LIBRARY_CUPLUG_PATH=str(tmp_path)).stdout
    assert f"\ncommit:        {commit}, with modifications\n" in shown


def test_cmake_records_the_same(tmp_path):
    if not shutil.which("cmake") or not shutil.which("git"):
        pytest.skip("needs cmake and git")
    (tmp_path / "half.c").write_text(HALF)
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\n"
        "project(ours LANGUAGES C)\n"
        "find_package(cuplug REQUIRED)\n"
        "cuplug_add_plugin(half half.c)\n"
        "target_compile_definitions(half PRIVATE HOME=${CMAKE_SOURCE_DIR})\n"
        'target_compile_options(half PRIVATE -g [[-DTEXT="a b"]])\n'
    )
    made = tmp_path / "made"
    settings = [f"-Dcuplug_DIR={cuplug.get_cmake_path()}", "-DCMAKE_BUILD_TYPE=Release"]
    subprocess.run(["cmake", "-S", tmp_path, "-B", made, *settings], check=True)

    def build():
        subprocess.run(["cmake", "--build", made], check=True)
        return recorded("half", made)

    first = build()
    assert set(first) == {"compiler", "flags"}
    assert re.match(r"GCC \d+\.\d+|.*[Cc]lang", first["compiler"])
    words = first["flags"].split()
    assert words[0] == "-O3"
    assert {"-DCUPLUG_HOST_ONLY", "-DHOME=...", "-g", '-DTEXT="a'} <= set(words)
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "half.c")
    git(tmp_path, "commit", "-qm", "first")
    commit = git(tmp_path, "rev-parse", "HEAD")
    assert build() == first | {"commit": commit, "modified": False}  # without another configuration
    with open(tmp_path / "half.c", "a") as file:
        file.write("\n")
    assert build() == first | {"commit": commit, "modified": True}


def test_what_a_folder_of_several_files_records(tmp_path, monkeypatch):
    (tmp_path / "a.cpp").write_text("int a() { return 0; }")
    (tmp_path / "half.c").write_text(HALF)
    monkeypatch.setenv("PATH", str(programs_without_git(tmp_path)))
    cuplug.build(tmp_path)
    assert " -x c++" in recorded("half", tmp_path)["flags"]


def programs_without_git(folder):
    """Return a folder with links to all programs on PATH but git."""
    made = folder / "programs"
    made.mkdir()
    for place in reversed(os.environ["PATH"].split(":")):
        for program in Path(place).glob("[a-z]*"):
            if program.name != "git":
                (made / program.name).unlink(missing_ok=True)
                (made / program.name).symlink_to(program)
    return made


@pytest.mark.slow
@needs_nvcc
def test_a_cuda_plugin_records_its_build(tmp_path):
    (tmp_path / "top.cu").write_text(LAMBDA)
    cuplug.build(tmp_path / "top.cu", arch="90")
    build = recorded("top", tmp_path)
    assert re.match(r"nvcc \d+\.\d+\.\d+ with ", build["compiler"])
    assert "-gencode=arch=compute_90,code=[sm_90,compute_90]" in build["flags"]


@pytest.mark.slow
@needs_nvcc
def test_cmake_passes_letters_of_architectures(tmp_path):
    if not shutil.which("cmake"):
        pytest.skip("needs cmake")
    (tmp_path / "top.cu").write_text(LAMBDA)
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\n"
        "project(ours LANGUAGES CUDA CXX)\n"
        "find_package(cuplug REQUIRED)\n"
        "cuplug_add_plugin(top top.cu)\n"
    )
    command = ["cmake", "-S", tmp_path, "-B", tmp_path / "made", "-G", "Unix Makefiles"]
    command += [f"-Dcuplug_DIR={cuplug.get_cmake_path()}"]
    command += [f"-DCMAKE_CUDA_COMPILER={toolkit.find_nvcc()}"]
    command += ["-DCMAKE_CUDA_FLAGS=--extended-lambda --expt-relaxed-constexpr"]
    for listed, wanted in (("80-real;90a", (800, "900a")), ("80;90", (800, 900))):
        subprocess.run([*command, f"-DCMAKE_CUDA_ARCHITECTURES={listed}"], check=True)
        subprocess.run(["cmake", "--build", tmp_path / "made"], check=True)
        assert read_table(str(tmp_path / "made" / "libtop.so")).architectures == wanted


@pytest.mark.slow
@needs_nvcc
def test_the_remedy_for_architectures_that_the_table_does_not_name(tmp_path):
    """Of options after `--` cuplug reads none, and `--arch 90a` replaces what nvcc would list."""
    (tmp_path / "top.cu").write_text(LAMBDA)
    options = ["-gencode", "arch=compute_80,code=[sm_80,compute_80]"]
    done = run("build", "top.cu", "--arch", "90a", "--", *options, cwd=tmp_path)
    assert "code for architecture 8.0, the table does not name it" in done.stdout + done.stderr
    remedy = "compile a table in C with -DCUPLUG_ARCHITECTURES=800,900a"
    assert f"pass --arch 80,90a to cuplug build, or {remedy}" in done.stdout + done.stderr
    done = run("build", "top.cu", "--arch", "80,90a", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "architectures" not in done.stdout + done.stderr
    assert read_table(str(tmp_path / "libtop.so")).architectures == (800, "900a")
