# SPDX-License-Identifier: Apache-2.0
"""The exports of the core, and the time at which the runtime is loaded."""

import re
import shutil
import subprocess
from pathlib import Path

import cuplug
import pytest
from builds import COMPILER, compile_library
from cuplug._engine.base.flags import lib_directory
from elftools.elf.elffile import ELFFile
from places import ROOT

CORE = Path(lib_directory(), "libcuplug.so.1")


def exported(library: Path) -> dict[str, int]:
    """Return the functions and variables that a library defines, each with its version's number."""
    with open(library, "rb") as file:
        elf = ELFFile(file)
        versions = elf.get_section_by_name(".gnu.version")
        symbols = enumerate(elf.get_section_by_name(".dynsym").iter_symbols())
        return {
            symbol.name: int(versions.get_symbol(k).entry["ndx"])
            for k, symbol in symbols
            if symbol.name
            and symbol.entry.st_shndx not in ("SHN_UNDEF", "SHN_ABS")
            and symbol.entry.st_info.bind != "STB_LOCAL"
        }


def declared() -> set[str]:
    """Return the functions that the installed headers declare as exported."""
    text = "".join(path.read_text() for path in (ROOT / "include" / "cuplug").glob("*.h"))
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    return set(re.findall(r"CUPLUG_API\s[^;]*?\b(cuplug_\w+)\(", text))


def test_the_core_exports_what_its_headers_declare():
    found = exported(CORE)
    assert set(found) == declared() | {"cuplug_private"}
    assert set(found.values()) == {2}  # all of the first version, CUPLUG_1
    listed = re.findall(r"^    (\w+);$", (ROOT / "core" / "libcuplug.map").read_text(), re.M)
    assert listed == [*sorted(declared()), "cuplug_private"]


FIRST_USES = """
import numpy, cuplug
def is_loaded():
    return any("libcuplug_runtime" in line for line in open("/proc/self/maps"))
x = numpy.arange(3.0)
cuplug.ops.gather(x, numpy.array([1]))
cuplug.ops.gather(cuplug.asarray(x), numpy.array([1])).numpy()
list(cuplug.plugins()), cuplug.devices()
assert not is_loaded()
assert cuplug.elementwise("more(x: T) -> T", "x + 1")(x).tolist() == [1, 2, 3]
assert is_loaded()
"""


def test_the_runtime_is_loaded_by_the_first_expression(run_python):
    done = run_python(FIRST_USES)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="session")
def next_core(once):
    """Return the folder of a core of version 0.2.0, some of whose private structures differ."""

    def build(folder: Path) -> None:
        for name in ("include", "core"):
            shutil.copytree(ROOT / name, folder / name)
        changes = {
            "include/cuplug/host.h": (f'"{cuplug.__version__}"', '"0.2.0"'),
            "include/internal/frame.h": (
                "  uint32_t row; ",
                "  uint64_t added[9];\n  uint32_t row; ",
            ),
        }
        for name, (old, new) in changes.items():
            text = (folder / name).read_text()
            assert old in text
            (folder / name).write_text(text.replace(old, new, 1))
        flags = [
            "-std=c11",
            "-D_GNU_SOURCE",
            "-O1",
            "-shared",
            "-fPIC",
            "-fvisibility=hidden",
            "-w",
        ]
        flags += [f"-I{folder}/include", f"-I{folder}/core", "-Wl,-soname,libcuplug.so.1"]
        flags += [f"-Wl,--version-script,{folder}/core/libcuplug.map", "-ldl", "-pthread"]
        sources = map(str, sorted(folder.glob("core/*/*.c")))
        compile_library([*COMPILER, *sources, *flags, "-o", str(folder / "libcuplug.so.1")])

    return once("next-core", build)


@pytest.mark.slow
def test_the_package_names_both_versions_where_another_core_is_found(next_core, run_python):
    done = run_python("import cuplug", {"LD_LIBRARY_PATH": str(next_core)})
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: cuplug: got libcuplug.so.1 of version 0.2.0, expected ")
    assert cuplug.__version__ in last


@pytest.mark.slow
def test_a_program_runs_with_a_newer_core(next_core, build_plugin, tmp_path):
    program, examples = tmp_path / "host", ROOT / "examples"
    flags = [f"-I{ROOT}/include", f"-L{lib_directory()}", "-lcuplug", "-o", str(program)]
    compile_library([*COMPILER, str(examples / "host.c"), *flags])
    shutil.copy(build_plugin(examples / "positive.c", "positive"), tmp_path)
    stock = {"LD_LIBRARY_CUPLUG_PATH": f"{lib_directory()}/cuplug"}

    def output(folder: str) -> str:
        env = stock | {"LD_LIBRARY_PATH": folder}
        return subprocess.check_output([program], env=env, cwd=tmp_path, text=True)

    assert output(str(next_core)) == output(lib_directory())
