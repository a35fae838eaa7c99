# SPDX-License-Identifier: Apache-2.0
"""Fused functions against the same functions of NumPy: values, dtypes, shapes, and refusals."""

import itertools
import pickle
import re

import cuplug
import numpy as np
import pytest
from backends import FLOATING, SIGNED, UNSIGNED, dtype_of
from cuplug import array_api as xp
from cuplug._source.fusion.symbol import Symbol

REAL = ["float32", "float64", "float16", *SIGNED, *UNSIGNED, "bool"]


def sample(dtype, shape, seed=0):
    rng = np.random.default_rng(seed)
    drawn = rng.normal(2, 3, shape) if dtype[0] in "fcb" else rng.integers(1, 100, shape)
    drawn = drawn + 1j * rng.normal(size=shape) if dtype[0] == "c" else drawn
    return np.asarray(drawn > 2 if dtype == "bool" else drawn).astype(dtype_of(dtype))


def check(function, *args, rtol=None):
    """Compare a fused function with the function on NumPy arrays."""
    with np.errstate(all="ignore"):
        wanted = function(*args)
    found = cuplug.fuse(function)(*args)
    pairs = zip(found, wanted, strict=True) if isinstance(wanted, tuple) else [(found, wanted)]
    for ours, theirs in pairs:
        theirs = np.asarray(theirs)
        assert ours.dtype == theirs.dtype
        assert ours.shape == theirs.shape
        if theirs.dtype.kind in "biu":
            np.testing.assert_array_equal(ours, theirs)
        else:
            eps = 1e-2 if theirs.dtype.name in ("float16", "bfloat16") else 5e-6
            near = rtol or (
                1e-12 if theirs.dtype.itemsize * (theirs.dtype.kind != "c") == 8 else eps
            )
            np.testing.assert_allclose(ours.astype(complex), theirs.astype(complex), near, near)


def gelu(x):
    return 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3)))


def mixed(x, y, a):
    return np.where(x > y, np.exp(-abs(x)) * a, np.sqrt(abs(y)) + x**2)


def rest(x, y):
    return x // y, x % y, (x + 1) * y - 3, x == y, np.maximum(x, y), -np.minimum(x, y)


def bits(x, y):
    return (x & y) | 3, x ^ y, ~x, x << 2, x >> 1


@pytest.mark.parametrize(
    "dtype", ["float32", "int32", *(pytest.param(x, marks=pytest.mark.slow) for x in ("float16",))]
)
def test_chains(dtype):
    check(gelu, sample(dtype, (70, 30)))
    check(mixed, sample(dtype, (20, 1, 5)), sample(dtype, (7, 5), 1), 2.5)


def test_bfloat16():
    x = sample("bfloat16", 1000)
    found = cuplug.fuse(gelu)(x)
    assert found.dtype == x.dtype
    np.testing.assert_allclose(found.astype("f4"), gelu(x.astype("f4")), 1e-2, 1e-2)


@pytest.mark.parametrize(
    "dtype",
    ["int8", "int64", "uint16", "float32"]
    + [pytest.param(x, marks=pytest.mark.slow) for x in ("int16", "int32", "uint8", "uint64")],
)
def test_integers_wrap_and_divide_as_those_of_numpy(dtype):
    check(rest, sample(dtype, 500), sample(dtype, 500, 1))
    if dtype[0] != "f":
        check(bits, sample(dtype, 500), sample(dtype, 500, 1))


BINARY = ["add", "subtract", "multiply", "divide", "maximum", "less", "equal"]
BINARY += ["logical_and", "pow", "hypot", "copysign"]
OTHERS = [*REAL, "truth", "int", "float", "scalar int8", "scalar float32"]


def binary(name):
    return np.power if name == "pow" else getattr(np, name)


@pytest.mark.parametrize("name", BINARY)
def test_promotion_is_that_of_numpy(name):
    """Promotion of arrays, Python numbers and NumPy scalars. If NumPy raises, so does cuplug."""
    for ours, theirs in itertools.product(REAL, OTHERS):
        x = np.ones((2, 2), ours)
        y = {"truth": True, "int": 2, "float": 1.5}.get(theirs)
        y = np.ones(2, theirs.split()[-1]) if y is None else y
        symbols = [Symbol("array", x.dtype, 0), Symbol("array", getattr(y, "dtype", type(y)), 1)]
        try:
            wanted = binary(name)(x, y).dtype
        except TypeError:
            with pytest.raises(TypeError):
                binary(name)(*symbols)
        else:
            assert binary(name)(*symbols).type == wanted


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [("int8", "uint16"), ("bool", "float32"), ("float16", "int32"), ("uint64", "float64")],
)
def test_values_are_those_of_the_promoted(ours, theirs):
    def every(x, y):
        return tuple(binary(name)(x, y) for name in BINARY if name != "subtract")

    check(every, sample(ours, (3, 4)), sample(theirs, (4,), 1))
    check(lambda x, y: (x / 3).round() + y.clip(0, 2), sample(ours, (3, 4)), sample(theirs, 4, 1))
    check(lambda x, a, b: (x * a, x / b, np.maximum(x, a)), sample(ours, 5), 2, np.float32(1.5))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_numbers(dtype):
    x, y = sample(dtype, (5, 6)), sample(dtype, 6, 1)
    check(lambda x, y: (x * y + 2j, abs(x), x.real * y.imag, np.conj(x) / y, x == y), x, y)
    check(lambda x: np.where(x.real > 0, x, 0) + np.float32(1), x)
    check(lambda x: abs(x * x).sum(axis=0), x)


REDUCED = {
    "dot": lambda x, y: (x * y).sum(),
    "norm": lambda x, y: np.sqrt(np.sum((x - y) ** 2, axis=-1)),
    "rows": lambda x, y: np.mean(x * 2 + y, axis=1, keepdims=True),
    "extremes": lambda x, y: (np.max(abs(x), axis=0), (x - y).min(axis=(0, 1))),
    "truth": lambda x, y: (np.any(x > 3, axis=0), (x > y).all(), np.count_nonzero(x > y)),
    "softmax": lambda x, y: np.exp(x - x.max(axis=-1, keepdims=True)) / y,
    "standard": lambda x, y: (x - x.mean()) / x.std() + y,
    "spread": lambda x, y: np.var(x * y, axis=0),
    "product": lambda x, y: np.prod(x / 4, axis=1),
}


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "dtype", ["float32", *(pytest.param(x, marks=pytest.mark.slow) for x in ("float64", "int32"))]
)
@pytest.mark.parametrize("name", REDUCED)
def test_reductions(name, dtype):
    rtol = 1e-4 if dtype == "float32" else 1e-10
    check(REDUCED[name], sample(dtype, (40, 30)), sample(dtype, 30, 1), rtol=rtol)


def count_calls(monkeypatch, fused, *args):
    """Return the number of operators that a call of a fused function calls."""
    plan = next(iter(fused._plans.values()))
    n, run = [0], type(plan)._run

    def counted(*given):
        n[0] += 1
        return run(*given)

    monkeypatch.setattr(type(plan), "_run", counted)
    plan(args, {})
    return n[0]


@pytest.mark.parametrize(
    ("function", "n"),
    [
        (lambda x, y: gelu(x) + y, 1),
        (lambda x, y: (x + y, x - y, x * y > 0), 1),
        (lambda x, y: np.sqrt((x * x).mean(axis=-1)), 1),
        (lambda x, y: x - x.mean(), 2),
        (lambda x, y: (x * 2, y * 2), 1),
    ],
)
def test_as_few_operators_as_it_takes(monkeypatch, function, n):
    x, y = sample("float32", (3, 4)), sample("float32", (3, 4), 1)
    fused = cuplug.fuse(function)
    fused(x, y)
    assert count_calls(monkeypatch, fused, x, y) == n
    assert len(fused._plans) == 1


def test_results_keep_their_own_shapes():
    def apart(x, y):
        return x * 2, y + 1, x + y

    check(apart, sample("float32", (3, 1)), sample("float32", (4,)))
    check(apart, sample("float32", (3, 4)), sample("float32", (3, 4)))


def test_fused_functions_call_each_other(monkeypatch):
    @cuplug.fuse
    def scaled(x, by=2.0, *, shift=0.0):
        return x * by + shift

    @cuplug.fuse
    def both(x, y):
        return scaled(x, shift=1), scaled(by=y, x=x.sum(axis=0))

    x = sample("float32", (3, 4))
    first, second = both(x, 0.5)
    np.testing.assert_array_equal(first, x * 2 + 1)
    np.testing.assert_allclose(second, x.sum(axis=0) * np.float32(0.5), rtol=1e-6)
    chained = cuplug.fuse(lambda x: scaled(scaled(x), 3.0))
    np.testing.assert_array_equal(chained(x), (x * 2) * 3)
    assert count_calls(monkeypatch, chained, x) == 1
    with pytest.raises(TypeError, match="scaled: got out in a fused function, expected none"):
        cuplug.fuse(lambda x, y: scaled(x, out=y))(x, x)


def test_arguments():
    @cuplug.fuse
    def scaled(x, factor=2.0, *, mode="plain", negate=False):
        """Scale."""
        x = x * factor if mode == "plain" else x + factor
        return -x if negate else x

    x = sample("float32", 5)
    np.testing.assert_array_equal(scaled(x), x * 2)
    np.testing.assert_array_equal(scaled(x, 3, negate=True), -x * 3)
    np.testing.assert_array_equal(scaled(x, mode="sum", factor=1), x + 1)
    np.testing.assert_array_equal(scaled(x, 1e30), x * np.float32(1e30))
    assert scaled.__doc__ == "Scale."
    assert repr(scaled).startswith("<fused function scaled(x, factor=2.0, *, mode='plain'")
    out = np.empty(5, "float32")
    assert scaled(x, out=out) is out
    np.testing.assert_array_equal(out, x * 2)
    with pytest.raises(TypeError, match="missing a required argument: 'x'"):
        scaled()


def test_numbers_that_c_does_not_write():
    x = sample("float64", 6)
    check(lambda x: (np.maximum(x, -np.inf), x + np.nan, x * -1.5e-300, x < 1e400), x)
    check(lambda x: x.astype("int64") + (-(2**63) + 200), x)
    check(lambda x: abs(x).astype("uint64") + (2**64 - 200), x)
    check(lambda x, y: x * np.float32(0.1) + y, x.astype("float32"), np.float64(0.1))


def test_arrays_of_every_kind():
    """Other libraries' are in tests/frameworks."""
    fused = cuplug.fuse(gelu)
    x = sample("float32", (4, 5))
    own = fused(cuplug.asarray(x, device="cpu"))
    assert isinstance(own, cuplug.Array)
    np.testing.assert_array_equal(own.numpy(), fused(x))
    np.testing.assert_array_equal(fused(x.T), fused(x).T)
    np.testing.assert_array_equal(fused(x[::2, ::-1]), fused(x)[::2, ::-1])
    assert fused(x[:0]).shape == (0, 5)
    assert fused(np.array(3, "float32")).shape == ()


def test_functions_of_the_standard_by_the_array_itself():
    def rooted(x):
        space = x.__array_namespace__()
        return space.sqrt(space.clip(x, 0.0, 4.0)) + space.astype(x > 1, x.dtype)

    for x in (sample("float64", 9), cuplug.asarray(sample("float64", 9), device="cpu")):
        np.testing.assert_array_equal(np.asarray(cuplug.fuse(rooted)(x)), np.asarray(rooted(x)))


W = np.ones(3)
REFUSED = {
    "if": (lambda x: x if x > 0 else -x, "write where(condition, a, b)"),
    "and": (lambda x: (x > 0) and (x < 1), "`&`, `|`, `~` for the others"),
    "float": (lambda x: float(x), "they are no Python numbers"),
    "loop": (lambda x: sum(each for each in x), "not known while the function is traced"),
    "part": (lambda x: x[0] + 1, "has no parts: index it before"),
    "product": (lambda x: x @ x, "fuse: @: no function of single elements and no reduction"),
    "mask": (lambda x: x.__setitem__(x > 0, 0), "write where(mask, value, x)"),
    "in place": (lambda x: x.__iadd__(1), "write x = x + y"),
    "shape": (lambda x: x / x.shape[0], "knows none while it is traced"),
    "sort": (lambda x: np.sort(x), "fuse: sort: no function of single elements and no reduction"),
    "reshape": (lambda x: xp.reshape(x, (-1,)), "fuse: reshape: no function of single elements"),
    "matmul": (lambda x: np.matmul(x, x), "fuse: matmul: no function of single elements"),
    "outside": (lambda x: x + W, "got ndarray, expected an argument of the function"),
    "nothing": (lambda x: 1, "returns no array, expected one"),
    "attribute": (lambda x: x.nothing, "has no attribute 'nothing'"),
    "order": (lambda x: np.cumsum(x), "fuse: cumsum: no function"),
    "keyword": (lambda x: np.sum(x, where=x > 0), "fuse: sum: "),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_fused(name):
    function, message = REFUSED[name]
    with pytest.raises((TypeError, AttributeError), match=re.escape(message)):
        cuplug.fuse(function)(np.ones(3))


def test_arguments_that_cannot_be_fused():
    fused = cuplug.fuse(gelu)
    with pytest.raises(TypeError, match="fuse: gelu: got list, expected an array, a number, a"):
        fused([1, 2])
    with pytest.raises(TypeError, match="depends on no array"):
        fused(2.0)
    with pytest.raises(TypeError, match=re.escape("got * or **, expected parameters with names")):
        cuplug.fuse(lambda *x: x[0])
    for nothing in (3, None):
        wanted = f"fuse: function: got {nothing!r}, expected a Python function of arrays"
        with pytest.raises(TypeError, match=re.escape(wanted)):
            cuplug.fuse(nothing)
    with pytest.raises(OverflowError, match=r"got 300, expected a value of int8 \(as the array\)"):
        cuplug.fuse(lambda x: x + 300)(np.ones(3, "int8"))
    with pytest.raises(OverflowError, match="got 300, expected a value of int8"):
        cuplug.fuse(lambda x, a: x + a)(np.ones(3, "int8"), 300)


def test_pickles_by_name():
    assert pickle.loads(pickle.dumps(PICKLED)) is PICKLED


@cuplug.fuse
def PICKLED(x):
    return x + 1


EMULATED = """
import sys
sys.path.insert(0, {folder!r})
import numpy as np
import cuplug
from emulation import install_expressions
install_expressions()
from test_fuse import REDUCED, bits, gelu, mixed, rest, sample
x, y = (sample("float32", (40, 1, 7)), sample("float32", (5, 7), 1))
k, m = (sample("int16", (40, 7)), sample("int16", 7, 1))
for function, args in {calls}:
    fused = cuplug.fuse(function)
    for a, b in zip(fused(*args), fused(*args, device="cuda"), strict=True):
        np.testing.assert_allclose(a, b, 1e-5, 1e-5)
"""
QUICK = '(mixed, (x, y, 2.5)), (REDUCED["norm"], (k, m))'
LONG = '(gelu, (x,)), (rest, (x, y)), (rest, (k, m)), (bits, (k, m)), (REDUCED["softmax"], (k, m))'


@pytest.mark.slow
@pytest.mark.parametrize("calls", [QUICK, pytest.param(LONG, marks=pytest.mark.slow)])
def test_the_code_for_gpus(run_emulated, calls):
    folder = __file__.rpartition("/")[0]
    run_emulated(EMULATED.format(folder=folder, calls=f"[{calls}]"))


def of_torch():
    torch = pytest.importorskip("torch")
    return lambda x: torch.from_numpy(x).cuda(), lambda x: x.cpu().numpy()


def of_cupy():
    cupy = pytest.importorskip("cupy")
    return cupy.asarray, cupy.asnumpy


PLACES = {
    "cuplug": lambda: (lambda x: cuplug.asarray(x, device="cuda"), lambda x: x.numpy()),
    "torch": of_torch,
    "cupy": of_cupy,
}


@pytest.mark.gpu
@pytest.mark.sanitizer
@pytest.mark.parametrize("library", PLACES)
def test_arrays_on_a_gpu(library):
    for dtype in ("float32", "int32"):
        x, y = sample(dtype, (40, 1, 30)), sample(dtype, (7, 30), 1)
        put, take = PLACES[library]()
        for function in (rest, lambda x, y: (gelu(x) + y,), lambda x, y: ((x * y).sum(axis=-1),)):
            fused = cuplug.fuse(function)
            moved = fused(put(x), put(y))
            assert all(type(each) is type(put(x)) for each in moved)
            for ours, host in zip(moved, fused(x, y), strict=True):
                np.testing.assert_allclose(take(ours), host, 1e-4, 1e-4)


@pytest.mark.parametrize("dtype", FLOATING)
def test_torch_calls_functions_of_symbols(dtype):
    torch = pytest.importorskip("torch")
    fused = cuplug.fuse(lambda x: torch.where(x > 0, torch.exp(-x), torch.neg(x).clip(max=2)))
    x = torch.linspace(-3, 3, 50).to(getattr(torch, dtype))
    found = fused(x)
    assert found.dtype == x.dtype
    wanted = torch.where(x > 0, torch.exp(-x), torch.neg(x).clip(max=2))
    torch.testing.assert_close(found, wanted)


def test_a_reduction_of_a_tensor_that_requires_grad_has_no_gradient():
    torch = pytest.importorskip("torch")
    x = torch.linspace(-3, 3, 12).reshape(3, 4).requires_grad_()
    found = cuplug.fuse(lambda x: np.sum(x * x, axis=-1))(x)
    torch.testing.assert_close(found.detach(), (x * x).sum(-1).detach())
    with pytest.raises(NotImplementedError, match="fused: it has no gradient"):
        found.sum().backward()
