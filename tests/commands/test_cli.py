# SPDX-License-Identifier: Apache-2.0
"""The command line: the output of each command, as text and as JSON, and its exit status."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import cuplug
import pytest
from click.testing import CliRunner
from cuplug.__main__ import QUICK
from cuplug._engine.base.flags import PACKAGE
from cuplug._integration.commands.cli import main
from cuplug._source.compilers import cache
from processes import run

SOURCE = """
#include <cuplug/plugin.h>
CUPLUG_ENTRY int half_host(const cuplug_call *call) {
  const float *x = call->tensors[0].data;
  float *y = call->tensors[1].data;
  for (int64_t i = 0; i < cuplug_n_elements(&call->tensors[0]); i++) y[i] = x[i] / 2;
  return CUPLUG_OK;
}
CUPLUG_HOST_OPERATOR(half_host,
                                   "half(x: float32[n, ...], m: \\"a\\" | \\"b\\" = \\"a\\") "
                                   "-> float32[n, ...]", "Half of x.");
CUPLUG_PLUGIN(half, "1.0.0");
"""


def document(*arguments, **environment):
    """Run a command with --json; return the document."""
    done = run(*arguments, "--json", **environment)
    assert done.stderr == ""
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a plugin, compiled with the flags that the command prints."""
    folder = tmp_path_factory.mktemp("plugins")
    (folder / "half.c").write_text(SOURCE)
    flags = run("--cflags").stdout.split()
    subprocess.run(["gcc", *flags, "half.c", "-o", "libhalf.so"], cwd=folder, check=True)
    for path in (folder, folder / "libhalf.so"):
        path.chmod(0o755)
    return folder


def test_version():
    assert run("--version").stdout == f"cuplug {cuplug.__version__}\n"


def test_flags_for_nvcc_name_the_same_headers():
    plain, nvcc = run("--cflags").stdout.split(), run("--cflags", "--nvcc").stdout.split()
    assert plain[-1] == nvcc[-1]
    assert nvcc[:2] == ["-shared", "-Xcompiler"]
    assert (Path(plain[-1].removeprefix("-I")) / "cuplug" / "plugin.h").exists()


def test_flags_have_no_spaces_of_their_own(tmp_path, monkeypatch):
    """For a package in a folder with a space, the flags name a link."""
    folder = tmp_path / "my programs"
    folder.mkdir()
    (folder / "plugin.h").touch()
    monkeypatch.setenv("CUPLUG_CACHE_DIR", str(tmp_path / "cache"))
    options = ["-shared", f"-I{folder}", f"-Wl,-rpath,{folder}"]
    for _ in range(2):
        words = " ".join(map(cache.without_spaces, options)).split()
        assert words[0] == "-shared"
        assert (Path(words[1].removeprefix("-I")) / "plugin.h").exists()
        assert Path(words[2].removeprefix("-Wl,-rpath,")).samefile(folder)
    monkeypatch.setenv("CUPLUG_CACHE_DIR", str(tmp_path / "no cache"))
    assert [*map(cache.without_spaces, options)] == options


def test_libs_link_a_program(tmp_path):
    (tmp_path / "host.c").write_text(
        "#include <cuplug/host.h>\n#include <stdio.h>\n"
        "int main(void) { puts(cuplug_version()); return 0; }\n"
    )
    include = run("--cflags").stdout.split()[-1]
    libs = run("--libs").stdout.split()
    subprocess.run(["gcc", include, "host.c", *libs, "-o", "host"], cwd=tmp_path, check=True)
    done = subprocess.run([tmp_path / "host"], capture_output=True, text=True, check=True)
    assert done.stdout == f"{cuplug.__version__}\n"


def test_cmake_names_the_directory_of_the_package():
    folder = run("--cmake").stdout.rstrip("\n")
    assert folder == cuplug.get_cmake_path()
    assert (Path(folder) / "cuplug-config.cmake").is_file()
    assert run("--libs", "--cmake").stdout == f"{run('--libs').stdout.rstrip()} {folder}\n"


def test_help_without_a_command():
    done = run()
    assert done.returncode == 0
    assert all(f"  {name} " in done.stdout for name in ("list", "info", "path", "doctor", "bind"))


@pytest.mark.parametrize(
    "arguments", [["nonsense"], ["info"], ["--nvcc"], ["list", "--nonsense"], ["check"]]
)
def test_a_misspelled_command_exits_with_2(arguments):
    done = run(*arguments)
    assert done.returncode == 2
    assert done.stderr


def test_list(folder):
    plugins = document("list", LD_LIBRARY_CUPLUG_PATH=str(folder))["plugins"]
    half = next(plugin for plugin in plugins if plugin["name"] == "half")
    assert half == {
        "name": "half",
        "version": "1.0.0",
        "path": str(folder / "libhalf.so"),
        "state": "ok",
        "reason": "",
        "origin": "LD_LIBRARY_CUPLUG_PATH",
        "operators": ["half"],
        "device_types": ["cpu"],
        "architectures": [],
        "abi": "2.0",
        "loaded": False,
        "kind": "plugin",
    }
    line = next(
        line
        for line in run("list", LD_LIBRARY_CUPLUG_PATH=str(folder)).stdout.splitlines()
        if line.startswith("half ")
    )
    assert line.split() == ["half", "1.0.0", "half", "cpu", str(folder / "libhalf.so")]


def test_list_says_why_a_file_is_not_used(folder, tmp_path):
    tmp_path.chmod(0o755)
    (tmp_path / "libbroken.so").write_bytes((folder / "libhalf.so").read_bytes()[:3000])
    (tmp_path / "libother.so").write_bytes((folder / "libhalf.so").read_bytes())
    (tmp_path / "libhalf.so").write_bytes((folder / "libhalf.so").read_bytes())
    path = f"{folder}:{tmp_path}"
    plugins = document("list", LD_LIBRARY_CUPLUG_PATH=path)["plugins"]
    states = {Path(p["path"]).name: p for p in plugins if Path(p["path"]).parent == tmp_path}
    assert states["libother.so"]["state"] == "rejected"
    assert "half" in states["libother.so"]["reason"]
    assert states["libhalf.so"]["state"] == "shadowed"
    assert states["libbroken.so"]["state"] == "rejected"
    text = run("list", LD_LIBRARY_CUPLUG_PATH=path).stdout
    assert states["libother.so"]["reason"] in text


def test_list_names_the_directories_that_are_refused(folder, tmp_path):
    tmp_path.chmod(0o777)
    path = f"{tmp_path}:{folder}:relative:{folder / 'missing'}"
    text = run("list", LD_LIBRARY_CUPLUG_PATH=path).stdout
    refused = text.partition("\nNot searched:\n")[2]
    assert f"{tmp_path}  anyone may write it" in re.sub("  +", "  ", refused)
    assert "got a relative path, expected an absolute one" in refused
    assert "missing" not in refused
    fine = run("list", LD_LIBRARY_CUPLUG_PATH=str(folder), LD_LIBRARY_PATH="").stdout
    assert "Not searched" not in fine


def test_list_all_names_libraries_without_a_table(folder, tmp_path):
    tmp_path.chmod(0o755)
    (tmp_path / "empty.c").touch()
    subprocess.run(["gcc", "-shared", "empty.c", "-o", "libempty.so"], cwd=tmp_path, check=True)
    (tmp_path / "libempty.so").chmod(0o755)
    for arguments, is_named in ((["list"], False), (["list", "--all"], True)):
        plugins = document(*arguments, LD_LIBRARY_CUPLUG_PATH=str(tmp_path))["plugins"]
        assert any("libempty" in plugin["path"] for plugin in plugins) == is_named


def test_list_does_not_wrap_in_a_pipe(folder):
    done = run("list", LD_LIBRARY_CUPLUG_PATH=str(folder), COLUMNS="20")
    assert str(folder / "libhalf.so") in done.stdout


def test_info(folder):
    info = document("info", "half", LD_LIBRARY_CUPLUG_PATH=str(folder))
    (signature,) = info["signatures"]
    assert info["plugin"] == "half"
    assert info["path"] == str(folder / "libhalf.so")
    assert signature["doc"] == "Half of x."
    assert signature["device_types"] == ["cpu"]
    assert signature["parameters"][0] == {
        "name": "x",
        "kind": "array",
        "dtypes": ["float32"],
        "shape": "n, ...",
        "choices": [],
        "default": None,
        "doc": "",
    }
    assert signature["parameters"][1]["choices"] == ["a", "b"]
    assert signature["parameters"][1]["default"] == '"a"'
    text = run("info", "half.half", LD_LIBRARY_CUPLUG_PATH=str(folder)).stdout
    assert "Half of x." in text
    assert "[n, ...]" in text


def test_info_of_an_unknown_operator_gives_near_names(folder):
    done = run("info", "hals", LD_LIBRARY_CUPLUG_PATH=str(folder))
    assert done.returncode == 1
    assert done.stdout == ""
    assert "half" in done.stderr
    assert str(folder) in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["info", "test", "bench"])
def test_what_is_no_name_is_told_in_one_sentence(command):
    done = run(command, "a-b")
    assert done.returncode == 1
    assert done.stderr == (
        'cuplug: find: name: got "a-b", expected "operator" or "plugin.operator"\n'
    )


def test_path(folder, tmp_path):
    missing = tmp_path / "missing"
    path = f"{folder}:relative:{missing}"
    directories = document("path", LD_LIBRARY_CUPLUG_PATH=path)["directories"]
    states = {directory["path"]: directory for directory in directories}
    assert states[str(folder)]["state"] == "ok"
    assert states["relative"]["state"] == "rejected"
    assert states["relative"]["reason"]
    assert states[str(missing)]["state"] == "missing"
    assert set(directories[0]) == {"path", "origin", "state", "reason"}
    assert str(folder) in run("path", LD_LIBRARY_CUPLUG_PATH=path).stdout


def test_names_in_square_brackets_are_shown_as_they_are(tmp_path):
    strange = tmp_path / "[red]plugins["
    strange.mkdir(mode=0o755)
    assert str(strange) in run("path", LD_LIBRARY_CUPLUG_PATH=str(strange)).stdout


@pytest.mark.parametrize(
    "arguments", [["list"], ["list", "--json"], ["doctor"], ["--help"], ["--cflags"]]
)
def test_a_reader_that_has_seen_enough_is_not_told_of(arguments):
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "cuplug", *arguments],
        env={**os.environ, "PYTHONPATH": str(Path(PACKAGE).parent)},
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(writing)
    assert (done.stderr, done.returncode) == ("", 1)


@pytest.mark.parametrize("arguments", [["path"], ["--cflags"]])
def test_output_that_is_closed(arguments):
    command = [sys.executable, "-m", "cuplug", *arguments]
    done = subprocess.run(
        ["sh", "-c", '"$@" >&-', "sh", *command],
        env={**os.environ, "PYTHONPATH": str(Path(PACKAGE).parent)},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert "Traceback" not in done.stderr
    assert "--cflags" not in arguments or not done.returncode


def test_names_that_the_terminal_has_no_letters_for(tmp_path):
    (tmp_path / "ä").mkdir(mode=0o755)
    done = run("path", LD_LIBRARY_CUPLUG_PATH=str(tmp_path / "ä"), PYTHONIOENCODING="ascii")
    assert (done.stderr, str(tmp_path) + "/\\xe4" in done.stdout) == ("", True)


@pytest.mark.parametrize("arguments", QUICK)
def test_what_makefiles_ask_is_answered_alike(arguments, run_python):
    """The complete command and the fast path print the same, and the latter loads nothing else."""
    code = (
        f"import sys; sys.argv[1:] = {arguments.split()!r}; from cuplug.__main__ import main;"
        "main(); print({'click', 'numpy'} & set(sys.modules))"
    )
    whole = CliRunner().invoke(main, arguments.split()).stdout
    assert run_python(code).stdout == f"{whole}set()\n"


def test_the_headers_are_where_the_package_says():
    assert (Path(cuplug.get_include()) / "cuplug" / "host.h").exists()
    (option,) = (x for x in run("--cflags").stdout.split() if x.startswith("-I"))
    assert Path(option.removeprefix("-I")).samefile(cuplug.get_include())


@pytest.mark.parametrize("package", ["click", "rich"])
def test_a_package_that_is_missing_is_named(run_python, package):
    code = f"""
import sys
sys.modules[{package!r}], sys.argv = None, ["cuplug", "list"]
from cuplug.__main__ import main
main()
"""
    done = run_python(code)
    wanted = f"the command cuplug needs the package {package}: pip install {package}\n"
    assert (done.returncode, done.stderr) == (1, wanted)
