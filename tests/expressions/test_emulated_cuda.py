# SPDX-License-Identifier: Apache-2.0
"""Generated CUDA code, run without a GPU: launched by the core on the fake driver, compiled by the
C++ compiler, with fibers for threads. test_element_wise.py compiles the code with NVRTC."""

import os
import textwrap

import pytest
from emulated_driver import need_nvrtc

PRELUDE = """
import itertools, os, subprocess, sys
import numpy as np
import cuplug
from emulation import emulate, install_expressions, seen

install_expressions()
random = np.random.default_rng(0)


def values(shape, dtype):
    return random.integers(0, 7, shape).astype(dtype)


"""


@pytest.fixture
def run(run_emulated):
    """Return a function that runs Python text with expressions for the emulated GPU."""
    return lambda body: run_emulated(PRELUDE + textwrap.dedent(body))


def test_contiguous(run):
    """Packs and the remaining elements, aligned and not."""
    body = """
    class Part:
        def __init__(self, array, first, n):
            interface = dict(array.__cuda_array_interface__)
            pointer = interface["data"][0] + first * array.dtype.itemsize
            self.__cuda_array_interface__ = {**interface, "data": (pointer, False), "shape": (n,)}

    f = cuplug.elementwise("f(x: T, y: T) -> (z: T, n: int64)", "z = x * 2 + y; n = i")
    for dtype in ("float32", "uint8", "float64", "bool", "bfloat16"):
        if dtype == "bfloat16":
            import ml_dtypes
            dtype = ml_dtypes.bfloat16
        for n in (0, 1, 5, 4096, 70001):
            x, y = values(n, dtype), values(n, dtype)
            z, number = f(x, y, device="cuda")
            np.testing.assert_array_equal(z, f(x, y)[0])
            np.testing.assert_array_equal(number, np.arange(n))
    buffer = cuplug.asarray(np.arange(5003, dtype="float32"), device="cuda")
    for first in range(5):
        z = f(Part(buffer, first, 4000), Part(buffer, first, 4000))[0]
        np.testing.assert_array_equal(z.numpy(), 3 * np.arange(first, first + 4000))
    """
    run(body)


@pytest.mark.slow
def test_broadcast_and_strided(run):
    run("""
    add = cuplug.elementwise("add(a: T, b: T) -> T", "a + b")
    shapes = [((512, 128), (128,)), ((32, 64, 128), (128,)), ((5, 1), (1, 7)), ((64, 1), (1, 256)),
              ((), (3,)), ((4, 3, 2), (3, 1)), ((3, 1, 5, 1), (2, 1, 4)), ((64, 100), (64, 1))]
    for (a, b), dtype in zip(shapes, itertools.cycle(("float32", "int8"))):
        x, y = values(a, dtype), values(b, dtype)
        np.testing.assert_array_equal(add(x, y, device="cuda"), x + y)
        count = cuplug.elementwise("count(a: T, b: T) -> int64", "n - i")
        wanted = np.arange((x + y).size, 0, -1).reshape((x + y).shape)
        np.testing.assert_array_equal(count(x, y, device="cuda"), wanted)
    x = values((40, 24, 60), "float32")
    for v in (x.T, x[::2, ::-1], x.transpose(1, 0, 2), x[:, :, ::3], x[..., :1], x[:, :, 1:57]):
        np.testing.assert_array_equal(add(v, v[:1], device="cuda"), v + v[:1])
        out = np.zeros_like(x.T if v.shape == x.T.shape else v)
        add(v, v[:1], out=out, device="cuda")
        np.testing.assert_array_equal(out, v + v[:1])
    assert len(seen) < 60, len(seen)
    """)


def test_in_place_and_scalars(run):
    run("""
    axpy = cuplug.elementwise("axpy(inout y: T, x: T, a: T) ", "y = a * x + y")
    y, x = values((50, 60), "float32"), values((60,), "float32")
    wanted = 3 * x + y
    axpy(y, x, 3, device="cuda")
    np.testing.assert_array_equal(y, wanted)
    turned = np.asfortranarray(y)
    axpy(turned, x, 1, device="cuda")
    np.testing.assert_array_equal(turned, wanted + x)
    """)


REDUCED = """
    total = cuplug.reduction("total(x: T) -> T", reduce="a + b", identity="0")
    largest = cuplug.reduction("largest(x: T) -> T", reduce="max(a, b)")
    def check(x):
        axes = [None, (), *range(x.ndim), *itertools.combinations(range(x.ndim), 2)]
        for axis, keep in itertools.product(axes, (False, True)):
            got = total(x, axis=axis, keepdims=keep, device="cuda")
            np.testing.assert_array_equal(got, x.sum(axis=axis, keepdims=keep, dtype=x.dtype))
            if x.size:
                got = largest(x, axis=axis, keepdims=keep, device="cuda")
                np.testing.assert_array_equal(got, x.max(axis=axis, keepdims=keep))
"""


@pytest.mark.sample(9)
@pytest.mark.parametrize(
    "shape", [(), (5,), (3, 4), (4, 30, 8), (0, 3), (3, 0), (70, 3), (3, 4100)], ids=str
)
def test_reductions(run, shape):
    run(f"{REDUCED}\n    check(values({shape}, 'float32'))\n    check(values({shape}, 'int8').T)")


@pytest.mark.slow
def test_reductions_in_parts(run):
    run(
        REDUCED
        + """
    for x in (values(100003, "float32"), values((2, 40000), "int16"), values((20000, 8), "int64"),
              values((5000, 12), "float32"), values((3, 2000, 40), "uint8")):
        for axis in (None, 0, x.ndim - 1):
            got = total(x, axis=axis, device="cuda")
            np.testing.assert_array_equal(got, x.sum(axis=axis, dtype=x.dtype))
            got = largest(x[::-1], axis=axis, device="cuda")
            np.testing.assert_array_equal(got, x[::-1].max(axis=axis))
    """
    )


def test_reductions_of_several_arrays(run):
    run("""
    dot = cuplug.reduction("dot(x: T, y: T, scale: float = 1.0) -> float64", map="scale * x * y",
                           reduce="a + b", post="sqrt(a / n)", identity="0")
    x, y = values((60, 128), "float32"), values((128,), "float32")
    for axis in (None, 0, 1):
        wanted = np.sqrt((2 * x.astype("f8") * y).mean(axis=axis))
        np.testing.assert_allclose(dot(x, y, scale=2, axis=axis, device="cuda"), wanted, rtol=1e-12)
    assert np.isnan(dot(x[:0], y, device="cuda"))
    """)


@pytest.mark.slow
def test_reductions_of_several_values(run):
    run("""
    minmax = cuplug.reduction("minmax(x: T) -> (low: T, high: T)",
                              reduce="low = min(a.low, b.low); high = max(a.high, b.high)")
    better = "(b > a) | ((b != b) & (a == a))"
    argmax = cuplug.reduction("argmax(x: T) -> int64", choose=better, post="i")
    for x in (values((40, 50), "float32"), values((3, 9000), "int8"), values((70000, 3), "float32"),
              values((70000, 8), "int16")):
        for v, axis in itertools.product((x, x.T, x[::-1]), (None, 0, 1)):
            np.testing.assert_array_equal(argmax(v, axis=axis, device="cuda"), v.argmax(axis))
            low, high = minmax(v, axis=axis, device="cuda")
            np.testing.assert_array_equal(low, v.min(axis))
            np.testing.assert_array_equal(high, v.max(axis))
    """)


@pytest.mark.slow
def test_scans(run):
    run("""
    sums = cuplug.scan("sums(x: T) -> T", reduce="a + b")
    before = cuplug.scan("before(x: T) -> T", reduce="a + b", identity="0", exclusive=True)
    linear = cuplug.scan("linear(m: T, c: T) -> T", accumulate="factor: T, term: T",
                         map="factor = m; term = c", post="a.term", reduce="factor = a.factor * "
                         "b.factor; term = b.factor * a.term + b.term")
    for x in (values(50, "int32"), values((4, 30, 8), "int32"), values((2, 40000), "int32"),
              values((3000, 6), "int32"), values(0, "int32")):
        m = x % 2 + 1
        for axis in range(x.ndim):
            wanted = np.cumsum(x, axis, dtype="int32")
            np.testing.assert_array_equal(sums(x, axis=axis, device="cuda"), wanted)
            np.testing.assert_array_equal(before(x, axis=axis, device="cuda"), wanted - x)
            np.testing.assert_array_equal(linear(m, x, axis=axis, device="cuda"),
                                          linear(m, x, axis=axis))
    for shape in ((3,), (4, 30, 8), (2, 40000), (3000, 6)):
        x = np.full(shape, -0.0)
        for axis, device in itertools.product(range(x.ndim), ("cpu", "cuda")):
            assert sums(x, axis=axis, device=device).tobytes() == x.tobytes()
    """)


@pytest.mark.slow
def test_complex_numbers(run):
    """The host uses the complex numbers of C, CUDA code uses complex.cuh."""
    run("""
    text = ("x * y / (x - (T)2) + 3 * x - y / 4 + 1 / x + exp(y) + log(x) * sqrt(y) - sin(x) + "
            "cos(y) * sinh(x) - cosh(y) + tan(x) / tanh(y) + pow(x, 2) * pow(y, x) + "
            "conj(x) * abs(y) + real(x) * complex(imag(y), arg(x)) + (x != y ? -x : y) + a")
    f = cuplug.elementwise("f(x: T, y: T, a: T) -> T", text)
    exact = cuplug.elementwise("exact(x: T, y: T, a: T) -> T", "x * y / (x - a) + 3 * x - 1 / x")
    total = cuplug.reduction("total(x: T) -> T", reduce="a + b", identity="0")
    for dtype in ("complex64", "complex128"):
        x, y = ((random.normal(size=(70, 301)) + 1j * random.normal(size=(70, 301))).astype(dtype)
                for _ in range(2))
        near = dict(rtol=200 * np.finfo(dtype).eps, atol=200 * np.finfo(dtype).eps)
        np.testing.assert_allclose(f(x, y, 2j, device="cuda"), f(x, y, 2j), **near)
        for v in (x, x.T, x[:, ::2], x[::-1]):
            np.testing.assert_array_equal(exact(v, v[:1], 2 - 1j, device="cuda"),
                                          exact(v, v[:1], 2 - 1j))
            for axis in (None, 0, 1):
                wanted = v.sum(axis=axis)
                np.testing.assert_allclose(total(v, axis=axis, device="cuda"), wanted,
                                           rtol=1e-4 if dtype == "complex64" else 1e-12)
    """)


def test_float8(run):
    run("""
    import ml_dtypes
    add = cuplug.elementwise("add(x: T, y: T) -> T", "x + y")
    total = cuplug.reduction("total(x: T) -> float32", reduce="a + b", accumulate="float32")
    for dtype in (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2):
        x = np.arange(256, dtype=np.uint8).view(dtype)
        y = x.reshape(-1, 1)
        with np.errstate(all="ignore"):
            wanted = x + y
        got = add(x, y, device="cuda")
        np.testing.assert_array_equal(got.astype("f4"), wanted.astype("f4"))
        x = values((300, 7), dtype)
        np.testing.assert_array_equal(total(x, axis=0, device="cuda"), x.astype("f4").sum(axis=0))
    """)


def test_large_host_arrays_in_parts(run):
    run("""
    add = cuplug.elementwise("add(a: T, b: T) -> T", "a + b")
    number = cuplug.elementwise("number(x: T) -> int64", "i")
    x = values(2_500_001, "float32")
    np.testing.assert_array_equal(add(x, x[:1], device="cuda"), x + x[:1])
    np.testing.assert_array_equal(number(x, device="cuda"), np.arange(x.size))
    """)


PICK = """
    import pickle
    import cuplug._source.expressions.kernel_operator as from_source

    def compile_to_binary(source, **options):
        "In a process without the fake driver, which NVRTC would open."
        from_source.load_functions = lambda image, name, symbols, device: emulate(
            source, options["names"], device, name, {}, (), space="")
        code = ("import pickle, sys\\n"
                "from cuplug._source.compilers.jit import compile_to_binary as compile\\n"
                "source, options = pickle.load(sys.stdin.buffer)\\n"
                "pickle.dump(compile(source, **options), sys.stdout.buffer)")
        environment = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"}
        done = subprocess.run([sys.executable, "-c", code], input=pickle.dumps((source, options)),
                              env=environment, capture_output=True, check=True)
        return pickle.loads(done.stdout)

    from_source.compile_to_binary = compile_to_binary
    source = '''
    __global__ void pick(const T *x, const int64_t *index, T *y, int n, int64_t m, float a,
                         cuplug_fault *fault) {
      int64_t k = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
      if (k >= m) return;
      if (index[k] < 0 || index[k] >= n)
        return cuplug_fault_index(fault, 1, k, index[k], 0, n);
      y[k] = a * x[index[k]];
    }'''
    signature = "pick(x: T[n], index: int64[m], a: float = 2.0) -> y: T[m] where T: float32 | int8"
    settings = dict(arguments="x, index, y, n, m, a, fault", cuda=source, threads="m")
    def raised(error, *arguments, **changes):
        try:
            cuplug.operator(signature, **{**settings, **changes})(*arguments, device="cuda")
        except error as problem:
            return str(problem)
"""


def test_operators_of_a_kernel(run):
    need_nvrtc()
    run(
        PICK
        + """
    pick = cuplug.operator(signature, **settings)
    x, index = values(100, "float32"), np.array([3, 99, 0] * 200)
    np.testing.assert_array_equal(pick(x, index, device="cuda"), 2 * x[index])
    np.testing.assert_array_equal(pick(x, index, 3, device="cuda"), 3 * x[index])
    assert pick(x, index[:0], device="cuda").shape == (0,)
    text = raised(IndexError, x, index + 1)
    assert text == "pick: index: index 100 at position 1 is out of bounds for size 100", text
    text = raised(ValueError, x, index, arguments="x, index, y, m * 4294967296, m, a, fault")
    assert text == ("pick: arguments: m * 4294967296: got 2576980377600, expected -2147483648 to "
                    "2147483647, what the type of its parameter can hold"), text
    huge = "x, index, y, n * 4611686018427387904, m, a, fault"
    text = raised(ValueError, x, index, arguments=huge)
    assert text == ("pick: arguments: n * 4611686018427387904: its value exceeds 64 "
                    "bits (n = 100)"), text
    text = raised(ValueError, x, index, threads="n // (m - m)")
    assert text == "pick: threads: n // (m - m): it divides by zero (n = 100, m = 600)", text
    text = raised(ValueError, x, index, threads=None, grid="0 - m")
    assert text == "pick: grid: 0 - m: got -600, expected 0 to 2147483647", text
    both = cuplug.operator(signature, **{**settings, "threads": None, "block": (64, 1),
                                         "grid": ("(m + 63) // 64", 1, 1), "shared": "n % 8 - 4"})
    np.testing.assert_array_equal(both(x, index, device="cuda"), 2 * x[index])
    """
    )


SAME = """
    import sys
    sys.path.insert(0, {folder!r})
    import test_same_numbers as same
    for call in {calls!r}:
        eval("same." + call)
"""
QUICK = [
    "test_powers_of_integers('int8', 'cuda')",
    "test_powers_of_integers('uint64', 'cuda')",
    "test_negative_powers_on_a_gpu('cuda')",
    "test_least_and_greatest_of_mixed_integers('int32 uint32', 'cuda')",
    "test_least_and_greatest_of_mixed_integers('int64 uint64', 'cuda')",
    "test_reductions_of_floats_that_become_integers('int32', 'cuda')",
    "check('cuda', 'int32', ['min(x, y) * (x >> 3)', 'pick(x < y, ~x, K(7))'])",
]
LONG = [
    "test_floats_that_become_integers('float64', 'cuda')",
    "test_floats_that_become_integers('float32', 'cuda')",
    "test_powers_of_floats_are_of_floats('cuda')",
    "test_least_and_greatest_of_floats('float32', 'cuda')",
]


@pytest.mark.slow
@pytest.mark.parametrize("calls", [QUICK, pytest.param(LONG, marks=pytest.mark.slow)])
def test_the_same_numbers_as_on_the_host(run, calls):
    run(SAME.format(folder=os.path.dirname(__file__), calls=calls))


@pytest.mark.slow
def test_what_kernels_are_given(run):
    """The same arguments as for functions on the host."""
    need_nvrtc()
    calls = [
        *(f"test_numbers_that_a_parameter_cannot_hold({x!r}, 'cuda')" for x in ("int8_t", "int")),
        "test_numbers_are_those_of_python('cuda')",
        "test_scalars_of_each_kind('cuda')",
        "test_pointers_to_structures_get_whole_ones('cuda')",
        "test_bool_is_a_truth_value('cuda')",
    ]
    body = SAME.replace("test_same_numbers", "test_passes")
    run(PICK + body.format(folder=os.path.dirname(__file__), calls=calls))


@pytest.mark.slow
def test_whole_arrays_and_none(run):
    run("""
    text = "0 <= k && k < n ? x[k] : 0"
    take = cuplug.elementwise("take(x: T[n], k: int64[...]) -> T[...]", text)
    grid = cuplug.elementwise("grid(h: int, w: int) -> int64[h, w]", "i / w * 10 + i % w + n")
    import ml_dtypes
    for dtype in ("float32", ml_dtypes.bfloat16, "int8"):
        x, k = values(1000, dtype), random.integers(-20, 1020, (7, 501))
        for a, b in ((x, k), (x[::3], k[:, ::2])):
            np.testing.assert_array_equal(take(a, b, device="cuda"), take(a, b))
    for h, w in ((0, 3), (1, 1), (70, 1001)):
        np.testing.assert_array_equal(grid(h, w, device="cuda").numpy(), grid(h, w))
    x, k = values(100_000, "float32"), random.integers(0, 100_000, 2_500_000)
    shift = cuplug.elementwise("shift(x: T[n], k: int64[...], y: T[...]) -> T[...]", "x[k] + y")
    np.testing.assert_array_equal(take(x, k, device="cuda"), x[k])
    np.testing.assert_array_equal(shift(x, k, x[:1], device="cuda"), x[k] + x[0])
    """)


@pytest.mark.slow
def test_inverse_functions_of_complex_numbers(run):
    """Also functions that C lacks: equal to NumPy's, on both sides of their branch cuts."""
    run("""
    from cuplug import array_api as xp
    x = 3 * random.normal(size=(2, 500)) + 3j * random.normal(size=(2, 500))
    z = np.concatenate([x.ravel(), 1e-3 * x.ravel(), [2, -2, 2j, -2j, 0.5, -0.5, 0.5j, -0.5j, 0],
                        [complex(2, -0.0), complex(-2, -0.0), complex(-0.0, 2), complex(-0.0, -2)]])
    names = {"acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh",
             "atan": "arctan", "atanh": "arctanh"}
    others = ["expm1", "log1p", "log2", "log10", "tanh", "sign"]
    for name in (*names, *others):
        with np.errstate(all="ignore"):
            wanted = getattr(np, names.get(name, name))(z)
        for device in ("cpu", "cuda"):
            found = getattr(xp, name)(xp.asarray(z, device=device)).numpy()
            np.testing.assert_allclose(found, wanted, 1e-12, 1e-14, err_msg=f"{name} {device}")
    """)
