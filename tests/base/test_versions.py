# SPDX-License-Identifier: Apache-2.0
"""A libcuplug.so.1 of another version, a second interpreter, archives, raised privileges."""

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import cuplug
import pytest
from cuplug._engine.base import environment
from cuplug._engine.base.flags import PACKAGE, lib_directory


def test_another_version_of_the_core(tmp_path, run_python):
    """On LD_LIBRARY_PATH, which comes before the RUNPATH of the package's modules."""
    image = Path(lib_directory(), "libcuplug.so.1").read_bytes()
    version = cuplug.__version__.encode()
    other = b"9" + version[1:]
    changed = image.replace(version + b"\0", other + b"\0")
    assert changed != image
    (tmp_path / "libcuplug.so.1").write_bytes(changed)
    done = run_python("import cuplug", {"LD_LIBRARY_PATH": str(tmp_path)})
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: cuplug: got libcuplug.so.1 of version ")
    assert other.decode() in last
    assert cuplug.__version__ in last


INTERPRETERS = """
import sys
if sys.version_info >= (3, 13):
    import _interpreters as interpreters
    other = interpreters.create("legacy")
else:
    import _xxsubinterpreters as interpreters
    other = interpreters.create(isolated=False)
def run_there(text):
    found = interpreters.run_string(other, "import sys; sys.path[:] = %r\\n%s" % (sys.path, text))
    if found is not None:
        raise RuntimeError(found)
"""
HERE, THERE = "import cuplug; cuplug.find('relu')", 'run_there("import cuplug")'


@pytest.mark.parametrize(("first", "second"), [(HERE, THERE), (THERE, HERE)])
def test_the_first_interpreter_has_cuplug(first, second, run_python):
    done = run_python(f"{INTERPRETERS}\n{first}\nprint('imported')\n{second}")
    assert (done.returncode, done.stdout) == (1, "imported\n"), done.stderr
    last = done.stderr.strip().splitlines()[-1]
    assert "cuplug: got a second interpreter of this process, expected the one" in last


def test_the_package_in_an_archive(tmp_path):
    """Archives as created by `python -m zipapp`."""
    archive = tmp_path / "application.pyz"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("__main__.py", "import cuplug")
        for name in ("__init__.py", "_engine/__init__.py"):
            file.write(Path(PACKAGE, name), f"cuplug/{name}")
    done = subprocess.run([sys.executable, str(archive)], capture_output=True, text=True)
    assert done.stderr.splitlines()[-1] == (
        f"ImportError: cuplug: got {archive}/cuplug, which is in an archive, expected a folder "
        "(libraries cannot be loaded from archives); install cuplug, or make the archive with a "
        "tool that unpacks it, such as shiv or PEX"
    )


def test_variables_count_without_privileges(monkeypatch):
    assert not environment.privileged
    monkeypatch.setenv("CUPLUG_TEST_VARIABLE", "x")
    assert environment.variable("CUPLUG_TEST_VARIABLE") == "x"
    assert environment.variable("CUPLUG_NO_SUCH_VARIABLE") == ""
    monkeypatch.delenv("LD_PRELOAD", raising=False)
    assert environment.for_programs({"A": "b"}) == {**os.environ, "A": "b"}


def test_compilers_run_without_the_sanitizers_of_python(monkeypatch):
    others = "/opt/libsane.so.1 libfakeroot.so"
    monkeypatch.setenv("LD_PRELOAD", f"/usr/lib/libasan.so.8:libubsan.so.1 {others}")
    assert environment.for_programs({})["LD_PRELOAD"] == others
    monkeypatch.setenv("LD_PRELOAD", "/usr/lib/clang/19/lib/libclang_rt.asan-x86_64.so")
    assert environment.for_programs({})["LD_PRELOAD"] == ""


PRIVILEGED = """
import os
from cuplug._engine.base import environment
from cuplug._engine.base.flags import command_of
from cuplug._source.compilers import cache, toolkit
from cuplug._source.compilers.processes import temporary_places
assert environment.privileged
print(environment.variable("CUPLUG_VERBOSE"), command_of("CC", "cc"), cache.directory())
print(environment.for_programs({"A": "b"}), environment.path(), next(temporary_places()))
print(toolkit.find_nvcc())
"""


@pytest.fixture
def public_folder():
    """Return a folder that other users can reach."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_variables_do_not_count_with_raised_privileges(public_folder):
    """As in a set-user-ID program: here Python itself, run by another user."""
    python = public_folder / "python"
    shutil.copy(os.path.realpath(sys.executable), python)
    os.chown(python, 0, 0)
    python.chmod(0o4755)
    folder = str(public_folder / "evil")
    names = ("PATH", "TMPDIR", "CUPLUG_CACHE_DIR", "XDG_CACHE_HOME", "HOME", "CUDA_HOME")
    variables = dict.fromkeys(names, folder) | {"CC": f"{folder}/cc", "CUPLUG_VERBOSE": "1"}
    variables |= {"PYTHONHOME": sys.base_prefix, "PYTHONPATH": os.pathsep.join(sys.path)}
    try:
        done = subprocess.run(
            [str(python), "-c", PRIVILEGED],
            env=variables,
            user=65534,
            group=65534,
            extra_groups=[],
            capture_output=True,
            text=True,
            timeout=60,
        )
    except OSError:
        pytest.skip("another user cannot run programs here")
    if done.returncode and "AssertionError" not in done.stderr:
        pytest.skip(f"Python does not run with raised privileges here: {done.stderr[-300:]}")
    assert done.returncode == 0, done.stderr
    assert "evil" not in done.stdout
