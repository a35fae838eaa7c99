# SPDX-License-Identifier: Apache-2.0
"""The plugins in examples/plugins compared with NumPy, on CPU and GPU; and their lengths."""

import re
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from cuplug._integration.commands.differentiation import gradient_agrees
from cuplug._integration.commands.property_outcomes import Tried

# One worker compiles each of them; another would wait for it.
pytestmark = pytest.mark.xdist_group("examples")

PLUGINS = Path(__file__).resolve().parents[2] / "examples" / "plugins"
NAMES = sorted(path.stem for path in PLUGINS.glob("*.cu"))
SHAPES = [(1,), (5, 1), (3, 7), (2, 3, 64), (2, 1023), (3, 4096), (0, 8), (4, 0)]
TOLERANCE = {np.float32: 2e-5, np.float16: 2e-3, ml_dtypes.bfloat16: 2e-2}
SIDES = ["cpu", pytest.param("cuda", marks=[pytest.mark.gpu, pytest.mark.sanitizer])]
on_sides = pytest.mark.parametrize("side", SIDES)
# Each plugin takes seconds to compile: the entries of these for the host are for `make test-all`.
on_gpus_or_all = pytest.mark.parametrize(
    "side", [pytest.param("cpu", marks=pytest.mark.slow), SIDES[1]]
)
with_dtypes = pytest.mark.parametrize("dtype", TOLERANCE)
with_shapes = pytest.mark.parametrize("shape", SHAPES, ids=str)


@pytest.fixture
def get_operator(build_plugin, monkeypatch):
    """Return a function that compiles the plugin of an operator and finds the operator."""
    import cuplug

    def get(name, plugin=None):
        library = build_plugin(PLUGINS / f"{plugin or name}.cu", plugin or name, cuda=True)
        operators = cuplug.load(library)
        return getattr(operators, name)

    return get


def draw(shape, dtype=np.float32, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def check(found, wanted, dtype=np.float32):
    assert (found.dtype, found.shape) == (np.dtype(dtype), wanted.shape)
    np.testing.assert_allclose(
        found.astype(np.float64), wanted, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype]
    )


def gelu(x):
    return x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))) / 2


def normalised(x):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)


def softmax(x):
    with np.errstate(invalid="ignore"):
        exponential = np.exp(x - x.max(-1, keepdims=True, initial=-np.inf))
        return exponential / exponential.sum(-1, keepdims=True)


@pytest.mark.slow
@on_sides
@with_dtypes
@with_shapes
def test_gelu(get_operator, side, dtype, shape):
    x = draw(shape, dtype)
    check(get_operator("gelu")(x, device=side), gelu(x.astype(np.float64)), dtype)


@on_sides
@with_shapes
def test_gelu_backward_is_the_slope(get_operator, side, shape):
    x, grad = draw(shape), draw(shape, seed=1)
    wide, step = x.astype(np.float64), 1e-6
    slope = (gelu(wide + step) - gelu(wide - step)) / (2 * step)
    check(get_operator("gelu_backward", "gelu")(grad, x, device=side), grad * slope)


@on_sides
def test_gelu_of_large_and_no_numbers(get_operator, side):
    x = np.array([np.nan, np.inf, 1e30, -1e30, 0], np.float32)
    found = get_operator("gelu")(x, device=side)
    assert np.array_equal(found, np.float32([np.nan, np.inf, 1e30, 0, 0]), equal_nan=True)
    found = get_operator("gelu_backward", "gelu")(np.ones_like(x), x, device=side)
    assert np.array_equal(found, np.float32([np.nan, 1, 1, 0, 0.5]), equal_nan=True)


@on_gpus_or_all
@with_dtypes
@with_shapes
def test_residual_add(get_operator, side, dtype, shape):
    x, y = draw(shape, dtype), draw(shape, dtype, 1)
    found = get_operator("residual_add")(x, y, device=side)
    assert np.array_equal(found, (x.astype(np.float32) + y.astype(np.float32)).astype(dtype))


@pytest.mark.sample(3)
@on_sides
@with_dtypes
@with_shapes
def test_softmax(get_operator, side, dtype, shape):
    x = draw(shape, dtype)
    check(get_operator("softmax")(x, device=side), softmax(x.astype(np.float64)), dtype)


@on_sides
def test_softmax_of_what_is_no_number(get_operator, side):
    inf = np.inf
    x = np.array([[0, inf, 1], [0, np.nan, 1], [-inf] * 3, [-inf, 0, 0], [1e38] * 3], np.float32)
    with np.errstate(invalid="ignore"):
        found = get_operator("softmax")(x, device=side)
    assert np.isnan(found[:3]).any(-1).all()
    np.testing.assert_allclose(found[3:], softmax(x[3:].astype(np.float64)), rtol=1e-6)


@pytest.mark.slow
@on_sides
@with_dtypes
@with_shapes
def test_layer_norm(get_operator, side, dtype, shape):
    x, weight, bias = draw(shape, dtype), draw(shape[-1], dtype, 1), draw(shape[-1], dtype, 2)
    found = get_operator("layer_norm")(x, weight, bias, device=side)
    wide = (a.astype(np.float64) for a in (weight, bias))
    with np.errstate(all="ignore"):
        base = normalised(x.astype(np.float64)) if x.size else x.astype(np.float64)
    factor, offset = wide
    check(found, base * factor + offset, dtype)


@pytest.mark.slow
@on_sides
@pytest.mark.parametrize(("name", "plugin"), [("gelu", "gelu"), ("layer_norm", None)])
def test_gradients_by_differences(get_operator, side, name, plugin):
    get_operator(f"{name}_backward", plugin)
    operator = get_operator(name)
    shapes = {"x": (3, 5), "weight": (5,), "bias": (5,)} if name == "layer_norm" else {"x": (3, 5)}
    arguments = {key: draw(shape) for key, shape in shapes.items()}
    gradient_agrees(Tried(operator), arguments, side, operator.signatures[0])


@on_gpus_or_all
@pytest.mark.parametrize("shape", [*SHAPES, (2000, 33)], ids=str)
def test_layer_norm_backward(get_operator, side, shape):
    x, grad, weight = draw(shape), draw(shape, seed=1), draw(shape[-1], seed=2)
    found = get_operator("layer_norm_backward", None)(grad, x, weight, device=side)
    wide = x.astype(np.float64)
    h = normalised(wide) if x.size else wide
    g = grad.astype(np.float64) * weight
    r = 1 / np.sqrt(wide.var(-1, keepdims=True) + 1e-5) if x.size else 1.0
    inner = g - g.mean(-1, keepdims=True) - h * (g * h).mean(-1, keepdims=True) if x.size else g
    rows = tuple(range(len(shape) - 1))
    for one, wanted in zip(
        found, (r * inner, (grad * h).sum(rows), grad.sum(rows, dtype=np.float64)), strict=True
    ):
        np.testing.assert_allclose(one, wanted, rtol=1e-3, atol=1e-3)


@on_sides
def test_misaligned_rows(get_operator, side):
    x = draw(4097)[1:]
    check(get_operator("gelu")(x, device=side), gelu(x.astype(np.float64)))


@on_sides
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "k"), [(0, 0), (1, 1), (5, 0), (7, 3), (1000, 1000), (5000, 17)])
def test_topk(get_operator, side, dtype, n, k):
    x = np.random.default_rng(n).integers(-50, 50, n).astype(dtype)
    x[3:20:5] = np.nan
    values, indices = get_operator("topk")(x, k, device=side)
    wanted = np.argsort(np.where(np.isnan(x), -np.inf, -x), kind="stable")[:k]
    assert (indices.dtype, indices.tolist()) == (np.int64, wanted.tolist())
    np.testing.assert_array_equal(values, x[wanted], strict=True)


def test_topk_of_more_than_there_are(get_operator):
    with pytest.raises(ValueError, match="topk: .*k"):
        get_operator("topk")(draw(3), 4)
    found = get_operator("topk")(draw(3), k=2)
    assert found.values is found[0]
    assert found.indices is found[1]


@on_gpus_or_all
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "d", "rows"), [(0, 3, 2), (0, 1, 0), (40, 7, 5), (3000, 33, 1000)])
def test_scatter_sum(get_operator, side, dtype, n, d, rows):
    random = np.random.default_rng(n)
    source = random.integers(-9, 9, (n, d)).astype(dtype)
    index = random.integers(0, max(rows, 1), n)
    wanted = np.zeros((rows, d), dtype)
    np.add.at(wanted, index, source)
    operator = get_operator("scatter_sum")
    np.testing.assert_array_equal(operator(source, index, rows, device=side), wanted, strict=True)
    out = np.ones_like(wanted)
    operator(source, index, rows, out=out, device=side)
    np.testing.assert_array_equal(out, wanted)
    if n:
        with pytest.raises(IndexError, match="scatter_sum: index: "):
            operator(source, index - rows, rows, device=side)


@on_gpus_or_all
@with_dtypes
@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 2, 3, 1), (3, 2, 1, 0)], ids=str)
@pytest.mark.parametrize(
    "shape", [(2, 3, 8, 6), (1, 70, 9, 7), (2, 0, 4, 4), (1, 1, 2, 3)], ids=str
)
def test_max_pool(get_operator, side, dtype, order, shape):
    operator = get_operator("max_pool")
    x = draw([shape[d] for d in order], dtype).transpose(np.argsort(order))
    x.flat[::17] = np.nan
    for size in (1, 2, 3):
        n, c, h, w = shape[0], shape[1], shape[2] // size, shape[3] // size
        squares = x[:, :, : h * size, : w * size].reshape(n, c, h, size, w, size)
        y = operator(x, size, device=side)
        kept = np.empty_like(x[:, :, :h, :w]).strides
        assert all(n == 1 or a == b for n, a, b in zip(y.shape, y.strides, kept, strict=True))
        np.testing.assert_array_equal(y.astype(np.float32), squares.astype(np.float32).max((3, 5)))


@on_gpus_or_all
@with_dtypes
@pytest.mark.parametrize(("m", "n"), [(3, 8), (2, 4096), (0, 8), (4, 0)])
def test_silu_and_mul(get_operator, side, dtype, m, n):
    operator, product = get_operator("silu_and_mul"), draw((m, 2 * n + 1), dtype)
    for gate_up in (product[:, :-1].copy(), product[:, 1:]):  # with aligned rows, and without
        gate, up = gate_up[:, :n], gate_up[:, n:]
        wide = gate.astype(np.float64)
        wanted = wide / (1 + np.exp(-wide)) * up.astype(np.float64)
        check(operator(gate, up, device=side), wanted, dtype)
        out = np.zeros((m, n + 8), dtype)[:, :n]
        operator(gate, up, out=out, device=side)
        check(out, wanted, dtype)


@pytest.mark.sample(20)
@on_gpus_or_all
@pytest.mark.parametrize("dtype", [bool, np.int32, np.int64, np.float32, np.float64])
@pytest.mark.parametrize("n", [0, 1, 40, 5000])
def test_nonzero(get_operator, side, dtype, n):
    x = np.random.default_rng(n).integers(-2, 3, n).astype(dtype)
    if dtype == np.float32:
        x[::7] = np.nan
        x[1::7] = -0.0
    for one in (x, np.zeros_like(x), np.ones_like(x)):
        found = get_operator("nonzero")(one, device=side)
        np.testing.assert_array_equal(found, np.flatnonzero(one), strict=True)


@on_gpus_or_all
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize(
    ("batch", "m", "k", "n"),
    [
        *[((), 2, 3, 4), ((5,), 1, 1, 1), ((2, 3), 4, 200, 5), ((2,), 3, 2000, 2), ((0,), 2, 2, 2)],
        *[((3,), 0, 4, 2), ((3,), 4, 0, 2), ((3,), 4, 2, 0)],
    ],
)
def test_batched_matmul(get_operator, side, dtype, batch, m, k, n):
    x, y = draw((*batch, m, k), dtype), draw((*batch, k, n), dtype, 1)
    found = get_operator("batched_matmul")(x, y, device=side)
    wanted = x.astype(np.float64) @ y.astype(np.float64)
    assert (found.dtype, found.shape) == (x.dtype, wanted.shape)
    tolerance = TOLERANCE[dtype] * max(k, 1) ** 0.5
    np.testing.assert_allclose(found.astype(np.float64), wanted, tolerance, tolerance)


@on_gpus_or_all
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(4, 3), (1, 1), (0, 3), (5, 0), (200, 70)])
def test_running_average_of_all_rows(get_operator, side, dtype, shape):
    operator = get_operator("running_average")
    mean, count = np.full(shape[1], 9, dtype), np.zeros((), np.int64)
    batches = [draw(shape, dtype, seed) for seed in range(3)]
    for x in batches:
        assert operator(x, mean, count, device=side) is None
    assert count == 3 * shape[0]
    if count:
        wanted = np.concatenate(batches).astype(np.float64).mean(0)
        np.testing.assert_allclose(mean, wanted, rtol=1e-5, atol=1e-6)
    else:
        assert (mean == 9).all()


@on_gpus_or_all
def test_running_average_of_recent_rows(get_operator, side):
    operator = get_operator("running_average")
    mean, count, x = np.zeros(6), np.zeros((), np.int64), draw((40, 6), np.float64)
    wanted = x[0]
    for row in x[1:]:
        wanted = 0.75 * wanted + 0.25 * row
    for part in (x[:1], x[1:30], x[30:]):
        operator(part, mean, count, mode="recent", decay=0.75, device=side)
    np.testing.assert_allclose(mean, wanted, rtol=1e-12)
    with pytest.raises(ValueError, match="running_average: mode: "):
        operator(x, mean, count, mode="some")


def put(x, side):
    import cuplug

    return x if side == "cpu" else cuplug.asarray(x).to_device("cuda")


@on_gpus_or_all
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_adam_of_a_model(get_operator, side, dtype):
    """A thousand tensors of mixed shapes, two steps, one call each."""
    random = np.random.default_rng(0)
    shapes = [tuple(random.integers(0, 20, random.integers(0, 4))) for _ in range(1000)]
    params = [draw(shape, dtype, k) for k, shape in enumerate(shapes)]
    given = [put(x, side) for x in params]
    m, v = ([put(np.zeros(shape, np.float32), side) for shape in shapes] for _ in range(2))
    wanted = [(x.astype(np.float64), 0.0, 0.0) for x in params]
    for step in (1, 2):
        grads = [draw(shape, dtype, 5000 * step + k) for k, shape in enumerate(shapes)]
        adam = get_operator("adam")
        assert adam(given, [put(g, side) for g in grads], m, v, step, lr=0.1) is None
        for k, g in enumerate(grads):
            x, first, second = wanted[k]
            first = 0.9 * first + 0.1 * g
            second = 0.999 * second + 0.001 * g.astype(np.float64) ** 2
            rate, scale = 0.1 / (1 - 0.9**step), 1 - 0.999**step
            wanted[k] = x - rate * first / (np.sqrt(second / scale) + 1e-8), first, second
    for x, (y, *_) in zip(given, wanted, strict=True):
        np.testing.assert_allclose(np.asarray(x.numpy() if side != "cpu" else x), y, 2e-4, 2e-4)


@on_gpus_or_all
@pytest.mark.parametrize("has_keys", [False, True])
def test_rotary_on_slices_of_one_buffer(get_operator, side, has_keys):
    n, h, d, m, r = 11, 3, 8, 40, 3
    angles, positions = draw((m, r)), np.random.default_rng(1).integers(0, m, n)
    buffer = draw((n, 3 * h, d), np.float64)
    qkv = put(buffer.copy(), side)
    q, k = qkv[:, :h], qkv[:, h : 2 * h]
    tables = [np.pad(x, ((0, 0), (1, 1))) for x in (np.cos(angles), np.sin(angles))]
    given = [put(x, side)[:, 1:-1] for x in tables]  # rows with gaps
    given.append(put(np.repeat(positions, 2), side)[::2])
    get_operator("rotary")(q, *given, k if has_keys else None)
    wanted, n_rotated = buffer.copy(), (1 + has_keys) * h
    c, s = np.cos(angles)[positions][:, None], np.sin(angles)[positions][:, None]
    a, b = buffer[:, :n_rotated, :r], buffer[:, :n_rotated, r : 2 * r]
    wanted[:, :n_rotated, :r], wanted[:, :n_rotated, r : 2 * r] = a * c - b * s, b * c + a * s
    np.testing.assert_allclose(qkv if side == "cpu" else qkv.numpy(), wanted, 1e-6, 1e-6)
    with pytest.raises(ValueError, match="rotary: q: it is changed in place and overlaps k"):
        get_operator("rotary")(q, *given, qkv[:, h - 1 : 2 * h - 1])


# Lines that every author writes: the signature, the host code, the launch.
SIGNATURE = re.compile(r"CUPLUG_TYPED_\w*OPERATOR\(.*?\);\n", re.S)
HOST_CODE = re.compile(r"CUPLUG_HOST_ENTRY\(.*?\n}\n", re.S)
SCRATCH = re.compile(r" *if \(int status = call\.with_workspace\(.*?return status;\n", re.S)
LAUNCH = re.compile(
    r" *(if \(int status = |return )call\.(launch<|check\(\s*cudaMemcpy).*?;\n"
    r"( *return status;\n)?",
    re.S,
)


def lines_beyond_the_kernel(name):
    """Lines with code below the mark: heads and ends of entries, workspaces, shapes, the name."""
    text = (PLUGINS / f"{name}.cu").read_text().split("/* ---- beyond the kernel ---- */")[1]
    for part in (SIGNATURE, HOST_CODE, SCRATCH, LAUNCH):
        text = part.sub("", text)
    return sum(bool(line.strip()) for line in text.splitlines())


@pytest.mark.parametrize("name", NAMES)
def test_little_is_written_beyond_the_kernel(name):
    limit = 8 if name in ("topk", "nonzero", "batched_matmul", "running_average") else 16
    assert 2 < lines_beyond_the_kernel(name) <= limit


@pytest.mark.parametrize("name", NAMES)
def test_no_array_is_named_by_its_number(name):
    assert not re.search(r"(tensors|scalars|outputs)\[", (PLUGINS / f"{name}.cu").read_text())


if __name__ == "__main__":
    for plugin in NAMES:
        print(f"{plugin:20} {lines_beyond_the_kernel(plugin)} lines beyond kernel and host code")
