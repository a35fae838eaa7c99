# SPDX-License-Identifier: Apache-2.0
"""Typed-memoryview functions and stubs: what is written for a signature, and that it runs."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from builds import compile_module
from click.testing import CliRunner
from cuplug._engine.base.flags import PACKAGE, get_include
from cuplug._engine.signature.signature import SignatureError, parse
from cuplug._integration.author.memoryviews import Module, add_plugin, array_ranks, write
from cuplug._integration.author.stubs import write_stubs
from cuplug._integration.commands.cli import main
from places import FIXTURES, TESTS

GOLDEN = TESTS / "golden"
GATHER = (
    'gather(source: T[m, *row], index: I[*n], mode: "raise" | "wrap" = "raise") -> T[*n, *row] '
    "where T: float32 | bfloat16 | int64, I: int32 | int64"
)


def test_modules_that_were_compiled_before_find_the_call():
    """They ask for a module, a function and its type by these names: none may change."""
    from cuplug._memoryviews import __pyx_capi__ as functions

    arguments = "cuplug_operator **, char const *, cuplug_argument const *, uint32_t, uint32_t"
    assert functions.keys() == {"call", "close_handle"}
    assert f'"int ({arguments})"' in repr(functions["call"])
    assert '"int (cuplug_handle *)"' in repr(functions["close_handle"])


def declarations(*signatures):
    module = Module()
    add_plugin(module, "plugin", [parse(text) for text in signatures])
    return module, {f.name: f.declaration() for f in module.functions}


def test_one_function_for_each_combination_of_dtypes():
    module, functions = declarations(GATHER)
    assert list(functions) == [
        "gather_int64_int32",
        "gather_int64_int64",
        "gather_float32_int32",
        "gather_float32_int64",
    ]
    assert functions["gather_float32_int32"] == (
        "cdef inline int gather_float32_int32(const float[::1] source, const int[::1] index, "
        "float[::1] out, const char *mode=b'raise') except -1 nogil"
    )
    assert module.skipped == []


def test_scalars_defaults_and_names_that_cython_reserves():
    _, functions = declarations(
        "f(inout lambda: int8[n, 3], x: uint16[n] = None, a: float = -inf, b: bool = True, "
        'c: complex = 2, u: uint64 = 18446744073709551615, s: str = "it\'s") '
        "-> (int8[], y: int8[n])"
    )
    assert functions["f"] == (
        "cdef inline int f(int8_t[:, ::1] lambda_, int8_t *out0, int8_t[::1] y, "
        "const uint16_t[::1] x=None, double a=-_math.INFINITY, bint b=True, double complex c=2, "
        'uint64_t u=18446744073709551615, const char *s=b"it\'s") except -1 nogil'
    )


@pytest.mark.parametrize(
    ("signature", "ranks"),
    [
        ("f(x: int8[...], y: int8[...]) -> int8[...]", [1, 1, 1]),
        ("f(x: int8[..., m, k], y: int8[..., k, n]) -> int8[..., m, n]", [2, 2, 2]),
        ("f(x: int8[m, *row], i: int8[*n]) -> int8[*n, *row]", [1, 1, 1]),
        ("f(x: int8[*n], y: int8[*m]) -> int8[*n, *m]", [1, 1, 2]),
        ("f(x: int8[..., n]) -> int8[...]", [1, 0]),
        ("f(x: int8[*n]) -> int8[*n, 3]", [1, 2]),
        ("f(x: int8[], y: int8[3, n]) -> int8[n, n, 2]", [0, 2, 3]),
    ],
)
def test_ranks(signature, ranks):
    assert array_ranks(parse(signature).arrays) == ranks


@pytest.mark.parametrize(
    ("signature", "reason"),
    [
        ("f(x: int8[n]) -> int8[?]", "after the run"),
        ("f(x: float16[n])", "dtype float16"),
        ("f(x: T[n]) where T: bool | bfloat16", "dtype T"),
        ("f(x: int8[a, b, c, d, e, f, g, h, i])", "at most 8"),
    ],
)
def test_rows_without_a_function_are_named(signature, reason):
    module, functions = declarations(signature)
    assert functions == {}
    assert reason in module.skipped[0]
    assert signature in write(module, "title")


def test_operators_whose_names_cython_reserves():
    _, functions = declarations("double(x: float64[n])", "lambda(x: T[n]) where T: int8 | int16")
    assert list(functions) == ["double_", "lambda_int8", "lambda_int16"]


def test_overloads_are_told_apart_by_their_dtypes():
    module, functions = declarations("f(x: int8[n])", "f(x: float32[n])", "f(y: float32[n, n])")
    assert list(functions) == ["f_int8", "f_float32"]
    assert "another row" in module.skipped[0]


def test_strings_in_signatures_stay_on_their_line():
    module, _ = declarations('f(x: int8[n], s: str = "a\nb")')
    lines = write(module, "t").splitlines()
    assert all(
        line.startswith(("#", "cdef", "cimport", "from", "    ")) or not line for line in lines
    )
    assert r"a\nb" in "".join(lines)


def test_signature_errors_know_their_place():
    with pytest.raises(SignatureError, match="wanted") as caught:
        parse("f(x: float32[n) -> float32[n]")
    assert caught.value.position == 14


def test_stubs():
    text = write_stubs(
        [[(parse(GATHER), 'Elements, "gathered".')], [(parse("gather()"), "")]], "T."
    )
    assert "class _gather(Operator):" in text
    assert 'mode: Literal["raise", "wrap"] = "raise"' in text
    assert text.count("gather: _gather") == 1
    compile(text, "ops.pyi", "exec")


def check_types(folder, text):
    """Return what mypy says of a text that imports the stubs which are shipped."""
    (folder / "use.py").write_text(text)
    command = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "--no-error-summary"]
    environment = os.environ | {"MYPYPATH": str(Path(PACKAGE).parent)}
    options = ["--cache-dir", os.devnull, "use.py"]
    done = subprocess.run(
        [*command, *options], cwd=folder, env=environment, capture_output=True, text=True
    )
    return done.stdout.splitlines()


USE = """
import cuplug
import numpy as np
from cuplug.ops import gather, relu

flat = np.zeros(3, np.float32)
square = np.zeros((3, 3), np.int64)
rows: np.ndarray[tuple[int, int], np.dtype[np.float32]] = gather(flat, square)
reveal_type(relu(flat))
cuplug.prepare(gather)
relu("x", slope=1)
"""


@pytest.mark.slow
def test_type_checkers_take_the_stubs(tmp_path):
    """An index of two dimensions gives a result of two; other results are as the array given."""
    pytest.importorskip("mypy")
    said = check_types(tmp_path, USE)
    errors = [line for line in said if ": error: " in line]
    assert len(errors) == 1, said
    assert 'Unexpected keyword argument "slope"' in errors[0]
    (revealed,) = [line for line in said if "Revealed type is" in line]
    assert "ndarray[tuple[int]" in revealed.replace("builtins.", "")


@pytest.mark.parametrize(
    ("signature", "n_calls"),
    [
        ("f(x: T[m, n]) -> T[n, m] where T: any", 1),
        ("f(x: T[n]) -> T[n, n] where T: any", 2),
        ("f(x: T[...], k: int) -> T[...] where T: any", 1),
        ("f(x: T[...], y: T[...]) -> T[...] where T: any", 2),
        ("f(x: T[*s, n]) -> (a: T[*s, n], b: T[*s]) where T: any", 2),
        ("f(x: T[*s], y: U[*t]) -> U[*t] where T: any, U: any", 1),
    ],
)
def test_stubs_of_results_with_other_ranks(signature, n_calls):
    text = write_stubs([[(parse(signature), "")]], "A title.")
    assert text.count("def __call__(") == n_calls
    assert text.count("x: ndarray[Any, _Dtype]") == n_calls - 1


def test_golden_files():
    """A changed signature of a stock plugin, or generator, must be committed with its output.

    To update: cp build/python/cuplug/ops.pyi tests/golden/
    grep '^cdef' build/python/cuplug/typed.pxd > tests/golden/typed.txt
    """
    assert (Path(PACKAGE) / "ops.pyi").read_text() == (GOLDEN / "ops.pyi").read_text()
    lines = (Path(PACKAGE) / "typed.pxd").read_text().splitlines()
    heads = [line for line in lines if line.startswith("cdef")]
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
    """Run statements in a process of their own that has the plugin on its path."""
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
        "affine_int64", "affine_float32", "total", "fill_int8", "fill_uint64", "fill_complex64",
        "fail", "counter", "step",
    ]  # fmt: skip
    assert len(document["skipped"]) == 1
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
    "handles": "assert user.run_counter(5, 3) == 8",
    "threads": "assert user.run_in_threads(np.ones(100), 64) == [100.0] * 64",
}
REFUSALS = {
    "shape": ('user.run_affine(np.zeros((2, 3), "f4"), np.zeros((3, 2), "f4"))', "ValueError"),
    "choice": (
        'user.run_affine_all(np.zeros((1, 1), "i8"), None, 1.0, b"?", np.zeros((1, 1), "i8"))',
        "ValueError",
    ),
    "a handle": ("user.run_counter(-9, 3)", "ValueError: counter: it is negative"),
    "None": ("user.run_total(None)", "TypeError: total: x: "),
    "overlap": ('x = np.zeros((2, 2), "f4"); user.run_affine(x, x)', "ValueError: affine: out"),
    "range": ('user.run_fill(np.zeros(1, "i1"), 200)', "ValueError: fill: value: "),
    "entry": ('user.run_fail(np.zeros(3, "i4"))', "IndexError: fail: x: seen 3 elements"),
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


@pytest.mark.slow
def test_stock_functions_are_cimportable(tmp_path):
    source = tmp_path / "stock.pyx"
    source.write_text(
        "from cuplug.typed cimport gather_float32_int32\n"
        "def run(const float[::1] source, const int[::1] index, float[::1] out):\n"
        "    with nogil:\n"
        "        gather_float32_int32(source, index, out)\n"
    )
    compile_module(source, tmp_path)
    sys.path.insert(0, str(tmp_path))
    try:
        import stock
    finally:
        sys.path.remove(str(tmp_path))
    source, index = np.arange(100, dtype="f4"), np.array([7, -1, 50], "i4")
    out = np.empty(3, "f4")
    stock.run(source, index, out)
    np.testing.assert_array_equal(out, source[index])
    stock.run(source, np.empty(0, "i4"), np.empty(0, "f4"))
    with pytest.raises(IndexError):
        stock.run(source, np.array([100], "i4"), np.empty(1, "f4"))


@pytest.mark.parametrize(
    "arguments",
    [["nothing.so"], [str(FIXTURES / "typed_user.pyx")]],
)
def test_bind_refuses_what_has_no_table(arguments, tmp_path):
    result = CliRunner().invoke(main, ["bind", *arguments, "-o", str(tmp_path)])
    assert result.exit_code == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["a-b", "class", "cdef", ""])
def test_bind_refuses_a_name_that_is_no_module(probe, tmp_path, name):
    folder, _ = probe
    arguments = ["bind", str(folder / "libprobe.so"), "--name", name, "-o", str(tmp_path)]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 1
    assert f"name: seen {name!r}, wanted an identifier that Cython does not" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_what_has_no_type_in_c_is_skipped_with_the_reason():
    module = Module()
    texts = [
        "stack(xs: float64[*s][]) -> float64[len(xs), *s]",
        "scaled(x: float64[n], k: int = None) -> float64[n]",
        "full(shape: int[]) -> float64[*shape]",
        "take(x: int8[*s], i: int64[*n], axis: int = 0) -> int8[*s[:axis], *n, *s[axis + 1:]]",
    ]
    add_plugin(module, "language", [parse(text) for text in texts])
    assert module.skipped == [
        f"{texts[0]}: xs: a list has no type in C",
        f"{texts[1]}: k: it may be None, which no type in C says",
        f"{texts[2]}: shape: a list has no type in C",
    ]
    assert [(x.name, x.arguments[-1].rank) for x in module.functions] == [("take", 1)]
