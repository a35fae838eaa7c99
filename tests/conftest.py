# SPDX-License-Identifier: Apache-2.0
"""Code for the tests of all rooms: the selection of tests, and fixtures."""

import faulthandler
import os
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import cuplug
import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key
from cuplug._source.compilers import cache
from hypothesis import HealthCheck, settings
from places import FIXTURES, ROOT

os.umask(0o022)  # folders that a group may write are rejected

# The workers, and more than a thousand processes, import the same modules. If bytecode may not be
# written next to them, it is in build/.
if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
    sys.dont_write_bytecode = False
    sys.pycache_prefix = os.environ["PYTHONPYCACHEPREFIX"] = str(ROOT / "build" / "bytecode")

pytest_plugins = ["selection", "builds", "backends", "fake_driver", "fake_loops", "emulated_driver"]

# Machines are sometimes slow, and all examples of a test share its fixtures.
settings.register_profile(
    "cuplug",
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
settings.load_profile("cuplug")

LIMIT_S = float(os.environ.get("CUPLUG_TEST_LIMIT_S", 1800))  # of one test

OTHER_SEARCH_VARIABLES = (
    "LD_LIBRARY_PATH",
    "XDG_DATA_HOME",
    "CUPLUG_ALLOW_UNSAFE",
    "CUPLUG_ALLOW_GROUP",
    "CUPLUG_LOAD_IN_PLACE",
    "CUPLUG_TRUSTED_OWNERS",
    "CUPLUG_ALLOW_LIST",
)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """End the process of a test that takes too long, and show where its threads are."""
    stderr = item.config.stash[fault_handler_stderr_fd_key]  # the one that is not captured
    faulthandler.dump_traceback_later(LIMIT_S, exit=True, file=stderr)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


@pytest.fixture(scope="session", autouse=True)
def caches_of_the_tests(shared: Path) -> Iterator[None]:
    """Keep compiled code in build/, apart from the user's caches, also for later runs.

    Its keys contain everything that a result depends on. If a cache cannot be in that folder, or
    its path has a space, which links for the shell must not have, the cache is only for this run.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUPLUG_CACHE_DIR", str(ROOT / "build" / "compiled"))
        if " " in str(ROOT) or not cache.make_directory():
            patch.setenv("CUPLUG_CACHE_DIR", str(shared / "cache"))
        yield


@pytest.fixture(scope="module")
def arguments_file(build_plugin: Callable[..., Path]) -> Path:
    """Return the plugin with an operator for each kind of argument, with only host entries."""
    return build_plugin(FIXTURES / "arguments.c", "arguments")


@pytest.fixture(scope="module")
def ops(arguments_file: Path) -> Any:
    """Return its operators."""
    return cuplug.load(arguments_file)


@pytest.fixture
def plugin_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty directory, the only one in LD_LIBRARY_CUPLUG_PATH."""
    directory = tmp_path / "plugins"
    directory.mkdir(mode=0o755)
    monkeypatch.setenv("LD_LIBRARY_CUPLUG_PATH", str(directory))
    return directory


@pytest.fixture
def place(plugin_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a new directory, the only one that is searched besides the stock plugins."""
    for variable in OTHER_SEARCH_VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(plugin_dir.parent / "home"))
    return plugin_dir


@pytest.fixture
def good_file(build_plugin: Callable[..., Path]) -> Path:
    """Return the path of a good plugin called raw."""
    return build_plugin(FIXTURES / "raw_table.c", "raw")


@pytest.fixture
def run_python(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess]:
    """Return a function that runs Python text in a fresh process.

    `run_python(code, env={})` passes the variables of this process, replaced by `env`. Variables
    that are None in `env` are removed.
    """

    def run(code: str, env: dict[str, str | None] | None = None, timeout: float = 120):
        merged = {**os.environ, **(env or {})}
        variables = {key: value for key, value in merged.items() if value is not None}
        command = [sys.executable, "-c", code]
        return subprocess.run(
            command, env=variables, capture_output=True, text=True, timeout=timeout, cwd=tmp_path
        )

    return run


@pytest.fixture(autouse=True)
def first_gpu(request):
    """Begin each GPU test on the first GPU: JAX leaves the last one that it used current."""
    if "gpu" in request.keywords and "torch" in sys.modules:
        sys.modules["torch"].cuda.set_device(0)
