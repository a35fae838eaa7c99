# SPDX-License-Identifier: Apache-2.0
"""Functions of tvm-ffi modules with a description, and modules on the search path."""

import pickle
import shutil
from pathlib import Path

import cuplug
import numpy as np
import pytest
from places import FIXTURES
from raw_plugins import listed

DESCRIPTION = """
[plus_one]
function = "add_one"
signature = "plus_one(x: float32[n]) -> y: float32[n]"
doc = "Add one."

[scaled]
function = "scale"
signature = "scaled(x: float64[n], b: int = 2, a: float = 0.5) -> y: float64[n]"
arguments = "x, a, b, y"

[noted]
function = "note"
signature = "noted(x: float64[n, m], flag: bool) -> y: int64[2]"
arguments = "flag, n * m, y"
"""


@pytest.fixture
def put(build_plugin):
    """Return a function that puts the module and a description into a directory."""
    library = build_plugin(FIXTURES / "tvm_module.c", "functions", extra=["-fvisibility=default"])

    def put(directory, description=None, name="kernels"):
        path = Path(shutil.copy(library, directory / f"{name}.so"))
        path.chmod(0o644)
        if description is not None:
            path.with_suffix(".cuplug.toml").write_text(description)
            path.with_suffix(".cuplug.toml").chmod(0o644)
        return path

    return put


@pytest.fixture
def replace(build_plugin):
    """Return a function that replaces the module by another build."""

    def replace(path, *flags):
        extra = ["-fvisibility=default", "-DSTART=2", *flags]
        built = build_plugin(FIXTURES / "tvm_module.c", "functions", extra=extra)
        new = Path(shutil.copy(built, path.with_name("new")))
        new.chmod(0o644)
        new.replace(path)

    return replace


def test_operators(place, put):
    module = cuplug.load(put(place, DESCRIPTION))
    x = np.arange(6, dtype="float32")
    np.testing.assert_array_equal(module.plus_one(x[::2]), x[::2] + 1)
    np.testing.assert_array_equal(module.scaled(np.arange(3.0)), [2, 2.5, 3])
    np.testing.assert_array_equal(module.scaled(np.arange(3.0), a=2, b=1), [1, 3, 5])
    np.testing.assert_array_equal(module.noted(np.zeros((2, 3)), True), [1, 6])
    assert module.plus_one.doc == "Add one."
    out = np.zeros(6, "float32")
    assert module.plus_one(x, out=out) is out
    np.testing.assert_array_equal(out, x + 1)


def test_arguments_are_checked(place, put):
    plus_one = cuplug.load(put(place, DESCRIPTION)).plus_one
    with pytest.raises(TypeError, match="plus_one: x: "):
        plus_one(np.zeros(3))
    x = np.zeros(3, "float32")
    x.flags.writeable = False
    np.testing.assert_array_equal(plus_one(x), np.ones(3))


def test_errors_name_the_operator(place, put):
    text = '[wrong]\nfunction = "add_one"\nsignature = "wrong(x: float64[n]) -> y: float64[n]"\n'
    with pytest.raises(cuplug.PluginError, match="wrong: the function returned -1 without an"):
        cuplug.load(put(place, text)).wrong(np.zeros(3))


def test_kept_arrays_are_reported(place, put):
    text = '[kept]\nfunction = "keep"\nsignature = "kept(x: float64[n])"\n'
    with pytest.raises(cuplug.PluginError, match="kept: got a function that keeps a reference"):
        cuplug.load(put(place, text)).kept(np.zeros(3))


@pytest.mark.parametrize(
    ("items", "text"),
    [
        ('signature = "f(x: float64[n])"\nfunction = "no"', "function: got 'no', expected one of"),
        ('signature = "g(x: float64[n])"', "signature: got g, expected f"),
        ('signature = "f(x: float64[n]) -> y: float64[?]"', "signature: got [?], expected sizes"),
        ('signature = "f(x: float64[n]) -> float64[n]"', "got an output without a name"),
        ('signature = "f(x: uint64)"', "x: got uint64, expected an array, int, float, bool"),
        ('signature = "f(x: float64[n])"\nplace = "gpu"', "place: got 'gpu', expected 'host' or"),
        ('signature = "f(x: float64[n]) -> y: float64[n]"\narguments = "x"', "got no y, expected"),
        ('arguments = "x"', "arguments, expected texts: signature, and perhaps"),
    ],
)
def test_wrong_descriptions_are_rejected(place, put, items, text):
    function = "" if "function" in items else 'function = "add_one"\n'
    path = put(place, f"[f]\n{function}{items}\n")
    record = listed(path)
    assert record.state == "rejected"
    assert text.replace("[?]", "?") in record.reason
    with pytest.raises(cuplug.PluginError, match="kernels.so: "):
        cuplug.load(path)


def test_found_in_a_folder(place, put):
    path = put(place, name="found")
    record = listed(path)
    assert (record.kind, record.name, record.state) == ("module", "found", "ok")
    assert "add_one" in record.operators
    assert record.device_types == ()
    assert cuplug.find("found.add_one") is cuplug.ops.add_one
    y = np.zeros(2, "float32")
    cuplug.ops.add_one(y, y)
    assert y.tolist() == [1, 1]
    with pytest.raises(cuplug.PluginError, match="found.add_one: got a version or digest"):
        cuplug.find("found.add_one", version="1")


def test_found_with_a_description(place, put):
    path = put(place, DESCRIPTION, "described")
    assert listed(path).operators == ("plus_one", "scaled", "noted")
    assert listed(path).device_types == ("cpu",)
    assert cuplug.ops.plus_one.path == str(path)
    assert pickle.loads(pickle.dumps(cuplug.ops.plus_one)) is cuplug.ops.plus_one
    with pytest.raises(AttributeError):
        cuplug.ops.add_one  # noqa: B018


def test_listed_without_being_loaded(place, put, run_python):
    path = put(place)
    code = (
        f"import cuplug\n(x,) = [p for p in cuplug.plugins() if p.path == {str(path)!r}]\n"
        f"print(x.kind, x.loaded, {str(path)!r} in open('/proc/self/maps').read())"
    )
    done = run_python(code)
    assert done.stdout == "module False False\n", done.stderr


def test_a_file_that_others_may_write_is_rejected(place, put):
    path = put(place, name="open")
    path.chmod(0o666)
    assert listed(path).state == "rejected"
    with pytest.raises(cuplug.NotFoundError, match="rejected: "):
        cuplug.find("open.add_one")


def test_the_first_of_a_name_is_used(place, put):
    first, second = put(place, name="sole.cpython-311"), put(place, name="sole")
    assert (listed(first).state, listed(second).state) == ("ok", "shadowed")


def test_a_replaced_file_runs_its_new_code(place, put, replace):
    path = put(place, name="replaced")
    old = cuplug.find("replaced.types")
    assert old(1) == 101
    replace(path)
    assert cuplug.find("replaced.types") is old
    assert old(1) == 201


def test_reload_gives_functions_the_code_of_a_replaced_file(place, put, replace):
    path, other = put(place, name="reloaded"), put(place, name="other")
    module, kept = cuplug.load(path), cuplug.load(other)
    function, same = module.types, kept.types
    assert (function(1), same(1)) == (101, 101)
    assert cuplug.reload() == ()
    replace(path)
    assert cuplug.reload() == (str(path),)
    assert (function(1), same(1)) == (201, 101)
    assert cuplug.load(path).types is function


def test_reload_gives_described_operators_the_code_of_a_replaced_file(place, put, replace):
    path = put(place, DESCRIPTION, "reloaded")
    operator = cuplug.load(path).plus_one
    x = np.float32([1, 2])
    assert operator(x).tolist() == [2, 3]
    replace(path, "-DSTEP=5")
    assert cuplug.reload(operator) == (str(path),)
    assert operator(x).tolist() == [6, 7]


def test_a_replaced_file_that_lacks_a_function(place, put, replace):
    path = put(place, name="lacking")
    function = cuplug.load(path).types
    replace(path, "-D__tvm_ffi_types=__tvm_ffi_other")
    with pytest.raises(cuplug.PluginError, match="got a module without types, expected all functi"):
        cuplug.reload()
    assert function(1) == 101


def test_in_library_directories_only_with_a_description(place, put, tmp_path, monkeypatch):
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    put(tmp_path, name="undescribed")
    with pytest.raises(cuplug.NotFoundError):
        cuplug.find("undescribed.add_one")
    path = put(tmp_path, DESCRIPTION, "in_libraries")
    assert listed(path).origin == "LD_LIBRARY_PATH"
    assert cuplug.find("in_libraries.plus_one").path == str(path)
