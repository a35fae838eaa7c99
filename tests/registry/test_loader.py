# SPDX-License-Identifier: Apache-2.0
"""Code that cannot be used, and files that change after they were read."""

import platform
import subprocess
import sys

import cuplug
import pytest
from builds import COMPILER, compile_library
from cuplug._engine.base import flags
from places import ROOT
from processes import environment
from raw_plugins import compile_fixture, listed, named_plugin, quoted

pytestmark = pytest.mark.usefixtures("place")

# ---- Code that cannot be used ------------------------------------------------------------------


def load_code_error(path, name):
    """Return the message of the first call of an operator of the plugin at a path."""
    cuplug.load(str(path))
    with pytest.raises(cuplug.PluginError) as caught:
        cuplug.find(name)(np_float32())
    return str(caught.value)


def np_float32():
    """Return an array for the operators of raw_table.c."""
    import numpy

    return numpy.zeros(3, numpy.float32)


def test_missing_entry(place):
    path = named_plugin(place / "libabsent.so", "absent", HOST_ENTRY=quoted("absent_host"))
    assert load_code_error(path, "absent") == (
        f"absent: {path}: does not export absent_host, an entry that its table names"
    )


def test_entry_only_in_a_dependency(place):
    needed = compile_fixture("no_table.c", place / "libneeded.so.1", ENTRY="needed_host")
    path = named_plugin(
        place / "libneedy.so",
        "needy",
        "-Wl,--no-as-needed",
        needed,
        f"-Wl,-rpath,{place}",
        HOST_ENTRY=quoted("needed_host"),
    )
    assert load_code_error(path, "needy") == (
        f"needy: {path}: needed_host, an entry that its table names, was found only in {needed}, "
        "expected it in this file"
    )


def test_missing_dependency(place):
    needed = compile_fixture("no_table.c", place / "libmissing.so.1", ENTRY="missing_host")
    path = named_plugin(
        place / "libhungry.so",
        "hungry",
        "-Wl,--no-as-needed",
        needed,
        HOST_ENTRY=quoted("missing_host"),
    )
    needed.unlink()
    message = load_code_error(path, "hungry")
    assert message.startswith(f"hungry: {path}: cannot be loaded: ")
    assert "libmissing.so.1" in message


def test_undefined_symbol(place):
    path = compile_fixture("undefined.c", place / "libundefined.so")
    cuplug.load(str(path))
    with pytest.raises(cuplug.PluginError) as caught:
        cuplug.find("undefined")()
    assert str(caught.value) == (f"undefined: {path}: undefined symbol: nowhere_to_be_found")


def test_entry_that_is_data(place):
    path = named_plugin(place / "libdata.so", "data", HOST_ENTRY=quoted("cuplug_symbols"))
    assert load_code_error(path, "data") == (
        f"data: {path}: cuplug_symbols is not a function, expected an entry"
    )


def test_a_table_need_not_be_exported(place):
    path = named_plugin(place / "libsilent.so", "silent", SYMBOL="other_symbols")
    assert cuplug.load(path).silent(np_float32()).shape == (3,)


# ---- Files that change -------------------------------------------------------------------------


def call(op):
    """Call an operator of raw_table.c."""
    return op(np_float32())


def test_file_replaced_before_its_code_is_loaded(place):
    path = named_plugin(place / "libearly.so", "early")
    stale = cuplug.find("early")
    path.unlink()
    named_plugin(path, "early", VERSION=quoted("2.0.0"))
    with pytest.raises(cuplug.PluginError) as caught:
        call(stale)
    assert str(caught.value) == (
        f"early: {path}: replaced on disk since its table was read: find the operator again"
    )
    assert cuplug.find("early").version == "2.0.0"
    call(cuplug.find("early"))


def test_file_removed_before_its_code_is_loaded(place):
    path = named_plugin(place / "libgoing.so", "going")
    stale = cuplug.find("going")
    path.unlink()
    with pytest.raises(cuplug.PluginError, match=r"removed since its table was read$"):
        call(stale)


def test_file_replaced_after_its_code_is_loaded(place):
    path = named_plugin(place / "liblate.so", "late")
    call(cuplug.find("late"))
    assert listed(path).loaded
    path.unlink()
    named_plugin(path, "late", VERSION=quoted("2.0.0"))
    record = listed(path)
    assert (record.state, record.version, record.loaded) == ("changed", "1.0.0", True)
    assert record.reason == (
        "replaced or removed on disk since its code was loaded: the process uses the old "
        "code until it is restarted"
    )
    assert cuplug.find("late").version == "1.0.0"
    call(cuplug.find("late"))
    with pytest.raises(cuplug.PluginError) as caught:
        cuplug.load(str(path))
    assert str(caught.value) == (
        f"{path}: replaced on disk after its code was loaded: reload it, restart the "
        "process, or give the new file another path"
    )


TWO_VERSIONS = """
import os, shutil, sys, cuplug, numpy as np
first, second, path = sys.argv[1:4]
x = np.zeros(3, np.float32)
shutil.copyfile(first, path)
op = cuplug.load(path).steady
op(x)
shutil.copyfile(second, path)  # truncates the file that is loaded, and writes it anew
op(x)
(record,) = [p for p in cuplug.plugins() if p.path == path]
print(record.state, op.version, cuplug.find("steady").version)
os.truncate(path, 0)
op(x)
shutil.copyfile(second, path)
print(cuplug.reload(op) == (path,), op.version)
op(x)
"""


def test_a_loaded_file_may_be_written_over(tmp_path, run_python):
    """As `cp` and compilers do: the process continues with the loaded code."""
    first = named_plugin(tmp_path / "first", "steady")
    second = named_plugin(tmp_path / "second", "steady", VERSION=quoted("2.0.0"))
    files = [str(first), str(second), str(tmp_path / "libsteady.so")]
    done = run_python(f"import sys\nsys.argv[1:] = {files!r}\n{TWO_VERSIONS}")
    assert done.stdout == "changed 1.0.0 1.0.0\nTrue 2.0.0\n", (done.returncode, done.stderr)


LOADED_FROM = """
import sys, cuplug, numpy as np
cuplug.load(sys.argv[1]).placed(np.zeros(3, np.float32))
print("libplaced.so" in {line.rpartition("/")[2].strip() for line in open("/proc/self/maps")})
"""


def is_in_place(path, run_python, **environment):
    """Return whether a new process maps the file itself."""
    done = run_python(f"import sys\nsys.argv[1:] = [{str(path)!r}]\n{LOADED_FROM}", environment)
    assert done.stdout in ("True\n", "False\n"), done.stderr
    return done.stdout == "True\n"


def test_where_code_is_loaded_from(place, run_python):
    path = named_plugin(place / "libplaced.so", "placed", "-Wl,-rpath,/opt")
    assert not is_in_place(path, run_python)
    assert is_in_place(path, run_python, CUPLUG_LOAD_IN_PLACE="1")


def test_a_plugin_with_libraries_beside_it_is_loaded_in_place(place, run_python):
    (place / "private").mkdir()
    needed = place / "private" / "libbeside.so.1"
    compile_fixture("no_table.c", needed, "-Wl,-soname,libbeside.so.1", ENTRY="beside")
    flags = ["-Wl,--no-as-needed", needed, "-Wl,-rpath,$ORIGIN/private"]
    path = named_plugin(place / "libplaced.so", "placed", *flags)
    assert is_in_place(path, run_python)


def test_new_file_appears_after_a_miss(place):
    with pytest.raises(cuplug.NotFoundError):
        cuplug.find("later_found")
    named_plugin(place / "liblater_found.so", "later_found")
    assert cuplug.find("later_found").plugin == "later_found"


def test_search_path_that_changes(tmp_path, place, monkeypatch):
    named_plugin(place / "libmoved.so", "moved")
    assert cuplug.find("moved").path == str(place / "libmoved.so")
    other = tmp_path / "other"
    other.mkdir()
    named_plugin(other / "libmoved.so", "moved", VERSION=quoted("2.0.0"))
    monkeypatch.setenv("LD_LIBRARY_CUPLUG_PATH", f"{other}:{place}")
    assert cuplug.find("moved").version == "2.0.0"
    monkeypatch.setenv("LD_LIBRARY_CUPLUG_PATH", str(place))
    assert cuplug.find("moved").version == "1.0.0"


MODULE = """
#include <cuplug/host.h>
int threads(void);
int threads(void) {
  cuplug_operator *op;
  cuplug_error error;
  return cuplug_find("no_such_operator", &op, &error);
}
"""

CLOSE = """
import _ctypes, ctypes, sys
module = ctypes.CDLL(sys.argv[1])
assert module.threads()
_ctypes.dlclose(module._handle)
print({line.rpartition("/")[2].strip() for line in open("/proc/self/maps")} & set(sys.argv[2:]))
"""


def test_the_core_stays_when_a_module_that_needs_it_is_closed(tmp_path):
    """Its threads run its code."""
    source = tmp_path / "module.c"
    source.write_text(MODULE)
    folder = flags.lib_directory()
    options = ["-shared", "-fPIC", f"-I{ROOT / 'include'}", f"-L{folder}", "-lcuplug"]
    library = tmp_path / "module.so"
    command = [*COMPILER, str(source), *options, f"-Wl,-rpath,{folder}", "-o", str(library)]
    compile_library(command)
    arguments = [str(library), "module.so", "libcuplug.so.1"]
    command = [sys.executable, "-c", CLOSE, *arguments]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=60)
    assert done.stdout == "{'libcuplug.so.1'}\n", done.stderr


PRIVATE = "int from_private{0}(void); int from_private{0}(void) {{ return {1}; }}"

USER = """
#include <cuplug/plugin.h>
int from_private{1}(void);
CUPLUG_ENTRY int {0}_host(const cuplug_call *call) {{
  ((int32_t *)call->outputs[0].data)[0] = from_private{1}();
  return CUPLUG_OK;
}}
CUPLUG_HOST_OPERATOR({0}_host, "{0}(n: int) -> int32[n]", "What the private library returns.");
CUPLUG_PLUGIN({0}, "1.0.0");
"""


def with_private(folder, name, value, kind=0, rpath="$ORIGIN", options=()):
    """Build a plugin and libprivate<kind>.so.1 in a folder; return the plugin's path."""
    folder.mkdir(exist_ok=True)
    source, path = folder / "source.c", folder / f"lib{name}.so"
    private = f"libprivate{kind}.so.1"
    shared = [*COMPILER, "-shared", "-fPIC", f"-I{ROOT / 'include'}", str(source)]
    source.write_text(PRIVATE.format(kind, value))
    named = [f"-Wl,-soname,{private}", *options, "-o", str(folder / private)]
    compile_library([*shared, *named])
    source.write_text(USER.format(name, kind))
    rpath = f"-Wl,-rpath,{rpath.replace('FOLDER', str(folder))}"
    compile_library([*shared, str(folder / private), rpath, "-o", str(path)])
    return path


@pytest.mark.parametrize(
    ("kind", "rpath"), list(enumerate(("$ORIGIN", "FOLDER", "${ORIGIN}/../none:${ORIGIN}/.")))
)
def test_private_libraries_of_one_name(place, kind, rpath):
    """Otherwise, the second plugin would use the library of the first one."""
    values = {"first": 7, "equal": 7, "other": 8}
    calls, paths = {}, {}
    for folder, value in values.items():
        name = f"{folder}{kind}"
        paths[folder] = with_private(place / folder, name, value, kind, rpath)
        calls[folder] = getattr(cuplug.load(str(paths[folder])), name)
    assert calls["first"](1).tolist() == [7]
    assert calls["equal"](1).tolist() == [7]
    for _ in range(2):
        with pytest.raises(cuplug.PluginError) as caught:
            calls["other"](1)
        got, _, expected = str(caught.value).partition(", expected ")
        assert f"libprivate{kind}.so.1: got {place}" in got
        assert f"which {paths['first']}" in got or f"which {paths['equal']}" in got
        assert expected.startswith(str(paths["other"].parent))


@pytest.mark.skipif(platform.machine() != "x86_64", reason="its flags are those of x86-64")
def test_executable_stacks_are_refused(place):
    reason = "got a library that needs an executable stack, expected none; link it with -z "
    path = named_plugin(place / "libstack.so", "stack", "-Wl,-z,execstack")
    assert listed(path).reason == f"{reason}noexecstack"
    with pytest.raises(cuplug.PluginError, match="executable stack"):
        cuplug.load(str(path))
    options = ["-Wl,-z,execstack"]
    path = with_private(place / "stacked", "stacked", 5, kind=9, options=options)
    with pytest.raises(cuplug.PluginError, match=r"libprivate9\.so\.1: got a library that needs"):
        cuplug.load(str(path)).stacked(1)
