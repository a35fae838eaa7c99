# SPDX-License-Identifier: Apache-2.0
"""Element-wise operators on GPU arrays of every layout: in packs, in lines and in tiles."""

import textwrap

import numpy as np
import pytest
from backends import dtype_of
from cuplug._source.compilers import toolkit

pytestmark = pytest.mark.slow  # other tests have small parts of it

WAYS = """
import itertools
import numpy as np
import cuplug

random = np.random.default_rng(0)


def views(x, other):
    "Pairs of views alike, of an array of three dimensions and of one on the GPU that holds it."
    orders = itertools.permutations(range(3))
    yield from ((f"{order}", *(permuted(y, order) for y in (x, other))) for order in orders)
    cuts = {"rows": np.s_[:, :, :-3], "shifted": np.s_[:, :, 1:], "stepped": np.s_[:, ::2, ::3],
            "reversed": np.s_[::-1, :, ::-1], "thin": np.s_[..., :2], "column": np.s_[:, :1, 4:5],
            "inner": np.s_[:, 1:, 2:]}
    yield from ((name, x[cut], other[cut]) for name, cut in cuts.items())
    yield "turned rows", permuted(x[:, 1:, 3:], (0, 2, 1)), permuted(other[:, 1:, 3:], (0, 2, 1))
    flat = (3, x.size - 3)
    for k in flat:
        yield "flat", x.reshape(-1)[k:], ravel(other)[k:]


def permuted(x, order):
    return x.transpose(order) if isinstance(x, np.ndarray) else \\
        cuplug.array_api.permute_dims(x, order)


def ravel(x):
    return cuplug.array_api.reshape(x, (-1,))


def values(shape, dtype):
    return random.integers(0, 7, shape).astype(dtype)


def same(seen, wanted, what):
    np.testing.assert_array_equal(np.asarray(seen.numpy()), wanted, err_msg=str(what))


def check_alone(f, wanted, dtype, shape):
    x = values(shape, dtype)
    for name, v, d in views(x, cuplug.asarray(x, device="cuda")):
        same(f(d), wanted(v), (dtype, name))
        whole = np.full(tuple(n + 5 for n in reversed(v.shape)), 9, dtype)
        for cut in (tuple(slice(2, 2 + n) for n in reversed(v.shape)),
                    tuple(slice(4, n + 4) for n in reversed(v.shape))):
            order = tuple(range(v.ndim))[::-1]
            room = cuplug.asarray(whole, device="cuda")
            out = room[cut]
            f(d, out=out if v.ndim == 1 else cuplug.array_api.permute_dims(out, order))
            expected = whole.copy()
            expected[cut] = wanted(v).transpose()
            same(room, expected, (dtype, name, "out"))


def large(dtype):
    "Views alike, of a matrix and of one on the GPU, with tiles that are whole and not."
    x = values((131, 277), dtype)
    d = cuplug.asarray(x, device="cuda")
    for cut in (np.s_[:], np.s_[:, 1:], np.s_[3:, :-3], np.s_[:128, 5:261], np.s_[::-1, ::-1],
                np.s_[::2], np.s_[:, ::2]):
        yield f"{dtype} {cut}", x[cut], d[cut]
        yield f"{dtype} {cut} turned", x[cut].T, permuted(d[cut], (1, 0))


def check_pairs(f, wanted, dtype, shape):
    x, y = values(shape, dtype), values(shape, dtype)
    firsts, seconds = (list(views(a, cuplug.asarray(a, device="cuda"))) for a in (x, y))
    for (first, a, b), (second, c, d) in itertools.product(firsts, seconds):
        if a.shape == c.shape:
            same(f(b, d), wanted(a, c), (dtype, first, second))
"""

EMULATED = """
from emulation import install_expressions, seen

install_expressions()
twice = cuplug.elementwise("twice(x: T) -> T", "x + x")
add = cuplug.elementwise("add(x: T, y: T) -> T", "x + y")
number = cuplug.elementwise("number(x: T) -> int64", "i * 8 + (int64_t)x")
"""


def test_emulated(run_emulated):
    """Shapes with complete and incomplete tiles, and shapes without tiles."""
    run_emulated(
        WAYS
        + EMULATED
        + textwrap.dedent("""
    for dtype in ("int8", "float32", "complex128"):
        seen.clear()
        for shape in ((2, 70, 37), (17, 3, 20)):
            check_alone(twice, lambda v: v + v, dtype, shape)
        walks = {name for code in seen for name in ("in_packs<", "in_lines<", "in_tiles<")
                 if "walks::" + name in code}
        assert len(walks) == 3, (dtype, walks)
    """)
    )


def test_emulated_pairs(run_emulated):
    run_emulated(
        WAYS
        + EMULATED
        + textwrap.dedent("""
    check_pairs(add, lambda v, w: v + w, "int16", (18, 18, 18))
    """)
    )


def test_emulated_large_tiles(run_emulated):
    run_emulated(
        WAYS
        + EMULATED
        + textwrap.dedent("""
    for dtype in ("int8", "int16", "float32", "float64"):
        for what, v, d in large(dtype):
            same(twice(d), v + v, what)
    mix = cuplug.elementwise("mix(x: T, y: U) -> U", "x + y")
    for a, b in (("int8", "int16"), ("int16", "float32"), ("float64", "int8"), ("int8", "int8")):
        x, y, z = values((131, 277), a), values((277, 131), b), values((131, 277), b)
        dx, dy, dz = (cuplug.asarray(each, device="cuda") for each in (x, y, z))
        turned = lambda each: permuted(each, (1, 0))
        same(mix(turned(dx), dy), (x.T + y).astype(b), (a, b, "first"))
        same(mix(dx, turned(dy)), (x + y.T).astype(b), (a, b, "second"))
        same(mix(turned(dx)[1:], turned(dz)[1:]), (x.T + z.T)[1:].astype(b), (a, b, "both"))
    """)
    )


def test_emulated_numbers(run_emulated):
    """Code that counts elements iterates over them in C order."""
    run_emulated(
        WAYS
        + EMULATED
        + textwrap.dedent("""
    x = values((3, 40, 33), "uint8")
    wanted = lambda v: np.arange(v.size).reshape(v.shape) * 8 + v
    for name, v, d in views(x, cuplug.asarray(x, device="cuda")):
        same(number(d), wanted(v), name)
    """)
    )


def run_here(body: str) -> None:
    """Run Python text on the GPU, in this process, which compute-sanitizer sees."""
    exec(WAYS + textwrap.dedent(body), {})


STOCK = """
import ml_dtypes
relu = cuplug.ops.relu
both = lambda v, w: np.where(w <= 0, w.dtype.type(0), v)


def check(dtype, *shapes):
    "relu, and relu_backward of all pairs."
    for shape in shapes:
        x = (values(shape, "float32") - 3).astype(dtype)
        for name, v, d in (*views(x, cuplug.asarray(x, device="cuda")), *large(dtype)):
            same(relu(d), np.where(v <= 0, v.dtype.type(0), v), (dtype, name))
    check_pairs(cuplug.ops.relu_backward, both, dtype, (18, 18, 18))
"""


def test_emulated_stock_operators(run_emulated, emulated_cuda):
    if not toolkit.find_nvcc():
        pytest.skip("needs the headers of nvcc")
    body = f"""
from emulation import build_plugin

build_plugin("relu")
{STOCK}
assert relu.path.startswith({str(emulated_cuda)!r})
for dtype in ("int8", "float16", "float32", "float64"):
    check(dtype, (2, 70, 37), (17, 3, 20))
    check_alone(relu, relu, dtype, (2, 35, 37))
"""
    run_emulated(WAYS + body, LD_LIBRARY_CUPLUG_PATH=str(emulated_cuda))


def test_emulated_scale(run_emulated, emulated_cuda):
    if not toolkit.find_nvcc():
        pytest.skip("needs the headers of nvcc")
    body = """
from emulation import build_plugin

build_plugin("relu")
scale, scale_backward = cuplug.ops.scale, cuplug.ops.scale_backward
for dtype in ("bfloat16", "float32", "float64", "complex64", "complex128", "int8", "uint16",
              "int32", "uint64"):
    factor = {"c": 2 - 3j, "f": 1.5, "b": 2.5}.get(dtype[0], 3)
    for shape in ((5, 40, 37), (1030,)):
        x = cuplug.asarray(values(shape, "float32"), dtype=dtype, device="cpu").numpy()
        for cut in (np.s_[..., :], np.s_[..., 1:], np.s_[..., ::2], np.s_[..., ::-1]):
            d, wanted = cuplug.asarray(x, device="cuda"), x.copy()
            scale(d[cut], factor)
            part = x[cut].copy()
            scale(part, factor)
            wanted[cut] = part
            same(d, wanted, (dtype, cut))
            if dtype[0] in "fbc":
                grad = cuplug.asarray(x, device="cuda")[cut]
                same(scale_backward(grad, factor), scale_backward(x[cut], factor), (dtype, cut))
                v, w = (permuted(each, range(x.ndim)[::-1]) for each in (x[cut], grad))
                same(scale_backward(w, factor), scale_backward(v, factor), (dtype, cut, "turned"))
"""
    run_emulated(WAYS + body, LD_LIBRARY_CUPLUG_PATH=str(emulated_cuda))


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float32", "int8", "float16", "float64"])
def test_stock_operators(dtype):
    run_here(f"{STOCK}\ncheck('{dtype}', (2, 70, 137), (17, 3, 20), (40, 40, 40))")
    run_here(f"{STOCK}\ncheck_alone(relu, lambda v: v, '{dtype}', (2, 70, 137))")


@pytest.mark.gpu
@pytest.mark.sanitizer
def test_few_layouts_of_stock_operators():
    run_here(f"{STOCK}\ncheck_alone(relu, lambda v: v, 'float32', (2, 37, 21))")
    run_here(f"{STOCK}\ncheck_alone(relu, lambda v: v, 'int8', (2, 37, 21))")


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float32", "uint8", "float64", "complex128"])
def test_expressions(dtype):
    run_here(f"""
    twice = cuplug.elementwise("twice(x: T) -> T", "x + x")
    for shape in ((2, 70, 137), (17, 3, 20)):
        check_alone(twice, lambda v: v + v, "{dtype}", shape)
    """)


@pytest.mark.gpu
def test_pairs_in_expressions():
    run_here("""
    add = cuplug.elementwise("add(x: T, y: T) -> T", "x + y")
    check_pairs(add, lambda v, w: v + w, "float32", (24, 24, 24))
    """)


@pytest.mark.gpu
def test_scale_in_place():
    import cuplug

    x = np.arange(60 * 50, dtype=np.float32).reshape(60, 50)
    for cut in (np.s_[:, 3:], np.s_[1::2, ::-1], np.s_[5:6, 1:]):
        d, wanted = cuplug.asarray(x, device="cuda"), x.copy()
        cuplug.ops.scale(d[cut].T, 3)
        wanted[cut] *= 3
        np.testing.assert_array_equal(d.numpy(), wanted)


@pytest.mark.gpu
def test_many_dimensions():
    import cuplug

    x = np.arange(1 << 12, dtype=np.float32).reshape((2,) * 12) - 100
    order = [5, 3, 11, 0, 7, 1, 9, 2, 10, 4, 8, 6]
    d = cuplug.array_api.permute_dims(cuplug.asarray(x, device="cuda"), order)
    np.testing.assert_array_equal(
        cuplug.ops.relu(d).numpy(), np.maximum(x.transpose(order), np.float32(0))
    )


@pytest.mark.gpu
@pytest.mark.large
def test_more_elements_than_32_bits_number():
    import cuplug

    x = cuplug.array_api.zeros((1 << 11, (1 << 20) + 3), dtype="int8", device="cuda")
    x[-1, -1] = 5
    x[0, 1] = 3
    for view, last, early in ((x.T, (-1, -1), (1, 0)), (x[:, 1:], (-1, -1), (0, 0))):
        y = cuplug.ops.relu(view)
        assert int(y[last]) == 5
        assert int(y[early]) == 3


def test_rows_that_take_strides_on_cuda_copy_on_the_host():
    """Overloads that take strides only on a GPU receive contiguous arrays on the host."""
    from cuplug.ops import relu

    x = np.arange(-30, 30, dtype=dtype_of("float32")).reshape(6, 10)
    np.testing.assert_array_equal(relu(x.T), np.maximum(x.T, 0))
    out = np.empty((6, 10), np.float32).T
    with pytest.raises(ValueError, match="got an array that is not C-contiguous"):
        relu(x.T, out=out)


# Slow operators, and ones with fewer stores than loads, use two packs per thread if large.
PACKS = """
power = cuplug.elementwise("power(x: T) -> T", "pow(x, (T)1.5)")
tenths = cuplug.elementwise("tenths(x: T) -> int8", "(int8_t)(x * 10)")
for f, wanted, dtype, sizes in (
    (power, lambda v: v**1.5, "float32", (1 << 20, 5_000_003)),
    (tenths, lambda v: (v * 10).astype("int8"), "float64", (300_001, 1_500_001)),
):
    for n in sizes:
        x = random.uniform(0.5, 3, n).astype(dtype)
        d = cuplug.asarray(x, device="cuda")
        result = f(d).numpy()
        np.testing.assert_allclose(result, wanted(x), rtol=1e-6)
        for cut in (np.s_[:1000], np.s_[n // 3 : n // 3 + 1000], np.s_[n - 1000 :]):
            same(f(d[cut]), result[cut], (dtype, n, cut))
"""


def test_emulated_packs_of_threads(run_emulated):
    run_emulated(
        WAYS
        + EMULATED
        + PACKS
        + textwrap.dedent("""
    for sizes in ("4, 1", "4, 2", "2, 1", "2, 2"):
        assert any(f"in_packs<{sizes}, " in code for code in seen)
    """)
    )


@pytest.mark.gpu
def test_packs_of_threads():
    run_here(PACKS)
