# SPDX-License-Identifier: Apache-2.0
"""Functions of tvm-ffi modules without a description, in a module written in C."""

import gc
import pickle
import sys

import cuplug
import numpy as np
import pytest
from places import FIXTURES

VISIBLE = ["-fvisibility=default"]


@pytest.fixture
def module(build_plugin):
    """Return a module that needs no runtime library."""
    return cuplug.load(build_plugin(FIXTURES / "tvm_module.c", "functions", extra=VISIBLE))


def test_arrays_are_read_and_written(module):
    x, y = np.arange(4, dtype="float32"), np.zeros(8, "float32")
    assert module.add_one(x, y[::2]) is None
    np.testing.assert_array_equal(y[::2], x + 1)
    assert not y[1::2].any()
    own = cuplug.array_api.zeros(4, dtype="float32", device="cpu")
    module.add_one(x[::-1], own)
    np.testing.assert_array_equal(own.numpy(), x[::-1] + 1)


@pytest.mark.parametrize(
    ("given", "type"), [(1, 1), (True, 2), (1.5, 3), ("text", 8), (None, 0), (np.zeros(2), 70)]
)
def test_types_of_arguments(module, given, type):
    assert module.types(given) == 100 + type
    assert module.types(given, 1) == 10000 + 100 * type + 1


def test_no_arguments_and_many(module):
    assert module.types() == 1
    with pytest.raises(TypeError, match="types: got 65 arguments, expected at most 64"):
        module.types(*[1] * 65)
    with pytest.raises(TypeError, match="types: got keywords, expected arguments by position"):
        module.types(x=1)


def read_only(x):
    x.flags.writeable = False
    return x


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        (object(), TypeError, "got object, expected an array, an integer of 64 bits"),
        (2**64, TypeError, "got int, expected an array"),
        (1j, TypeError, "got complex, expected an array"),
        (read_only(np.zeros(2)), ValueError, "got a read-only array, expected one that may be"),
        (np.zeros(2, ">f8"), ValueError, "got an array of the other byte order, expected native"),
        (np.zeros(9, "u1")[1:].view("f8"), ValueError, "got a misaligned array, expected an"),
    ],
)
def test_wrong_arguments(module, given, error, text):
    with pytest.raises(error, match=f"types: argument 1: {text}"):
        module.types(1, given)


def test_results(module):
    assert module.identity(2.5) == 2.5
    assert module.identity(True) is True
    assert module.identity(-3) == -3
    assert module.identity(None) is None
    assert module.text(False) == "short"
    assert module.text(True) == "a text of more than seven bytes"


def test_a_tensor_that_was_given_comes_back_as_it_is(module):
    x = np.zeros(3)
    before = sys.getrefcount(x)
    assert module.identity(x) is x
    assert sys.getrefcount(x) == before


def test_new_tensors_are_arrays_like_the_first_argument(module):
    plain, own = module.range(np.zeros(1)), module.range(cuplug.array_api.zeros(1, device="cpu"))
    assert type(plain) is np.ndarray
    assert type(own) is cuplug.Array
    np.testing.assert_array_equal(plain, [0, 1, 2, 3])
    np.testing.assert_array_equal(own.numpy(), plain)
    plain[0] = 5  # memory of the module's, which lives as long as the array
    assert module.range()[0] == 0


def test_objects_are_released(module):
    assert module.alive() == 0
    x = module.range()
    module.text(True)
    assert module.alive() == 1
    del x
    gc.collect()
    assert module.alive() == 0
    with pytest.raises(cuplug.PluginError, match="strange: .* an object of type 1000, expected a"):
        module.strange()
    assert module.alive() == 0


def test_what_the_module_keeps_lives(module):
    x = np.arange(3.0)
    before = sys.getrefcount(x)
    module.keep(x)
    assert sys.getrefcount(x) == before + 1
    module.forget()
    assert sys.getrefcount(x) == before


def test_a_status_without_an_error(module):
    with pytest.raises(cuplug.PluginError, match="add_one: the function returned -1 without an"):
        module.add_one(np.zeros(2), np.zeros(2))


def test_what_a_function_is(module):
    f = module.add_one
    assert (f.name, f.plugin, f.__name__) == ("add_one", "functions", "add_one")
    assert pickle.loads(pickle.dumps(f)) is f
    assert "add_one of the tvm-ffi module" in repr(f)
    assert "metadata_add_one" not in dir(module)


RUN = """
import cuplug
module = cuplug.load({path!r})
assert module.has_allocator() is True
for kind in ("ValueError", "Odd", "str"):
    try:
        module.fail(kind)
    except (ValueError, cuplug.PluginError) as error:
        print(type(error).__name__, error)
"""


@pytest.fixture
def package(build_plugin, tmp_path):
    """Return a function that creates a package tvm_ffi, with a runtime library of the tests."""

    def make(*flags):
        folder = tmp_path / "site" / "tvm_ffi" / "lib"
        folder.mkdir(parents=True)
        extra = [*VISIBLE, "-Wl,-soname,libtvm_ffi.so", *flags]
        library = build_plugin(FIXTURES / "tvm_runtime.c", "tvm_ffi", extra=extra)
        (folder / "libtvm_ffi.so").write_bytes(library.read_bytes())
        (folder.parent / "__init__.py").write_text("raise RuntimeError('not to be imported')\n")
        return {"PYTHONPATH": f"{folder.parent.parent}:{':'.join(sys.path)}"}

    return make


def test_errors_have_kind_and_message(build_plugin, package, run_python):
    path = build_plugin(FIXTURES / "tvm_failing.c", "failing", extra=VISIBLE)
    done = run_python(RUN.format(path=str(path)), env=package())
    assert done.stdout == (
        "ValueError fail: something is wrong\n"
        "PluginError fail: Odd: something is wrong\n"
        "PluginError fail: str: something is wrong\n"
    ), done.stderr


def test_another_version_is_refused(build_plugin, package, run_python):
    path = build_plugin(FIXTURES / "tvm_failing.c", "failing", extra=VISIBLE)
    done = run_python(f"import cuplug; cuplug.load({str(path)!r})", env=package("-DMINOR=2"))
    assert "got tvm-ffi 0.2.99, expected 0.1; install apache-tvm-ffi 0.1" in done.stderr


def test_without_the_package(build_plugin, run_python, tmp_path):
    path = build_plugin(FIXTURES / "tvm_failing.c", "failing", extra=VISIBLE)
    code = f"import sys; sys.modules['tvm_ffi'] = None\nimport cuplug; cuplug.load({str(path)!r})"
    done = run_python(code)
    assert "PluginError" in done.stderr
    assert "needs libtvm_ffi.so, expected it to be installed; pip install apache-tvm" in done.stderr


def test_on_the_current_stream(build_plugin, package, run_streams):
    path = build_plugin(FIXTURES / "tvm_failing.c", "failing", extra=VISIBLE)
    text = """
    module = cuplug.load(os.environ["MODULE"])
    assert module.stream(a) == 0
    s = make_stream()
    with cuplug.stream(s):
        assert module.stream(a) == s
        assert module.stream(x) == 0  # an array of the host
    assert module.stream(a) == 0
    b = cuplug.asarray(x, device="cuda:1")
    with Raises(ValueError, "stream: argument 1: got an array on cuda:1, expected cuda:0"):
        module.stream(a, b)
    assert counts().misuses == 0
    """
    run_streams(text, MODULE=str(path), **package())


def test_without_a_runtime_the_default_stream_is_ordered(build_plugin, run_streams):
    path = build_plugin(FIXTURES / "tvm_module.c", "functions", extra=VISIBLE)
    text = """
    module = cuplug.load(os.environ["MODULE"])
    s = make_stream()
    assert module.types(a) == 170
    with cuplug.stream(s):
        used = calls(module.types, a)
    assert used.count("cuEventRecord") == used.count("cuStreamWaitEvent") == 2, used
    assert counts().misuses == 0
    """
    run_streams(text, MODULE=str(path))
