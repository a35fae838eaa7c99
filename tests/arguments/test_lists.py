# SPDX-License-Identifier: Apache-2.0
"""Lists of arrays of any length and of mixed shapes, also changed in place."""

import gc
import threading

import cuplug
import numpy as np
import pytest
from cuplug.errors import SignatureError
from hypothesis import given, settings
from hypothesis import strategies as st
from places import FIXTURES


@pytest.fixture(scope="module")
def ops(build_plugin):
    return cuplug.load(build_plugin(FIXTURES / "lists.c", "lists"))


def draw(shapes, seed=0):
    random = np.random.default_rng(seed)
    return [random.standard_normal(shape) for shape in shapes]


def mixed(n, seed=0):
    random = np.random.default_rng(seed)
    return [tuple(random.integers(0, 6, random.integers(0, 4))) for _ in range(n)]


@pytest.mark.parametrize("n", [0, 1, 3, 62, 63, 64, 65, 300, 1000, 5000])
def test_arrays_of_mixed_shapes_are_changed_in_place(ops, n):
    xs, ys = draw(mixed(n)), draw(mixed(n), 1)
    wanted = [x + y for x, y in zip(xs, ys, strict=True)]
    before = [y.copy() for y in ys]
    assert ops.add_to(xs, ys) is None
    for x, y in zip(xs, wanted, strict=True):
        np.testing.assert_array_equal(x, y)
    for x, y in zip(ys, before, strict=True):
        np.testing.assert_array_equal(x, y)
    ops.add_to(tuple(xs))
    ops.add_to(xs, None)
    for x, y in zip(xs, wanted, strict=True):
        np.testing.assert_allclose(x, y + 2)


def test_grouped_products(ops):
    sizes = [(3, 4, 5), (1, 1, 1), (0, 2, 3), (7, 0, 2), (2, 9, 4)]
    a = draw([(m, k) for m, k, _ in sizes])
    b = draw([(k, n) for _, k, n in sizes], 1)
    c = [np.zeros((m, n)) for m, _, n in sizes]
    ops.grouped(a, b, c)
    for x, y, z in zip(a, b, c, strict=True):
        np.testing.assert_allclose(z, x @ y, atol=1e-12)
    transposed = [np.asfortranarray(x) for x in a]  # copied for the call, as single arrays are
    again = [np.zeros_like(z) for z in c]
    ops.grouped(transposed, b, again)
    for x, y in zip(again, c, strict=True):
        np.testing.assert_array_equal(x, y)


def test_caches_of_layers_are_views_of_one_buffer(ops):
    """Slices of a buffer, with different strides in each layer, are changed without copies."""
    buffer = np.zeros((6, 4, 30))
    caches = [buffer[:, k, 2 * k : 2 * k + 5 + k] for k in range(4)]
    values = [np.arange(5.0 + k)[::-1] for k in range(4)]
    wanted = buffer.copy()
    for k, value in enumerate(values):
        wanted[3, k, 2 * k : 2 * k + 5 + k] = value
    ops.append(caches, values, 3)
    np.testing.assert_array_equal(buffer, wanted)


def test_items_of_lists_that_are_alike(ops):
    xs = [np.zeros(4) for _ in range(100)]
    for n in (1, 5, 62, 63, 100):
        ops.fill(xs[:n], n)
        assert all((x == n).all() for x in xs[:n])
    with pytest.raises(
        ValueError, match=r"^fill: xs: item 2: dimension n: got 5, expected 4 \(as in xs"
    ):
        ops.fill([*xs[:2], np.zeros(5)], 1)
    many = [*xs[:80], np.zeros(5)]
    with pytest.raises(
        ValueError, match=r"^fill: xs: item 80: dimension n: got 5, expected 4 \(as"
    ):
        ops.fill(many, 1)


def test_how_an_entry_sees_lists(ops):
    """Among the call's tensors if items share a description and the call has at most 64 arrays."""
    x, y = np.zeros(3), np.zeros(2)
    np.testing.assert_array_equal(ops.seen_alike([x] * 5), [7, 6, 5, 1])
    np.testing.assert_array_equal(ops.seen_alike([x] * 62, y), [64, 63, 62, 1])
    np.testing.assert_array_equal(ops.seen_alike([x] * 63, y), [2, 1, 63, 0])
    np.testing.assert_array_equal(ops.seen([x] * 5, y), [2, 1, 5, 0])
    np.testing.assert_array_equal(ops.seen([]), [2, 1, 0, 0])


def test_a_name_that_also_stands_elsewhere_has_one_value(ops):
    w, xs = np.arange(3.0), [np.ones(3), np.full(3, 2.0)]
    ops.weigh(w, xs)
    np.testing.assert_array_equal(xs, [[0, 1, 2], [0, 2, 4]])
    with pytest.raises(
        ValueError, match=r"^weigh: xs: item 1: dimension n: got 4, expected 3 \(as in w\)"
    ):
        ops.weigh(w, [np.ones(3), np.ones(4)])


@pytest.mark.parametrize("n", [0, 3, 256, 257, 10**5])
def test_lists_of_numbers_have_any_length(ops, n):
    xs, ys = list(range(n)), [0.5] * n
    np.testing.assert_array_equal(ops.sums(xs, ys), [sum(xs), n / 2])
    np.testing.assert_array_equal(ops.sums(xs, 2), [sum(xs), 2])


A, B = np.zeros((2, 3)), np.zeros((3, 2))


@pytest.mark.parametrize(
    ("call", "exception", "message"),
    [
        (lambda f: f([A], []), ValueError, "ys: got a list of 0 arrays, expected 1 (as xs, item"),
        (
            lambda f: f([A, B], [A.copy(), A]),
            ValueError,
            "ys: item 1: dimensions *s: got (2, 3), ",
        ),
        (
            lambda f: f([A, A.astype("f")]),
            TypeError,
            "xs: item 1: got float32[2, 3], expected float",
        ),
        (lambda f: f([A, None]), TypeError, "xs: item 1: got None, expected float64[*s]"),
        (lambda f: f(A), TypeError, "xs: got float64[2, 3], expected a list of float64[*s]"),
        (
            lambda f: f([B.T]),
            ValueError,
            "xs: item 0: got an array that is not C-contiguous, expe",
        ),
        (
            lambda f: f([A, A]),
            ValueError,
            "xs: item 0: it is changed in place and overlaps xs: ite",
        ),
        (
            lambda f: f([B, A], [B[:], A + 1]),
            ValueError,
            "xs: item 0: it is changed in place and ov",
        ),
        (lambda f: f([A], device="cuda"), (ValueError, RuntimeError, cuplug.errors.CudaError), ""),
        (lambda f: f([np.broadcast_to(A, (2, 3))]), ValueError, "xs: item 0: got a read-only arr"),
    ],
)
def test_lists_that_do_not_fit(ops, call, exception, message):
    with pytest.raises(exception) as raised:
        call(ops.add_to)
    assert str(raised.value).startswith(f"add_to: {message}")
    assert not A.any()
    assert not B.any()


def test_long_lists_do_not_go_through_a_gpu(ops):
    with pytest.raises(ValueError, match=r"^grouped: .*lists of arrays on the host|no CUDA entry"):
        ops.grouped([A], [B], [np.zeros((2, 2))], device="cuda")


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_lists_may_not_share_memory(ops, data):
    """Compare with numpy.shares_memory: written arrays must not share memory; inputs may."""
    memory = np.zeros(64)

    def view():
        start, n = data.draw(st.integers(0, 50)), data.draw(st.integers(1, 4))
        step = data.draw(st.sampled_from([1, 1, 2, 3]))
        return memory[start : start + n * step : step]

    n = data.draw(st.integers(1, 5))
    written = [view() for _ in range(n)]
    read = [view()[: x.size] for x in written]
    if any(x.size != y.size for x, y in zip(written, read, strict=True)):
        return
    shared = any(
        np.shares_memory(x, y)
        for k, x in enumerate(written)
        for y in (*written[:k], *written[k + 1 :], *read)
    )
    caches = [x[None] for x in written]
    if shared:
        with pytest.raises(ValueError, match=r"^append: caches: item \d: it is changed in place"):
            ops.append(caches, read, 0)
        return
    wanted = [y.copy() for y in read]
    ops.append(caches, read, 0)
    for x, y in zip(written, wanted, strict=True):
        np.testing.assert_array_equal(x, y)


def test_columns_of_a_matrix_do_not_overlap(ops):
    matrix = np.zeros((1, 900))
    columns = [matrix[:, k::300] for k in range(300)]
    ops.append(columns, [np.arange(3.0)] * 300, 0)
    assert (matrix == np.repeat(np.arange(3.0), 300)).all()
    with pytest.raises(ValueError, match=r"caches: item \d+: .* overlaps caches: item \d+; pass"):
        ops.append([*columns, matrix[:, 299:302]], [np.arange(3.0)] * 301, 0)


@pytest.mark.uninstrumented  # which retains freed memory
def test_lists_are_freed(ops):
    xs = [np.zeros(3) for _ in range(2000)]
    ops.add_to(xs)
    before = cuplug_resident()
    for _ in range(300):
        ops.add_to(xs)
        ops.sums(list(range(2000)), 1.0)
        with pytest.raises(ValueError, match="overlaps"):
            ops.add_to([*xs, xs[0]])
        ops.seen.infer(xs)
    gc.collect()
    assert cuplug_resident() - before < 60 << 20  # more than 300 times the memory of one call


def cuplug_resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def test_threads_have_lists_of_their_own(ops):
    def work(number):
        xs = [np.zeros(2) for _ in range(200)]
        for _ in range(30):
            ops.add_to(xs, [np.full(2, float(number))] * 200)
        results[number] = all((x == 30 * number).all() for x in xs)

    results = {}
    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == dict.fromkeys(range(4), True)


def test_what_a_call_would_give(ops):
    xs = [cuplug.ArraySpec("float64", (k,)) for k in range(200)]
    assert ops.seen.infer(xs).outputs == (cuplug.ArraySpec("float64", (4,)),)
    assert ops.add_to.infer(xs).outputs == ()


def test_optional_arrays_are_changed_in_place(ops):
    x, residual = np.arange(3.0), np.ones(3)
    np.testing.assert_allclose(ops.rescale(x), x / 6)
    np.testing.assert_allclose(ops.rescale(x, None), x / 6)
    out = ops.rescale(x, residual)
    np.testing.assert_array_equal(residual, [1, 2, 3])
    np.testing.assert_allclose(out, residual / 15)
    ops.rescale(x, residual=residual)
    np.testing.assert_array_equal(residual, [1, 3, 5])
    with pytest.raises(ValueError, match=r"^rescale: residual: it is changed .* overlaps x; pass"):
        ops.rescale(x, x)
    with pytest.raises(ValueError, match=r"^rescale: residual: dimension n: got 2, expected 3"):
        ops.rescale(x, np.ones(2))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "f(xs: float32[n][each]) -> float32[n]",
            "dimension 'n' has a value for each item of a list",
        ),
        (
            "f(xs: float32[n][each], y: float32[n + 1])",
            "got n, expected a name with one value for the call",
        ),
        (
            "f(xs: float32[n][each]) where n > 0",
            "got n, expected a name with one value for the call",
        ),
        (
            "f(xs: float32[n][each]) -> float32[len(n)]",
            "got n, expected a name with one value for the call",
        ),
        (
            "f(xs: float32[...][each])",
            "got '...' in a list, expected '*name' ('...' is for single arrays)",
        ),
        (
            "f(xs: float32[?][each])",
            "got '?', expected a known size (only sizes of outputs can be unknown before the run)",
        ),
        ("f(xs: float32[n][every])", "expected ']' (a list of arrays is T[n][] or T[n][each])"),
        ("f(inout a: float)", "expected inout only for arrays and lists of them"),
        ("f(inout a: int[])", "expected inout only for arrays and lists of them"),
    ],
)
def test_signatures_that_are_refused(text, message):
    from cuplug._engine.signature.signature import parse

    with pytest.raises(SignatureError) as raised:
        parse(text)
    assert message in str(raised.value)


def test_signatures_of_lists():
    from cuplug._engine.signature.signature import parse

    s = parse("f(inout xs: float32[n, k][each], w: float32[k], ys: float32[n][]) -> int64[len(xs)]")
    assert [(x.kind, x.is_inout, x.is_each) for x in s.parameters] == [
        ("arrays", True, True),
        ("array", False, False),
        ("arrays", False, False),
    ]
    assert s.each_names == ()
    s = parse("f(inout xs: float32[n, k][each], inout w: float32[k] = None)")
    assert [s.dim_names[k] for k in s.each_names] == ["n"]
