# SPDX-License-Identifier: Apache-2.0
"""Handles: objects of plugins that callers hold."""

import copy
import gc
import inspect
import pickle
import re
import sys
import threading
import time

import cuplug
import numpy as np
import pytest
from click.testing import CliRunner
from cuplug._engine.signature.signature import parse
from cuplug._integration.author import stubs
from cuplug._integration.author.bench_arguments import sized_arguments
from cuplug._integration.author.check import check_file
from cuplug._integration.author.memoryviews import Module, add_plugin
from cuplug._integration.commands.cli import main
from places import FIXTURES

STEP = "step(c: handle[counter], gate: uint64 = 0, other: handle[counter] = None) -> int64[]"


@pytest.fixture(scope="module")
def path(build_plugin):
    return str(build_plugin(FIXTURES / "handles.c", "handles"))


@pytest.fixture(scope="module")
def ops(path):
    return cuplug.load(path)


@pytest.fixture
def n_closed(ops):
    """Return a function that returns the number of handles closed since the test began."""
    before = ops.counters()[1]
    return lambda: ops.counters()[1] - before


# ---- Calls ---------------------------------------------------------------------------------------


def test_a_handle_is_an_argument(ops):
    c = ops.counter(first=5)
    assert [int(ops.step(c)), int(ops.step(c=c)), int(ops.value(c)), int(ops.value(3))] == [
        6,
        7,
        7,
        3,
    ]
    assert ops.step(c, other=c) == 16
    assert ops.step.infer(c).outputs == (cuplug.ArraySpec("int64", ()),)
    assert (c.tag, c.plugin, c.device, c.closed) == ("counter", "handles", "cpu", False)
    assert repr(c) == "<handle[counter] of the plugin handles on cpu, open>"
    c.close()
    assert repr(c) == "<handle[counter] of the plugin handles on cpu, closed>"


def test_arrays_may_go_into_a_handle(ops):
    x = np.arange(8, dtype=np.float32)
    assert [int(ops.value(ops.counter_of(y))) for y in (x, x[::2], x[::-1])] == [28, 12, 28]


def test_pytorch_tensors_go_with_handles(ops):
    torch = pytest.importorskip("torch")
    assert ops.value(ops.counter_of(torch.ones(3))) == 3


# ---- Closing -------------------------------------------------------------------------------------


def test_ways_to_close(ops, n_closed):
    with ops.counter() as c:
        assert not c.closed
    assert (c.closed, n_closed()) == (True, 1)
    c.close()
    assert n_closed() == 1
    d = ops.counter()
    d.close()
    d.close()
    assert n_closed() == 2
    e = ops.counter()
    del e
    gc.collect()
    assert n_closed() == 3
    del c, d
    assert n_closed() == 3


@pytest.mark.parametrize(("how", "error"), [("bad", ValueError), ("greedy", MemoryError)])
def test_an_error_while_closing(ops, n_closed, how, error):
    c = ops.counter(how=how)
    with pytest.raises(error, match="^counter: "):
        c.close()
    assert (c.closed, n_closed()) == (True, 1)
    c.close()


def test_an_error_while_closing_what_nobody_holds(ops, n_closed, monkeypatch):
    seen = []
    monkeypatch.setattr(sys, "unraisablehook", lambda x: seen.append(str(x.exc_value)))
    ops.counter(how="bad")
    assert (seen, n_closed()) == (["counter: it was no good"], 1)


@pytest.mark.parametrize(
    ("how", "text", "n"),
    [
        ("fails", "counter: how: it fails", 0),
        ("late", "counter: how: late", 1),
        ("forgets", "counter: the plugin returned CUPLUG_OK without cuplug_set_handle", 0),
        ("twice", "counter: handle: got a handle, expected one in a call", 1),
        ("null", "counter: handle: got NULL, expected one that is not NULL", 0),
    ],
)
def test_what_a_failed_call_has_made_is_closed(ops, n_closed, how, text, n):
    with pytest.raises(cuplug.Error if n == 0 and how != "fails" else Exception) as raised:
        ops.counter(how=how)
    assert (str(raised.value), n_closed()) == (text, n)


def test_a_call_under_way_keeps_its_handle(ops, n_closed):
    c, gate, seen = ops.counter(), np.zeros(2, np.int32), []
    thread = threading.Thread(target=lambda: seen.append(int(ops.step(c, gate.ctypes.data))))
    thread.start()
    while not gate[0]:
        time.sleep(1e-4)
    c.close()
    with pytest.raises(ValueError, match="closed"):
        ops.step(c)
    assert (c.closed, n_closed()) == (True, 0)
    gate[1] = 1
    thread.join()
    assert (seen, n_closed()) == ([1], 1)


def test_the_end_of_the_process_closes_nothing(path, run_python):
    done = run_python(f"""
import cuplug
ops = cuplug.load({path!r})
kept = ops.counter(how="bad")
with ops.counter() as c:
    print(ops.step(c))
""")
    assert (done.stdout, done.stderr) == ("1\n", "")


def test_after_a_reload(tmp_path, path):
    source = tmp_path / "handles.c"
    source.write_text((FIXTURES / "handles.c").read_text())
    built = cuplug.build(source)
    ops = cuplug.load(built)
    old, n_before = ops.counter(first=7), ops.counters
    source.write_text(source.read_text().replace('"1.0.0"', '"2.0.0"'))
    cuplug.build(source)
    assert cuplug.reload(ops.step) == (built,)
    place = re.escape(built)
    with pytest.raises(
        TypeError,
        match=rf"^step: c: got handle\[counter\] of {place} before it was reloaded, expected "
        rf"handle\[counter\] of {place}; make one with an operator of that library$",
    ):
        ops.step(old)
    old.close()  # by the code that made it
    assert n_before().tolist() == [0, 0]  # of the new code
    assert ops.step(ops.counter(first=1)) == 2


# ---- Broken uses ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda ops: ops.step(3),
            TypeError,
            "step: c: got the integer 3, expected handle[counter]",
        ),
        (lambda ops: ops.step(None), TypeError, "step: c: got None, expected handle[counter]"),
        (
            lambda ops: ops.step([ops.counter()]),
            TypeError,
            "step: c: got a list of 1 item, expected handle[counter]",
        ),
        (
            lambda ops: ops.step(ops.other()),
            TypeError,
            "step: c: got handle[other], expected handle[counter]; make one with another operator",
        ),
        (
            lambda ops: ops.value(ops.other()),
            TypeError,
            "value: c: got handle[other], expected handle[counter]; make one with another operator "
            "(the closest of 2 signatures: value(c: handle[counter]) -> int64[])",
        ),
        (
            lambda ops: ops.counter_of(ops.counter()),
            TypeError,
            "counter_of: x: got a handle, expected float32[n]",
        ),
        (
            lambda ops: ops.counter(out=np.zeros(1)),
            TypeError,
            "counter: out: got an array, expected none: it has no outputs",
        ),
        (
            lambda ops: ops.set(),
            cuplug.PluginError,
            "set: handle: got a handle, expected none (the operator makes no handle)",
        ),
        (
            lambda ops: cuplug.Handle(),
            TypeError,
            "cuplug.Handle: an operator whose result is a handle makes one",
        ),
    ],
)
def test_broken_uses(ops, call, error, text):
    with pytest.raises(error) as raised:
        call(ops)
    assert str(raised.value) == text


def test_a_closed_handle_is_refused(ops):
    c = ops.counter()
    c.close()
    text = r"got a closed handle\[counter\], expected an open one; make one with counter$"
    with pytest.raises(ValueError, match=f"^step: c: {text}"):
        ops.step(c)
    with pytest.raises(ValueError, match=f"^counter: {text}"), c:
        pass


@pytest.mark.parametrize("of", [pickle.dumps, copy.copy, copy.deepcopy])
def test_copies_are_refused(ops, of):
    with pytest.raises(
        TypeError, match=r"^handle\[counter\]: it cannot be copied or pickled; make"
    ):
        of(ops.counter())


def test_the_handle_of_another_plugin(ops, path, build_plugin):
    other = str(build_plugin(FIXTURES / "handles.c", "handles", defines=["OTHER"]))
    with pytest.raises(
        TypeError,
        match=rf"^step: c: got handle\[counter\] of {re.escape(other)}, expected "
        rf"handle\[counter\] of {re.escape(path)}; make one with an operator of that library$",
    ):
        ops.step(cuplug.load(other).counter())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("f(p: handle)", "expected '[' and a tag (handle[plan])"),
        ("f(p: handle[])", "expected a tag (handle[plan])"),
        ("f(p: handle[3])", "expected a tag (handle[plan])"),
        ("f(p: handle[a, b])", "expected ']' (a handle has one tag)"),
        ("f() -> handle", "expected '[' and a tag (handle[plan])"),
        ("f() -> (handle[a], float32[3])", "expected a handle as the only output"),
        ("f() -> (float32[3], handle[a])", "expected a handle as the only output"),
        ("f(inout p: handle[a])", "expected inout only for arrays and lists of them"),
        ("f(p: handle[a] = 3)", "p: this default does not fit its type"),
        ("f(p: int) -> p: handle[a]", "two parameters are called 'p'"),
        ("f(p: handle[a]) -> float32[p]", "got p, expected a scalar of signed integers"),
    ],
)
def test_signatures_that_are_refused(text, said):
    with pytest.raises(cuplug.SignatureError, match=f"signature: .*{re.escape(said)}"):
        parse(text)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (" CUPLUG_CLOSE(close_counter)", "", "close: got none, expected CUPLUG_CLOSE(function)"),
        (
            '"The number."',
            '"The number." CUPLUG_CLOSE(close_counter)',
            'got "close_counter", expected none',
        ),
        (
            "CUPLUG_CLOSE(close_counter)",
            "CUPLUG_CLOSE(8)",
            'close: got "8", expected an identifier',
        ),
    ],
)
def test_tables_that_are_refused(build_plugin, old, new, said):
    text = (FIXTURES / "handles.c").read_text()
    assert old in text
    with pytest.raises(cuplug.PluginError, match=re.escape(said)):
        cuplug.load(str(build_plugin(text.replace(old, new), "handles")))


def test_a_function_that_is_not_exported(build_plugin):
    text = (FIXTURES / "handles.c").read_text()
    text = text.replace(
        "CUPLUG_ENTRY int close_counter", "__attribute__((used)) static int close_counter"
    )
    built = str(build_plugin(text, "handles"))
    said = [f.text for f in check_file(built) if "close" in f.text]
    assert said == [
        "the table names close_counter, which closes a handle, but the file exports no such "
        "function"
    ]
    with pytest.raises(cuplug.PluginError, match="does not export close_counter, a function that"):
        cuplug.load(built).counter()


# ---- Tools and frameworks ------------------------------------------------------------------------


def test_tools_know_handles(ops, path):
    assert [f.text for f in check_file(path) if "close" in f.text] == []
    assert list(inspect.signature(ops.step).parameters)[:3] == ["c", "gate", "other"]
    assert ops.counter.__doc__.splitlines()[0].endswith("-> c: handle[counter]")
    text = stubs.write_stubs([[(parse(STEP), ""), (parse("new(n: int) -> handle[a]"), "")]], "T.")
    assert "        c: Handle,\n" in text
    assert "        other: Handle | None = None,\n" in text
    assert ") -> Handle:" in text
    module = Module()
    add_plugin(module, "p", [parse("f(c: handle[a]) -> int64[]"), parse("g() -> c: handle[a]")])
    assert [f.declaration() for f in module.functions] == [
        "cdef inline int f(_cuplug.cuplug_handle *c, _cuplug.View out) except -1 nogil",
        "cdef inline int g(_cuplug.cuplug_handle **c) except -1 nogil",
    ]
    shown = CliRunner().invoke(main, ["info", "handles.counter"])
    assert "handle[counter]" in shown.output, shown.output


@pytest.mark.slow
def test_trials_make_handles(path, tmp_path):
    from cuplug._integration.commands.property_runner import try_all

    fixture = tmp_path / "fixture.py"
    fixture.write_text("def step_gate(): return 0\n")
    results = try_all(path, examples=2, pins={"how": "well"}, fixture=str(fixture))
    of_step = [x for x in results if x.operator == "step" and x.property != "CUDA"]
    assert [x for x in of_step if not (x.ok and x.tried)] == []
    (accepted,) = [x for x in of_step if x.property == "accepted calls"]
    assert accepted.calls == accepted.accepted > 0


def test_handles_are_pinned(path):
    from cuplug.testing import arguments

    with pytest.raises(
        ValueError, match=r"^arguments: c: got no handle\[counter\], expected one in"
    ):
        arguments(STEP)
    with pytest.raises(
        ValueError, match=r"^step: c: got no handle\[counter\], expected one; measure"
    ):
        sized_arguments(parse(STEP), 100)


def test_frameworks_refuse_handles(ops):
    with pytest.raises(ValueError, match=r"^f: p: got handle\[a\], expected an array or a number$"):
        cuplug.elementwise("f(x: T[...], p: handle[a]) -> T[...] where T: any", "x")


def test_pytorch_registers_no_handles(ops):
    torch = pytest.importorskip("torch")
    from cuplug.torch import Function

    text = (
        "got an operator with handles in what PyTorch registers, expected one without; call it "
        r"outside of that on x.detach\(\)$"
    )
    with pytest.raises(TypeError, match=f"^step: {text}"):
        Function(ops.step)
    with pytest.raises(TypeError, match=f"^counter_of: {text}"):
        ops.counter_of(torch.ones(3, requires_grad=True))
    assert ops.value(ops.counter_of(torch.ones(3, requires_grad=True).detach())) == 3


def test_jax_refuses_handles(ops):
    pytest.importorskip("jax")
    from cuplug.jax import Function

    text = "^step: got an operator with handles in a function of JAX, expected one without; call it"
    with pytest.raises(TypeError, match=text):
        Function(ops.step)(ops.counter())


def test_dask_refuses_handles(ops):
    da = pytest.importorskip("dask.array")
    text = "^counter_of: got an operator with handles in a call with dask arrays, expected one"
    with pytest.raises(TypeError, match=text):
        ops.counter_of(da.ones(3, dtype="f4"))
