# SPDX-License-Identifier: Apache-2.0
"""Typed functions for Cython: the generated code for signatures, and its calls."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from builds import compile_module
from click.testing import CliRunner
from cuplug._engine.base.flags import PACKAGE, get_include
from cuplug._engine.signature.signature import SignatureError, parse
from cuplug._integration.author.memoryviews import Module, add_plugin, write
from cuplug._integration.commands.cli import main
from places import FIXTURES, TESTS

GOLDEN = TESTS / "golden"
GATHER = (
    'gather(source: T[m, *row], index: I[*n], mode: "raise" | "wrap" = "raise") -> T[*n, *row] '
    "where T: float32 | bfloat16 | int64, I: int32 | int64"
)


def test_modules_that_were_compiled_before_find_the_call():
    """They use these names of a module, a function and its type, which must not change."""
    from cuplug._memoryviews import __pyx_capi__ as functions

    arguments = "cuplug_operator **, char const *, cuplug_argument const *, uint32_t, uint32_t"
    added = {"call_on_stream", "call_with_lists", "current_stream", "tensor_of", "view_of_array"}
    assert functions.keys() == {"call", "close_handle", "free_view"} | added
    assert f'"int ({arguments})"' in repr(functions["call"])
    assert f'"int ({arguments}, void *)"' in repr(functions["call_on_stream"])
    assert '"cuplug_tensor const *(PyObject *)"' in repr(functions["tensor_of"])
    assert '"cuplug_view (PyObject *)"' in repr(functions["view_of_array"])
    assert '"void *(int32_t)"' in repr(functions["current_stream"])
    assert '"void (cuplug_view *)"' in repr(functions["free_view"])
    assert '"int (cuplug_handle *)"' in repr(functions["close_handle"])


def declarations(*signatures):
    module = Module()
    add_plugin(module, "plugin", [parse(text) for text in signatures])
    return module, {f.name: f.declaration() for f in module.functions}


def test_one_function_for_each_operator():
    _, functions = declarations(GATHER)
    assert functions == {
        "gather": "cdef inline int gather(_cuplug.View source, _cuplug.View index, "
        "_cuplug.View out, const char *mode=b'raise') except -1 nogil"
    }


def test_scalars_defaults_and_names_that_cython_reserves():
    _, functions = declarations(
        "f(inout lambda: int8[n, 3], x: uint16[n] = None, a: float = -inf, b: bool = True, "
        'c: complex = 2, u: uint64 = 18446744073709551615, s: str = "it\'s", k: int = None, '
        "t: float = None, w: str = None) -> (int8[], y: int8[n], z: int8[?])"
    )
    assert functions["f"] == (
        "cdef inline int f(_cuplug.View lambda_, _cuplug.View out0, _cuplug.View y, "
        "_cuplug.View *z, _cuplug.View x=_cuplug.no_view(), double a=-_math.INFINITY, "
        'bint b=True, double complex c=2, uint64_t u=18446744073709551615, const char *s=b"it\'s", '
        "const int64_t *k=NULL, const double *t=NULL, const char *w=NULL) except -1 nogil"
    )


def test_numbers_that_may_be_none_are_pointers():
    _, functions = declarations(
        "f(x: T[n], value: T = None, b: bool = None, u: uint64 = None, c: complex = None) "
        "where T: int32 | float64"
    )
    assert functions["f"] == (
        "cdef inline int f(_cuplug.View x, const _views.Number *value, const bint *b=NULL, "
        "const uint64_t *u=NULL, const double complex *c=NULL) except -1 nogil"
    )


def test_lists_are_pointers_and_numbers_of_items():
    module, functions = declarations(
        "f(xs: T[*s][], w: float[], inout ys: T[n][each] = None, axes: int[] = None) "
        "-> (n_w: int8[len(xs)]) where T: any"
    )
    assert functions["f"] == (
        "cdef inline int f(const _cuplug.View *xs, uint32_t n_xs, const double *w, uint32_t n_w_, "
        "_cuplug.View n_w, const _cuplug.View *ys=NULL, uint32_t n_ys=0, "
        "const int64_t *axes=NULL, uint32_t n_axes=0) except -1 nogil"
    )
    assert "_cuplug.call_with_lists(_cuplug.NEW_SLOT, " in write(module, "title")


def test_names_that_have_another_use():
    _, functions = declarations("double(x: float64[n])", "lambda(x: int8[n])", "view(at: int8[n])")
    assert list(functions) == ["double_", "lambda_", "view_"]
    _, functions = declarations("f(x: int8[n], errno: float = 1, I: int = 2)")  # macros of C
    assert "double errno_=1, int64_t I_=2)" in functions["f"]


def test_overloads_share_a_function_if_they_take_the_same_arguments():
    module, functions = declarations(
        "f(x: int8[n])", "f(x: float32[n, n])", "f(y: float32[n])", "f(x: bool[n], k: int = 1)"
    )
    assert list(functions) == ["f", "f_2", "f_3"]
    assert module.functions[0].signatures == ["f(x: int8[n])", "f(x: float32[n, n])"]


def test_only_some_operators():
    module = Module()
    add_plugin(module, "plugin", [parse("f(x: int8[n])"), parse("g(x: int8[n])")], ["g"])
    assert [x.name for x in module.functions] == ["g"]


@pytest.mark.parametrize(
    ("dtypes", "stands_in"),
    [
        ("bool | int32", ["UINT8, _cuplug.BOOL"]),
        ("bool | uint8", []),
        ("float16 | float32", ["UINT16, _cuplug.FLOAT16"]),
        ("float16 | bfloat16", []),
        ("bfloat16 | uint16", []),
    ],
)
def test_elements_that_stand_for_a_dtype_that_cython_lacks(dtypes, stands_in):
    module, _ = declarations(f"f(x: T[n]) where T: {dtypes}")
    lines = [line for line in write(module, "title").splitlines() if "stand_in" in line]
    assert lines == [f"    _cuplug.stand_in(&x, _cuplug.{pair})" for pair in stands_in]


def test_strings_in_signatures_stay_on_their_line():
    module, _ = declarations('f(x: int8[n], s: str = "a\nb")')
    lines = write(module, "t").splitlines()
    assert all(
        line.startswith(("#", "cdef", "cimport", "from", "    ")) or not line for line in lines
    )
    assert r"a\nb" in "".join(lines)


def test_signature_errors_know_their_place():
    with pytest.raises(SignatureError, match="expected") as caught:
        parse("f(x: float32[n) -> float32[n]")
    assert caught.value.position == 14


def test_golden_files():
    """A changed signature of a stock plugin, or generator, must be committed with its output.

    To update: cp build/python/cuplug/ops.pyi tests/golden/
    grep '^cdef' build/python/cuplug/typed/__init__.pxd | LC_ALL=C sort > tests/golden/typed.txt
    """
    assert (Path(PACKAGE) / "ops.pyi").read_text() == (GOLDEN / "ops.pyi").read_text()
    typed = Path(PACKAGE) / "typed"
    for files in ([typed / "__init__.pxd"], typed.glob("[!_]*.pxd")):
        lines = [line for file in files for line in file.read_text().splitlines()]
        heads = sorted(line for line in lines if line.startswith("cdef"))
        assert heads == (GOLDEN / "typed.txt").read_text().splitlines()


@pytest.fixture(scope="module")
def probe(once):
    """Compile the plugin, write its typed module, compile that and a module that uses it."""
    folder = once("probe", build_probe)
    return folder, json.loads((folder / "bound.json").read_text())


def build_probe(folder):
    plugin = folder / "libprobe.so"
    flags = ["-shared", "-fPIC", "-fvisibility=hidden", f"-I{get_include()}"]
    subprocess.run(["gcc", *flags, FIXTURES / "typed_probe.c", "-o", plugin], check=True)
    plugin.chmod(0o755)
    result = CliRunner().invoke(main, ["bind", str(plugin), "-o", str(folder), "--json"])
    assert result.exit_code == 0, result.output
    (folder / "bound.json").write_text(result.stdout)
    compile_module(FIXTURES / "typed_user.pyx", folder, options=["-fopenmp"])


def use(probe, statements, **environment):
    """Run statements in a separate process with the plugin on its path."""
    folder, _ = probe
    variables = {
        **os.environ,
        "LD_LIBRARY_CUPLUG_PATH": str(folder),
        "PYTHONPATH": os.pathsep.join([str(folder), str(Path(PACKAGE).parent)]),
        **environment,
    }
    code = f"import numpy as np, typed_user as user\n{statements}"
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=variables, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_bind_reports_what_it_wrote(probe):
    _, document = probe
    assert document["functions"] == [
        "affine", "total", "fill", "fail", "pick", "shifted", "given", "flip", "half", "counter",
        "step", "weighted", "split",
    ]  # fmt: skip
    assert Path(document["pxd"]).exists()


RUNS = {
    "defaults": """
x = np.arange(6, dtype="f4").reshape(2, 3)
out = np.empty_like(x)
user.run_affine(x, out)
assert (out == 2 * x).all()
""",
    "all arguments": """
x, bias = np.arange(6).reshape(2, 3), np.array([1, 2, 3])
out = np.empty_like(x)
user.run_affine_all(x, bias, 3.0, b"subtract", out)
assert (out == 3 * x - bias).all()
user.run_affine_all(x, None, 1.0, b"add", out)
assert (out == x).all()
""",
    "enums": """
x, bias, out = np.arange(6).reshape(2, 3), np.array([1, 2, 3]), np.empty((2, 3), "i8")
assert user.run_affine_by_enum(x, bias, 0, out) == [0, 1]
assert (out == x + bias).all()
user.run_affine_by_enum(x, bias, 1, out)
assert (out == x - bias).all()
""",
    "no rank": "assert user.run_total(np.arange(5.0)) == 10",
    "read-only": """
x = np.arange(5.0)
x.flags.writeable = False
assert user.run_total(x) == 10
""",
    "empty": """
assert user.run_total(np.empty(0)) == 0
user.run_affine(np.empty((0, 3), "f4"), np.empty((0, 3), "f4"))
""",
    "in place": """
for array, value in [
    (np.zeros(3, "u8"), 2**64 - 1), (np.zeros(3, "i1"), -5), (np.zeros(3, "c8"), 1 + 2j),
]:
    user.run_fill(array, value)
    assert (array == array.dtype.type(value)).all()
""",
    "a strided input": """
x = np.arange(12).reshape(3, 4)[:, ::-2]
out = np.empty((3, 2), "i8")
user.run_affine_all(x, None, 3.0, b"add", out)
assert (out == 3 * x).all()
user.run_affine_all(x.T, None, 3.0, b"add", out := np.empty((2, 3), "i8"))
assert (out == 3 * x.T).all()
""",
    "an output of unknown size": """
x = np.arange(6, dtype="f4")
assert user.run_pick(x, x > 3) == [4, 5]
assert user.run_pick(x[::-2], x[::-2] > 2) == [5, 3]
assert user.run_pick(x, x > 9) == []
""",
    "None": """
x, out = np.arange(3.0), np.empty(3)
user.run_shifted(x, 4, out)
assert (out == x + 4).all()
user.run_shifted(x, None, out)
assert (out == x - 1).all()
""",
    "None for each kind of number": """
x = np.zeros(1)
assert user.run_given(x, None, None, None, None) == [15, 0, 0, 0, 0, 0]
assert user.run_given(x, True, 2**53, 3 - 4j, 0.5) == [0, 1, 2**53, 3, -4, 0.5]
assert user.run_given(x, False, 0, None, 0.0) == [4, 0, 0, 0, 0, 0]
assert user.run_given_ints(np.zeros(1, "i4"), -7, False) == [7, 0, 0, 0, 0, -7]
assert user.run_given_ints(np.zeros(1, "i4"), -7, True) == [15, 0, 0, 0, 0, 0]
""",
    "bool": """
x = np.array([True, False])
user.run_flip(x)
assert x.tolist() == [False, True]
""",
    "float16": """
x = np.float16([1, -3])
user.run_half(x.view("u2"))
assert (x == [0.5, -1.5]).all()
""",
    "handles": "assert user.run_counter(5, 3) == 8",
    "lists": """
x, y, out = np.arange(3.0), np.arange(2.0, 5), np.empty(3)
user.run_weighted(x, y, out, [2, 10])
assert (out == 2 * x + 10 * y).all()
user.run_weighted(x, x, out, [], [])
assert (out == 2 * x).all()
user.run_weighted(x, y, out, [3], [0])
assert (out == -3 * x - y).all()
""",
    "a list of arrays of several sizes, in place, and two outputs": """
xs = [np.arange(float(n)) for n in range(1, 9)]
least, most = np.empty(8), np.empty(8)
user.run_split(xs, 0.5, least, most)
assert (least == 0.5).all() and (most == np.arange(8) + 0.5).all()
assert all((x == np.arange(len(x)) + 0.5).all() for x in xs)
user.run_split([], 0.5, least[:0], most[:0])
least[:] = 0
user.run_split(xs, -0.5, least)
assert (least == 0).all() and (most == np.arange(8) + 0.5).all()
""",
    "threads": """
x = np.arange(64 * 99.0).reshape(64, 99)
assert user.run_in_threads(x) == x.sum(axis=1).tolist()
""",
}
REFUSALS = {
    "shape": ('user.run_affine(np.zeros((2, 3), "f4"), np.zeros((3, 2), "f4"))', "ValueError"),
    "choice": (
        'user.run_affine_all(np.zeros((1, 1), "i8"), None, 1.0, b"?", np.zeros((1, 1), "i8"))',
        "ValueError",
    ),
    "a number that is in no enum": (
        'user.run_affine_by_enum(np.zeros((1, 1), "i8"), None, 2, np.zeros((1, 1), "i8"))',
        'ValueError: affine: mode: got the string "no affine_mode", expected "add" or "subtract"',
    ),
    "a handle": ("user.run_counter(-9, 3)", "ValueError: counter: it is negative"),
    "None": ("user.run_total(None)", "TypeError: total: x: "),
    "an array of a list": (
        "user.run_weighted(np.zeros(3), np.zeros(2), np.zeros(3), [])",
        "ValueError: weighted: xs",
    ),
    "arrays of a list that overlap": (
        "x = np.zeros(3); user.run_split([x, x], 1, x[:2].copy(), x[:2].copy())",
        "ValueError: split: xs",
    ),
    "overlap": ('x = np.zeros((2, 2), "f4"); user.run_affine(x, x)', "ValueError: affine: out"),
    "range": ('user.run_fill(np.zeros(1, "i1"), 200)', "ValueError: fill: value: "),
    "entry": ('user.run_fail(np.zeros(3, "i4"))', "IndexError: fail: x: got 3 elements"),
}


@pytest.mark.parametrize("name", RUNS)
def test_typed_functions_run(probe, name):
    done = use(probe, RUNS[name])
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", REFUSALS)
def test_typed_functions_refuse(probe, name):
    statements, sentence = REFUSALS[name]
    done = use(probe, statements)
    assert sentence in done.stderr.splitlines()[-1]


def test_a_plugin_that_is_not_on_the_path(probe):
    done = use(probe, "user.run_total(np.ones(1))", LD_LIBRARY_CUPLUG_PATH="")
    assert "NotFoundError: " in done.stderr


def test_a_plugin_of_an_installed_package(probe, tmp_path):
    package, metadata = tmp_path / "ours", tmp_path / "ours-1.0.dist-info"
    for folder in (package, metadata):
        folder.mkdir(mode=0o755)
    shutil.copy(probe[0] / "libprobe.so", package)
    (package / "__init__.py").touch()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: ours\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[cuplug.plugins]\nours = ours\n")
    path = os.pathsep.join([str(tmp_path), str(probe[0]), str(Path(PACKAGE).parent)])
    statements = "assert user.run_total(np.arange(5.0)) == 10"
    done = use(probe, statements, PYTHONPATH=path, LD_LIBRARY_CUPLUG_PATH="")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "arguments",
    [["nothing.so"], [str(FIXTURES / "typed_user.pyx")]],
)
def test_bind_refuses_what_has_no_table(arguments, tmp_path):
    result = CliRunner().invoke(main, ["bind", *arguments, "-o", str(tmp_path)])
    assert result.exit_code == 1
    assert list(tmp_path.iterdir()) == []


def test_bind_writes_the_operators_that_are_named(probe, tmp_path):
    plugin = str(probe[0] / "libprobe.so")
    arguments = ["bind", plugin, "-o", str(tmp_path), "--only", "total", "--only", "step"]
    result = CliRunner().invoke(main, arguments)
    assert result.output == f"functions: 2, in {tmp_path / 'probe_typed.pxd'}\n"
    result = CliRunner().invoke(main, ["bind", plugin, "-o", str(tmp_path), "--only", "totals"])
    assert result.exit_code == 1
    assert "only: got 'totals', expected one of affine, total, " in result.stderr


@pytest.mark.parametrize("name", ["a-b", "class", "cdef", ""])
def test_bind_refuses_a_name_that_is_no_module(probe, tmp_path, name):
    folder, _ = probe
    arguments = ["bind", str(folder / "libprobe.so"), "--name", name, "-o", str(tmp_path)]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 1
    assert f"name: got {name!r}, expected an identifier that Cython does not" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_dtypes_are_text():
    module, _ = declarations("f(x: T[n], to: dtype = int8) -> to[n] where T: any, to: int8 | int16")
    text = write(module, "title")
    assert "const char *to=b'int8')" in text
    assert "= _cuplug.string(to)" in text
