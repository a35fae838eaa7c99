# SPDX-License-Identifier: Apache-2.0
"""Dependencies go down: Python, Cython, core, plugin, kernel; in package and core, room by room.

docs/architecture.md has the one list of rooms. Includes, imports, cimports and stubs are read.
"""

import re
from graphlib import TopologicalSorter
from pathlib import Path

import cuplug
import pytest
from cuplug._engine.base import flags
from cuplug._integration.author import elf
from places import ROOT
from rooms import (
    CODE,
    CORE,
    FOLDERS,
    PACKAGE,
    RUNTIME,
    core_modules,
    package_modules,
    read_rooms,
    read_wings,
    runtime_modules,
)

PLUGINS = sorted((ROOT / "plugins").rglob("*.*"))
ROOMS = [room.name for room in read_rooms()]
WINGS = read_wings()
# Modules at the top of the package, which all import, and their position among the rooms.
TOP = {"errors": "base", "_memoryviews": "lookup", "ops": "lookup", "testing": "author"}
TOP |= {"setuptools": "author"}
TOP |= {"xarray": "frameworks", "tvm_ffi": "frameworks"}
TOP |= {"__init__": "author"}  # which commands use like users
TOP |= {wing.folder: wing.rooms[0] for wing in WINGS}
STANDARD_CPP = {"exception", "new", "type_traits", "utility"}
STANDARD = {
    *("ctype", "errno", "float", "inttypes", "locale", "math", "stdarg", "stdatomic", "stddef"),
    *("stdbool", "stdint", "stdio", "stdlib", "string", "time"),
}
SYSTEM = {
    *("dirent", "dlfcn", "elf", "fcntl", "grp", "link", "linux/futex", "pthread", "pwd", "sched"),
    *("signal", "sys/mman", "sys/sendfile", "sys/stat", "sys/syscall", "sys/types", "sys/xattr"),
    "unistd",
}
PUBLIC = {"plugin", "fault", "host", "loop", "walk", "halves", "nontemporal"}
INTERNAL = {"formula", "frame", "functions", "signature"}
RUNTIME_OWN = {"define", "expressions", "gpus", "jit", "streams", "textures", "xla"}
MOST_FILES = 20
PARTS_OF_ROOMS = {"array_api/beyond"}  # folders in rooms, whose modules the rooms' rows list


def place(module: tuple[str, ...]) -> int:
    """Return the number of a module's room; rooms of the lobby are last."""
    room = TOP.get(module[1], module[1])
    return ROOMS.index(room) if room in ROOMS else len(ROOMS)


SIDES = [core_modules(), runtime_modules(), package_modules()]
NAMES = ["core", "runtime", "package"]


@pytest.mark.parametrize("modules", SIDES, ids=NAMES)
def test_modules_use_each_other_downwards(modules):
    up = [(a, b) for a, used in modules.items() for b in used if place(b) > place(a)]
    assert up == []
    assert list(TopologicalSorter(modules).static_order())


def wing_of(module: tuple[str, ...]) -> int:
    """Return the number of the wing of a module of the package; the lobby is the last wing."""
    room = TOP.get(module[1], module[1])
    return next((k for k, wing in enumerate(WINGS) if room in wing.rooms), len(WINGS))


def test_a_wing_imports_only_those_above_it():
    """Hence the engine imports no other wing, also not inside functions."""
    modules = package_modules()
    wrong = [(a, b) for a, used in modules.items() for b in used if wing_of(b) > wing_of(a)]
    assert wrong == []
    assert {wing_of(module) for module in modules} == {*range(len(WINGS) + 1)}


def test_rooms_lie_in_the_folders_of_their_wings():
    listed = {f"{wing.folder}/{room}".strip("/") for wing in WINGS for room in wing.rooms}
    rooms = {file.parent.relative_to(PACKAGE) for file in PACKAGE.rglob("__init__.py")}
    assert {str(room) for room in rooms} == {".", *FOLDERS, *listed, *PARTS_OF_ROOMS}
    assert [room for room in ROOMS if any(room in wing.rooms for wing in WINGS)] == [
        room for wing in WINGS for room in wing.rooms
    ]


def test_each_module_stands_in_the_row_of_its_room():
    rooms = read_rooms()
    listed = {x.name: (set(x.core), set(x.runtime), set(x.package)) for x in rooms}
    for side, modules in enumerate(SIDES):
        found = {room: set() for room in ROOMS}
        for module in modules:
            if len(module) == 3 and module[2] != "__init__":
                found[module[1]].add(module[2])
            elif "/".join(module[1:3]) in PARTS_OF_ROOMS and module[-1] != "__init__":
                found[module[1]].add(".".join(module[2:]))
        assert {room: names[side] for room, names in listed.items()} == found


@pytest.mark.parametrize("top", [CORE, RUNTIME, PACKAGE], ids=NAMES)
def test_rooms_are_read_at_a_glance(top):
    rooms = {file.parent for file in top.rglob("*") if file.suffix in CODE}
    above = {top, top.parent, *(top / folder for folder in FOLDERS)}
    for room in sorted(room for room in rooms if room.parent in above):
        modules = {file.stem for file in room.iterdir() if file.suffix in CODE}
        assert len(modules) <= MOST_FILES, room
        sentence = room / ("README.md" if top != PACKAGE else "__init__.py")
        assert room == top or len(sentence.read_text().splitlines()) >= 2, room


def test_plugins_are_read_at_a_glance():
    for folder in {file.parent for file in PLUGINS}:
        assert len([file for file in folder.iterdir() if file.is_file()]) <= 24, folder


def system_includes(file: Path) -> set[str]:
    """Return the headers that a file includes in angle brackets, without .h."""
    return set(re.findall(r"^\s*#\s*include <([\w/.]+?)(?:\.h)?>", file.read_text(), re.M))


def own_includes(file: Path) -> set[str]:
    """Return the headers that a file includes in quotes, without .h."""
    return set(re.findall(r'^\s*#\s*include "([\w/.]+?)(?:\.h)?"', file.read_text(), re.M))


OWN = {
    "cuplug/half",
    *(f"cuplug/{name}" for name in PUBLIC),
    *(f"internal/{name}" for name in INTERNAL),
}


def test_core_includes_the_c_library_and_itself():
    files = sorted(CORE.rglob("*.[ch]"))
    included = {file: system_includes(file) for file in files}
    foreign = {file.name: found - (STANDARD | SYSTEM | OWN) for file, found in included.items()}
    assert {name: found for name, found in foreign.items() if found} == {}
    assert [file.name for file in files if "dlfcn" in included[file]] == ["library.c"]


def test_runtime_includes_what_the_core_may():
    own = STANDARD | SYSTEM | OWN | {f"runtime/{name}" for name in RUNTIME_OWN}
    files = sorted(RUNTIME.rglob("*.[ch]"))
    assert files
    assert {x.name: system_includes(x) - own for x in files if system_includes(x) - own} == {}
    assert [x.name for x in files if "dlfcn" in system_includes(x)] == []


def undefined(header: Path) -> set[str]:
    """Return the functions that a header declares and neither it nor its .c file defines."""
    text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S)
    declared = re.findall(r"^(?!typedef)\w[^;{}]*?\b(cuplug__\w+)\([^;{}]*\);", text, re.M)
    source = header.with_suffix(".c")
    code = text + (source.read_text() if source.exists() else "")
    return set(declared) - set(re.findall(r"\b(cuplug__\w+)\([^;{}]*\) \{", code))


def test_headers_are_implemented_by_the_file_of_their_name():
    headers = sorted([*CORE.rglob("*.h"), *RUNTIME.rglob("*.h")])
    assert headers
    assert {header.name: undefined(header) for header in headers if undefined(header)} == {}


@pytest.mark.parametrize("name", ["libcuplug.so.1", f"libcuplug_runtime-{cuplug.__version__}.so"])
def test_core_and_runtime_need_the_c_library_alone(name):
    library = elf.read_library(f"{flags.lib_directory()}/{name}")
    usual = re.compile(r"lib(c|dl|pthread|asan|ubsan|tsan)\.so\.\d+|ld-linux.*")
    others = [x for x in library.needed if not usual.fullmatch(x)]
    assert others == ([] if name == "libcuplug.so.1" else ["libcuplug.so.1"])


def test_nothing_that_is_installed_needs_a_library_of_threads():
    """The core provides threads: OpenMP's hang in forked children."""
    libraries = sorted(Path(flags.PACKAGE).rglob("*.so*"))
    assert len(libraries) > 10
    for path in libraries:
        assert [name for name in elf.read_library(str(path)).needed if "omp" in name] == []


def test_no_code_of_the_project_asks_for_openmp():
    files = [
        *CORE.rglob("*"),
        *RUNTIME.rglob("*"),
        *(ROOT / "plugins").rglob("*"),
        *(ROOT / "include").rglob("*"),
    ]
    files += [*(ROOT / "cython").rglob("*"), *(ROOT / "build_backend").rglob("*")]
    for path in files:
        if path.suffix in (".c", ".h", ".hpp", ".cu", ".cuh", ".py", ".pyx", ".mk"):
            assert not re.search(r"pragma omp|pragma\(omp|-fopenmp|-lgomp", path.read_text()), path


def test_public_headers():
    headers = ROOT / "include" / "cuplug"
    includes = {path.name: system_includes(path) for path in headers.iterdir()}
    used = {
        name: {f"{x}.h".removeprefix("cuplug/") for x in found if x.startswith("cuplug/")}
        for name, found in includes.items()
    }
    assert list(TopologicalSorter(used).static_order())  # no circles
    parts = {"plugin.h": {"abi.h", "entry.h", "table.h", "kernels.h"}}
    parts |= {"host.h": {"describe.h", "devices.h", "operators.h"}}
    for name, wanted in parts.items():
        assert (used[name], len(includes[name])) == (wanted, len(wanted))
    for name in ("abi.h", "entry.h", "table.h", *parts["host.h"]):
        assert includes[name] <= STANDARD | {"cuplug/abi", "cuplug/entry", "cuplug/operators"}
    assert "cuplug/abi" in includes["entry.h"]
    assert "cuplug/entry" in includes["operators.h"]
    internal = {
        "formula": {"stdint"},
        "signature": {"cuplug/host", "internal/formula"},
        "frame": {"internal/signature"},
        "functions": {"internal/frame"},
        "core": {"internal/functions"},
    }
    for name, included in internal.items():
        assert system_includes(ROOT / f"include/internal/{name}.h") == included
    for name in RUNTIME_OWN:
        wider = {"define": {"internal/frame"}, "expressions": {"runtime/define"}}
        wanted = wider.get(name, {"cuplug/host"})
        assert system_includes(ROOT / f"include/runtime/{name}.h") == wanted
    named = {"plugin": ["arguments.hpp", "entries.hpp"], "arguments": ["signature.hpp"]}
    named |= {"signature": ["plugin"], "entries": ["signature.hpp"]}
    for name, parts in named.items():
        found = system_includes(headers / f"{name}.hpp") - STANDARD_CPP
        assert found == {f"cuplug/{part}" for part in parts}
    assert system_includes(headers / "loop.h") == set()
    assert system_includes(headers / "walk.h") <= STANDARD | {"cuplug/loop", "cuplug/plugin"}
    assert system_includes(headers / "packs.cuh") == set()
    assert system_includes(headers / "half.h") <= STANDARD
    assert system_includes(headers / "halves.h") <= STANDARD | {"cuplug/half", "cpuid", "immintrin"}
    assert system_includes(headers / "nontemporal.h") <= STANDARD | {"emmintrin"}


def foreign_includes(file: Path) -> set[str]:
    """Return the headers in a plugin's source that authors do not have."""
    outside = system_includes(file) - STANDARD
    toolkit = ("cooperative_groups", "cuda_", "cub/", "thrust/")
    outside = {name for name in outside if not name.startswith(toolkit)}
    own = {"plugin", "plugin.hpp", "format", "half", "halves", "nontemporal", "walk", "walk.cuh"}
    vectors = {"immintrin"} if file.name in ("quicksort.c", "philox_words.h") else set()
    plugin = file.relative_to(ROOT / "plugins").parts[0]
    outside -= {"pthread", "dlfcn"} if plugin == "linalg" else set()  # which loads libraries
    headers = [*(ROOT / "plugins").glob("*.*"), *(ROOT / "plugins" / plugin).rglob("*.*")]
    return (outside - {f"cuplug/{name}" for name in own} - {"complex", "type_traits"} - vectors) | {
        name for name in own_includes(file) if Path(name).stem not in {p.stem for p in headers}
    }


def test_plugins_know_only_the_headers_for_authors():
    assert {file.name: foreign_includes(file) for file in PLUGINS if foreign_includes(file)} == {}
