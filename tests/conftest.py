# SPDX-License-Identifier: Apache-2.0
"""What the tests share: plugins compiled on the spot, a driver without a GPU, fresh Pythons."""

import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import cuplug
import pytest
from backends import backend  # noqa: F401  (a fixture)
from cuplug.base import flags

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent
FIXTURES = TESTS / "fixtures"
sys.path[1:1] = sorted(str(room) for room in TESTS.iterdir() if room.is_dir())
BUILT = Path(flags.PACKAGE).parent
COMPILER = shlex.split(os.environ.get("CC", "cc"))
OTHER_SEARCH_VARIABLES = (
    "LD_LIBRARY_PATH",
    "XDG_DATA_HOME",
    "CUPLUG_ALLOW_UNSAFE",
    "CUPLUG_ALLOW_LIST",
)


def _nvcc() -> str | None:
    places = [os.environ.get("CUDA_HOME", ""), "/usr/local/cuda"]
    return shutil.which("nvcc") or next(
        (f"{place}/bin/nvcc" for place in places if place and os.access(f"{place}/bin/nvcc", 1)),
        None,
    )


def _n_gpus() -> int:
    """Ask in a process of its own: CUDA must not start in the one that runs the tests."""
    code = "import cuplug; print(len(cuplug.devices()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    return int(done.stdout) if done.returncode == 0 else 0


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip what this machine cannot run, with the reason."""
    marked = [item for item in items if item.get_closest_marker("gpu")]
    n_gpus = _n_gpus() if marked else 0
    for item in marked:
        wanted = item.get_closest_marker("gpu").kwargs.get("n", 1)
        if n_gpus < wanted:
            item.add_marker(pytest.mark.skip(reason=f"needs {wanted} GPU(s), there are {n_gpus}"))
    for item in items:
        if item.get_closest_marker("large") and os.environ.get("CUPLUG_TEST_LARGE") != "1":
            item.add_marker(pytest.mark.skip(reason="needs much memory; set CUPLUG_TEST_LARGE=1"))


def compile_library(command: list[str]) -> None:
    """Run a compiler; what it says is the failure's text."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        pytest.fail(f"{shlex.join(command)}\n{done.stdout}{done.stderr}", pytrace=False)


def compile_module(
    source: Path, folder: Path, name: str = "", search: Path = BUILT, options: Iterable[str] = ()
) -> None:
    """Compile a .pyx as someone outside of the project does; `search`: where cuplug's .pxd are."""
    name = name or source.stem
    c_file = folder / f"{name}.c"
    library = folder / (name + sysconfig.get_config_var("EXT_SUFFIX"))
    cython = [sys.executable, "-m", "cython", "-3", "-Wextra", "-Werror"]
    paths = ["-I", str(search), "-I", str(folder)]
    compile_library([*cython, *paths, "--module-name", name, str(source), "-o", str(c_file)])
    include = [f"-I{sysconfig.get_paths()['include']}", f"-I{flags.get_include()}"]
    command = [*COMPILER, "-shared", "-fPIC", *include, str(c_file)]
    compile_library([*command, *options, "-o", str(library)])


@pytest.fixture(scope="session")
def build_plugin(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Return a function that compiles a plugin from a file or from text.

    `build_plugin(source, name, defines=(), cuda=False, extra=())` returns the path of lib<name>.so,
    alone in a directory of its own. The same request is compiled once in a session.
    """
    built: dict[str, Path] = {}

    def build(
        source: str | Path,
        name: str,
        defines: Iterable[str] = (),
        cuda: bool = False,
        extra: Iterable[str] = (),
    ) -> Path:
        text = source.read_text() if isinstance(source, Path) else source
        options = [*(f"-D{define}" for define in defines), *extra]
        key = hashlib.sha256(repr((text, name, options, cuda)).encode()).hexdigest()
        if key in built:
            return built[key]
        directory = tmp_path_factory.mktemp(name)
        if not isinstance(source, Path):
            source = tmp_path_factory.mktemp(f"{name}_source") / f"{name}.{'cu' if cuda else 'c'}"
            source.write_text(text)
        library = directory / f"lib{name}.so"
        compiler = COMPILER
        if cuda:
            nvcc = _nvcc()
            if not nvcc:
                pytest.skip("needs nvcc")
            compiler = [nvcc, "-arch=native" if _n_gpus() else "-arch=sm_90"]
        command = [*compiler, *shlex.split(flags.plugin_flags(nvcc=cuda)), *options]
        compile_library([*command, str(source), "-o", str(library)])
        built[key] = library
        return library

    return build


@pytest.fixture(scope="module")
def arguments_file(build_plugin: Callable[..., Path]) -> Path:
    """Return the plugin with an operator for each kind of argument; host entries alone."""
    return build_plugin(FIXTURES / "arguments.c", "arguments")


@pytest.fixture(scope="module")
def ops(arguments_file: Path) -> Any:
    """Return its operators."""
    return cuplug.load(arguments_file)


@pytest.fixture
def plugin_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty directory that is the whole of LD_LIBRARY_CUPLUG_PATH."""
    directory = tmp_path / "plugins"
    directory.mkdir(mode=0o755)
    monkeypatch.setenv("LD_LIBRARY_CUPLUG_PATH", str(directory))
    return directory


@pytest.fixture
def place(plugin_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a new directory: nothing else is searched, but for the stock plugins."""
    for variable in OTHER_SEARCH_VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(plugin_dir.parent / "home"))
    return plugin_dir


@pytest.fixture
def good_file(build_plugin: Callable[..., Path]) -> Path:
    """Return the path of a good plugin called raw."""
    return build_plugin(FIXTURES / "raw_table.c", "raw")


@pytest.fixture(scope="session")
def fake_cuda(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory of a libcuda.so.1 that needs no GPU."""
    directory = tmp_path_factory.mktemp("fake_cuda")
    options = [
        "-std=gnu11",
        "-O1",
        "-g",
        "-shared",
        "-fPIC",
        "-Wl,-soname,libcuda.so.1",
        "-pthread",
    ]
    source = FIXTURES / "fake_cuda.c"
    include = f"-I{ROOT / 'include'}"
    library = directory / "libcuda.so.1"
    compile_library([*COMPILER, *options, include, str(source), "-o", str(library)])
    return directory


@pytest.fixture
def run_python(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess]:
    """Return a function that runs Python text in a fresh process.

    `run_python(code, env={})` has the variables of this process, those in `env` instead, and
    without those that are None there.
    """

    def run(code: str, env: dict[str, str | None] | None = None, timeout: float = 120):
        merged = {**os.environ, **(env or {})}
        variables = {key: value for key, value in merged.items() if value is not None}
        command = [sys.executable, "-c", code]
        return subprocess.run(
            command, env=variables, capture_output=True, text=True, timeout=timeout, cwd=tmp_path
        )

    return run
