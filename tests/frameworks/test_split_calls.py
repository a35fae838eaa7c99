# SPDX-License-Identifier: Apache-2.0
"""Operators whose elements depend on each other, on arrays in blocks and in batches.

Each operator is compared with NumPy on the whole array. A call on blocks is right or rejected, with
a remedy, before anything is computed.
"""

import re

import cuplug
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

INDEX = cuplug.elementwise("split_index(x: T) -> int64", "i")
NUMBER = cuplug.elementwise("split_number(x: T) -> int64", "n")
SIZE = cuplug.elementwise("split_size(x: T) -> T", "x / size(x)")
LAST = cuplug.elementwise("split_last(x: T) -> T", "x + size(x, -1)")
HALF = cuplug.elementwise("split_half(x: T) -> T", "x / 2")
TABLE = cuplug.elementwise("split_table(x: T[...], w: T[k]) -> T[...]", "x * w[k - 1]")
TOTAL = cuplug.reduction("split_total(x: T) -> T", reduce="a + b", identity="0")
FIRST = cuplug.reduction("split_first(x: T) -> int64", choose="b > a", post="i")
RUNNING = cuplug.scan("split_running(x: T) -> T", reduce="a + b", identity="0")
# Elements have other numbers in a block than in the array.
NUMBERED = cuplug.reduction("split_numbered(x: T) -> T", map="x * i", reduce="a + b")
NUMBERED_SCAN = cuplug.scan("split_numbered_scan(x: T) -> T", map="x * i", reduce="a + b")
W = np.array([3.0, 5.0])


@cuplug.fuse
def centered(a):
    return a - a.mean()


@cuplug.fuse
def scaled_rows(a):
    return a / (1 + abs(a).sum(axis=-1, keepdims=True))


def axes_of(draw, ndim):
    numbers = st.lists(st.integers(0, ndim - 1), unique=True, min_size=1, max_size=ndim)
    return draw(st.none() | st.integers(-ndim, ndim - 1) | numbers.map(tuple))


def reduction_of(draw, ndim):
    keywords = {"axis": axes_of(draw, ndim), "keepdims": draw(st.booleans())}
    return (lambda x: TOTAL(x, **keywords)), (lambda x: np.sum(x, **keywords))


def scan_of(draw, ndim):
    axis = draw(st.integers(-ndim, ndim - 1))
    return (lambda x: RUNNING(x, axis=axis)), (lambda x: np.cumsum(x, axis))


def choice_of(draw, ndim):
    axis = draw(st.none() | st.integers(-ndim, ndim - 1))
    return (lambda x: FIRST(x, axis=axis)), (lambda x: np.argmax(x, axis))


KINDS = {
    "i": (INDEX, lambda x: np.arange(x.size).reshape(x.shape)),
    "n": (NUMBER, lambda x: np.full(x.shape, x.size)),
    "size(x)": (SIZE, lambda x: x / x.size),
    "size(x, -1)": (LAST, lambda x: x + x.shape[-1]),
    "elements": (HALF, lambda x: x / 2),
    "a table": (lambda x: TABLE(x, W), lambda x: x * 5),
    "fused mean": (centered, lambda x: x - x.mean()),
    "fused rows": (scaled_rows, lambda x: x / (1 + abs(x).sum(-1, keepdims=True))),
}
MADE = {"reduction": reduction_of, "scan": scan_of, "choice": choice_of}


def kind_of(data, kind, ndim):
    """Return the function for a kind, and its NumPy counterpart."""
    return KINDS[kind] if kind in KINDS else MADE[kind](data.draw, ndim)


def array_of(data, min_dims=1):
    shape = data.draw(st.lists(st.integers(1, 5), min_size=min_dims, max_size=3))
    return np.random.default_rng(len(shape)).integers(-9, 9, shape).astype(float)


def on_blocks(function, x):
    """Call a function on a dask array; join the blocks that errors name."""
    while True:
        try:
            return function(x)
        except ValueError as error:
            text = str(error)
        k = int(re.search(r"chunk\(\{(?:'dim_)?(\d+)'?: -1\}\)", text)[1])
        assert x.numblocks[k] > 1
        x = x.rechunk({k: -1})


@pytest.mark.sample(3)
@pytest.mark.filterwarnings("ignore::dask.array.PerformanceWarning")  # of many small blocks
@pytest.mark.parametrize("kind", [*KINDS, *MADE])
@settings(max_examples=25, deadline=None)
@given(st.data())
def test_any_blocks(kind, data):
    x = array_of(data)
    function, wanted = kind_of(data, kind, x.ndim)
    chunks = data.draw(st.tuples(*(st.integers(1, n) for n in x.shape)))
    seen = on_blocks(function, da.from_array(x, chunks=chunks))
    expected = wanted(x)
    assert seen.shape == np.shape(expected)
    computed = seen.compute(scheduler="synchronous")
    assert np.shape(computed) == seen.shape
    assert computed.dtype == seen.dtype
    np.testing.assert_allclose(computed, expected)


@pytest.mark.parametrize("function", [INDEX, NUMBER, SIZE, LAST, NUMBERED, NUMBERED_SCAN])
def test_nothing_runs_on_blocks_that_depend_on_each_other(function):
    x = da.from_array(np.arange(8.0), chunks=3)
    with pytest.raises(ValueError, match=r"got 3 blocks along dimension 0.*rechunk\(\{0: -1\}\)"):
        function(x)


def test_each_flag_of_an_operator_is_a_property():
    assert "no_split" not in HALF.properties[0]
    assert "no_split" not in TABLE.properties[0]
    for operator in (INDEX, NUMBER, SIZE, LAST, TOTAL, FIRST, RUNNING):
        assert "no_split" in operator.properties[0]
    assert "takes_strides" in HALF.properties[0]
    assert "reduces" in TOTAL.properties[0]
    assert "reduces" not in RUNNING.properties[0]
    assert "scans" in RUNNING.properties[0]
    assert "scans" not in TOTAL.properties[0]


DOT = cuplug.reduction("split_dot(x: T, y: T) -> T", map="x * y", reduce="a + b", identity="0")
ENDS = cuplug.reduction(
    "split_ends(x: T) -> (low: T, high: T)",
    map="low = x; high = x",
    reduce="low = min(a.low, b.low); high = max(a.high, b.high)",
    accumulate="low: T, high: T",
)


@pytest.mark.sample(6)
@pytest.mark.parametrize("axis", [0, 1, -1, (0, 2), [1, -1], ()])
def test_blocks_along_other_dimensions_are_independent(axis):
    axes = {k % 3 for k in ((axis,) if isinstance(axis, int) else axis)}
    x = np.random.default_rng(0).integers(-9, 9, (4, 5, 6)).astype(float)
    cut = da.from_array(x, chunks=[-1 if k in axes else 2 for k in range(3)])
    given, axis = (axis if isinstance(axis, int) else list(axis)), tuple(axes)

    def check(seen, wanted, n_blocks):
        assert seen.shape == wanted.shape
        assert seen.numblocks == n_blocks
        np.testing.assert_allclose(seen.compute(), wanted)

    for keepdims in (False, True):
        whole = np.sum(x, axis=axis, keepdims=keepdims)
        n_blocks = tuple(
            1 if k in axes else n for k, n in enumerate(cut.numblocks) if keepdims or k not in axes
        )
        check(TOTAL(cut, axis=given, keepdims=keepdims), whole, n_blocks)
        row = np.arange(6.0)
        wanted = np.sum(x * row, axis=axis, keepdims=keepdims)
        check(DOT(cut, row, axis=given, keepdims=keepdims), wanted, n_blocks)
        low, high = ENDS(cut, axis=given, keepdims=keepdims)
        check(low, np.min(x, axis=axis, keepdims=keepdims), n_blocks)
        check(high, np.max(x, axis=axis, keepdims=keepdims), n_blocks)
    if len(axes) == 1:
        check(RUNNING(cut, axis=given), np.cumsum(x, *axes), cut.numblocks)
        wanted = np.argmax(x, *axes)
        check(
            FIRST(cut, axis=given),
            wanted,
            tuple(n for k, n in enumerate(cut.numblocks) if k not in axes),
        )
    if axes:
        with pytest.raises(ValueError, match=r"expected one: pass x.rechunk\(\{[012]: -1\}\)"):
            NUMBERED(da.from_array(x, chunks=2), axis=given)


def test_fused_functions_name_the_users_arguments():
    @cuplug.fuse
    def weighed(image, weight=1.0, *, shift=0):
        return (image + shift) * weight - image.mean(axis=0)

    image = np.arange(24.0).reshape(4, 6)
    blocks = da.from_array(image, chunks=(4, 3))
    seen = weighed(blocks, 2.0, shift=1)
    assert seen.numblocks == (1, 2)
    np.testing.assert_allclose(seen.compute(), (image + 1) * 2 - image.mean(0))
    seen = weighed(blocks.rechunk(2), 2.0, shift=1)
    np.testing.assert_allclose(seen.compute(), (image + 1) * 2 - image.mean(0))
    with pytest.raises(ValueError, match=r"^weighed: weight: dimensions \.\.\.: got size 5"):
        weighed(image, np.ones(5))


def test_xarray_names_its_own_method():
    xarray = pytest.importorskip("xarray")
    x = xarray.DataArray(da.ones((4, 6), chunks=2), dims=("row", "column"))
    with pytest.raises(ValueError, match=r"expected one; pass x\.chunk\(\{'row': -1\}\)$"):
        INDEX(x)
    with pytest.raises(ValueError, match=r"pass x\.chunk\(\{'column': -1\}\)$"):
        INDEX(x.chunk({"row": -1}))
    INDEX(x.chunk({"row": -1}).chunk({"column": -1})).compute()
    with pytest.raises(ValueError, match=r"pass x\.chunk\(-1\)$"):
        INDEX(xarray.Dataset({"v": x}))
    INDEX(xarray.Dataset({"v": x}).chunk(-1)).compute()


def test_sizes_that_are_not_known():
    x = da.from_array(np.arange(6.0).reshape(2, 3), chunks=-1)
    rows = x[x.sum(axis=1) > 5]
    assert np.isnan(TOTAL(rows, axis=1, keepdims=True).shape[0])
    np.testing.assert_array_equal(TOTAL(rows, axis=1).compute(), [12])
    with pytest.raises(TypeError, match="axis: got"):
        TOTAL(rows, axis=2)


# ---- xarray --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["i", "n", "size(x)", "size(x, -1)", "elements"])
@settings(max_examples=10, deadline=None)
@given(st.data())
def test_blocks_of_xarray(kind, data):
    xarray = pytest.importorskip("xarray")
    x = array_of(data)
    function, wanted = KINDS[kind]
    chunks = data.draw(st.tuples(*(st.integers(1, n) for n in x.shape)))

    def on_labels(blocks):
        return function(xarray.DataArray(blocks)).data

    seen = on_blocks(on_labels, da.from_array(x, chunks=chunks))
    np.testing.assert_allclose(seen.compute(scheduler="synchronous"), wanted(x))


def test_a_reduction_of_xarray_is_rejected():
    xarray = pytest.importorskip("xarray")
    with pytest.raises(TypeError, match=r"split_total: x: got an array of xarray \(use"):
        TOTAL(xarray.DataArray(np.ones((1, 3))), axis=0, keepdims=True)


# ---- Batches -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [x for x in (*KINDS, *MADE) if not x.startswith("fused")])
@settings(max_examples=15, deadline=None)
@given(st.data())
def test_torch_vmap(kind, data):
    torch = pytest.importorskip("torch")
    import cuplug.torch

    x = array_of(data, 2)
    operator, keywords, wanted = batched(data, kind, x.ndim - 1)
    extra = [torch.from_numpy(W)] if operator is TABLE else []
    function = cuplug.torch.Function(operator)
    at = data.draw(st.integers(-x.ndim, x.ndim - 1))
    in_dims = (at, *(None for _ in extra))
    tensor = torch.from_numpy(x.copy())
    seen = torch.vmap(lambda *args: function(*args, **keywords), in_dims)(tensor, *extra)
    np.testing.assert_allclose(seen.numpy(), np.stack([wanted(y) for y in np.moveaxis(x, at, 0)]))


# Without operators with 64-bit outputs, which JAX does not support by default.
@pytest.mark.parametrize(
    "kind", ["size(x)", "size(x, -1)", "elements", "a table", "reduction", "scan"]
)
@settings(max_examples=8, deadline=None)
@given(st.data())
def test_jax_vmap(kind, data):
    jax = pytest.importorskip("jax")
    import cuplug.jax

    x = array_of(data, 2).astype(np.float32)
    operator, keywords, wanted = batched(data, kind, x.ndim - 1)
    extra = [W.astype(np.float32)] if operator is TABLE else []
    function = cuplug.jax.Function(operator)
    at = data.draw(st.integers(0, x.ndim - 1))
    in_dims = (at, *(None for _ in extra))
    seen = jax.vmap(lambda *args: function(*args, **keywords), in_dims)(x, *extra)
    expected = np.stack([wanted(y) for y in np.moveaxis(x, at, 0)])
    np.testing.assert_allclose(seen, expected, rtol=1e-6)


def batched(data, kind, ndim):
    """Return the operator of a kind, its keywords, and its NumPy counterpart."""
    if kind in KINDS:
        function, wanted = KINDS[kind]
        return (TABLE if kind == "a table" else function), {}, wanted
    axis = data.draw(st.integers(0, ndim - 1))
    if kind == "scan":
        return RUNNING, {"axis": axis}, lambda x: np.cumsum(x, axis)
    if kind == "choice":
        return FIRST, {"axis": [axis]}, lambda x: np.argmax(x, axis)
    keeps = data.draw(st.booleans())
    keywords = {"axis": [axis], "keepdims": keeps}
    return TOTAL, keywords, lambda x: np.sum(x, axis=axis, keepdims=keeps)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_torch_vmap_over_any_dimensions(data):
    """Also for operators that are called once for the batch, with arrays of other ranks."""
    torch = pytest.importorskip("torch")
    import cuplug.torch

    operator = cuplug.elementwise("split_add(x: T, y: T) -> T", "x + 2 * y")
    function = cuplug.torch.Function(operator)
    shape = data.draw(st.lists(st.integers(1, 3), max_size=3))
    n = data.draw(st.integers(1, 3))
    batched = data.draw(st.sampled_from([(True, True), (True, False), (False, True)]))
    arrays, in_dims = [], []
    for is_batched in batched:
        keep = data.draw(st.integers(0, len(shape)))
        own = [data.draw(st.sampled_from([1, k])) for k in shape[keep:]]
        at = data.draw(st.integers(0, len(own)))
        arrays.append(torch.randn([*own[:at], *[n] * is_batched, *own[at:]], dtype=torch.float64))
        in_dims.append(at if is_batched else None)
    seen = torch.vmap(function, tuple(in_dims))(*arrays)
    wanted = torch.vmap(lambda x, y: x + 2 * y, tuple(in_dims))(*arrays)
    assert seen.shape == wanted.shape
    np.testing.assert_allclose(seen.numpy(), wanted.numpy())


# ---- Sizes that are symbols ----------------------------------------------------------------------


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [[0], [-1], [0, 1], []])
def test_shapes_of_reductions_with_symbols(axis, keepdims):
    """In traced programs of PyTorch and JAX, where the core cannot compute them."""
    torch = pytest.importorskip("torch")
    import cuplug.torch
    from torch.fx.experimental.proxy_tensor import make_fx

    function = cuplug.torch.Function(TOTAL)
    program = make_fx(lambda x: function(x, axis=axis, keepdims=keepdims), tracing_mode="symbolic")
    x = np.arange(12.0).reshape(3, 4)
    wanted = np.sum(x, axis=tuple(axis), keepdims=keepdims)
    graph = program(torch.from_numpy(x))
    (output,) = [node.args[0] for node in graph.graph.nodes if node.op == "output"]
    assert output.meta["val"].ndim == wanted.ndim
    np.testing.assert_array_equal(graph(torch.from_numpy(x)).numpy(), wanted)


def test_shapes_of_reductions_exported_by_jax():
    jax = pytest.importorskip("jax")
    import cuplug.jax

    function = cuplug.jax.Function(TOTAL)
    sizes = jax.export.symbolic_shape("n, m")
    given = jax.ShapeDtypeStruct(sizes, np.float32)
    exported = jax.export.export(
        jax.jit(lambda x: function(x, axis=[1], keepdims=True)),
        disabled_checks=[jax.export.DisabledSafetyCheck.custom_call("cuplug")],
    )(given)
    assert exported.out_avals[0].shape == (sizes[0], 1)
