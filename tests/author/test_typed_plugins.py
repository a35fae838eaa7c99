# SPDX-License-Identifier: Apache-2.0
"""Typed functions whose plugin was replaced after they were compiled, and their inputs."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from builds import compile_module
from cuplug._engine.base.flags import PACKAGE
from places import FIXTURES, ROOT
from processes import run as cuplug

FIRST = "drift(x: float64[n], a: float = 1) -> float64[n]"
DIRECTIVES = ("nonecheck", "boundscheck", "wraparound", "initializedcheck", "overflowcheck")


@pytest.fixture(scope="module")
def drift(build_plugin):
    """Return a function that builds the plugin with other signatures."""

    def build(signature=FIRST, *defines, **others):
        texts = {"DRIFT": signature, **others}
        quoted = [f'{key}="{text}"' for key, text in texts.items()]
        return build_plugin(FIXTURES / "drift.c", "drift", [*quoted, *defines])

    return build


@pytest.fixture(scope="module")
def user(once, drift):
    """Compile a module for the first plugin, with all checks of Cython enabled."""

    def fill(folder):
        done = cuplug("bind", str(drift()), "-o", str(folder))
        assert done.returncode == 0, done.stderr
        lines = "".join(f"# cython: {name}=True\n" for name in DIRECTIVES)
        text = (FIXTURES / "drift_user.pyx").read_text()
        (folder / "drift_user.pyx").write_text(lines + text)
        compile_module(folder / "drift_user.pyx", folder)

    return once("drift_user", fill)


def run(user, statements, *folders, name="drift_user"):
    """Run statements with the plugins in some folders."""
    variables = {
        **os.environ,
        "LD_LIBRARY_CUPLUG_PATH": os.pathsep.join(map(str, folders)),
        "PYTHONPATH": os.pathsep.join([str(user), str(Path(PACKAGE).parent)]),
    }
    head = "import os, shutil, cuplug, numpy as np\n"
    head += f"import {name} as user\n"
    head += "x, out = np.arange(3.0), np.zeros(3)\n"
    return subprocess.run(
        [sys.executable, "-c", head + statements], env=variables, capture_output=True, text=True
    )


def check(done):
    assert (done.returncode, done.stderr) == (0, "")


RUN = "user.run(x, 10, out); assert (out == np.arange(3) + 10).all(), out"
CHANGED = {
    "in place": ("drift(inout x: float64[n], a: float = 1) -> float64[n]", "WRITES"),
    "a parameter between": ("drift(x: float64[n], b: float = 0, a: float = 1) -> float64[n]",),
    "other names": ("drift(x: float64[n], b: float = 1) -> float64[n]",),
    "another default": ("drift(x: float64[n], a: float = 2) -> float64[n]",),
    "another dtype": ("drift(x: float64[n], a: float32 = 1) -> float64[n]",),
    "a condition": ("drift(x: float64[n], a: float = 1) -> float64[n] where 0 <= a <= 5",),
}


@pytest.mark.parametrize("name", CHANGED)
def test_a_plugin_with_another_signature_is_not_called(user, drift, name):
    plugin = drift(*CHANGED[name])
    statements = f"x.flags.writeable = False\n{RUN}"
    done = run(user, statements, plugin.parent)
    message = done.stderr.splitlines()[-1]
    assert message.startswith("cuplug.PluginError: drift: got 'drift(")
    assert CHANGED[name][0] in message
    assert FIRST in message
    assert str(plugin) in message
    assert "; rebuild the module" in message


def test_a_plugin_that_shadows_another_is_not_taken_for_it(user, drift):
    """Also at later calls. A plugin in another directory with the same signature is used."""
    other = drift("drift(x: float64[n], b: float = 0, a: float = 1) -> float64[n]")
    done = run(user, "try: user.run(x, 10, out)\nexcept cuplug.PluginError: pass\n" + RUN,
               other.parent, drift().parent)  # fmt: skip
    assert "PluginError: drift: got " in done.stderr
    check(run(user, RUN.replace("10,", "3,"), drift(FIRST, "ADD=7").parent))


@pytest.mark.parametrize(
    ("place", "signature"),
    [
        ("AFTER", "drift(x: float64[n], b: float = 0, a: float = 1) -> float64[n]"),
        ("AFTER", "drift(x: float32[n]) -> float32[n]"),
        ("BEFORE", "drift(x: float32[n]) -> float32[n]"),
        ("BEFORE", "drift(x: float64[...], a: float = 0) -> float64[...]"),
    ],
)
def test_more_overloads_do_no_harm(user, drift, place, signature):
    check(run(user, RUN, drift(FIRST, **{place: signature}).parent))


def test_an_overload_that_would_take_the_arguments_for_others(user, drift):
    before = "drift(x: float64[n], b: float = 0, a: float = 1) -> float64[n]"
    done = run(user, RUN, drift(FIRST, BEFORE=before).parent)
    message = done.stderr.splitlines()[-1]
    assert "PluginError: drift: got arguments that " in message
    assert before in message
    assert FIRST in message


@pytest.mark.parametrize("kind", ["array", "memmap"])
def test_const_views_are_not_written(user, drift, tmp_path, kind):
    plugin = drift("drift(inout x: float64[n]) -> float64[n]", "WRITES")
    lines = [
        "x.flags.writeable = False",
        f"if {kind == 'memmap'}:",
        f"    x.tofile({str(tmp_path / 'x')!r})",
        f"    x = np.memmap({str(tmp_path / 'x')!r}, np.float64, 'r')",
        "try: user.run_by_name(x, out)",
        "except (TypeError, ValueError) as error: print(error)",
        "assert (x == np.arange(3)).all()",
    ]
    done = run(user, "\n".join(lines), plugin.parent)
    assert done.returncode == 0, done.stderr
    assert "drift: x: " in done.stdout
    assert "read-only" in done.stdout


def test_reload_takes_in_what_typed_functions_alone_have_loaded(user, drift, tmp_path):
    """The new code runs if its signature is the same, also if it was different in between."""
    folder = tmp_path / "plugins"
    folder.mkdir(mode=0o755)
    shutil.copy(drift(), folder)
    other = drift("drift(x: float64[n], b: float = 0, a: float = 1) -> float64[n]")
    lines = [
        f"place = {str(folder / 'libdrift.so')!r}",
        "def replace(file):",
        "    shutil.copy(file, place + '.new'); os.rename(place + '.new', place)",
        "assert cuplug.reload() == ()",
        f"{RUN}; user.run_both(x, None, out)",
        f"replace({str(drift(FIRST, 'ADD=5'))!r})",
        RUN,
        "assert cuplug.reload() == (place,)",
        "user.run(x, 10, out); assert (out == x + 15).all(), out",
        "user.run_both(x, None, out); assert (out == x + 5).all(), out",
        f"replace({str(other)!r})",
        "assert cuplug.reload() == (place,)",
        "try: user.run(x, 10, out); raise SystemExit('called')",
        "except cuplug.PluginError as error: assert 'got' in str(error)",
        "user.run_both(x, None, out); assert (out == x).all(), out",
        f"replace({str(drift())!r})",
        "assert cuplug.reload() == (place,)",
        RUN,
        "assert cuplug.reload() == ()",
    ]
    check(run(user, "\n".join(lines), folder))


def test_inputs_are_copied_as_in_python(user, drift):
    lines = [
        "one, bytes_ = np.array([10.0]), np.zeros(25, 'u1')",
        "odd = bytes_[1:].view('f8'); odd[:] = x",
        "for a, b in [(x, one), (one, x), (odd, one), (odd, odd), (x, None), (one, odd)]:",
        "    user.run_both(a, b, out)",
        "    assert (out == a + (0 if b is None else b)).all(), (a, b, out)",
        "user.run_both(one, one, out[:1]); assert out[0] == 20",
        "user.run_both(out, one, out := np.zeros(3))",
        "try: user.run_both(x, np.zeros(2), out); raise SystemExit('called')",
        "except ValueError as error: assert str(error).startswith('both: y: ')",
    ]
    check(run(user, "\n".join(lines), drift().parent))


def test_strided_inputs_are_copied_and_strided_outputs_are_not(user, drift):
    """Overloads in drift.c take no strides: inputs are copied, outputs raise, as in Python."""
    lines = [
        "x, y = np.arange(12.0)[::-4], np.arange(6.0)[::2]",
        "for a, b in [(x, y), (y, x), (x, x[:1]), (x[:1], y), (x, None)]:",
        "    user.run_strided(a, b, out)",
        "    assert (out == a + (0 if b is None else b)).all(), (a, b, out)",
        "planes = np.arange(24.0).reshape(3, 8)",
        "for a in (planes[:, ::4], planes[:2].T[:3], planes[:2, :3].T, planes[:1, :2]):",
        "    user.run_planes(a, x[:a.shape[1]], out := np.empty(a.shape))",
        "    assert (out == a + x[:a.shape[1]]).all(), (a, out)",
        "try: user.run_strided(x, y, np.zeros(6)[::2]); raise SystemExit('called')",
        "except ValueError as error: assert 'both: out: ' in str(error), error",
    ]
    check(run(user, "\n".join(lines), drift().parent))


def test_const_views_are_no_outputs(user, drift):
    """Neither for read-only arrays nor for writable ones."""
    lines = [
        "for out.flags.writeable in (False, True):",
        "    try: user.run_const(x, out); raise SystemExit('called')",
        "    except ValueError as error: assert 'drift: out: got a read-only array' in str(error)",
        "    assert (out == 0).all()",
        "user.write_copies(x, out); assert (out == x + 3).all(), out",
    ]
    check(run(user, "\n".join(lines), drift().parent))


def cython_blocks():
    """Yield the Cython code in documents, except copies of examples, which other tests build."""
    for document in sorted((ROOT / "docs").glob("*.md")):
        pattern = r"(?<!\.pyx -->\n)^```cython\n(.*?)^```$"
        blocks = re.findall(pattern, document.read_text(), re.M | re.S)
        for number, text in enumerate(blocks, 1):
            yield pytest.param(text, id=f"{document.stem}-{number}")


@pytest.mark.sample(10)
@pytest.mark.parametrize("text", list(cython_blocks()))
def test_documents_have_cython_that_compiles(text, tmp_path, build_plugin):
    half = build_plugin(ROOT / "examples" / "drop_in" / "half.c", "half")
    assert cuplug("bind", str(half), "-o", str(tmp_path)).returncode == 0
    (tmp_path / "document.pyx").write_text(text)
    compile_module(tmp_path / "document.pyx", tmp_path)
