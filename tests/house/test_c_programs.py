# SPDX-License-Identifier: Apache-2.0
"""The C tests, with and without sanitizers, the headers in each language, the kept fuzz inputs.

The first lines of tests/*/test_*.c describe how each is built and run:

    /* sanitizers: address,undefined | thread */   where slow tests run, also with each of these
    /* fake-cuda */                                with the driver that needs no GPU
    /* fixture: NAME.c */                          with lib<NAME>.so in its working directory
    /* ldflags: ... */                             more arguments for the linker
"""

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from builds import COMPILER, compile_library
from cuplug._engine.base import flags
from places import FIXTURES, ROOT, TESTS
from processes import environment
from selection import runs_all

INCLUDE = ROOT / "include"
CFLAGS = "-O1 -fno-sanitize-recover=all"
FLAGS = ["-D_GNU_SOURCE", *CFLAGS.split(), "-Wall", "-Wextra", "-Werror"]
FOLDERS = (INCLUDE, ROOT / "core", ROOT / "runtime", ROOT / "plugins", TESTS / "c", FIXTURES)
INCLUDES = [f"-I{folder}" for folder in FOLDERS]


def directive(source: Path, name: str) -> str | None:
    """Return the value of `name` in a source's first lines, "" for a bare word, or None."""
    head = source.read_text()[:800]
    found = re.search(rf"/\* {name}(?:: ([^*]*?))? \*/", head)
    return (found.group(1) or "") if found else None


def cases() -> list:
    """Return every C test, without and with each of its sanitizers."""
    found = []
    for source in sorted(TESTS.glob("*/test_*.c")):
        found.append(pytest.param(source, "", id=source.stem))
        for sanitizer in (directive(source, "sanitizers") or "").replace("|", " ").split():
            name = f"{source.stem}-{sanitizer}"
            found.append(pytest.param(source, sanitizer, id=name, marks=pytest.mark.slow))
    return found


def sanitize(sanitizer: str) -> list[str]:
    """Return the flags of a sanitizer, whose reports name lines."""
    return [f"-fsanitize={sanitizer}", "-fno-omit-frame-pointer", "-g"] if sanitizer else []


@pytest.fixture(scope="session")
def core_objects(once):
    """Return a function for the objects of core and runtime, of the build or for a sanitizer."""

    def build(sanitizer: str, folder: Path) -> None:
        settings = [f"SANITIZE={sanitizer}", f"CFLAGS={CFLAGS}", "NVCC="]
        make = ["env", "-u", "MAKEFLAGS", "make", "-s", "-j2", "-C", str(ROOT)]
        compile_library([*make, *settings, f"BUILD={folder}", "runtime"])

    def objects(sanitizer: str) -> list[str]:
        folder = Path(flags.lib_directory()).parents[2]
        if sanitizer or not (folder / "core").is_dir():
            folder = once(f"core-{sanitizer}", lambda folder: build(sanitizer, folder))
        sources = sorted([*ROOT.glob("core/*/*.c"), *ROOT.glob("runtime/*/*.c")])
        return [str(folder / path.relative_to(ROOT).with_suffix(".o")) for path in sources]

    return objects


def build_fixture(name: str, folder: Path) -> None:
    """Compile a plugin of tests/fixtures that uses the core of the program that loads it."""
    library = folder / f"lib{Path(name).stem}.so"
    command = [*COMPILER, "-std=c11", *FLAGS, "-shared", "-fPIC", f"-I{INCLUDE}"]
    compile_library([*command, str(FIXTURES / name), "-pthread", "-o", str(library)])


def run_program(command: list, fake: Path | None, folder: Path) -> None:
    """Run a program, with the driver of a directory; it must succeed."""
    variables = environment()
    variables["CUPLUG_TEST_PLUGINS"] = str(Path(flags.lib_directory()) / "cuplug")
    # The leak sanitizer of gcc 12 crashes if a library was opened at run time. The fake driver
    # counts leaks itself.
    variables["ASAN_OPTIONS"] = f"detect_leaks={int(fake is None)}"
    # A forked child never joins the threads of its parent. The work of threads ends before an
    # exit, which need not wait a second for races.
    variables["TSAN_OPTIONS"] = "halt_on_error=1:report_thread_leaks=0:atexit_sleep_ms=0"
    if runs_all():
        variables["CUPLUG_TEST_ALL"] = "1"
    if fake:
        rest = variables.get("LD_LIBRARY_PATH")
        variables["LD_LIBRARY_PATH"] = f"{fake}:{rest}" if rest else str(fake)
    done = subprocess.run(
        command, env=variables, cwd=folder, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-8000:]


@pytest.mark.parametrize(("source", "sanitizer"), cases())
def test_c_program(source, sanitizer, core_objects, fake_cuda, tmp_path):
    program = tmp_path / source.stem
    more = shlex.split(directive(source, "ldflags") or "")
    command = [*COMPILER, "-std=c11", *FLAGS, *INCLUDES, *sanitize(sanitizer), str(source)]
    command += [*core_objects(sanitizer), *more, "-ldl", "-lm", "-pthread", "-o", str(program)]
    compile_library(command)
    if fixture := directive(source, "fixture"):
        build_fixture(fixture, tmp_path)
    fake = fake_cuda if directive(source, "fake-cuda") is not None else None
    run_program([program], fake, tmp_path)


CPP = ["c++17", "c++20", "c++2b"]
STANDARDS = {".h": ["c11", "c17", "c2x", "c++11", *CPP], ".hpp": CPP}


@pytest.mark.sample(3)
@pytest.mark.parametrize("standard", STANDARDS[".h"])
def test_headers_compile_alone_and_expanded(standard, tmp_path):
    language = "c++" if "++" in standard else "c"
    compiler = COMPILER if language == "c" else [os.environ.get("CXX", "c++")]
    if not shutil.which(compiler[0]):
        pytest.skip(f"needs {compiler[0]}")
    others = {"kernels", "extension"}  # need CUDA, Python
    headers = [path for path in INCLUDE.glob("*/*.h*") if path.stem not in others]
    for header in headers:
        if standard in STANDARDS[header.suffix]:
            name = header.relative_to(INCLUDE)
            source = tmp_path / f"{name.as_posix().replace('/', '_')}.c"
            source.write_text(f"#include <{name}>\n" * 2)
    sources = [str(FIXTURES / "all_macros.c"), *sorted(map(str, tmp_path.glob("*.c")))]
    warnings = ["-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"]
    warnings += ["-Wcast-qual", "-Wsign-conversion"]
    # Without -O1, gcc's intrinsics are macros that warn of themselves.
    options = [f"-std={standard}", "-O1", "-x", language, *warnings]
    compile_library([*compiler, *options, "-fsyntax-only", *INCLUDES, *sources])


@pytest.mark.slow
def test_clang_takes_what_is_built():
    if not shutil.which("clang"):
        pytest.skip("needs clang")
    folders = ("core/*/*.c", "runtime/*/*.c", "plugins/**/*.c", "tests/*/test_*.c")
    sources = [source for folder in folders for source in ROOT.glob(folder)]
    options = ["-std=c11", *FLAGS, "-fsyntax-only", *INCLUDES]
    compile_library(["clang", *options, *map(str, sources)])


@pytest.mark.slow
@pytest.mark.parametrize("target", ["table", "signature", "bind"])
def test_kept_fuzz_inputs(target, core_objects, tmp_path):
    inputs = sorted((TESTS / "fuzz" / "corpus" / target).iterdir())
    assert inputs
    program = tmp_path / f"replay_{target}"
    sources = [str(TESTS / "fuzz" / name) for name in ("replay.c", f"fuzz_{target}.c")]
    sanitizer = "address,undefined"
    command = [*COMPILER, "-std=c11", *FLAGS, *INCLUDES, *sanitize(sanitizer), *sources]
    compile_library([*command, *core_objects(sanitizer), "-ldl", "-pthread", "-o", str(program)])
    run_program([program, *inputs], None, tmp_path)
