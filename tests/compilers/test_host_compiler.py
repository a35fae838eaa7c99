# SPDX-License-Identifier: Apache-2.0
"""The C compiler: its choice, its cached properties, and its failures."""

import ctypes
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import cuplug
import numpy as np
import pytest
from builds import OPTIMIZED
from cuplug._engine.base import flags
from cuplug._source.compilers import cache, host_compiler, host_includes, processes
from places import TESTS


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    """Use a separate cache, without variables that others have set."""
    monkeypatch.setenv("CUPLUG_CACHE_DIR", str(tmp_path / "cache"))
    for name in ("CC", "CPATH"):
        monkeypatch.delenv(name, raising=False)


def answer(text, **settings):
    """Return the result of a C function `answer`."""
    source = f'#line 1 "text"\n{text}'
    address = host_compiler.compile_host(source, "answer", {"text": text}, **settings)
    return ctypes.CFUNCTYPE(ctypes.c_int)(address)()


def kept(kind):
    return [entry for entry in cache.entries() if entry.kind == kind]


def script(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def times_back(path):
    """Set an earlier time for a new file, so that each text has a different time."""
    about = path.stat()
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns - 10**9))


def test_the_code_here_is_that_of_users():
    assert "-O3" in host_compiler.FLAGS
    assert all([*TESTS.glob(f"*/{name}.py")] for name in OPTIMIZED)


def test_a_changed_header_is_another_code(tmp_path, monkeypatch):
    (tmp_path / "deeper.h").write_text("#define N 1\n")
    (tmp_path / "a header.h").write_text('#include "deeper.h"\n')
    text = '#include "a header.h"\nint answer(void) { return N; }'
    options = (f"-I{tmp_path}",)
    assert answer(text, options=options) == 1
    (tmp_path / "deeper.h").write_text("#define N 2\n")
    assert answer(text, options=options) == 2
    assert len(kept("so")) == 2
    (tmp_path / "deeper.h").write_text("#define N 1\n")
    times_back(tmp_path / "deeper.h")
    assert answer(text, options=options) == 1
    assert len(kept("so")) == 2


def test_headers_are_read_again_where_they_look_otherwise(tmp_path, monkeypatch):
    header, read, digest = tmp_path / "n.h", [], host_includes.sha256
    text, options = '#include "n.h"\nint answer(void) { return N; }', (f"-I{tmp_path}",)

    def in_another_process():
        """Return the answer, and whether headers were read for it."""
        read.clear()
        host_includes._known.clear()
        host_includes._digest_of.cache_clear()
        return answer(text, options=options), bool(read)

    monkeypatch.setattr(host_includes, "sha256", lambda x: read.append(x) or digest(x))
    monkeypatch.setattr(host_includes, "_RECENT_NS", 0)
    header.write_text("#define N 1\n")
    before = header.stat().st_mtime_ns
    assert [in_another_process() for _ in range(2)] == [(1, True), (1, False)]
    header.write_text("#define N 2\n")
    os.utime(header, ns=(before, before))
    assert [in_another_process() for _ in range(2)] == [(2, True), (2, False)]
    header.unlink()
    with pytest.raises(cuplug.CompileError, match=r"n\.h"):
        in_another_process()
    monkeypatch.setattr(host_includes, "_RECENT_NS", 10**12)  # it might change without a trace
    header.write_text("#define N 3\n")
    assert [in_another_process() for _ in range(2)] == [(3, True), (3, True)]


def test_headers_of_cpath(tmp_path, monkeypatch):
    for k in (1, 2):
        (tmp_path / f"{k}").mkdir()
        (tmp_path / f"{k}" / "n.h").write_text(f"#define N {k}\n")
    text = "#include <n.h>\nint answer(void) { return N; }"
    for k in (1, 2, 1):
        monkeypatch.setenv("CPATH", str(tmp_path / f"{k}"))
        assert answer(text) == k


def test_what_is_in_the_cache_is_found_by_another_process(run_python):
    code = """
from cuplug._source.compilers import host_compiler, processes
if {again}: host_compiler.run = processes.run = None
text = "#include <math.h>\\nint answer(void) {{ return 3; }}"
host_compiler.compile_host(text, "answer", {{"text": text}})
"""
    for again in (False, True):
        done = run_python(code.format(again=again))
        assert done.returncode == 0, done.stderr


def test_the_compiler_behind_a_wrapper(tmp_path, monkeypatch):
    """The wrapper does not change, but the compiler that it calls does."""
    real = script(tmp_path / "real", '# 1\nexec gcc -DN=1 -B{} "$@"'.replace("{}", str(tmp_path)))
    monkeypatch.setenv("CC", f"env SOME=1 {real}")
    text = "int answer(void) { return N; }"
    assert answer(text) == 1
    script(real, f'# 22\nexec gcc -DN=2 -B{tmp_path}/other "$@"')
    host_compiler._told.cache_clear()  # kept for one process
    assert answer(text) == 2


UNDECLARED = "int answer(void) { return\n  __expf(1); }"
UNDEFINED = "int far(void);\nint answer(void) { return far(); }"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (UNDECLARED, "text: line 2: .*implicit.* declaration .*'__expf'[^\\n[]*\\n> 2 | "),
        (UNDEFINED, "text: line 1: undefined reference to 'far'\n> 1 | "),
    ],
)
def test_what_cannot_be_linked(text, message):
    with pytest.raises(cuplug.CompileError, match=message):
        answer(text)
    assert kept("so") == []


def test_a_function_of_another_name():
    f = cuplug.operator("f(x: int8[n])", arguments="x", host="void g(const int8_t *x) {}")
    with pytest.raises(cuplug.CompileError, match="f host: .*f.* undeclared"):
        f(np.zeros(1, np.int8))
    f = cuplug.elementwise("f(x: T) -> T", "__expf(x)")
    with pytest.raises(cuplug.CompileError, match="f: line 1: .*__expf"):
        f(np.zeros(1))


def test_libraries_that_cannot_be_loaded_are_not_kept(monkeypatch):
    def refuse(path):
        raise OSError(f"{path}: bad")

    monkeypatch.setattr(ctypes, "CDLL", refuse)
    with pytest.raises(cuplug.CompileError, match="text: its code does not load: .*: bad"):
        answer("int answer(void) { return 4; }")
    assert kept("so") == []


def test_where_files_cannot_be_run(monkeypatch):
    """As on a file system mounted with noexec: libraries are loaded another way."""
    load, seen = ctypes.CDLL, []

    def refuse(path, handle=None):
        seen.append(path)
        if handle is None:
            raise OSError(f"{path}: failed to map segment from shared object")
        return load(path, handle=handle)

    monkeypatch.setattr(ctypes, "CDLL", refuse)
    assert answer("int answer(void) { return 5; }") == 5
    assert answer("int answer(void) { return 55; }") == 55
    assert len(seen) == 4


def test_copies_of_code_and_of_plugins_are_different_libraries(run_python):
    """For a name that it knows, the dynamic linker returns the loaded library."""
    text = """
import ctypes
import cuplug, numpy as np
load = ctypes.CDLL
def refuse(path, handle=None):
    if handle is None:
        raise OSError(f"{path}: failed to map segment from shared object")
    return load(path, handle=handle)
ctypes.CDLL = refuse
for k, name in enumerate(["gather", "relu", "sort"] * 2):
    cuplug.prepare(cuplug.find(name))
    assert cuplug.elementwise("f(x: T) -> T", f"x * {k}")(np.arange(3.0)).tolist() == [0, k, 2 * k]
"""
    for _ in range(2):  # the second process finds its code in the cache
        done = run_python(text)
        assert done.returncode == 0, done.stderr


def test_neither_files_nor_memory_can_be_run(monkeypatch):
    def refuse(path):
        raise OSError(f"{path}: failed to map segment from shared object")

    def forbid(name):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(ctypes, "CDLL", refuse)
    monkeypatch.setattr(os, "memfd_create", forbid)
    message = r"its code does not load: got /.*noexec.*\(Operation not permitted\); set TMPDIR to "
    with pytest.raises(cuplug.CompileError, match=message):
        answer("int answer(void) { return 8; }")


FAILING = {
    "exit 0": "it returned 0 and wrote no code.o",
    "exit 3": "it returned 3 and wrote no code.o",
    "echo nonsense; exit 1": "nonsense",
}


@pytest.mark.parametrize(("text", "message"), FAILING.items())
def test_compilers_that_fail(tmp_path, monkeypatch, text, message):
    monkeypatch.setenv("CC", str(script(tmp_path / "compiler", text)))
    with pytest.raises(cuplug.CompileError, match=message) as raised:
        answer("int answer(void) { return 6; }")
    assert type(raised.value) is cuplug.CompileError


def test_a_flood_of_output(tmp_path, monkeypatch):
    flood = "head -c 5000000 /dev/zero | tr '\\0' x; exit 1"
    monkeypatch.setenv("CC", str(script(tmp_path / "compiler", flood)))
    with pytest.raises(cuplug.CompileError) as raised:
        answer("int answer(void) { return 7; }")
    assert len(str(raised.value)) < 5000
    assert len(raised.value.log) == processes.MOST_BYTES


def test_a_compiler_that_hangs(tmp_path, monkeypatch):
    """Its child processes are also ended, and so is a compiler that closes its output."""
    monkeypatch.setattr(processes, "LIMIT_S", 0.3)
    for k, closed in enumerate(("", "exec >/dev/null 2>&1;")):
        note = tmp_path / f"child{k}"
        waiting = f'{closed} case "$*" in *-v*) exit;; esac; sleep 77 & echo $! > {note}; wait'
        monkeypatch.setenv("CC", str(script(tmp_path / f"compiler{k}", waiting)))
        with pytest.raises(cuplug.CompileError, match="text: .*: got no end after 0.3 s"):
            answer("int answer(void) { return 8; }")
        assert has_ended(int(note.read_text()))


def test_a_signal_handler_that_raises_while_a_compiler_runs(tmp_path, monkeypatch):
    """TimeoutError is an OSError, and is not one of the compiler."""

    def late(pipe, *_):
        started.append(int(os.read(pipe, 20)))
        raise TimeoutError("the caller's")

    started = []
    monkeypatch.setenv("CC", str(script(tmp_path / "compiler", "echo $$; sleep 77")))
    monkeypatch.setattr(processes, "_read", late)
    with pytest.raises(TimeoutError, match="the caller's"):
        answer("int answer(void) { return 8; }")
    assert has_ended(*started)


def test_a_signal_handler_that_raises_while_a_compiler_starts(monkeypatch):
    def late(*_, **__):
        raise TimeoutError("the caller's")

    monkeypatch.setattr(subprocess, "Popen", late)
    with pytest.raises(TimeoutError, match="the caller's"):
        answer("int answer(void) { return 8; }")


def has_ended(pid):
    for _ in range(200):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":
            return True
        time.sleep(0.01)
    return False


def test_no_room_for_temporary_files(tmp_path, monkeypatch):
    def full(job, directory, names):
        raise OSError(28, "No space left on device", "/full")

    monkeypatch.setattr(host_compiler, "_compile_library", full)
    with pytest.raises(cuplug.CompileError, match="compiling: /full: No space left on device"):
        answer("int answer(void) { return 9; }")


def test_temporary_files_are_kept_apart_and_removed(tmp_path, monkeypatch):
    """Files of a killed process are also removed; similar ones of users are not."""
    folder, seen = tmp_path / "temporary", []
    (folder / "cuplug-code-samples").mkdir(parents=True)
    os.utime(folder / "cuplug-code-samples", (0, 0))
    monkeypatch.setenv("TMPDIR", str(folder))
    code = "import os; from cuplug._source.compilers import processes as p; "
    killed = f"{code}c = p.working_directory(); c.__enter__(); os.kill(os.getpid(), 9)"
    assert subprocess.run([sys.executable, "-c", killed]).returncode == -9
    assert len(os.listdir(folder)) == 2
    at = host_compiler.run
    monkeypatch.setattr(host_compiler, "run", lambda c, d, **k: seen.append(d) or at(c, d, **k))
    assert answer("int answer(void) { return 10; }") == 10
    assert os.listdir(folder) == ["cuplug-code-samples"]
    assert {os.path.dirname(path) for path in seen} == {str(folder)}


def compilers():
    found = [name for name in ("gcc", "clang") if shutil.which(name)]
    zig = f"{sys.executable} -m ziglang cc" if importlib.util.find_spec("ziglang") else ""
    return [*found, *([pytest.param(zig, marks=pytest.mark.slow)] if zig else [])]


@pytest.mark.parametrize("compiler", compilers())
def test_expressions_with_each_compiler(compiler, monkeypatch):
    monkeypatch.setenv("CC", compiler)
    doc = f"With {compiler}."  # another operator
    x = np.array([2**31 - 1, -(2**31), 7], np.int32)
    square = cuplug.elementwise("square(x: T) -> T", "x * x + 1 - -x", doc=doc)
    with np.errstate(over="ignore"):
        assert (square(x) == x * x + np.int32(1) + x).all()
    divide = cuplug.elementwise("divide(x: T, y: T) -> T", "x / y + x % y", doc=doc)
    assert divide(x, np.int32(2)).tolist() == [2**30, -(2**30), 4]
    for y, wanted in ((0, f"{2**31 - 1} / 0"), (-1, f"{-(2**31)} / -1")):
        with pytest.raises(ValueError, match=f"divide: line 1, column .: got {wanted} of integ"):
            divide(x, np.int32(y))
    shift = cuplug.elementwise("shift(x: T, y: T) -> T", "x << y", doc=doc)
    assert shift(x, np.int32(1)).tolist() == [-2, 0, 14]
    with pytest.raises(ValueError, match=re.escape("shift: line 1, column 3: got a shift of")):
        shift(x, np.int32(32))


def test_a_compiler_whose_name_has_no_end(monkeypatch):
    monkeypatch.setenv("CC", "'gcc")
    with pytest.raises(cuplug.CompileError, match="no C compiler: CC: got .*, expected a command"):
        answer("int answer(void) { return 42; }")
    with pytest.raises(ValueError, match="CC: got .*, expected a command: No closing quotation"):
        flags.linker(cxx=False)


def test_failures_are_noticed_where_the_status_of_children_is_lost(tmp_path):
    """With SIGCHLD ignored, the status of each child is 0."""
    source = tmp_path / "lost.c"
    source.write_text("#include <cuplug/plugin.h>\nint x = ;\n")
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        assert answer("int answer(void) { return 42; }") == 42
        with pytest.raises(cuplug.CompileError, match="line 1: .*unknown"):
            answer("int answer(void) { return unknown; }")
        with pytest.raises(cuplug.PluginError, match="preprocessor reports\n.*no_such_header"):
            host_compiler.preprocess("no_such_header.h", ())
        with pytest.raises(cuplug.BuildError, match=r"lost.c:2:\d+: error"):
            cuplug.build(source)
    finally:
        signal.signal(signal.SIGCHLD, before)
