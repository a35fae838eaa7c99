# SPDX-License-Identifier: Apache-2.0
"""Operators on dask arrays: every result equals the result of one call on the whole array."""

import pickle
import re

import cuplug
import cuplug.testing
import numpy as np
import pytest
from backends import assert_same
from cuplug.ops import gather, leaky_relu, relu, relu_backward
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from places import FIXTURES

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
import cuplug.dask  # noqa: E402


@pytest.fixture(scope="module")
def blocks(build_plugin):
    """Return the plugin of tests/fixtures/blocks.c."""
    return cuplug.load(build_plugin(FIXTURES / "blocks.c", "blocks"))


@pytest.fixture(autouse=True)
def one_thread():
    """Run tasks here, one after the other."""
    with dask.config.set(scheduler="synchronous"):
        yield


X = np.random.default_rng(5).normal(size=(6, 8))
CUT = da.from_array(X, chunks=(2, 3))


def assert_like(result, expected):
    """Assert that a dask array's value is correct, and that its metadata matches."""
    assert isinstance(result, da.Array)
    computed = result.compute()
    assert (result.dtype, result.ndim) == (computed.dtype, computed.ndim)
    assert all(np.isnan(n) or n == m for n, m in zip(result.shape, computed.shape, strict=True))
    assert_same(np.asarray(computed), np.asarray(expected))


# ---- Split arrays --------------------------------------------------------------------------------


def test_loop_dimensions_are_cut():
    y = cuplug.dask.relu(CUT)
    assert y.chunks == CUT.chunks
    assert_like(y, relu(X))


def test_arrays_are_broadcast_and_cut_alike():
    y = relu_backward(CUT, da.from_array(X[0], chunks=4))
    assert y.chunks == ((2, 2, 2), (3, 1, 2, 2))
    assert_like(y, relu_backward(X, X[0]))
    assert_like(relu_backward(CUT[:, :1], X), relu_backward(X[:, :1], X))


def cut_as_told(operator, arguments):
    """Call an operator; join the blocks that its error names."""
    while True:
        try:
            return operator(**arguments)
        except ValueError as error:
            name, k = re.search(r"pass (\w+)\.rechunk\(\{(\d+): -1\}\)", str(error)).groups()
            arguments[name] = arguments[name].rechunk({int(k): -1})


@pytest.mark.filterwarnings("ignore::dask.array.PerformanceWarning")  # of many small blocks
@pytest.mark.parametrize("name", ["gather", "leaky_relu", "piecewise_scale", "relu_backward"])
@settings(max_examples=25)
@given(st.data())
def test_any_arguments_in_any_blocks(name, data):
    operator = cuplug.find(name)
    pinned = {"mode": st.just("wrap")} if name == "gather" else {}
    arguments = data.draw(
        cuplug.testing.arguments(operator, sizes=st.integers(1, 6), pinned=pinned)
    )
    expected = operator(**arguments)
    for key, x in arguments.items():
        if isinstance(x, np.ndarray) and x.ndim:
            chunks = data.draw(st.tuples(*(st.integers(1, n) for n in x.shape)))
            arguments[key] = da.from_array(x, chunks=chunks)
    assume(any(isinstance(x, da.Array) for x in arguments.values()))
    assert_like(cut_as_told(operator, arguments), expected)


def test_independent_dimensions_are_cut():
    index = np.array([4, 0, 0, 5, 1])
    source = CUT.rechunk({0: -1})
    y = cuplug.dask.gather(source, da.from_array(index, chunks=2), mode="clip")
    assert y.chunks == ((2, 2, 1), (3, 3, 2))
    assert_like(y, gather(X, index, mode="clip"))
    along = gather(CUT.rechunk(-1), da.from_array(index, chunks=2), axis=-1)
    assert along.chunks == ((6,), (2, 2, 1))
    assert_like(along, gather(X, index, axis=-1))


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda _: gather(CUT, np.array([1])), "gather: source: got 3 blocks along dimension 0"),
        (lambda b: b.totals(CUT), "totals: x: got 3 blocks along dimension 1 of [..., n]"),
        (lambda b: b.count(CUT), "count: x: got 3 blocks along dimension 0 of [...], expected one"),
        (lambda b: b.number(CUT), "number: x: got 3 blocks along dimension 0 of [...], expected"),
    ],
)
def test_other_dimensions_are_not_joined(blocks, call, error):
    with pytest.raises(ValueError, match=re.escape(error)):
        call(blocks)


def test_a_dimension_that_an_array_has_twice_is_not_cut(blocks):
    square = CUT[:, :6]
    with pytest.raises(ValueError, match="diagonal: x: got 3 blocks along dimension 0"):
        blocks.diagonal(square)
    assert_like(blocks.diagonal(square.rechunk(-1)), np.diag(X[:, :6]))


def test_what_the_error_says_is_right(blocks):
    with pytest.raises(ValueError, match=re.escape("pass x.rechunk({1: -1})")):
        blocks.totals(CUT)
    assert_like(blocks.totals(CUT.rechunk({1: -1})), blocks.totals(X))
    assert_like(blocks.count(CUT.rechunk(-1)), blocks.count(X))
    assert_like(blocks.number(CUT.rechunk(-1)), blocks.number(X))


# ---- Outputs -------------------------------------------------------------------------------------


def test_several_outputs(blocks):
    low, high = halves = blocks.halves(CUT)
    assert type(halves).__name__ == "halves"
    assert_like(low, np.minimum(X, 0))
    assert_like(halves.high, np.maximum(X, 0))
    assert len({key for key in dask.optimize(low, high)[0].dask if "halves-" in str(key)}) >= 9
    together = dask.compute(low, high)
    np.testing.assert_array_equal(together[0] + together[1], X)


def test_sizes_that_are_worked_out(blocks):
    y = blocks.steps(CUT.rechunk({1: -1}))
    assert y.chunks == ((2, 2, 2), (7,))
    assert_like(y, np.diff(X))
    assert_like(blocks.first(CUT[0].rechunk(-1), k=3), X[0, :3])


def test_a_size_that_the_run_finds(arguments_file):
    positive = cuplug.load(arguments_file).positive
    y = positive(CUT[0].rechunk(-1))
    assert np.isnan(y.shape[0])
    assert_like(y, X[0][X[0] > 0])
    with pytest.raises(ValueError, match="positive: x: got 3 blocks along dimension 0"):
        positive(CUT[0])


def test_lists_of_arrays(blocks):
    y = blocks.stack([CUT, X, CUT[::-1]])
    assert y.chunks == ((3,), *CUT.chunks)
    assert_like(y, np.stack([X, X, X[::-1]]))


def test_sizes_that_nobody_knows_yet(blocks):
    rows = CUT[CUT[:, 0] > 0]
    wanted = X[X[:, 0] > 0]
    assert_like(relu(rows), relu(wanted))
    assert_like(relu_backward(rows, X[0]), relu_backward(wanted, X[0]))
    assert_like(blocks.totals(rows.rechunk({1: -1})), blocks.totals(wanted))
    column = CUT[:, 0].rechunk(-1)
    assert_like(blocks.first(column[column > 0]), X[:, 0][X[:, 0] > 0][:2])


def test_a_size_that_is_known_of_one_array_alone(arguments_file):
    weigh = cuplug.load(arguments_file).weigh
    column = CUT[:, 0].rechunk(-1)
    wanted = X[:, 0][X[:, 0] > 0]
    assert_like(weigh(column[column > 0], np.full(wanted.size, 2.0)), wanted * 2)
    with pytest.raises(ValueError, match="weigh: weights"):
        weigh(column[column > 0], np.ones(wanted.size + 1)).compute()


def test_rows_are_told_apart_without_sizes(arguments_file):
    which = cuplug.load(arguments_file).which
    column = CUT[:, 0].rechunk(-1)
    positive = column[column > 0]
    assert_like(which(positive, y=positive), np.array([2]))
    assert_like(which(positive.astype("int32")), np.array([1]))
    with pytest.raises(TypeError, match="which: y: it is missing"):
        which(positive)


def test_empty_arrays():
    empty = da.from_array(np.empty((0, 3)), chunks=(1, 2))
    assert_like(relu(empty), np.empty((0, 3)))


# ---- Arguments -----------------------------------------------------------------------------------


def test_numbers_may_be_computed_too():
    factor = CUT.max()
    assert_like(leaky_relu(CUT, factor), leaky_relu(X, X.max()))
    assert_like(leaky_relu(slope=factor, x=CUT), leaky_relu(X, X.max()))


@pytest.mark.parametrize("by", [np.array(2.0), CUT.min()])
def test_arrays_without_dimensions(blocks, by):
    y = blocks.shift(CUT, by)
    assert y.chunks == CUT.chunks
    assert_like(y, X + (by.compute() if isinstance(by, da.Array) else by))


def test_numbers_of_numpy():
    assert_like(leaky_relu(CUT, np.float32(0.5)), leaky_relu(X, 0.5))
    rows = CUT[CUT[:, 0] > 0]
    assert_like(leaky_relu(rows, np.float64(0.5)), leaky_relu(X[X[:, 0] > 0], 0.5))


def test_without_a_dask_array_it_is_computed_at_once():
    y = cuplug.dask.relu(X)
    assert type(y) is np.ndarray


def test_dtypes_that_numpy_has_not():
    import ml_dtypes

    x = X.astype(ml_dtypes.bfloat16)
    assert_like(relu(da.from_array(x, chunks=3)), relu(x))


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda _: relu(CUT.astype(complex)), "relu: x: got complex128[6, 8], expected"),
        (lambda _: relu(CUT[CUT > 0].astype(complex)), "relu: x: got complex128, expected"),
        (lambda _: relu(CUT, weight=1), "relu: got unknown argument weight"),
        (lambda _: relu(CUT, out=CUT), "relu: out: got a value, expected None (blocks of"),
        (lambda _: relu(CUT.astype("U")), "relu: x: got <U32[6, 8], expected an array of numbers"),
        (lambda _: gather(CUT[CUT > 0]), "gather: index: it is missing"),
        (
            lambda _: leaky_relu(CUT, dask.delayed(0.5)),
            "leaky_relu: slope: got an object of dask.delayed, expected an array (dask.array.from_",
        ),
        (lambda b: b.negate(CUT), "negate: x: got a Dask array, expected a NumPy array"),
    ],
)
def test_what_is_refused_at_once(blocks, call, error):
    with pytest.raises(TypeError, match=re.escape(error)):
        call(blocks)


def test_errors_of_a_block_reach_the_user():
    with pytest.raises(IndexError, match="gather: index"):
        gather(CUT.rechunk({0: -1}), np.array([6])).compute()


# ---- The graph -----------------------------------------------------------------------------------


def test_tasks_are_called_as_the_operator():
    names = {key[0].rpartition("-")[0] for key in relu(CUT).dask if "relu" in key[0]}
    assert names == {"relu"}


def test_pickles_hold_public_names_alone(blocks):
    data = pickle.dumps([relu(CUT).dask, blocks.halves(CUT).low.dask])
    assert b"cuplug.dask" in data
    assert b"cuplug._integration" not in data


def test_equal_calls_have_equal_names(blocks):
    assert relu(CUT).name == relu(CUT).name == cuplug.dask.relu(CUT).name
    assert relu(CUT).name != relu(CUT + 1).name
    assert leaky_relu(CUT, 0.5).name != leaky_relu(CUT, 0.25).name
    assert blocks.halves(CUT)[0].name != blocks.halves(CUT)[1].name


def test_calls_in_a_row_become_one_task_for_each_block():
    y = relu(leaky_relu(relu(da.ones((8, 8), chunks=4)), 0.5))
    (optimized,) = dask.optimize(y)
    assert len(dict(optimized.dask)) == 4


def test_the_client_calls_nothing(blocks, tmp_path):
    mark = tmp_path / "called"
    y = blocks.hang_once(CUT, file=str(mark))
    assert y.chunks == CUT.chunks
    assert not mark.exists()


@pytest.mark.slow
def test_who_passes_tasks_on_needs_no_plugin(build_plugin, run_python):
    plugin = cuplug.load(build_plugin(FIXTURES / "blocks.c", "blocks"))
    data = pickle.dumps(plugin.halves(CUT).low)
    code = f"import pickle; y = pickle.loads({data!r}); print(len(dict(y.dask)) > 18); y.compute()"
    done = run_python(code, env={"LD_LIBRARY_CUPLUG_PATH": None})
    assert done.stdout == "True\n"
    assert "OperatorMissingError: blocks.halves: got no such plugin" in done.stderr


def test_functions_are_of_operators():
    function = cuplug.dask.Function(cuplug.find("relu.relu"))
    assert pickle.loads(pickle.dumps(function)).operator == relu
    assert function.__name__ == "relu"
    assert "relu" in dir(cuplug.dask)
    with pytest.raises(ImportError, match="relo"):
        from cuplug.dask import relo  # noqa: F401
    with pytest.raises(AttributeError, match="relo"):
        cuplug.dask.relo  # noqa: B018


def test_expressions_are_operators():
    sine = cuplug.elementwise("sine(x: T) -> T", "sin(x)")
    assert_like(sine(CUT), sine(X))


# ---- Other arrays as blocks ----------------------------------------------------------------------


def test_blocks_of_pytorch():
    torch = pytest.importorskip("torch")
    blocks = CUT.map_blocks(torch.from_numpy, dtype=X.dtype, meta=X[:0, :0])
    assert_like(relu(blocks).map_blocks(lambda block: block.numpy(), dtype=X.dtype), relu(X))
    (tensors,) = dask.compute(relu(blocks).to_delayed().tolist())
    assert {type(x) for row in tensors for x in row} == {torch.Tensor}
    np.testing.assert_array_equal(tensors[0][0].numpy(), relu(X[:2, :3]))


@pytest.mark.slow
def test_blocks_stay_on_a_gpu(run_fake):
    """From one call to the next, in one task; the driver needs no GPU."""
    run_fake("""
        import dask.array as da
        blocks = da.from_array(x, chunks=300)
        on_gpu = blocks.map_blocks(cuplug.asarray, device="cuda", dtype=x.dtype, meta=x[:0])
        y = gpu.triple(gpu.triple(on_gpu))
        seen = []
        def take(block):
            seen.append(type(block))
            return block.numpy()
        result = y.map_blocks(take, dtype=x.dtype, meta=x[:0]).compute(scheduler="synchronous")
        assert (result == 9 * x).all()
        assert seen == [cuplug.Array] * 4, seen
        assert cuplug.last_call() == ("triple", "cuda:0", False, os.environ["PLUGIN"])
        through = gpu.triple(blocks, device="cuda").compute(scheduler="synchronous")
        assert (through == 3 * x).all()
        assert cuplug.last_call().offloaded
    """)


@pytest.mark.slow
def test_arrays_go_where_the_blocks_are(run_fake):
    """Arrays of the call move; a dask array of NumPy blocks does not."""
    run_fake("""
        import dask.array as da, pytest
        def picked(index):
            y = gpu.pick(on_gpu, index).map_blocks(lambda y: y.numpy(), dtype=x.dtype, meta=x[:0])
            return y.compute(scheduler="synchronous")
        on_gpu = da.from_array(x, chunks=len(x)).map_blocks(
            cuplug.asarray, device="cuda", dtype=x.dtype, meta=x[:0])
        index = np.array([3, 1, 1], np.int64)
        assert (picked(index) == x[index]).all()
        assert (picked(cuplug.asarray(index, device="cuda")) == x[index]).all()
        with pytest.raises(ValueError, match="index: got an array on the host, expected cuda:0"):
            picked(da.from_array(index))
    """)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_blocks_of_cuplug(device):
    own = CUT.map_blocks(cuplug.asarray, device=device, dtype=X.dtype, meta=X[:0, :0])
    y = relu(own).map_blocks(lambda block: block.numpy(), dtype=X.dtype)
    assert_like(y, relu(X))
    whole = relu(own).compute()
    assert (type(whole), whole.device.type) == (cuplug.Array, device)
    assert dask.sizeof.sizeof(whole) == X.nbytes
    np.testing.assert_array_equal(whole.numpy(), relu(X))


@pytest.mark.gpu
def test_blocks_of_cupy():
    cupy = pytest.importorskip("cupy")
    y = relu(CUT.map_blocks(cupy.asarray))
    assert isinstance(y._meta, cupy.ndarray)
    assert isinstance(y.compute(), cupy.ndarray)
    np.testing.assert_array_equal(cupy.asnumpy(y.compute()), relu(X))


@pytest.mark.gpu
def test_blocks_go_through_a_gpu():
    assert_like(relu(CUT, device="cuda"), relu(X))
