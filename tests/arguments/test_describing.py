# SPDX-License-Identifier: Apache-2.0
"""Descriptions of operators and the package: attributes, help, pickles, the last call, listings."""

import copy
import functools
import inspect
import pickle
import pydoc
import re
import rlcompleter
import threading
import weakref

import cuplug
import numpy as np
import pytest


def test_attributes(ops, arguments_file):
    op = ops.scalars
    assert (op.name, op.plugin, op.version) == ("scalars", "arguments", "2.1.0")
    assert op.path == str(arguments_file)
    assert op.device_types == ("cpu",)
    assert op.architectures == ()
    assert op.doc == "Each scalar as a number."
    assert op.signatures == (
        "scalars(f: float, i: int, b: bool = True, c: complex = 0, u: uint8 = 7, "
        's: str = "four", mode: "x" | "y" = "y") -> float64[8]',
    )
    assert (op.__name__, op.__module__) == ("scalars", "cuplug.ops")


def test_repr_and_help(ops, arguments_file):
    facts = ("which(x: int32[n]) -> int64[1]", "y: float64[n]", "2.1.0", str(arguments_file))
    text = pydoc.plain(pydoc.render_doc(ops.which))
    for fact in facts:
        assert fact in repr(ops.which)
        assert fact in text
    assert "The overload, 1.\n" in text
    assert "The overload, 2.\n" in text


def test_inspect_signature(ops):
    signature = inspect.signature(ops.scalars)
    assert str(signature) == (
        "(f, i, b=True, c=0, u=7, s='four', mode='y', *, out=None, device=None, stream=None)"
    )
    assert str(inspect.signature(ops.which)) == "(*args, out=None, device=None, stream=None)"
    assert (
        str(inspect.signature(ops.weigh))
        == "(x, weights=None, *, out=None, device=None, stream=None)"
    )


def test_equality_hash_and_weak_references(ops, arguments_file):
    again = cuplug.load(arguments_file).copy
    assert again == ops.copy
    assert hash(again) == hash(ops.copy)
    assert ops.copy != ops.add
    assert ops.copy != "copy"
    assert weakref.ref(again)() is again
    assert copy.copy(again) == again


def test_wrapping(ops):
    @functools.wraps(ops.copy)
    def own(x):
        return ops.copy(x)

    assert own.__name__ == "copy"
    assert functools.partial(ops.scalars, 1, mode="x")(2)[7] == 0


def test_pickles_by_plugin_and_name(ops, run_python, arguments_file):
    data = pickle.dumps(ops.add)
    assert b"arguments.add" in data
    assert pickle.loads(data) == ops.add
    code = f"import pickle, numpy; print(pickle.loads({data!r})(numpy.ones(2), numpy.ones(2)))"
    done = run_python(code, env={"LD_LIBRARY_CUPLUG_PATH": str(arguments_file.parent)})
    assert done.stdout == "[2. 2.]\n", done.stderr


def test_operators_and_arrays_are_not_made_by_hand():
    with pytest.raises(TypeError, match="get one with"):
        cuplug.Operator()
    with pytest.raises(TypeError, match="make one with"):
        cuplug.Array()


def test_plugin_object(ops, arguments_file):
    assert (ops.name, ops.version, ops.path) == ("arguments", "2.1.0", str(arguments_file))
    assert [op.name for op in ops.operators][:2] == ["copy", "add"]
    assert "copy" in dir(ops)
    assert "arguments 2.1.0" in repr(ops)
    with pytest.raises(AttributeError, match=r"^plugin arguments has no operator nope$"):
        _ = ops.nope


# ---- In notebooks and IPython


def test_the_file_of_an_operator_is_its_library(ops, arguments_file):
    """As in IPython, which shows the file of `__wrapped__`."""
    assert inspect.getabsfile(inspect.unwrap(ops.copy)) == str(arguments_file)
    assert str(inspect.signature(ops.copy)) == "(x, *, out=None, device=None, stream=None)"
    made = cuplug.elementwise("twice(x: T) -> T", "2 * x")
    with pytest.raises(TypeError):  # it is of no file
        inspect.getabsfile(inspect.unwrap(made))


def test_html_of_operators_and_plugins(ops):
    made = cuplug.elementwise("less(x: T, y: T) -> bool", "x < y", doc="x < y & <b>no</b>")
    html = made._repr_html_()
    assert "x &lt; y &amp; &lt;b&gt;no&lt;/b&gt;" in html
    assert "<code>less(x: T[...], y: T[...]) -&gt; bool[...] where T: any</code>" in html
    assert "&lt;source&gt;" in html
    assert ops._repr_html_().count("<p>") == len(ops.operators)


def test_html_of_arrays_and_lists_of_plugins():
    html = cuplug.asarray(np.ones((2, 3), "float32"), device="cpu")._repr_html_()
    assert "shape (2, 3), float32, on cpu, 24 bytes" in html
    assert "<pre>[[1. 1. 1.]\n [1. 1. 1.]]</pre>" in html
    plugins = cuplug.plugins()
    html = plugins._repr_html_()
    assert html.count("<tr>") == len(plugins) + 1
    assert f"<td>{plugins[0].path}</td>" in html
    assert type(pickle.loads(pickle.dumps(plugins))) is list


def test_completions(ops):
    complete = rlcompleter.Completer({"cuplug": cuplug, "ops": ops}).complete
    assert complete("cuplug.ops.gath", 0).startswith("cuplug.ops.gather")
    assert complete("cuplug.elem", 0).startswith("cuplug.elementwise")
    assert complete("ops.cop", 0).startswith("ops.copy")
    assert "device" in inspect.signature(cuplug.Stream).parameters


# ---- The module cuplug.ops


def test_missing_operator():
    with pytest.raises(ImportError, match="no plugin has an operator of that name") as raised:
        from cuplug.ops import gathr  # noqa: F401
    assert isinstance(raised.value, cuplug.NotFoundError)
    assert re.search(r"did you mean (\w+, )*gather\b", str(raised.value))
    with pytest.raises(AttributeError, match="did you mean gather") as raised:
        _ = cuplug.ops.gathr
    assert isinstance(raised.value, cuplug.NotFoundError)
    assert not hasattr(cuplug.ops, "gathr")
    assert getattr(cuplug.ops, "gathr", None) is None
    with pytest.raises(cuplug.NotFoundError):
        cuplug.find("gathr")


def test_ops_lists_all_operators():
    assert {"gather", "relu", "scale", "hello"} <= set(dir(cuplug.ops))


@pytest.mark.parametrize(
    ("name", "exception"), [(3, TypeError), (None, TypeError), ("a\0b", ValueError)]
)
def test_names_that_are_none(name, exception):
    with pytest.raises(exception, match=r"^find: name: got"):
        cuplug.find(name)


def test_last_call(ops, arguments_file):
    ops.copy(np.ones(1))
    assert cuplug.last_call() == ("copy", "cpu", False, str(arguments_file))
    seen = []
    thread = threading.Thread(target=lambda: seen.append(cuplug.last_call()))
    thread.start()
    thread.join()
    assert seen == [None]


def test_verbose(run_python, arguments_file):
    code = (
        f"import cuplug, numpy; f = cuplug.load({str(arguments_file)!r});"
        "f.copy(numpy.ones(1)); f.meet(1)"
    )
    done = run_python(code, env={"CUPLUG_VERBOSE": "1"})
    assert done.stderr == (
        f"cuplug: copy: ran on cpu ({arguments_file})\n"
        f"cuplug: meet: ran on cpu ({arguments_file})\n"
    )
    assert run_python(code, env={"CUPLUG_VERBOSE": None}).stderr == ""


def test_device_of_the_environment(run_python, arguments_file):
    code = (
        f"import cuplug, numpy; f = cuplug.load({str(arguments_file)!r});"
        "print(f.copy(numpy.ones(1), device='cpu')); f.copy(numpy.ones(1))"
    )
    done = run_python(code, env={"CUPLUG_DEVICE": "cuda:1"})
    assert done.stdout == "[1.]\n"
    assert "ValueError: copy: device: got cuda:1, expected the host" in done.stderr
    done = run_python(code, env={"CUPLUG_DEVICE": "gpu"})
    assert "ValueError: CUPLUG_DEVICE: device: got 'gpu', expected 'cpu'" in done.stderr
    assert run_python(code, env={"CUPLUG_DEVICE": ""}).returncode == 0


def test_import_takes_little(run_python):
    """It does not import packages of the command line, or slow ones."""
    code = (
        "import sys, numpy; before = set(sys.modules); from cuplug.ops import gather;"
        "print(sorted(m.partition('.')[0] for m in set(sys.modules) - before))"
    )
    modules = set(eval(run_python(code).stdout))
    assert not modules & {"click", "rich", "elftools", "ml_dtypes", "torch", "cupy", "importlib"}


def test_numpy_is_imported_at_a_small_depth(run_python):
    for code, depth in (("from cuplug.ops import relu", 1), ("import cuplug; cuplug.find", 0)):
        done = run_python(code, env={"PYTHONPROFILEIMPORTTIME": "1"})
        (line,) = [line for line in done.stderr.splitlines() if line.endswith(" numpy")]
        assert line.endswith(f"| {depth * '  '}numpy"), "two spaces for each that imports it"
