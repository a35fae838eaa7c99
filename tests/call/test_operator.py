# SPDX-License-Identifier: Apache-2.0
"""Operators as Python callables: arguments, outputs, errors, descriptions."""

import gc
import pickle
import re
import sys
import threading
from unittest import mock

import cuplug
import numpy as np
import pytest
from cuplug import errors
from cuplug._engine.base.strings import status_names
from places import FIXTURES


@pytest.fixture(scope="module")
def noop(build_plugin):
    return cuplug.load(build_plugin(FIXTURES / "noop.c", "noop"))


# ---- Arguments


def test_positions_keywords_and_defaults(ops):
    wanted = ops.scalars(1.5, 2, False, 3j, 4, "five5", "x").tolist()
    assert wanted == [1.5, 2, 0, 0, 3, 4, 5, 0]
    keywords = {"f": 1.5, "i": 2, "b": False, "c": 3j, "u": 4, "s": "five5", "mode": "x"}
    assert ops.scalars(**keywords).tolist() == wanted
    assert ops.scalars(**dict(reversed(keywords.items()))).tolist() == wanted
    assert ops.scalars(1.5, 2, mode="x", u=4).tolist() == [1.5, 2, 1, 0, 0, 4, 4, 0]


def test_keywords_that_are_not_interned(ops):
    assert ops.scalars(1, **{"".join(["", "i"]): 2})[1] == 2
    name = "mo" + "".join(["d", "e"])
    assert ops.scalars(1, 2, **{name: "x"})[7] == 0
    out = np.zeros(8)
    assert ops.scalars(1, 2, **{"o" + "".join(["u", "t"]): out}) is out


def test_optional_array(ops):
    x = np.arange(3.0)
    assert ops.weigh(x).tolist() == [0, 1, 2]
    assert ops.weigh(x, None).tolist() == [0, 1, 2]
    assert ops.weigh(x, weights=x).tolist() == [0, 1, 4]


def test_overloads(ops):
    integers, floats = np.zeros(2, np.int32), np.zeros(2)
    assert ops.which(integers) == 1
    assert ops.which(floats, floats) == 2
    assert ops.which(y=floats, x=floats) == 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda f: f.copy(), "copy: x: got nothing, expected T[*n] with T: any dtype"),
        (lambda f: f.copy(1, 2), "copy: got 2 arguments, expected at most 1"),
        (lambda f: f.copy(*[1] * 65), "copy: got 65 arguments, expected at most 64"),
        (lambda f: f.scalars(1), "scalars: i: got nothing, expected a scalar of dtype int64"),
        (
            lambda f: f.copy(np.ones(1), y=2),
            "copy: got unknown argument y, expected x, out, device or stream",
        ),
        (
            lambda f: f.copy(np.ones(1), x=2),
            "copy: x: got two values, by position and keyword, expected one",
        ),
        (
            lambda f: f.split(np.ones(1), out=np.ones(1)),
            "split: out: got ndarray, expected a tuple of 2 arrays",
        ),
        (
            lambda f: f.split(np.ones(1), out=(np.ones(1),)),
            "split: out: got a tuple of 1, expected a tuple of 2 arrays",
        ),
        (
            lambda f: f.fail(100, out=np.ones(1)),
            "fail: out: got an array, expected none: it has no outputs",
        ),
        (
            lambda f: f.copy(np.ones(1), device=1.5),
            "copy: device: got 1.5, expected 'cpu', 'cuda', 'cuda:1' or the like",
        ),
    ],
)
def test_wrong_calls(ops, call, message):
    with pytest.raises(TypeError) as raised:
        call(ops)
    assert str(raised.value) == message


def test_rows_that_take_as_many_arguments_are_nearer():
    """`gather` has overloads of three and of four parameters."""
    x, index = np.ones(3), np.array([1])
    with pytest.raises(TypeError, match='gather: source: got the string "abc", expected T'):
        cuplug.ops.gather("abc", index, "raise", 0)
    with pytest.raises(TypeError, match="gather: got 5 arguments, expected at most 4"):
        cuplug.ops.gather(x, index, "raise", 0, 5)


@pytest.mark.parametrize(
    "name", ["gpu", "cuda:", "cuda:-1", "cuda:x", "cpu:1", "", "cuda:99999999"]
)
def test_device_names_that_are_none(ops, name):
    with pytest.raises(ValueError, match=r"^copy: device: got '" + re.escape(name)):
        ops.copy(np.ones(1), device=name)
    with pytest.raises(ValueError, match=r"^device: got '" + re.escape(name)):
        cuplug.Device(name)


def test_device_cpu_and_none(ops):
    for device in (None, "cpu", "cpu:0"):
        assert ops.copy(np.ones(1), device=device).tolist() == [1]
        assert cuplug.last_call().device == "cpu"


def test_operator_without_a_cuda_entry_on_the_gpu(ops, arguments_file):
    message = f"copy: device: got cuda:0, expected the host (no CUDA entry in {arguments_file})"
    for device in ("cuda", 0, "cuda:0"):
        with pytest.raises(ValueError, match=r"^" + re.escape(message)):
            ops.copy(np.ones(1), device=device)
    with cuplug.Device("cuda"), pytest.raises(ValueError, match=r"^" + re.escape(message)):
        ops.copy(np.ones(1))
    assert ops.copy(np.ones(1)).tolist() == [1]


def test_device_blocks_nest(ops):
    with cuplug.Device("cuda"):
        with cuplug.Device("cpu"):
            assert ops.copy(np.ones(1)).tolist() == [1]
        assert ops.copy(np.ones(1), device="cpu").tolist() == [1]
        with pytest.raises(ValueError, match="cuda:0"):
            ops.copy(np.ones(1))


def test_device_block_is_of_its_thread(ops):
    results = []
    with cuplug.Device("cuda"):
        thread = threading.Thread(target=lambda: results.append(ops.copy(np.ones(1))))
        thread.start()
        thread.join()
    assert results[0].tolist() == [1]


# ---- Outputs


def test_no_one_and_several_outputs(ops, noop):
    assert noop.noop0() is None
    assert noop.noop1(np.zeros(2, np.float32)) is None
    low, high = ops.split(np.array([-1.0, 2]))
    assert low.tolist() == [-1, 0]
    assert high.tolist() == [0, 2]


def test_out_is_filled_and_returned(ops):
    x, out = np.arange(3.0), np.zeros(3)
    assert ops.copy(x, out=out) is out
    assert out.tolist() == [0, 1, 2]
    assert ops.copy(x, out=None).tolist() == [0, 1, 2]
    assert ops.copy(x, out=(None,)).tolist() == [0, 1, 2]
    pair = np.zeros(3), np.zeros(3)
    assert all(seen is given for seen, given in zip(ops.split(x, out=pair), pair, strict=True))
    low, high = ops.split(x, out=(None, pair[1]))
    assert high is pair[1]
    assert low.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("make", "exception", "message"),
    [
        (lambda x: np.zeros(4), ValueError, "got float64[4], expected (3,)"),
        (lambda x: np.zeros(3, "f4"), TypeError, "got float32[3], expected float64"),
        (lambda x: np.zeros(6)[::2], ValueError, "got an array that is not C-contiguous, expected"),
        (lambda x: memoryview(bytes(24)).cast("d"), ValueError, "got a read-only array, expected"),
        (
            lambda x: x,
            ValueError,
            "got the memory of x, expected an array of its own; if the entry",
        ),
        (lambda x: x[::-1], ValueError, "got an array that is not C-contiguous, expected"),
        (lambda x: [0.0] * 3, TypeError, "got a list of 3 items, expected an array"),
        (lambda x: np.zeros(3, ">f8"), TypeError, "got byte-swapped float64[3], expected float64"),
        (lambda x: np.zeros(25, "u1")[1:].view("f8"), ValueError, "got a misaligned array"),
    ],
)
def test_out_that_does_not_fit(ops, make, exception, message):
    x = np.arange(3.0)
    with pytest.raises(exception) as raised:
        ops.copy(x, out=make(x))
    assert str(raised.value).startswith(f"copy: out: {message}")


def test_output_of_unknown_size(ops):
    assert ops.positive(np.array([1.0, -2, 3])).tolist() == [1, 3]
    assert ops.positive(np.array([-1.0])).tolist() == []
    with pytest.raises(ValueError, match="known only after the run"):
        ops.positive(np.ones(3), out=np.ones(3))


def test_output_that_the_plugin_forgets(ops):
    with pytest.raises(cuplug.PluginError, match=r"^forget: the plugin left an output without"):
        ops.forget(np.ones(3))


def test_in_place(ops):
    from cuplug.ops import scale

    x = np.arange(3.0)
    assert scale(x, 2) is None
    assert x.tolist() == [0, 2, 4]


def test_nothing_is_leaked(ops):
    x, out = np.arange(3.0), np.zeros(3)
    held = (x, out)
    before = [sys.getrefcount(y) for y in held]
    for _ in range(50):
        ops.copy(x, out=out)
        ops.split(x, out=(out, None))
        ops.positive(x)
        for bad in ({"out": x}, {"out": [x]}, {"device": x}, {"nope": x}, {"x": out}):
            with pytest.raises((ValueError, TypeError)):
                ops.copy(x, **bad)
    del bad
    gc.collect()
    assert [sys.getrefcount(y) for y in held] == before


# ---- Errors


def test_every_status_has_an_exception():
    names = set(status_names().values())
    assert names == set(errors.EXCEPTIONS)


@pytest.mark.parametrize("status", status_names())
def test_status_becomes_its_exception(ops, status):
    wanted = errors.EXCEPTIONS[status_names()[status]]
    with pytest.raises(wanted) as raised:
        ops.fail(status)
    assert type(raised.value) is wanted
    assert str(raised.value) == f"fail: status: got {status}, expected another"


def test_status_that_is_none(ops):
    with pytest.raises(
        cuplug.PluginError, match="^returns: the plugin returned 7, which is not a status$"
    ):
        ops.returns(7)
    with pytest.raises(
        cuplug.PluginError,
        match=r"^fail: status: got 7, expected another "
        r"\(status 7, which this core does not know\)$",
    ):
        ops.fail(7)


def test_a_failure_without_a_status_is_one(ops):
    with pytest.raises(cuplug.PluginError, match="^fail: status: got 0, expected another$"):
        ops.fail(0)


def test_cuda_error_has_a_code_and_pickles():
    error = pickle.loads(pickle.dumps(cuplug.CudaError("gather: lost", 700)))
    assert (str(error), error.code) == ("gather: lost", 700)
    assert isinstance(error, RuntimeError)


def test_equality_is_also_asked_of_the_other(ops):
    assert ops.which == mock.ANY
    assert ops.which == mock.ANY
    assert ops.which != ops.weigh
    assert ops.which != "which"
