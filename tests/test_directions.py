# SPDX-License-Identifier: Apache-2.0
"""Calls go down: Python, Cython, core, plugin, kernel. The include lists and imports say so."""

import re
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from cuplug import elf, flags

ROOT = Path(__file__).resolve().parents[1]
CORE = sorted((ROOT / "core").glob("*.[ch]"))
PLUGINS = sorted((ROOT / "plugins").rglob("*.*"))
PACKAGE = sorted((ROOT / "cython" / "cuplug").glob("*.py*"))

STANDARD = {
    "ctype",
    "errno",
    "float",
    "inttypes",
    "locale",
    "math",
    "stdarg",
    "stdatomic",
    "stddef",
    "stdint",
    "stdio",
    "stdlib",
    "string",
    "time",
}
SYSTEM = {
    *("dirent", "dlfcn", "elf", "fcntl", "link", "pthread", "sched", "signal"),
    *("sys/mman", "sys/stat", "unistd"),
}
# They share the driver's table of functions, which one of them fills for the other.
DRIVER = {"driver", "cuda"}
DRIVER_USERS = DRIVER | {
    *("capture", "device", "fault", "image", "kernel", "lane", "memory", "services", "slices"),
    *("stream", "transfer"),
}
LOADER = {
    "library",
    "search",
    "trust",
    "note",
    "table",
    "candidate",
    "registry",
    "listing",
    "define",
    "find",
    "not_found",
    "load",
}


def system_includes(file: Path) -> set[str]:
    """Return the headers that a file includes in angle brackets, without .h."""
    return set(re.findall(r"^\s*#\s*include <([\w/.]+?)(?:\.h)?>", file.read_text(), re.M))


def own_includes(file: Path) -> set[str]:
    """Return the headers that a file includes in quotes, without .h."""
    return set(re.findall(r'^\s*#\s*include "([\w/.]+?)(?:\.h)?"', file.read_text(), re.M))


@pytest.mark.parametrize("file", CORE, ids=lambda file: file.name)
def test_core_includes_the_c_library_and_itself(file):
    seen = system_includes(file)
    public = {f"cuplug/{name}" for name in ("plugin", "host", "source", "loop", "nontemporal")}
    assert seen <= STANDARD | SYSTEM | public
    assert ("dlfcn" in seen) == (file.name == "library.c")
    assert {f"{name}.h" for name in own_includes(file)} <= {header.name for header in CORE}


def test_few_modules_know_the_driver():
    users = {file.stem for file in CORE if "driver" in own_includes(file)}
    assert users <= DRIVER_USERS
    for file in CORE:
        if file.stem in LOADER:
            assert not own_includes(file) & (DRIVER_USERS | {"call"}), file.name


def test_core_modules_use_each_other_one_way():
    modules: dict[str, set[str]] = {}
    for file in CORE:
        name = "cuda" if file.stem in DRIVER else file.stem
        used = {"cuda" if other in DRIVER else other for other in own_includes(file)}
        modules.setdefault(name, set()).update(used - {name})
    assert list(TopologicalSorter(modules).static_order())


def test_core_needs_the_c_library_alone():
    library = elf.read_library(f"{flags.lib_directory()}/libcuplug.so.1")
    usual = re.compile(r"lib(c|dl|pthread|asan|ubsan|tsan)\.so\.\d+|ld-linux.*")
    assert [name for name in library.needed if not usual.fullmatch(name)] == []


def test_public_headers():
    headers = ROOT / "include" / "cuplug"
    assert system_includes(headers / "plugin.h") <= STANDARD | {"cuplug/kernels"}
    assert system_includes(headers / "kernels.h") <= {"cuplug/plugin", "cuda_runtime_api"}
    assert system_includes(headers / "host.h") <= STANDARD | {
        *("cuplug/plugin", "cuplug/define", "cuplug/devices", "cuplug/jit")
    }
    for part in ("define.h", "devices.h", "jit.h"):
        assert system_includes(headers / part) <= {"cuplug/host"}
    assert system_includes(headers / "source.h") == {"cuplug/host"}
    assert system_includes(headers / "loop.h") == set()
    assert system_includes(headers / "half.h") <= STANDARD
    assert system_includes(headers / "nontemporal.h") <= STANDARD | {"emmintrin"}


@pytest.mark.parametrize("file", PLUGINS, ids=lambda file: file.name)
def test_plugins_know_the_authors_headers_alone(file):
    outside = system_includes(file) - STANDARD
    outside = {name for name in outside if not name.startswith("cuda_")}
    assert outside <= {"cuplug/plugin", "cuplug/half", "cuplug/nontemporal"}
    headers = {path.stem for path in (ROOT / "plugins").glob("*.*")}
    assert {Path(name).stem for name in own_includes(file)} <= headers


@pytest.mark.parametrize("file", PACKAGE, ids=lambda file: file.name)
def test_the_package_does_not_import_the_commands(file):
    if file.stem != "__main__":
        assert not re.search(r"^\s*(from|import) .*\bcommands\b", file.read_text(), re.M)
