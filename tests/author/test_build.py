# SPDX-License-Identifier: Apache-2.0
"""An author's minutes: `cuplug new`, `cuplug build`, an edit, a watched folder."""

import json
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
from cuplug._engine.base import flags
from cuplug._integration.author import build, elf, fatbin
from cuplug._integration.author.sources import find_source
from cuplug._integration.commands import scaffold
from cuplug._source.compilers import toolkit
from places import ROOT
from processes import run

HALF = (ROOT / "examples" / "drop_in" / "half.c").read_text()
THIRD = (ROOT / "examples" / "drop_in" / "third.cu").read_text()
X = np.arange(6, dtype=np.float32)
needs_nvcc = pytest.mark.skipif(not toolkit.find_nvcc(), reason="needs nvcc")


@pytest.fixture
def without_nvcc(monkeypatch):
    monkeypatch.setattr(toolkit, "find_nvcc", lambda: None)


def test_new_build_test_call(tmp_path):
    done = run("new", "twice", cwd=tmp_path)
    assert done.stdout.splitlines()[0] == "written: twice/twice.cu, twice/test_twice.py"
    assert done.stdout.endswith("next:\n  cuplug build twice\n  cuplug test twice\n")
    for command in ("test", "check", "bind"):
        done = run(command, "twice", cwd=tmp_path)
        sentence = "twice: there is no libtwice.so in this folder: `cuplug build twice` makes it"
        assert (done.returncode, done.stderr) == (1, f"cuplug: {sentence}\n")
    done = run("build", "twice", "--arch", "90", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    library = tmp_path / "twice" / "libtwice.so"
    sides = "cpu, cuda 9.0" if toolkit.find_nvcc() else "cpu"
    assert done.stdout.startswith(f"{library}: {sides}, ")
    assert f"  export LD_LIBRARY_CUPLUG_PATH={library.parent}\n" in done.stdout
    code = "from cuplug.ops import twice; import numpy as np; print(twice(np.float32([1, 2])))"
    command = [sys.executable, "-c", code]
    env = os.environ | {"LD_LIBRARY_CUPLUG_PATH": str(library.parent)}
    assert subprocess.run(command, env=env, capture_output=True, text=True).stdout == "[2. 4.]\n"
    for place, name in ((tmp_path, "twice"), (library.parent, "."), (tmp_path, str(library))):
        assert run("check", name, cwd=place).returncode == 0
    assert "functions: 1, in " in run("bind", "twice", cwd=tmp_path).stdout
    done = run("test", ".", "--examples", "5", cwd=library.parent)
    assert (done.returncode, done.stderr) == (0, "")


@needs_nvcc
def test_a_report_names_architectures_only_of_cuda_entries(tmp_path):
    (tmp_path / "one.cu").write_text("""#include <cuplug/plugin.hpp>
CUPLUG_TYPED_HOST_OPERATOR(one, "one() -> float32[1]", "The number 1.");
CUPLUG_HOST_ENTRY(one, out) { return out[0] = 1, CUPLUG_OK; }
CUPLUG_PLUGIN(one, "1.0.0");
""")
    done = run("build", "one.cu", "--arch", "90", cwd=tmp_path)
    assert re.match(r"\S+/libone.so: cpu, [\d.]+ s\n", done.stdout), done


def test_a_compiler_behind_a_launcher(tmp_path):
    """As in CC="ccache gcc"."""
    run("new", "twice", "--language", "c", cwd=tmp_path)
    done = run("build", "twice", cwd=tmp_path, CC="env CCACHE_DISABLE=1 cc")
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_new_in_c_needs_no_cpp_compiler(tmp_path):
    done = run("new", "twice", "--language", "c", cwd=tmp_path)
    assert done.stdout.splitlines()[0] == "written: twice/twice.c, twice/test_twice.py"
    done = run("build", "twice", cwd=tmp_path, CXX="no-such-compiler")
    assert done.returncode == 0, done.stderr
    assert ": cpu, " in done.stdout
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "twice"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert "1 passed" in done.stdout, done.stdout


def test_a_folder_that_is_no_plugin(tmp_path):
    (tmp_path / "relu").mkdir()
    assert run("test", "relu", "--examples", "1", cwd=tmp_path).returncode == 0
    done = run("check", "./relu", cwd=tmp_path)
    assert done.stderr == "cuplug: ./relu: there is no librelu.so in this folder\n"


@pytest.mark.slow
def test_the_written_test_passes(tmp_path):
    scaffold.write_plugin("twice", str(tmp_path))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "twice"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout


def test_new_overwrites_nothing(tmp_path):
    scaffold.write_plugin("twice", str(tmp_path))
    (tmp_path / "twice" / "twice.cu").write_text("mine")
    done = run("new", "twice", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr == "cuplug: new: got twice, which exists, expected a new name\n"
    assert (tmp_path / "twice" / "twice.cu").read_text() == "mine"


@pytest.mark.parametrize("name", ["", "3d", "a-b", "a/b", "..", "class", "é", "_x", "x" * 64])
def test_names_that_cannot_be(name, tmp_path):
    with pytest.raises(ValueError, match="^new: name: "):
        scaffold.write_plugin(name, str(tmp_path))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_longest_name_builds(tmp_path):
    name = "x" * 63
    scaffold.write_plugin(name, str(tmp_path))
    library = build.build_library(find_source(tmp_path / name), arch="90")
    assert cuplug.load(library.path).name == name


def test_a_c_file(tmp_path):
    (tmp_path / "half.c").write_text(HALF)
    path = cuplug.build(tmp_path / "half.c")
    assert path == str(tmp_path / "libhalf.so")
    assert np.array_equal(cuplug.load(path).half(X), X / 2)
    assert sorted(os.listdir(tmp_path)) == ["half.c", "libhalf.so"]


def test_output_is_a_file_or_a_folder(tmp_path):
    (tmp_path / "half.c").write_text(HALF)
    (tmp_path / "plugins").mkdir()
    expected = str(tmp_path / "plugins" / "libhalf.so")
    assert cuplug.build(tmp_path / "half.c", output=tmp_path / "plugins") == expected
    assert cuplug.build(tmp_path / "half.c", output=expected) == expected
    with pytest.raises(cuplug.BuildError, match="^build: output: there is no folder "):
        cuplug.build(tmp_path / "half.c", output=tmp_path / "none" / "libhalf.so")


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("none.cu", "no such file"),
        ("text.txt", "got .txt, expected a folder, or a file that ends in .cu, .c or .cpp"),
        ("folder", "a folder without a .cu, .c or .cpp file"),
    ],
)
def test_what_is_no_source(name, sentence, tmp_path):
    (tmp_path / "text.txt").touch()
    (tmp_path / "folder").mkdir()
    with pytest.raises(cuplug.BuildError, match=f"^build: {tmp_path}/{name}: {sentence}$"):
        cuplug.build(tmp_path / name)


@pytest.mark.slow
def test_several_plugins_in_a_folder(tmp_path):
    for name in ("half", "third"):
        (tmp_path / f"{name}.c").write_text(HALF.replace("half", name))
    with pytest.raises(cuplug.BuildError, match=r"got 2 plugins \(half, third\), expected one$"):
        cuplug.build(tmp_path)
    done = run("build", ".", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert {file.name for file in tmp_path.glob("*.so")} == {"libhalf.so", "libthird.so"}
    done = run("test", ".", "--examples", "2", cwd=tmp_path)
    assert (done.returncode, done.stdout.count("accepted calls")) == (0, 2)
    done = run("check", ".", "--json", cwd=tmp_path)
    files = json.loads(done.stdout)["files"]
    assert [x["file"] for x in files] == ["./libhalf.so", "./libthird.so"]
    assert (done.returncode, all(x["ok"] for x in files)) == (0, True)
    done = run("bind", ".", "-o", "typed", cwd=tmp_path)
    assert done.stdout.count("functions: 1, in typed/") == 2
    for command in (["install", "."], ["bench", "."], ["bind", ".", "--name", "x"]):
        assert re.search("got (2 plugins|x for 2 plugins)", run(*command, cwd=tmp_path).stderr)
    done = run("build", ".", "-o", "libhalf.so", cwd=tmp_path)
    assert done.stderr == "cuplug: build: output: got libhalf.so for 2 plugins, expected a folder\n"
    (tmp_path / "loops.c").touch()
    with pytest.raises(
        cuplug.BuildError, match="a table in each of half.c, third.c, and files without one"
    ):
        cuplug.build(tmp_path)


def test_a_library_is_called_as_its_plugin(tmp_path, monkeypatch):
    folder = tmp_path / "uniq"
    folder.mkdir()
    (folder / "other.c").write_text(HALF)
    assert cuplug.build(folder) == cuplug.build(folder / "other.c") == str(folder / "libhalf.so")
    for place, name in ((tmp_path, "uniq"), (folder, ".")):
        assert run("check", name, cwd=place).returncode == 0
    monkeypatch.setenv("CC", "no-such-compiler")
    sentence = (
        "^build: got libuniq.so for the plugin half of other.c, expected the name libhalf.so$"
    )
    with pytest.raises(cuplug.BuildError, match=sentence):
        cuplug.build(folder, output=tmp_path / "libuniq.so")


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "half.c").write_text(HALF)
    with pytest.raises(cuplug.BuildError, match="^build: output: /proc: no library can be put th"):
        cuplug.build(tmp_path / "half.c", output="/proc")


def test_an_error_is_the_compilers_and_keeps_the_old_library(tmp_path):
    source = tmp_path / "half.c"
    source.write_text(HALF)
    path = cuplug.build(source)
    before = Path(path).read_bytes()
    source.write_text(HALF.replace("return CUPLUG_OK", "return UNKNOWN"))
    with pytest.raises(cuplug.BuildError, match="half.c:.*error: .UNKNOWN. undeclared"):
        cuplug.build(source)
    done = run("build", str(source), cwd=tmp_path, LC_ALL="C", CC="cc")
    assert done.returncode == 1
    first, *said, to, command = done.stderr.splitlines()
    assert (first, to) == ("cuplug: build: cc says", "to")
    assert "error: 'UNKNOWN' undeclared" in "".join(said)
    assert command.startswith("cc -O3 ")
    source.write_text(HALF.replace("float32[...]) ->", "float32[...) ->"))
    with pytest.raises(cuplug.BuildError, match=r"half: it compiles, but\noverload 0: signature: "):
        cuplug.build(source)
    assert Path(path).read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == ["half.c", "libhalf.so"]


def test_warnings_are_shown_and_options_passed_on(tmp_path):
    source = tmp_path / "half.c"
    source.write_text(
        HALF.replace("x[i] / 2", "x[i] / DIVISOR").replace("{\n", "{\n  int no;\n", 1)
    )
    with pytest.warns(UserWarning, match="unused variable"):
        path = cuplug.build(source, options=["-DDIVISOR=4"])
    assert np.array_equal(cuplug.load(path).half(X), X / 4)
    done = run("build", "half.c", "--", "-DDIVISOR=8", cwd=tmp_path)
    assert done.returncode == 0
    assert "unused variable" in done.stderr


def test_a_compiler_that_is_missing(tmp_path, monkeypatch):
    (tmp_path / "half.c").write_text(HALF)
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(cuplug.BuildError, match="no-such-compiler: No such file.*: install a"):
        cuplug.build(tmp_path / "half.c")


@pytest.mark.parametrize("arch", ["", "ninety", "9.0", "90,", "-1"])
@needs_nvcc
def test_architectures_that_are_none(arch, tmp_path):
    (tmp_path / "third.cu").write_text(THIRD)
    with pytest.raises(cuplug.BuildError, match='^build: arch: got ".*", expected "native", "all"'):
        cuplug.build(tmp_path / "third.cu", arch=arch)
    if arch:  # an empty variable counts as unset
        done = run("build", "third.cu", cwd=tmp_path, CUPLUG_ARCH=arch)
        assert done.stderr.startswith(f'cuplug: build: arch: got "{arch}"')


@pytest.mark.slow
@needs_nvcc
def test_architectures_are_in_the_file(tmp_path):
    (tmp_path / "third.cu").write_text(THIRD)
    built = build.build_library(find_source(tmp_path / "third.cu"), arch="90,80")
    assert built.architectures == (80, 90)
    assert (built.log, built.findings) == ("", [])
    operator = cuplug.load(built.path).third
    assert operator.architectures == (800, 900)
    assert operator.device_types == ("cpu", "cuda")
    assert build.choose_architectures("all", toolkit.find_nvcc())[-1] >= 90


@pytest.mark.slow
@needs_nvcc
def test_a_folder_of_a_stock_plugin(tmp_path):
    built = build.build_library(find_source(ROOT / "plugins" / "hello"), tmp_path, arch="90")
    operator = cuplug.load(built.path).hello
    assert (operator.device_types, operator.architectures) == (("cpu", "cuda"), (900,))


def test_without_nvcc_it_is_said(tmp_path, without_nvcc, capsys):
    from cuplug._integration.commands import authoring

    scaffold.write_plugin("twice", str(tmp_path))
    authoring.build_and_show(str(tmp_path / "twice"), None, "native", ())
    assert (
        ": cpu, "
        in capsys.readouterr().out.partition("only the host entries, because nvcc is missing")[0]
    )
    shutil.copy(ROOT / "examples" / "drop_in" / "half.c", tmp_path)
    authoring.build_and_show(str(tmp_path / "half.c"), None, "native", ())
    assert "only the host entries" not in capsys.readouterr().out


def test_without_nvcc_the_host_part(tmp_path, without_nvcc):
    scaffold.write_plugin("twice", str(tmp_path))
    built = build.build_library(find_source(tmp_path / "twice"))
    assert built.architectures == ()
    operator = cuplug.load(built.path).twice
    assert operator.device_types == ("cpu",)
    assert np.array_equal(operator(X), 2 * X)
    folder = build.build_library(find_source(ROOT / "plugins" / "hello"), tmp_path)
    assert cuplug.load(folder.path).hello.device_types == ("cpu",)


def test_without_nvcc_and_host_part(tmp_path, without_nvcc):
    (tmp_path / "third.cu").write_text(THIRD)
    with pytest.raises(cuplug.BuildError, match="there is no nvcc, and the file has no part for"):
        cuplug.build(tmp_path / "third.cu")


def test_flags_are_those_of_the_makefile():
    files = (ROOT / "build_backend" / name for name in ("build.mk", "settings.mk"))
    words = set(re.findall(r"[\w+=.-]+", "".join(file.read_text() for file in files)))
    for flag in (*flags.OPTIMIZED, *flags.C_FLAGS, *flags.NVCC_FLAGS, *flags.LINKER_FLAGS):
        assert flag in words | {"--exclude-libs=ALL"}, flag  # which not every linker has


@pytest.fixture
def interruptible():
    """Make children interruptible: jobs that a shell starts in the background ignore SIGINT."""
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, previous)


def test_watch(tmp_path, interruptible):
    shutil.copy(ROOT / "examples" / "drop_in" / "half.c", tmp_path)
    command = [sys.executable, "-u", "-m", "cuplug", "build", "half.c", "--watch"]
    env = os.environ | {"PYTHONPATH": str(Path(flags.PACKAGE).parent)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    process = subprocess.Popen(command, cwd=tmp_path, env=env, **pipes)
    try:
        for line in process.stdout:
            if line.startswith("watching"):
                break
        operator = cuplug.load(tmp_path / "libhalf.so").half
        assert np.array_equal(operator(X), X / 2)
        time.sleep(0.5)  # until the watch is in place
        (tmp_path / "half.c").write_text(HALF.replace("x[i] / 2", "x[i] / 4"))
        assert process.stdout.readline().startswith(f"{tmp_path}/libhalf.so: cpu, ")
        assert cuplug.reload() == (str(tmp_path / "libhalf.so"),)
        assert np.array_equal(operator(X), X / 4)
        (tmp_path / "half.c").write_text("broken")
        assert "cuplug: build: " in process.stdout.readline()
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)
    assert process.returncode == 0


def test_watch_without_its_package(monkeypatch):
    from cuplug._integration.commands import authoring

    monkeypatch.setitem(sys.modules, "watchfiles", None)
    with pytest.raises(ModuleNotFoundError, match="--watch needs the package watchfiles: pip"):
        authoring.check_watching()


@pytest.mark.gpu
@needs_nvcc
def test_a_fresh_plugin_runs_on_the_gpu_and_is_reloaded(tmp_path):
    scaffold.write_plugin("twice", str(tmp_path))
    operator = cuplug.load(cuplug.build(tmp_path / "twice")).twice
    x = cuplug.asarray(X)
    old = operator(x)
    source = tmp_path / "twice" / "twice.cu"
    source.write_text(source.read_text().replace("factor * x[i]", "2 * factor * x[i]"))
    cuplug.build(tmp_path / "twice")
    assert len(cuplug.reload(operator)) == 1
    assert np.array_equal(operator(x).numpy(), 4 * X)
    assert np.array_equal(old.numpy(), 2 * X)


@needs_nvcc
@pytest.mark.slow
def test_ptx_is_there_for_gpus_to_come(tmp_path):
    (tmp_path / "third.cu").write_text(THIRD)
    path = cuplug.build(tmp_path / "third.cu", arch="90")
    code = fatbin.read_fatbins(elf.read_library(path).fatbins)
    assert (code.machine_code, code.ptx) == ({90}, {90})
