# SPDX-License-Identifier: Apache-2.0
"""Element-wise operators from expressions, compared with NumPy; NVRTC compiles their code."""

import itertools
import pickle
import re

import cuplug
import hypothesis.extra.numpy as arrays_of
import numpy as np
import pytest
from backends import COMPLEX, FLOAT8, FLOATING, SIGNED, UNSIGNED, assert_same, dtype_of
from cuplug._engine.signature.variant import Variant
from cuplug._source.compilers.headers import is_self_contained
from cuplug._source.expressions import element_wise, element_wise_loops
from expression_values import nvrtc, sliced, values
from hypothesis import given, settings
from hypothesis import strategies as st

DTYPES = [*FLOATING, *FLOAT8, *SIGNED, *UNSIGNED, *COMPLEX, "bool"]
SHAPES = [(512, 128), (128,), (32, 64, 128), (7, 1), (1, 3), (), (0, 3), (3, 0, 1), (70001,)]

LEAKY_RELU = cuplug.elementwise("leaky_relu(x: T, slope: T) -> T", "x > 0 ? x : slope * x")
ADD = cuplug.elementwise("add(a: T, b: T) -> T", "a + b")
SPLIT = cuplug.elementwise("split(x: T) -> (twice: T, number: int64)", "twice = 2 * x; number = i")
SUM = cuplug.elementwise("sum_of(a: T[...], b: T[...]) -> T[...]", "a + b")
AXPY = cuplug.elementwise("axpy(inout y: T, x: T, a: T)", "y = a * x + y")


@pytest.mark.sanitizer
@pytest.mark.parametrize("dtype", FLOATING)
def test_leaky_relu(backend, dtype):
    x = np.linspace(-1, 1, 10_000).astype(dtype_of(dtype))
    if not backend.supports(x.dtype):
        pytest.skip(f"{backend.name} has no {dtype}")
    slope = np.array(0.25, x.dtype)
    expected = np.where(x > 0, x, (x * slope).astype(x.dtype))
    assert_same(backend(LEAKY_RELU, x, 0.25), expected)


@pytest.mark.sanitizer
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype(backend, dtype):
    x, y = values(1003, dtype), values(1003, dtype, 1)
    if not backend.supports(x.dtype):
        pytest.skip(f"{backend.name} has no {dtype}")
    assert_same(backend(ADD, x, y), x + y)


@pytest.mark.sanitizer
@pytest.mark.parametrize(
    ("a", "b"),
    [
        *[((512, 128), (128,)), ((32, 64, 128), (128,)), ((7, 1), (1, 3)), ((), (5,))],
        *[
            ((0, 3), (3,)),
            ((64, 1), (1, 256)),
            ((64, 100), (64, 1)),
            ((5, 1700), (5, 1)),
            ((3, 1, 5, 1), (2, 1, 4)),
        ],
        ((2, 3, 4, 5, 6), (3, 1, 5, 1)),
    ],
    ids=str,
)
def test_broadcasting(backend, a, b):
    x, y = values(a, "float32"), values(b, "float32", 1)
    assert_same(backend(ADD, x, y), x + y)
    assert_same(backend(ADD, y, x), x + y)


@pytest.mark.sanitizer
def test_numbers_stand_for_arrays(backend):
    x = values((5, 6), "int32")
    assert_same(backend(ADD, x, 3), x + 3)
    assert_same(backend.take(ADD(3, backend.put(x), **backend.keywords)), x + 3)


@pytest.mark.sanitizer
def test_in_place(backend):
    y, x = values((50, 60), "float32"), values((60,), "float32", 1)
    expected = 3 * x + y
    assert_same(backend(AXPY, y.copy(), x, 3), expected)


@pytest.mark.sanitizer
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_elements_are_numbered_in_c_order(backend, shape):
    x = values(shape, "float32")
    twice, number = SPLIT(backend.put(x), **backend.keywords)
    assert_same(backend.take(twice), x + x)
    assert_same(backend.take(number), np.arange(x.size).reshape(shape))
    assert cuplug.last_call().device == backend.device


@pytest.mark.sanitizer
def test_the_count_of_elements(backend):
    count = cuplug.elementwise(
        "count(x: T, y: T) -> (last: bool, all: int64)", "last = i == n - 1; all = n"
    )
    for x, y in (
        (values(70001, "float32"), values(70001, "float32")),
        (values((30, 8, 128), "float32"), values((128,), "float32")),
    ):
        last, all_ = count(backend.put(x), backend.put(y), **backend.keywords)
        assert_same(backend.take(last), np.arange(x.size).reshape(x.shape) == x.size - 1)
        assert_same(backend.take(all_), np.full(x.shape, x.size))
    own = cuplug.elementwise("own(x: T, n: T) -> T", "x * n")
    assert_same(backend(own, x, 3), 3 * x)


@settings(max_examples=60)
@given(data=st.data())
def test_any_strides(backend, data):
    shape = data.draw(arrays_of.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=9))
    x = values(shape, data.draw(st.sampled_from(["float32", "int8", "float64"])))
    view = sliced(data.draw, x)
    parts = [slice(0, 1) if data.draw(st.booleans()) else slice(None) for _ in view.shape]
    one = view[(*parts, ...)]
    expected = np.asarray(view + one)
    if backend.name in ("host", "staged"):
        assert_same(ADD(view, one, **backend.keywords), expected)
        out = np.zeros_like(view)
        assert ADD(view, one, out=out, **backend.keywords) is out
        assert_same(out, expected)
        assert_same(SPLIT(view, **backend.keywords)[1], np.arange(view.size).reshape(view.shape))
    else:
        assert_same(backend(ADD, view, one), expected)


@pytest.mark.gpu
@pytest.mark.sanitizer
@pytest.mark.parametrize("library", ["torch", "cupy"])
def test_device_views_are_not_copied(library):
    x = values((70, 48, 64), "float32")
    if library == "torch":
        torch = pytest.importorskip("torch")
        moved = torch.from_numpy(x).cuda()
        views = [moved.permute(2, 0, 1), moved[::2, 1:], moved[:, :, 1:33], moved[:, :, ::3]]
        take = lambda y: y.cpu().numpy()  # noqa: E731
    else:
        cupy = pytest.importorskip("cupy")
        moved, take = cupy.asarray(x), cupy.asnumpy
        views = [moved.transpose(2, 0, 1), moved[::2, 1:], moved[:, ::-1, 1:33], moved[:, :, ::3]]
    for view in views:
        assert_same(take(ADD(view, view[:1])), take(view) + take(view[:1]))


@pytest.mark.gpu
@pytest.mark.sanitizer
def test_misaligned_device_arrays():
    torch = pytest.importorskip("torch")
    x = torch.arange(5003, dtype=torch.float32, device="cuda")
    for first in range(5):
        view = x[first : first + 4000]
        assert ADD(view, view).tolist() == (2 * view).tolist()


@pytest.mark.gpu
def test_graph_capture():
    torch = pytest.importorskip("torch")
    x = torch.arange(1000, dtype=torch.float32, device="cuda")
    out = torch.empty_like(x)
    LEAKY_RELU(x, 0.5, out=out)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        LEAKY_RELU(x, 0.5, out=out)
    x.sub_(500)
    graph.replay()
    assert torch.equal(out, torch.where(x > 0, x, 0.5 * x))


@pytest.mark.parametrize("offset", [0, 1, 13])
def test_large_outputs_on_the_host_at_any_address(offset):
    x = np.resize(values(100_003, "float32"), (8 << 20) + 77)
    end = offset + x.size
    around = [np.full(end + offset, 7, dtype) for dtype in ("float32", "int64")]
    twice, number = (array[offset:end] for array in around)
    SPLIT(x, out=(twice, number), device="cpu")
    assert_same(twice, x + x)
    assert_same(number, np.arange(x.size))
    assert all((np.concatenate([a[:offset], a[end:]]) == 7).all() for a in around)


@pytest.mark.gpu
def test_large_arrays_staged_in_slices_or_whole():
    x = values(20_000_003, "float32")
    assert_same(ADD(x, x, device="cuda"), x + x)
    assert_same(SPLIT(x, device="cuda")[1], np.arange(x.size))


@pytest.mark.gpu
@pytest.mark.large
def test_more_than_2_to_the_31_elements():
    torch = pytest.importorskip("torch")
    x = torch.zeros((2**16 + 1, 2**15 + 3), dtype=torch.int8, device="cuda")
    y = torch.arange(2**15 + 3, device="cuda").to(torch.int8)
    result = ADD(x, y)
    assert bool((result == y).all())


def test_sides_agree_to_the_bit():
    """Each operation rounds: no contraction, and NaN and infinities count."""
    mixed = cuplug.elementwise("mixed(x: T, y: T) -> T", "x * y + y / x - sqrt(x)")
    x = np.array([0.1, 1e30, np.inf, np.nan, 3, 0], np.float32)
    with np.errstate(all="ignore"):
        expected = x * x[::-1] + x[::-1] / x - np.sqrt(x)
    assert_same(mixed(x, x[::-1]), expected)


@pytest.mark.gpu
def test_gpu_agrees_with_the_host_to_the_bit():
    mixed = cuplug.elementwise("mixed(x: T, y: T) -> T", "x * y + y / x - sqrt(x)")
    x = np.random.default_rng(0).random(10000, np.float32)
    assert_same(mixed(x, x[::-1], device="cuda"), mixed(x, x[::-1]))


def test_functions():
    f = cuplug.elementwise(
        "f(x: T, y: T) -> float64", "min(x, y) + 10 * max(x, y) + 100 * abs(x - y)"
    )
    for dtype in ("int8", "int32", "int64", "float32", "float64"):
        x, y = values(50, dtype), values(50, dtype, 1)
        difference = np.abs(x.astype("f8") - y)
        expected = np.minimum(x, y) + 10.0 * np.maximum(x, y) + 100 * difference
        assert_same(f(x, y), expected)
    x = np.array([np.nan, 1, np.nan])
    least = cuplug.elementwise("least(x: T, y: T) -> T", "min(x, y)")
    assert_same(least(x, np.array([1, np.nan, np.nan])), np.full(3, np.nan))
    exp = cuplug.elementwise("exponential(x: T) -> T", "exp(x)")
    x = np.linspace(-5, 5, 100, dtype=np.float32)
    np.testing.assert_allclose(exp(x), np.exp(x), rtol=1e-6)


def test_preamble():
    f = cuplug.elementwise(
        "cubed(x: T) -> T",
        "cube(x) * FACTOR",
        preamble="#define FACTOR 2\n__device__ T cube(T x) { return x * x * x; }",
    )
    assert f(np.array([1.0, 2.0, 3.0])).tolist() == [2, 16, 54]


@pytest.mark.sample(4)
@pytest.mark.parametrize("dtype", DTYPES)
def test_nvrtc_takes_the_code(dtype):
    text = "z = max(x, min(x, abs(x))) * 2 + a; n = i; y += 1;"
    if dtype in COMPLEX:
        text = "z = exp(x) / conj(x) * 2 + a; n = i; y += abs(x);"
    op = element_wise._read(
        f"f(x: {dtype}[...], inout y: float64[...], a: {dtype}) -> "
        f"(z: {dtype}[...], n: int64[...])",
        text,
        "",
    )
    for layout in ({"width": 2, "unroll": 2}, {"ndim": 2, "still": 1, "width": 2}, {"wide": True}):
        variant = Variant(0, (dtype, "float64", dtype, "int64"), **{"ndim": 0, **layout})
        code = element_wise_loops.cuda_code(op, variant)
        assert is_self_contained(code, {})  # which compiles faster
        assert nvrtc(code)


def test_the_same_text_gives_the_same_operator():
    again = cuplug.elementwise("add(a: T, b: T) -> T", "a + b")
    other = cuplug.elementwise("add(a: T, b: T) -> T", "b + a")
    assert again == ADD
    assert other != ADD
    assert pickle.loads(pickle.dumps(ADD)) == ADD


def test_what_it_says_of_itself():
    assert ADD.name == "add"
    assert ADD.path == "<source>"
    assert ADD.device_types == ("cpu", "cuda")
    assert ADD.doc == "a + b"
    assert len(ADD.signatures) == 3
    assert "add(a: T[...], b: T) -> T[...] where T: any" in ADD.signatures
    nameless = cuplug.elementwise("found_by_none(a: T) -> T", "a")
    with pytest.raises(cuplug.NotFoundError):
        cuplug.find(nameless.name)


ILL_FORMED = {
    ("f(x: T, s: str) -> T", "x"): "f: s: got a string, expected an array or a number",
    ("f(x: T[n]) -> T[?]", "x"): "expected T[...], an input of other dimensions, or outputs of",
    ("f(x: T)", "x"): "f: got no output, expected one or an inout array",
    ("f(x: T) -> T", " "): "f: expression: got no text, expected one",
    ("f(x: T) -> x: T", "x = 1"): "two parameters are called 'x'",
    (
        "f(a: T, b: T, c: T, d: T, e: T, g: T, h: T) -> T",
        "a",
    ): "signature: got 7 parameters that may be arrays or numbers",
    ("f(x: T[...) -> T", "x"): "expected ',' or ']'",
}


@pytest.mark.parametrize(("texts", "message"), ILL_FORMED.items(), ids=str)
def test_ill_formed_definitions(texts, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        cuplug.elementwise(*texts)


def test_calls_are_checked_as_those_of_plugins():
    x = np.zeros(4, np.float32)
    with pytest.raises(ValueError, match="expected 1 or 4 to be broadcast with the other arrays"):
        SUM(x, x[:3])
    with pytest.raises(TypeError, match="axpy: x: got float64"):
        AXPY(x, np.zeros(4), 1)
    AXPY(x.copy(), x, 1)
    with pytest.raises(ValueError, match="axpy: y: got shape"):
        AXPY(x[:1], x, 1)
    with pytest.raises(ValueError, match="add: out: its memory overlaps a"):
        ADD(x[::-1], x, out=x)
    with pytest.raises(ValueError, match=r"split: twice: got float32\[5\], expected \(4,\)"):
        SPLIT(x, out=(np.zeros(5, np.float32), np.zeros(4, np.int64)))


def test_no_compiler(run_python, tmp_path):
    done = run_python(
        """
import numpy as np, cuplug
f = cuplug.elementwise("f(x: T) -> T", "x + 1")
try:
    f(np.zeros(3))
except cuplug.CompileError as error:
    print(error)
""",
        env={"PATH": str(tmp_path), "CC": None, "CUPLUG_CACHE_DIR": str(tmp_path / "cache")},
    )
    assert done.stdout.startswith("no C compiler: no cc, gcc or clang on PATH; install one")


def test_compiled_code_is_kept(run_python, tmp_path):
    code = """
import numpy as np, cuplug
print(cuplug.elementwise("f(x: T) -> T", "x + 1")(np.zeros(3)))
"""
    environment = {"CUPLUG_CACHE_DIR": str(tmp_path / "cache")}
    assert run_python(code, env=environment).stdout == "[1. 1. 1.]\n"
    stored = list((tmp_path / "cache").glob("*.so"))
    assert len(stored) == 1
    kept = stored[0].stat().st_mtime_ns
    lean = f"import sys, numpy; before = {{*sys.modules}}\n{code}"
    lean += "print({'pathlib', 'shutil', 'subprocess'} & {*sys.modules} - before)"
    assert run_python(lean, env=environment).stdout == "[1. 1. 1.]\nset()\n"
    assert stored[0].stat().st_mtime_ns == kept
    assert run_python(code, env={**environment, "CUPLUG_CACHE_BYTES": "0"}).stdout == "[1. 1. 1.]\n"


def test_importing_the_package_does_not_import_compilers(run_python):
    code = "import cuplug, sys; print({'ctypes', 'subprocess', 'tempfile'} & set(sys.modules))"
    plain = "import numpy, sys; print({'ctypes', 'subprocess', 'tempfile'} & set(sys.modules))"
    assert len(run_python(code).stdout) <= len(run_python(plain).stdout)


@pytest.mark.parametrize(
    "name", ["bool", "int16", "bfloat16", "float32", "complex64", "complex128"]
)
def test_columns_beside_rows_of_any_length(name):
    """An element that is constant along a row is repeated; long rows use another loop."""
    given_first = cuplug.elementwise("given_first(x: T, y: T) -> T", "x")
    dtype, random = dtype_of(name), np.random.default_rng(2)
    for n in (1, 31, 255, 256, 257, 1023, 1025, 2049, 4097, 9001):
        column = random.integers(0, 2 if name == "bool" else 99, (3, 1)).astype(dtype)
        rows = np.zeros((3, n), dtype)
        wanted = np.broadcast_to(column, rows.shape)
        assert_same(given_first(column, rows), wanted)
        assert_same(given_first(column[:, ::-1], rows[:, ::-1]), wanted)
        out = np.zeros((3, n + 2), dtype)
        given_first(column, rows, out=out[:, 1:-1])
        assert_same(out[:, 1:-1], wanted)
        assert not out[:, [0, -1]].any()


@pytest.mark.sample(4)
@pytest.mark.parametrize("n", [1, 4, 5, 6])
def test_parameters_that_may_be_arrays_or_numbers(n):
    names = "abcdef"[:n]
    parameters = ", ".join(f"{name}: T" for name in names)
    total = cuplug.elementwise(f"total({parameters}) -> T", " + ".join(names))
    x = np.arange(3.0)
    for passed in itertools.product((x, 2.0), repeat=n):
        if any(each is x for each in passed):
            np.testing.assert_array_equal(total(*passed), sum(passed))
