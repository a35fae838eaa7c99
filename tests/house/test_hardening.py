# SPDX-License-Identifier: Apache-2.0
"""Built code ends a process whose stack or buffers were overrun, before that can be exploited."""

import re
import subprocess
from pathlib import Path

import pytest
from cuplug._engine.base.flags import PACKAGE, lib_directory
from elftools.elf.elffile import ELFFile
from places import ROOT

CORE = Path(lib_directory(), "libcuplug.so.1")
PLUGINS = sorted(Path(lib_directory(), "cuplug").glob("lib*.so"))
MODULES = sorted(Path(PACKAGE).rglob("*.cpython-*.so"))


def needed_symbols(path: Path) -> set[str]:
    """Return the names of the functions that a library imports."""
    with path.open("rb") as file:
        symbols = ELFFile(file).get_section_by_name(".dynsym").iter_symbols()
        return {x.name for x in symbols if x["st_shndx"] == "SHN_UNDEF"}


@pytest.fixture(scope="module", autouse=True)
def release_build():
    if any(name.startswith(("__asan", "__tsan")) for name in needed_symbols(CORE)):
        pytest.skip("built with sanitizers, which check more")
    if "-O0" in (ROOT / "build" / "core.config").read_text():
        pytest.skip("built without optimization")


def checks_stacks(path: Path) -> bool:
    return "__stack_chk_fail" in needed_symbols(path)


def checks_buffers(path: Path) -> bool:
    return any(re.fullmatch(r"__\w+_chk", name) for name in needed_symbols(path))


def test_the_core():
    assert checks_stacks(CORE)
    assert checks_buffers(CORE)


def test_plugins():
    """Plugins that have arrays on the stack."""
    checked = {path.name for path in PLUGINS if checks_stacks(path)}
    assert {"libgather.so", "librelu.so", "libscan.so", "libsorting.so"} <= checked
    assert any(map(checks_buffers, PLUGINS))


def test_modules():
    assert MODULES
    assert [path for path in MODULES if not checks_stacks(path)] == []


@pytest.mark.parametrize(
    ("flags", "wanted"),
    [("-O2", True), ("-O1 -g", True), ("-O0 -g", False), ("-g", False)],
)
def test_flags(flags, wanted, tmp_path):
    """Compilers that do not optimize warn of checks of buffers, which stops a build."""
    command = ["make", "-n", "V=1", f"BUILD={tmp_path}", f"CFLAGS={flags}", "NVCC=", "core"]
    command[1:1] = ["-f", "build_backend/build.mk"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if " -c core/" in line]
    assert lines
    seen = {"-fstack-protector-strong" in line and "-D_FORTIFY_SOURCE=" in line for line in lines}
    assert seen == {wanted}
