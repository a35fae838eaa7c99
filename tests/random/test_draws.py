# SPDX-License-Identifier: Apache-2.0
"""Stock operators that draw: each bit follows the definition, at any address."""

import statistics
import textwrap

import cuplug
import numpy as np
import philox
import pytest
from cuplug._source.compilers import toolkit

GPU = [pytest.mark.gpu, pytest.mark.sanitizer]
DEVICES = ["cpu", pytest.param("cuda", marks=GPU)]
KEY, SEQUENCE = 0x0123456789ABCDEF, 0xFEDCBA9876543210
# Elements at all positions of blocks, and at the end.
FIRST = [0, 1, 2, 3, 1 << 40, (1 << 64) - 2, (1 << 64) - 5]
TWINS = 17_112_144  # of the 1000 elements from there, two have equal narrow bits
INTEGERS = [  # how many there are of a dtype: with few and with many bits that decide nothing
    ("bool", 2),
    ("int8", 256),
    ("uint16", 1000),
    ("int32", 3),
    ("int32", 1 << 24),
    ("uint32", (1 << 24) - 1),
    ("uint32", (1 << 24) + 1),
    ("int64", 1000),
    ("uint64", (1 << 24) - 1),
    ("int64", (1 << 63) + 12345),
    ("uint64", (1 << 64) - 1),
    ("uint64", 1 << 64),
]
# The three vectors of Random123 for philox4x32 with 10 rounds: counter and key, words.
KNOWN = [
    ("00000000 " * 6, "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff " * 6, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    (
        "243f6a88 85a308d3 13198a2e 03707344 a4093822 299f31d0",
        "d16cfe09 94fdcceb 5001e420 24126ea1",
    ),
]


def halves(words):
    """Return 64-bit numbers from words, the lower one first."""
    numbers = [int(word, 16) for word in words.split()]
    return [low | high << 32 for low, high in zip(numbers[::2], numbers[1::2], strict=True)]


def drawn(name, dtype, n, first, *numbers, device="cpu", lead=0, key=KEY, sequence=SEQUENCE):
    """Draw n numbers into an array that begins `lead` elements after an aligned address."""
    all_of_it = cuplug.asarray(np.zeros(n + lead + 3, dtype), device=device)
    cuplug.find(f"random.{name}")(all_of_it[lead : lead + n], key, sequence, first, *numbers)
    found = all_of_it.numpy()
    assert not found[:lead].any()
    assert not found[lead + n :].any()
    return found[lead : lead + n]


@pytest.mark.parametrize(("given", "words"), KNOWN)
def test_known_answers(given, words):
    low, high, key = halves(given)
    block = [int(word) for word in philox.philox(key, low, high)]
    assert block == [int(word, 16) for word in words.split()]
    if low >> 63:
        first = 2 * (low - (1 << 63))
        found = drawn("integers", "uint64", 2, first, 0, (1 << 64) - 1, key=key, sequence=high)
        assert found.tolist() == halves(words)
    else:
        found = drawn("integers", "uint32", 4, low, 0, (1 << 24) - 1, key=key, sequence=high)
        assert found.tolist() == [int(word, 16) >> 8 for word in words.split()]


@pytest.mark.parametrize("first", FIRST)
@pytest.mark.parametrize(("dtype", "many"), INTEGERS)
def test_integers(dtype, many, first):
    wanted = philox.integers(KEY, SEQUENCE, first, 700, 3 if many < 100 else 0, many)
    low = 3 if many < 100 else 0
    if dtype == "bool":
        low, wanted = 0, [x - 3 for x in wanted]
    found = drawn("integers", dtype, 700, first, low, many - 1)
    np.testing.assert_array_equal(found, np.array(wanted, "uint64").astype(dtype))


@pytest.mark.parametrize("first", FIRST)
def test_uniform_numbers(first):
    narrow, wide = (f(KEY, SEQUENCE, first, 700) for f in (philox.narrow, philox.wide))
    np.testing.assert_array_equal(
        drawn("uniform", "float32", 700, first, 0, 1), (narrow >> np.uint64(8)) / 2.0**24
    )
    found = drawn("uniform", "float64", 700, first, 0, 1)
    np.testing.assert_array_equal(found, (wide >> np.uint64(11)) / 2.0**53)
    np.testing.assert_allclose(drawn("uniform", "float64", 700, first, -3, 8), 8 * found - 3)


def test_normal_numbers_are_the_quantile_function():
    inverse = statistics.NormalDist().inv_cdf
    bits = philox.wide(KEY, SEQUENCE, 5, 3000)
    p = ((bits >> np.uint64(12)).astype(float) + 0.5) * 2.0**-53
    sign = np.where(bits & np.uint64(1), 1, -1)
    found = drawn("normal", "float64", 3000, 5, 0, 1)
    np.testing.assert_allclose(found, -sign * [inverse(each) for each in p], rtol=2e-15)
    bits = philox.narrow(KEY, SEQUENCE, 5, 3000).astype("int64")
    p = (bits % 2**31 | 1) / 2.0**32
    sign = np.where(bits >> 31, -1, 1)
    found = drawn("normal", "float32", 3000, 5, 0, 1)
    np.testing.assert_allclose(found, -sign * [inverse(each) for each in p], rtol=4e-7, atol=4e-8)
    shifted = drawn("normal", "float32", 3000, 5, 10, 2)
    np.testing.assert_allclose(shifted, 10 + 2 * found.astype(float), rtol=1e-7)


def test_exponential_numbers_are_the_quantile_function():
    bits = philox.wide(KEY, SEQUENCE, 5, 3000) >> np.uint64(12)
    wanted = -np.log((bits.astype(float) + 0.5) * 2.0**-52)
    np.testing.assert_allclose(drawn("exponential", "float64", 3000, 5, 0, 1), wanted, rtol=1e-15)
    bits = philox.narrow(KEY, SEQUENCE, 5, 3000).astype(float)
    wanted = -np.log((bits + 0.5) * 2.0**-32)
    found = drawn("exponential", "float32", 3000, 5, 0, 1)
    np.testing.assert_allclose(found, wanted, rtol=6e-8)
    np.testing.assert_allclose(drawn("exponential", "float32", 3000, 5, 3, 2), 3 + 2 * wanted, 6e-8)


@pytest.mark.parametrize("scale", [0, 0.1, 1, 90, 1000])
def test_lognormal_numbers_are_exponentials(scale):
    """Also of numbers whose exponentials are 0, subnormal or infinite."""
    z = drawn("normal", "float64", 3000, 5, 0.5, scale)
    with np.errstate(over="ignore", under="ignore"):
        wanted = np.exp(z)
        found = drawn("lognormal", "float64", 3000, 5, 0.5, scale)
        np.testing.assert_array_max_ulp(found, wanted, 1)
        z = drawn("normal", "float32", 3000, 5, 0, 1).astype(float) * scale + 0.5
        wanted = np.exp(z).astype("float32")
    found = drawn("lognormal", "float32", 3000, 5, 0.5, scale)
    np.testing.assert_array_max_ulp(found, wanted, 1)


@pytest.mark.parametrize("lead", range(5))
@pytest.mark.parametrize("n", [0, 1, 7, 513, 70_001])
def test_numbers_do_not_depend_on_their_place(lead, n):
    for name, dtype, numbers in kinds():
        whole = drawn(name, dtype, n + 9, 1, *numbers)
        np.testing.assert_array_equal(drawn(name, dtype, n, 4, *numbers, lead=lead), whole[3:-6])


def test_large_arrays():
    """Arrays whose stores bypass the caches, by several threads."""
    n = (32 << 20) // 4 + 1001
    whole = drawn("uniform", "float32", n, 2, 0, 1, lead=3)
    narrow = philox.narrow(KEY, SEQUENCE, 2 + n - 500, 500)
    np.testing.assert_array_equal(whole[-500:], (narrow >> np.uint64(8)) / 2.0**24)
    for at in range(0, n, 1 << 20):
        part = drawn("uniform", "float32", 3000, 2 + at, 0, 1)[: n - at]
        np.testing.assert_array_equal(whole[at : at + 3000], part)


def kinds():
    yield from (("uniform", dtype, (-1, 3)) for dtype in ("float32", "float64"))
    yield from (("normal", dtype, (1, 3)) for dtype in ("float32", "float64"))
    yield from (("exponential", dtype, (0, 3)) for dtype in ("float32", "float64"))
    yield from (("lognormal", dtype, (1, 3)) for dtype in ("float32", "float64"))
    yield from (("integers", dtype, (0, many - 1)) for dtype, many in INTEGERS)


def on_both_sides(sizes):
    """Compare numbers drawn on the host and on a GPU, bit by bit."""
    for first in FIRST:
        for lead, n in enumerate(sizes):
            for name, dtype, numbers in kinds():
                host, gpu = (
                    drawn(name, dtype, n, first, *numbers, device=device, lead=lead)
                    for device in ("cpu", "cuda")
                )
                assert host.tobytes() == gpu.tobytes(), (name, dtype, first, lead, n)


def orders_on_both_sides(sizes, first):
    for n in sizes:
        host, gpu = (cuplug.empty(n, "int64", device) for device in ("cpu", "cuda"))
        for out in (host, gpu):
            cuplug.find("sorting.permutation")(n, KEY, SEQUENCE, first, out=out)
        np.testing.assert_array_equal(host.numpy(), gpu.numpy())


@pytest.mark.gpu
@pytest.mark.sanitizer
def test_the_same_bits_on_a_gpu():
    on_both_sides((0, 1, 5, 300, 5001))
    orders_on_both_sides((0, 1, 2, 3, 1000, 1024, 1025, 4096, 4097, 5000), 3)


@pytest.mark.gpu
def test_the_same_bits_of_many_on_a_gpu():
    on_both_sides((1 << 20, 5_000_001))
    orders_on_both_sides((100_001, 1 << 20, (1 << 20) + 1, 5_000_000), TWINS)


@pytest.mark.slow
def test_the_same_bits_of_the_code_for_gpus(run_emulated, emulated_cuda):
    if not toolkit.find_nvcc():
        pytest.skip("needs the headers of nvcc")
    body = f"""
    import sys
    sys.path.insert(0, {__file__.rpartition("/")[0]!r})
    from emulation import build_plugin, build_sorting
    build_plugin("random")
    build_sorting()
    import test_draws
    test_draws.on_both_sides((0, 1, 5, 300, 1300))
    test_draws.orders_on_both_sides((0, 1, 2, 3, 65, 700, 1025), 3)
    test_draws.orders_on_both_sides((1000, 1100), test_draws.TWINS)
    import cuplug.random.generator, numpy as np
    from test_random import draw
    cuplug.random.generator.stock = cuplug.random.distributions.stock = cuplug.find
    for host, gpu in zip(draw("cpu"), draw("cuda"), strict=True):
        np.testing.assert_array_equal(host, gpu)
    """
    run_emulated(textwrap.dedent(body), LD_LIBRARY_CUPLUG_PATH=str(emulated_cuda))


@pytest.mark.parametrize("first", [0, 3, TWINS])
def test_permutations(first):
    for n in (0, 1, 2, 3, 1000, 4096, 4097, 100_000):
        out = cuplug.empty(n, "int64", "cpu")
        cuplug.find("sorting.permutation")(n, KEY, SEQUENCE, first, out=out)
        np.testing.assert_array_equal(out.numpy(), philox.permutation(KEY, SEQUENCE, first, n))


def test_elements_whose_first_bits_are_equal():
    bits = philox.narrow(KEY, SEQUENCE, TWINS, 1000)
    assert np.unique(bits).size < 1000


@pytest.mark.slow
def test_three_elements_whose_first_bits_are_equal():
    n = 20_000_000
    bits = np.sort(philox.narrow(KEY, SEQUENCE, 0, n))
    assert (bits[2:] == bits[:-2]).any()
    out = cuplug.empty(n, "int64", "cpu")
    cuplug.find("sorting.permutation")(n, KEY, SEQUENCE, 0, out=out)
    np.testing.assert_array_equal(out.numpy(), philox.permutation(KEY, SEQUENCE, 0, n))
