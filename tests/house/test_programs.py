# SPDX-License-Identifier: Apache-2.0
"""The example programs in C and C++, built by make and by CMake, from the package and installed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import cuplug
import pytest
from places import ROOT
from processes import environment

EXAMPLES = ROOT / "examples"
PROGRAMS = {
    "host": """\
gather 1.0.0: Rows of source at the given indices: NumPy's take along axis 0.
  source
  index
  mode = "raise"
gather: 3.5 0.5 1.5
positive: 3 2
""",
    "host_cpp": "3\n2\npositive 1.0.0\n",
}


def run(command: list, cwd: Path, **variables: str) -> str:
    """Run a command that must succeed; return its output."""
    usual = {k: v for k, v in environment().items() if not k.startswith("MAKE")}
    done = subprocess.run(
        command, cwd=cwd, env=usual | variables, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "warning" not in done.stderr
    return done.stdout


@pytest.fixture
def sources(tmp_path) -> Path:
    """Copy the files of the example programs."""
    for name in ("host.c", "host.cpp", "files.c", "positive.c", "Makefile", "CMakeLists.txt"):
        shutil.copy(EXAMPLES / name, tmp_path)
    return tmp_path


@pytest.fixture(params=["lib", "lib64", "lib/x86_64-linux-gnu"])
def installed(once, request) -> tuple[Path, Path]:
    """Return the prefix and the folder of libraries that `make install` used."""
    # Other tests build the other plugins without nvcc.
    make = ["make", "-s", "NVCC=", "VENV=", "PLUGINS=gather hello"]

    def build(folder: Path) -> None:
        run([*make, f"BUILD={folder}", "archive", "core", "plugins"], ROOT)

    def install(prefix: Path) -> None:
        settings = [f"PREFIX={prefix}", f"LIBDIR={prefix}/{request.param}"]
        run([*make, f"BUILD={once('libraries', build)}", *settings, "install"], ROOT)

    prefix = once(f"installed-{request.param.replace('/', '-')}", install)
    return prefix, prefix / request.param


def build_by_make(sources: Path, pkg_config_path: str) -> None:
    if not shutil.which("pkg-config"):
        pytest.skip("needs pkg-config")
    run(["make"], sources, PKG_CONFIG_PATH=pkg_config_path)


def build_by_cmake(sources: Path, *settings: str) -> None:
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    cmake = shutil.which("cmake", path=path)
    if not cmake:
        pytest.skip("needs cmake")
    run([cmake, "-S", ".", "-B", ".", "-DCMAKE_BUILD_TYPE=Release", *settings], sources)
    run([cmake, "--build", "."], sources)


def check_programs(folder: Path) -> None:
    for name, wanted in PROGRAMS.items():
        assert run([str(folder / name)], folder) == wanted
    (folder / "newer.c").write_text((folder / "positive.c").read_text().replace("1.0.0", "1.1.0"))
    include = f"-I{cuplug.get_include()}"
    run(["cc", "-shared", "-fPIC", include, "newer.c", "-o", "new.so"], folder)
    shutil.copy(folder / "new.so", folder / "libpositive_copy.so")
    path = {"LD_LIBRARY_CUPLUG_PATH": str(folder)}
    text = run([str(folder / "files"), "libpositive.so", "new.so"], folder, **path)
    assert "positive 1.0.0: used\n" in text
    assert text.count("\npositive 1.1.0: ") == 1  # of the same name, later in the directory
    assert text.endswith("\npositive 1.0.0\npositive 1.1.0\n")


def test_programs_by_make(sources):
    assert not Path(cuplug.get_pkg_config_path(), "cuplug.pc").is_symlink()  # pkgconf 2 follows it
    build_by_make(sources, cuplug.get_pkg_config_path())
    check_programs(sources)


def test_programs_by_cmake(sources):
    (sources / "Makefile").unlink()
    build_by_cmake(sources, f"-Dcuplug_DIR={cuplug.get_cmake_path()}")
    check_programs(sources)


@pytest.mark.slow
def test_programs_by_make_after_make_install(sources, installed):
    build_by_make(sources, f"{installed[1]}/pkgconfig")
    check_programs(sources)


@pytest.mark.slow
def test_programs_by_cmake_after_make_install(sources, installed):
    (sources / "Makefile").unlink()
    prefix, libraries = installed
    build_by_cmake(
        sources, f"-DCMAKE_PREFIX_PATH={prefix}", f"-Dcuplug_DIR={libraries}/cmake/cuplug"
    )
    check_programs(sources)


def check_archive(folder: Path, library: str, compiler: list, *options: str) -> None:
    """Link an archive of the core into a program, and run it with a plugin that calls gather."""
    command = [*compiler, "-std=c11", f"-I{cuplug.get_include()}"]
    plugin = ["-shared", "-fPIC", "-fvisibility=hidden", "-D_GNU_SOURCE", "-DCUPLUG_HOST_ONLY"]
    gather = sorted((ROOT / "plugins" / "gather").glob("*.c"))
    run([*command, *plugin, f"-I{ROOT}/plugins", *gather, "-o", "libgather.so", "-lm"], folder)
    run([*command, *plugin, "positive.c", "-o", "libpositive.so"], folder)
    run([*command, "host.c", library, *options, "-o", "host"], folder)
    path = {"LD_LIBRARY_CUPLUG_PATH": str(folder)}
    assert run([str(folder / "host")], folder, **path) == PROGRAMS["host"]
    assert b"libcuplug.so" not in (folder / "host").read_bytes()


@pytest.mark.slow
def test_archive(sources, installed):
    check_archive(sources, f"{installed[1]}/libcuplug.a", ["cc"], "-pthread", "-ldl")


@pytest.mark.slow
def test_musl(sources):
    """With the system's kernel headers, which musl lacks."""
    if not shutil.which("musl-gcc"):
        pytest.skip("needs musl-gcc")
    machine = run(["cc", "-dumpmachine"], sources).strip()
    compiler = f"musl-gcc -idirafter /usr/include -idirafter /usr/include/{machine}"
    settings = ["NVCC=", "VENV=", f"CC={compiler}", f"BUILD={sources}/build", "CFLAGS=-O1"]
    run(["make", "-s", *settings, "archive", "core"], ROOT)
    check_archive(sources, f"{sources}/build/libcuplug.a", compiler.split())
    shared = sources / "build" / "python" / "cuplug" / "lib"
    link = [f"-L{shared}", "-lcuplug", f"-Wl,-rpath,{shared}"]
    include = f"-I{cuplug.get_include()}"
    run([*compiler.split(), "-std=c11", include, "host.c", *link, "-o", "host"], sources)
    path = {"LD_LIBRARY_CUPLUG_PATH": str(sources)}
    assert run([str(sources / "host")], sources, **path) == PROGRAMS["host"]


@pytest.mark.parametrize(("wanted", "is_found"), [("0.1", True), ("0.1.0", True), ("0.2", False)])
def test_cmake_asks_for_a_version(wanted, is_found, tmp_path):
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    cmake = shutil.which("cmake", path=path)
    if not cmake:
        pytest.skip("needs cmake")
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.18)\nproject(asks NONE)\n"
        f"find_package(cuplug {wanted})\nmessage(STATUS found=${{cuplug_FOUND}})\n"
    )
    command = [cmake, ".", f"-Dcuplug_DIR={cuplug.get_cmake_path()}"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert f"found={int(is_found)}" in done.stdout
