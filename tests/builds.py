# SPDX-License-Identifier: Apache-2.0
"""Compilations for tests: each is done once in a run, by the first worker that needs it."""

import fcntl
import hashlib
import os
import shlex
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
from cuplug._engine.base import environment, flags
from cuplug._source.compilers import host_compiler, toolkit
from places import FIXTURES, ROOT
from selection import is_sanitized, n_gpus, runs_all

BUILT = Path(flags.PACKAGE).parent
COMPILER = shlex.split(os.environ.get("CC", "cc"))
# Tests of compiled loops: their expressions are compiled with users' options.
OPTIMIZED = ("test_element_wise", "test_host_compiler", "test_reductions", "test_rows")
OPTIMIZED += ("test_same_numbers", "test_vector_functions")


def run_compiler(command: list[str]) -> subprocess.CompletedProcess:
    """Run a compiler as cuplug does, without sanitizers."""
    return subprocess.run(command, env=environment.for_programs({}), capture_output=True, text=True)


def compile_library(command: list[str]) -> None:
    """Run a compiler; if it fails, the test fails with its output."""
    done = run_compiler(command)
    if done.returncode:
        pytest.fail(f"{shlex.join(command)}\n{done.stdout}{done.stderr}", pytrace=False)


def run_at(command: list, cwd: Path, **variables: str) -> str:
    """Run a command that must succeed; return its output."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}
    done = subprocess.run(
        command, cwd=cwd, env=inherited | variables, capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, f"{done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout


def compile_module(
    source: Path, folder: Path, name: str = "", search: Path = BUILT, options: Iterable[str] = ()
) -> None:
    """Compile a .pyx as a user does; `search` is the directory with cuplug's .pxd files."""
    name = name or source.stem
    c_file = folder / f"{name}.c"
    library = folder / (name + sysconfig.get_config_var("EXT_SUFFIX"))
    cython = [sys.executable, "-m", "cython", "-3", "-Wextra", "-Werror"]
    cython += ["-X", "freethreading_compatible=True"]  # else it would turn the GIL on
    paths = ["-I", str(search), "-I", str(folder)]
    compile_library([*cython, *paths, "--module-name", name, str(source), "-o", str(c_file)])
    include = [f"-I{sysconfig.get_paths()['include']}", f"-I{flags.get_include()}"]
    command = [*COMPILER, "-shared", "-fPIC", *include, str(c_file)]
    compile_library([*command, *options, "-o", str(library)])


def compile_driver(source: str, folder: Path) -> None:
    """Compile a libcuda.so.1 of tests/fixtures into a folder."""
    options = ["-std=gnu11", "-O1", "-g", "-shared", "-fPIC", "-pthread"]
    soname = "-Wl,-soname,libcuda.so.1"
    includes = [f"-I{ROOT / 'include'}", f"-I{ROOT / 'core'}"]
    output = ["-o", str(folder / "libcuda.so.1")]
    compile_library([*COMPILER, *options, soname, *includes, str(FIXTURES / source), *output])


@pytest.fixture(scope="session")
def shared(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder that all workers of a run share."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if hasattr(pytestconfig, "workerinput") else base


@pytest.fixture(scope="session")
def once(shared: Path) -> Callable[[str, Callable[[Path], object]], Path]:
    """Return `once(name, fill)`, which returns a folder that `fill` has filled once in a run."""

    def once(name: str, fill: Callable[[Path], object]) -> Path:
        folder = shared / "built" / name
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        with open(f"{folder}.done", "a") as done:  # empty until it is
            fcntl.flock(done, fcntl.LOCK_EX)
            if not os.fstat(done.fileno()).st_size:
                fill(folder)
                done.write("done")
        return folder

    return once


@pytest.fixture(scope="module", autouse=True)
def little_optimization(request: pytest.FixtureRequest) -> Iterator[None]:
    """Compile expressions in a third of the time, unless all tests run.

    In CI, tests with sanitizers find the code of all tests in the cache.
    """
    with pytest.MonkeyPatch.context() as patch:
        if not (runs_all() or is_sanitized() or request.path.stem in OPTIMIZED):
            few = ("-O1" if flag == "-O3" else flag for flag in host_compiler.FLAGS)
            patch.setattr(host_compiler, "FLAGS", tuple(few))
            # With -Og, calls remain that -O1 removes, and some code does not link.
            first, *rest = host_compiler.TRIED
            patch.setattr(host_compiler, "TRIED", (("-Og", *first), first, *rest))
        yield


def _nvcc() -> list[str]:
    nvcc = toolkit.find_nvcc()
    if not nvcc:
        pytest.skip("needs nvcc")
    return [nvcc, "-arch=native" if n_gpus() else "-arch=sm_90"]


@pytest.fixture(scope="session")
def build_plugin(once) -> Callable[..., Path]:
    """Return a function that compiles a plugin from a file or from text.

    `build_plugin(source, name, defines=(), cuda=False, extra=())` returns the path of lib<name>.so,
    in its own directory. The same request is compiled once in a run.
    """

    def build(
        source: str | Path,
        name: str,
        defines: Iterable[str] = (),
        cuda: bool = False,
        extra: Iterable[str] = (),
    ) -> Path:
        compiler = _nvcc() if cuda else COMPILER
        text = source.read_text() if isinstance(source, Path) else source
        options = [*(f"-D{define}" for define in defines), *extra]
        key = hashlib.sha256(repr((text, name, options, cuda)).encode()).hexdigest()[:16]

        def write(folder: Path) -> None:
            (folder / f"{name}.{'cu' if cuda else 'c'}").write_text(text)

        def fill(folder: Path) -> None:
            file = source
            if not isinstance(source, Path):
                (file,) = once(f"{key}_source", write).iterdir()
            command = [*compiler, *flags.plugin_flags(nvcc=cuda), *options]
            compile_library([*command, str(file), "-o", str(folder / f"lib{name}.so")])

        return once(key, fill) / f"lib{name}.so"

    return build
