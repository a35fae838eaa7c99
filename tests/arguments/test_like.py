# SPDX-License-Identifier: Apache-2.0
"""Outputs with the layout of an input."""

import itertools
import textwrap

import cuplug
import numpy as np
import pytest
from cuplug._engine.signature.signature import parse
from places import FIXTURES


@pytest.fixture(scope="session")
def like_file(build_plugin):
    return build_plugin(FIXTURES / "like.c", "like", defines=["CUPLUG_ARCHITECTURES=900"])


@pytest.fixture
def ops(like_file):
    return cuplug.load(like_file)


def permuted(shape, order, dtype=np.float32):
    """Return an array whose dimensions are in an order in memory, the outermost first."""
    x = np.arange(np.prod(shape), dtype=dtype).reshape([shape[d] for d in order])
    return x.transpose(np.argsort(order))


def elements(x):
    return tuple(stride // x.itemsize for stride in x.strides)


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_any_order_of_dimensions(ops, order):
    x = permuted((2, 3, 4, 5), order)
    for _ in range(2):
        y, strides = ops.incremented(x)
        np.testing.assert_array_equal(y, x + 1)
        assert y.strides == x.strides
        assert tuple(strides) == elements(x)
    sliced = x[:, 1:, ::2]
    y = ops.incremented(sliced).y
    np.testing.assert_array_equal(y, sliced + 1)
    assert y.strides == np.empty_like(sliced).strides  # NumPy's order "K", without gaps


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_other_sizes(ops, order):
    x = permuted((2, 3, 4, 5), order)
    y = ops.count(x, 7)
    assert y.strides == permuted((2, 7, 4, 5), order).strides
    np.testing.assert_array_equal(y, permuted((2, 7, 4, 5), order))
    assert ops.count(x, 0).shape == (2, 0, 4, 5)


def test_orders_that_strides_leave_open(ops):
    square = np.zeros((3, 4), np.float32)
    for x in (
        square,
        square[::-1],
        square[:, ::-1],
        square[:0].T,
        np.broadcast_to(square[0], (3, 4)),
        np.broadcast_to(square[:, :1], (3, 4)),
        square[1:2, 2:3].T,
        square[::2, ::2],
    ):
        assert ops.incremented(x).y.flags.c_contiguous
    assert ops.incremented(np.array(2, np.float32)).y == 3
    one_channel = permuted((2, 1, 3, 4), (0, 2, 3, 1))
    assert one_channel.flags.c_contiguous
    assert ops.count(one_channel, 5).flags.c_contiguous
    row = permuted((2, 3, 1, 4), (0, 2, 3, 1))  # a size of 1 also has a position
    assert elements(ops.count(row, 5)) == (20, 1, 20, 5)


def test_broadcasting(ops):
    x, y = np.ones((4, 3), np.float32), permuted((4, 3), (1, 0))
    for a, b, is_fortran in ((x, y, True), (y, x, False), (x[0], y, True), (y, x[0], False)):
        total = ops.sum(a, b)
        np.testing.assert_array_equal(total, a + b)
        assert total.flags.f_contiguous == is_fortran
    deep = permuted((2, 4, 3), (2, 0, 1))
    assert ops.sum(y, deep).strides == deep.strides
    np.testing.assert_array_equal(ops.sum(deep, y), deep + y)


def test_words_and_defaults(ops):
    x = permuted((2, 3), (1, 0))
    assert (ops.ones(x) == np.ones((3, 2))).all()
    assert elements(ops.ones(x)) == (1, 3)
    y, w = ops.maybe(x)
    assert w is None
    assert y.flags.c_contiguous
    y, w = ops.maybe(x, return_w=True)
    assert w.strides == x.strides
    np.testing.assert_array_equal(w, x + 1)
    np.testing.assert_array_equal(y, x + 1)


def test_arrays_that_are_given(ops):
    x = permuted((3, 4), (1, 0))
    out = np.zeros((4, 3), np.float32).T
    assert ops.incremented(x, out=(out, np.zeros(2, np.int64))).y is out
    np.testing.assert_array_equal(out, x + 1)
    for given, wrong, got, expected in (
        (x, np.zeros((3, 4), np.float32), r"\(4, 1\)", r"\(1, 3\)"),
        (x, np.zeros((4, 6), np.float32)[:, :3].T, r"\(1, 6\)", r"\(1, 3\)"),
        (x.copy("C"), out, r"\(1, 3\)", r"\(4, 1\)"),
    ):
        message = rf"^incremented: y: got strides {got}, expected {expected} \(like x\)$"
        with pytest.raises(ValueError, match=message):
            ops.incremented(given, out=(wrong, np.zeros(2, np.int64)))
    with pytest.raises(ValueError, match=r"^sum: out: got strides \(4, 1\), expected \(1, 3\)"):
        ops.sum(x, x, out=np.zeros((3, 4), np.float32))


def test_own_arrays(ops):
    x = cuplug.asarray(permuted((2, 3, 4), (0, 2, 1)), device="cpu")
    y, strides = ops.incremented(x)
    assert type(y) is cuplug.Array
    assert tuple(strides.numpy()) == (12, 1, 3)
    np.testing.assert_array_equal(y.numpy(), x.numpy() + 1)
    assert y.strides == x.strides


def test_arrays_of_the_host_on_a_gpu(run_fake, like_file):
    body = """
    import numpy as np
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4).transpose(0, 2, 1)
    for layout in (x, x[:, ::2], x[::-1], x.copy("C"), x.copy("F")):
        y, strides = gpu.incremented(layout, device="cuda")
        assert np.array_equal(y, layout + 1)
        assert y.strides == np.empty_like(layout).strides
        assert tuple(4 * strides) == y.strides
    y = gpu.there(x[0], device="cuda")  # the host's arrays are put in C order
    assert np.array_equal(y, x[0] + 1) and y.flags.c_contiguous
    assert counts().misuses == 0
    """
    run_fake(textwrap.dedent(body), plugin=like_file)


def test_arrays_of_a_gpu(run_emulated, like_file):
    text = """
    import os, cuplug, numpy as np
    from emulation import install_expressions
    install_expressions()
    ops = cuplug.load(os.environ["PLUGIN"])
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    there = cuplug.asarray(x, device="cuda")
    for view in (lambda x: x, lambda x: x.T, lambda x: x[:, ::2], lambda x: x.T[1:]):
        for operator in (lambda x: ops.incremented(x).y, ops.there, ops.plus):
            y = operator(view(there))
            assert np.array_equal(y.numpy(), view(x) + 1)
            is_kept = operator is not ops.plus or view(x).size == 12
            wanted = np.empty_like(view(x), order="K" if is_kept else "C")
            assert y.strides == wanted.strides
    """
    run_emulated(textwrap.dedent(text), PLUGIN=str(like_file))


def test_operators_that_treat_all_elements_alike():
    add = cuplug.elementwise("add(a: T, b: T) -> T", "a + b")
    both = cuplug.elementwise("both(a: T) -> (x: T, y: float64)", "x = a; y = 2 * a")
    number = cuplug.elementwise("number(x: T) -> int64", "i")
    for order in itertools.permutations(range(3)):
        x = permuted((2, 3, 4), order)
        for y in (cuplug.ops.relu(x), add(x, x), add(x, np.float32(1)), add(np.float32(1), x)):
            assert y.strides == x.strides
        np.testing.assert_array_equal(add(x, np.float32(1)), x + 1)
        assert [elements(y) for y in both(x)] == [elements(x)] * 2
        np.testing.assert_array_equal(number(x), np.arange(24).reshape(x.shape))
        for y in (add(x, x[:1]), add(x.copy(), x), cuplug.ops.relu(x[:, ::2])):
            assert y.flags.c_contiguous
        out = np.zeros((2, 3, 4), np.float32)
        np.testing.assert_array_equal(cuplug.ops.relu(x, out=out), x)


def test_large_arrays_of_the_host_on_a_gpu(run_fake, like_file):
    """A call that keeps a layout is split like one with contiguous arrays."""
    body = """
    import numpy as np
    x = np.arange(6 << 20, dtype=np.float32).reshape(1024, -1).T
    y = gpu.plus(x, device="cuda")
    assert y.strides == x.strides and np.array_equal(y, x + 1)
    """
    run_fake(textwrap.dedent(body), plugin=like_file)


def test_parsed():
    s = parse("f(x: T[...]) -> (y: T[...] like x, like: T[...], z: T[...] like x) where T: any")
    assert [x.like for x in s.outputs] == ["x", "", "x"]
    assert [x.name for x in s.outputs] == ["y", "like", "z"]
    s = parse("f(like: float32[n], x: float32[*s]) -> float32[*s] like x where n > 0")
    assert s.outputs[0].like == "x"


DIMENSIONS = "got dimensions that differ from x, expected the same number (it is like x)"
AN_ARRAY = "expected an array parameter that is always given"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("f(x: float32[m, n]) -> float32[n] like x", f"output: {DIMENSIONS}"),
        ("f(x: float32[*s]) -> y: float32[*s, 2] like x", f"y: {DIMENSIONS}"),
        ("f(x: float32[*s], z: float32[*t]) -> y: float32[*t] like x", f"y: {DIMENSIONS}"),
        ("f(x: float32[...], z: float32[*t]) -> y: float32[*t] like x", f"y: {DIMENSIONS}"),
        ("f(x: float32[*s, n]) -> y: float32[*s[1:], n] like x", f"y: {DIMENSIONS}"),
        ("f(x: float32[n]) -> y: float32[?] like x", f"y: {DIMENSIONS}"),
        ("f(x: float32[n]) -> float32[n] like z", AN_ARRAY),
        ("f(x: float32[n]) -> float32[n] like n", AN_ARRAY),
        ("f(x: float32[n]) -> float32[n] like", AN_ARRAY),
        ("f(x: float32[n]) -> (y: float32[n], float32[n] like y)", AN_ARRAY),
        ("f(x: float32[n][]) -> float32[n] like x", AN_ARRAY),
        ("f(x: float32[n], z: float32[n] = None) -> float32[n] like z", AN_ARRAY),
        (
            "f(x: float32[n]) -> float32[n] like x where align(x) >= 16",
            "output: got guarantees of x, expected none (if they do not hold, the entry receives a "
            "copy in C order, whose layout the output cannot have); test strides and addresses of "
            "x in the entry",
        ),
        *(
            (
                f"f(x: float32[m, n]) -> y: float32[m, n] like x where {guarantee}",
                "y: got guarantees, expected none (it has the layout of x, in any order)",
            )
            for guarantee in ("stride(y, -1) == 1", "align(y) >= 16", "contiguous(y)")
        ),
    ],
)
def test_ill_formed(text, message):
    with pytest.raises(cuplug.SignatureError) as raised:
        parse(text)
    assert message in str(raised.value)


def test_rows_that_take_no_strides(build_plugin, tmp_path):
    source = tmp_path / "flat.c"
    source.write_text(
        "#include <cuplug/plugin.h>\n"
        "CUPLUG_ENTRY int flat_host(const cuplug_call *call) { return call->n_inputs == 0; }\n"
        'CUPLUG_HOST_OPERATOR(flat_host, "flat(x: float32[n, m]) -> float32[n, m] like x", "x.");\n'
        'CUPLUG_PLUGIN(flat, "1.0.0");\n'
    )
    message = "flat: got an output like an input, expected CUPLUG_TAKES_STRIDES"
    with pytest.raises(cuplug.PluginError, match=message):
        cuplug.load(build_plugin(source, "flat"))
