# SPDX-License-Identifier: Apache-2.0
"""Random number generators: equal on all devices; statistics, compared with NumPy's generator."""

import pickle
import re

import cuplug
import numpy as np
import pytest

GPU = [pytest.mark.gpu, pytest.mark.sanitizer]
DEVICES = ["cpu", pytest.param("cuda", marks=GPU)]
N = 200_000


def draw(device, seed=7, n=1003):
    """Draw from every distribution, without permutations."""
    rng = cuplug.random.Generator(seed)
    drawn = [
        *(rng.random(n, dtype, device=device) for dtype in ("float32", "float64")),
        *(rng.normal(1, 3, (n, 3), dtype, device=device) for dtype in ("float32", "float64")),
        *(rng.integers(-100, 28, n, dtype, device=device) for dtype in ("int8", "int64")),
        rng.integers(2**64 - 1, size=n, dtype="uint64", endpoint=True, device=device),
        rng.integers(2, size=n, dtype="bool", device=device),
        rng.choice(n, 10, device=device),
        *(rng.exponential(3, n, dtype, device=device) for dtype in ("float32", "float64")),
        *(rng.lognormal(1, 3, n, dtype, device=device) for dtype in ("float32", "float64")),
    ]
    return [x.numpy() for x in drawn]


def search(device, n=1003):
    """Draw by searches among sums of probabilities, and by sorting."""
    rng, p = cuplug.random.Generator(7), [0.1, 0.2, 0.3, 0.4]
    drawn = [
        *(rng.poisson(mean, n, device=device) for mean in (0.3, 1e5)),
        rng.binomial(100, 0.4, n, device=device),
        *(rng.choice(4, 3, replace, p, device=device) for replace in (True, False)),
    ]
    return [x.numpy() for x in drawn]


@pytest.mark.gpu
def test_the_same_bits_on_a_gpu():
    host, gpu = ([*draw(device), *search(device)] for device in ("cpu", "cuda"))
    for left, right in zip(host, gpu, strict=True):
        assert left.dtype == right.dtype
        np.testing.assert_array_equal(left, right)
    rng = [cuplug.random.Generator(4) for _ in range(2)]
    for n in (0, 1, 2, 1000, 100_000):
        host, gpu = rng[0].permutation(n, device="cpu"), rng[1].permutation(n, device="cuda")
        np.testing.assert_array_equal(host.numpy(), gpu.numpy())


def test_each_element_has_its_own_bits():
    """Numbers are equal if drawn in parts or at once, and on any number of threads."""
    for dtype in ("float64", "float32"):
        whole = cuplug.random.Generator(3).random(N, dtype, device="cpu").numpy()
        rng = cuplug.random.Generator(3)
        parts = [rng.random(n, dtype, device="cpu").numpy() for n in (1, 2, 70_000, N - 70_003)]
        np.testing.assert_array_equal(np.concatenate(parts), whole)
        rng.position = 17
        again = rng.random((3, 4), dtype, device="cpu")
        np.testing.assert_array_equal(again.numpy().ravel(), whole[17:29])
    rng.position = 2**64 - 2
    last = rng.random(5, dtype, device="cpu").numpy()
    assert rng.position == 3
    np.testing.assert_array_equal(last[2:], whole[:3])


def test_kinds_of_numbers_have_nothing_to_do_with_each_other():
    rng = cuplug.random.Generator(3)
    drawn = []
    for dtype in ("float32", "float64"):
        rng.position = 0
        drawn.append(rng.random(N, dtype, device="cpu").numpy().astype(float))
    assert abs(np.corrcoef(*drawn)[0, 1]) < 5 / np.sqrt(N)


def test_no_number_of_threads_changes_them(run_python):
    text = """if True:
    import cuplug, hashlib
    rng = cuplug.random.Generator(5)
    drawn = [rng.random(300_001, device="cpu"), rng.normal(size=300_001, device="cpu")]
    print(hashlib.sha256(b"".join(x.numpy().tobytes() for x in drawn)).hexdigest())
    """
    one, four = (run_python(text, {"OMP_NUM_THREADS": n}).stdout for n in "14")
    assert len(one) == 65
    assert one == four


def kolmogorov_smirnov(x, y):
    """Return the largest distance of two samples' distributions, over its 1e-6 quantile."""
    every = np.sort(np.concatenate([x, y]))
    found = [np.searchsorted(np.sort(each), every, side="right") / each.size for each in (x, y)]
    return np.abs(found[0] - found[1]).max() / np.sqrt(np.log(2e6) * (1 / x.size + 1 / y.size) / 2)


DISTRIBUTIONS = {
    "random": lambda rng: rng.random(N),
    "uniform": lambda rng: rng.uniform(-3, 5, N),
    "random float32": lambda rng: rng.random(N, dtype="float32"),
    "normal": lambda rng: rng.normal(2, 3, N),
    "standard_normal float32": lambda rng: rng.standard_normal(N, dtype="float32"),
    "integers": lambda rng: rng.integers(-1000, 1000, N),
    "integers of three": lambda rng: rng.integers(3, size=N, dtype="int8"),
    "integers of all": lambda rng: rng.integers(-(2**63), 2**63 - 1, N, endpoint=True),
    "choice": lambda rng: rng.choice(50, N),
    "choice with p": lambda rng: rng.choice(4, N, p=[0.1, 0.6, 0, 0.3]),
    "exponential": lambda rng: rng.exponential(3, N),
    "exponential float32": lambda rng: rng.standard_exponential(N, dtype="float32"),
    "lognormal": lambda rng: rng.lognormal(1, 0.3, N),
    "poisson of few": lambda rng: rng.poisson(0.2, N),
    "poisson of many": lambda rng: rng.poisson(1e7, N),
    "binomial": lambda rng: rng.binomial(20, 0.3, N),
    "binomial of many": lambda rng: rng.binomial(10**9, 0.999, N),
    "permutation": lambda rng: rng.permutation(N)[: N // 2],
}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_statistics_are_those_of_numpy(name):
    """Distributions, their moments, and the independence of neighbors."""
    with cuplug.Device("cpu"):
        x = DISTRIBUTIONS[name](cuplug.random.Generator(2024)).numpy().astype(float)
    y = np.asarray(DISTRIBUTIONS[name](np.random.default_rng(2024))).astype(float)
    assert kolmogorov_smirnov(x, y) < 1
    x, y = (x - y.mean()) / y.std(), (y - y.mean()) / y.std()
    for power in (1, 2, 3, 4):
        spread = np.sqrt(2 * (y ** (2 * power)).mean() / x.size)
        assert abs((x**power).mean() - (y**power).mean()) < 5 * spread
    for distance in (1, 2, 64):
        assert abs((x[distance:] * x[:-distance]).mean()) < 5 / np.sqrt(x.size) + abs(
            (y[distance:] * y[:-distance]).mean()
        )


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("poisson", (0,)),
        ("poisson", (1e-9,)),
        ("poisson", (0.7,)),
        ("poisson", (250.5,)),
        ("poisson", (3e6,)),
        ("binom", (0, 0.5)),
        ("binom", (7, 0)),
        ("binom", (7, 1)),
        ("binom", (7, 0.5)),
        ("binom", (10_000, 1e-4)),
        ("binom", (10**9, 0.9)),
    ],
)
def test_counts_are_the_quantile_function(name, numbers):
    """The counts equal the quantile function at the uniform numbers of the same positions."""
    stats = pytest.importorskip("scipy.stats")
    of, rng = getattr(stats, name)(*numbers), cuplug.random.Generator(11)
    u = rng.random(5000, device="cpu").numpy()
    rng.position = 0
    method = rng.poisson if name == "poisson" else rng.binomial
    found = method(*numbers, (50, 100), device="cpu").numpy()
    assert found.dtype == "int64"
    assert rng.position == 5000
    k = found.ravel()
    assert (of.cdf(k) >= u - 1e-9).all()
    assert (of.cdf(k - 1) <= u + 1e-9).all()


def test_counts_in_parts():
    """Elements depend on their positions only."""
    for draw_some in (
        lambda rng, n: rng.poisson(4.5, n, device="cpu"),
        lambda rng, n: rng.binomial(9, 0.2, n, device="cpu"),
        lambda rng, n: rng.lognormal(0, 1, n, "float32", device="cpu"),
        lambda rng, n: rng.exponential(2, n, device="cpu"),
        lambda rng, n: rng.choice(3, n, p=[0.2, 0.5, 0.3], device="cpu"),
    ):
        whole = draw_some(cuplug.random.Generator(3), 70_000).numpy()
        rng = cuplug.random.Generator(3)
        parts = [draw_some(rng, n).numpy().ravel() for n in ((), (1, 2), 60_000, 9_997)]
        np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_choices_with_probabilities_and_without_replacement():
    """Each order has NumPy's probability: the product of p / (1 - sum of earlier p)."""
    p, rng = np.array([0.5, 0.2, 0, 0.3], "float32"), cuplug.random.Generator(1)
    drawn = [rng.choice(4, 2, False, p, device="cpu").numpy() for _ in range(4000)]
    for first, second in ((0, 1), (0, 3), (1, 0), (1, 3), (3, 0), (3, 1)):
        wanted = 4000 * p[first] * p[second] / (1 - p[first])
        found = np.count_nonzero((np.array(drawn) == (first, second)).all(axis=1))
        assert abs(found - wanted) < 5 * np.sqrt(wanted)


@pytest.mark.parametrize("device", DEVICES)
def test_choices_of_parts_with_probabilities(device):
    rng = cuplug.random.Generator(1)
    x = cuplug.asarray(np.arange(12.0).reshape(3, 4), device=device)
    p = cuplug.asarray(np.array([0, 1.0, 0]), device=device)
    np.testing.assert_array_equal(rng.choice(x, (2, 2), p=p).numpy(), [[[4, 5, 6, 7]] * 2] * 2)
    one = rng.choice(x, 1, False, [0, 0, 1, 0], axis=1)
    np.testing.assert_array_equal(one.numpy(), [[2], [6], [10]])
    assert rng.choice(3, 0, p=[0, 0.5, 0.5], device=device).shape == (0,)


def test_every_order_of_few_is_as_probable():
    rng = cuplug.random.Generator(0)
    orders = np.array([rng.permutation(4, device="cpu").numpy() for _ in range(2400)])
    _, counts = np.unique(orders, axis=0, return_counts=True)
    assert len(counts) == 24
    assert ((counts - 100) ** 2 / 100).sum() < 60  # chi squared of 23: 5e-5


@pytest.mark.parametrize("device", DEVICES)
def test_arrays_in_random_order(device):
    rng = cuplug.random.default_rng(8)
    x = cuplug.asarray(np.arange(60.0).reshape(20, 3), device=device)
    moved = rng.permutation(x)
    assert str(moved.device) == str(x.device)
    order = np.argsort(moved.numpy()[:, 0])
    np.testing.assert_array_equal(moved.numpy()[order], x.numpy())
    assert (moved.numpy() != x.numpy()).any()
    columns = np.sort(rng.permutation(x, axis=1).numpy(), axis=1)
    np.testing.assert_array_equal(columns, x.numpy())
    same = cuplug.asarray(x, copy=True)
    assert rng.shuffle(same) is None
    np.testing.assert_array_equal(np.sort(same.numpy()[:, 0]), x.numpy()[:, 0])
    assert rng.choice(x, (2, 5)).shape == (2, 5, 3)
    assert rng.choice(x, (2, 5), axis=1).shape == (20, 2, 5)
    some = rng.choice(1000, 1000, replace=False, device=device).numpy()
    np.testing.assert_array_equal(np.sort(some), np.arange(1000))


@pytest.mark.parametrize("device", DEVICES)
def test_outputs_that_are_given(device):
    rng, again = cuplug.random.Generator(1), cuplug.random.Generator(1)
    out = cuplug.empty((3, 5), "float32", device)
    assert rng.normal(out=out, dtype="float32") is out
    np.testing.assert_array_equal(out.numpy(), again.normal(size=(3, 5), dtype="float32").numpy())
    host = np.empty(7)
    assert rng.random(out=host) is host
    np.testing.assert_array_equal(host, again.random(7, device="cpu").numpy())
    with pytest.raises((TypeError, ValueError), match="uniform: out: got"):
        rng.random(out=host.astype("float32"))


@pytest.mark.parametrize("device", DEVICES)
def test_outputs_that_are_strided(device):
    rng, again = cuplug.random.Generator(1), cuplug.random.Generator(1)
    wide = cuplug.asarray(np.zeros((6, 8)), device=device)
    turned = wide[::2, 1::3].T
    assert rng.normal(out=turned) is turned
    wanted = again.normal(size=(3, 3), device="cpu").numpy()
    np.testing.assert_array_equal(turned.numpy(), wanted)
    assert np.count_nonzero(wide.numpy()) == 9
    host = np.zeros((4, 6), "float32")
    rng.random(out=host[:, ::2], dtype="float32")
    wanted = again.random((4, 3), "float32", device="cpu").numpy()
    np.testing.assert_array_equal(host[:, ::2], wanted)
    assert not host[:, 1::2].any()


def test_outputs_that_cannot_be_written():
    rng = cuplug.random.Generator(1)
    for out in (np.zeros(4), np.zeros(8)[::2]):
        out.flags.writeable = False
        with pytest.raises((TypeError, ValueError), match="read-only"):
            rng.random(out=out)
    assert rng.position == 0


def test_tails_of_normal_numbers():
    """Of 2^23 numbers, some are farther than 5 deviations away, equally many on both sides."""
    for dtype in ("float32", "float64"):
        x = cuplug.random.Generator(6).standard_normal(1 << 23, dtype, device="cpu").numpy()
        for distance, probability in ((3, 1.349898e-3), (4, 3.167124e-5), (5, 2.866516e-7)):
            wanted = probability * x.size
            for side in (x > distance, x < -distance):
                assert abs(np.count_nonzero(side) - wanted) < 5 * np.sqrt(wanted) + 1


def test_seeds_and_children():
    first = draw("cpu", seed=1, n=50)
    for other, is_same in ((1, True), (2, False), ([1, 2], False), (2**100, False)):
        drawn = draw("cpu", seed=other, n=50)
        assert np.array_equal(first[0], drawn[0]) is is_same
    children = cuplug.random.Generator(1).spawn(3)
    drawn = {child.random(device="cpu").numpy().item() for child in children}
    assert len(drawn | {first[1][0]}) == 4
    again = cuplug.random.Generator(np.random.SeedSequence(1).spawn(3)[2])
    assert again.random(device="cpu").numpy().item() in drawn
    assert cuplug.random.Generator().position == 0
    rng = cuplug.random.default_rng(again)
    assert rng is again
    kept = pickle.loads(pickle.dumps(rng))
    left, right = (x.random(5, device="cpu").numpy() for x in (kept, rng))
    np.testing.assert_array_equal(left, right)
    assert repr(kept) == "<generator of seed 1, (2,), position 6>"


REFUSED = [
    (lambda r: r.random(3, "int32"), "uniform: dtype: got int32, expected float32 or float64"),
    (lambda r: r.normal(0, -1), "normal: scale: got -1, expected a number that is not negative"),
    (lambda r: r.integers(0), "integers: low, high: got 0 and 0, expected low < high"),
    (lambda r: r.integers(-1, 5, 3, "uint8"), "integers: low, high: got -1 and 5, expected"),
    (lambda r: r.integers(0, 129, 3, "int8"), "expected low < high, and numbers that int8 holds"),
    (lambda r: r.integers(5, dtype="float32"), "integers: dtype: got float32, expected bool or"),
    (lambda r: r.permutation(-1), "permutation: x: got -1, expected a number that is not negative"),
    (lambda r: r.choice(3, 4, replace=False), "choice: size: got 4 of 3, expected no more"),
    (lambda r: r.choice(0, 2), "choice: a: got 0 to choose from, expected at least 1"),
    (lambda r: r.choice([], 2), "choice: a: got 0 to choose from, expected at least 1"),
    (lambda r: r.choice(-1), "choice: a: got -1 to choose from, expected at least 1"),
    (lambda r: r.choice("a"), "choice: a: got 'a', expected an integer"),
    (lambda r: type(r)(-1), "seed: got -1, expected an integer of at least 0, a sequence of them"),
    (lambda r: type(r)("a"), "seed: got 'a', expected an integer of at least 0"),
    (lambda r: r.integers(0.5, 2), "integers: low: got 0.5, expected an integer"),
    (lambda r: r.random(-1), "size: got (-1,), expected sizes of at least 0"),
    (lambda r: r.random("a"), "size: got 'a', expected an integer"),
    (lambda r: setattr(r, "position", -1), "position: got -1, expected 0 <= position < 2**64"),
    (lambda r: setattr(r, "position", "a"), "position: got 'a', expected an integer"),
    (lambda r: r.exponential(-1), "exponential: scale: got -1, expected a finite number of at"),
    (lambda r: r.lognormal(np.inf), "lognormal: mean: got inf, expected a finite number"),
    (lambda r: r.lognormal(-np.inf), "lognormal: mean: got -inf, expected a finite number"),
    (lambda r: r.lognormal(0, np.nan), "lognormal: sigma: got nan, expected a finite number of"),
    (lambda r: r.exponential(1, 3, "int8"), "exponential: dtype: got int8, expected float32 or"),
    (lambda r: r.poisson(-1), "poisson: lam: got -1, expected a finite number of at least 0"),
    (lambda r: r.poisson(1e12), "poisson: lam: got 1000000000000.0, expected at most 2**32; use"),
    (lambda r: r.binomial(-1, 0.5), "binomial: n: got -1, expected 0 <= n <= 2**53"),
    (lambda r: r.binomial(5, 1.5), "binomial: p: got 1.5, expected 0 <= p <= 1"),
    (lambda r: r.binomial(2**50, 0.5), "expected a variance of at most 2**32; use normal"),
    (lambda r: r.choice(3, p=[0.5, 0.5]), "choice: p: got shape (2,), expected (3,), as a"),
    (lambda r: r.choice(2, p=[0.5, 0.6]), "choice: p: got a sum of 1.1, expected 1; divide by it"),
    (lambda r: r.choice(2, p=[-0.5, 1.5]), "choice: p: got -0.5, expected probabilities of at"),
    (lambda r: r.choice(2, p=[np.nan, 1]), "choice: p: got nan, expected probabilities of at"),
    (lambda r: r.choice(2, p=[0j, 1]), "choice: p: got complex128, expected real numbers"),
    (lambda r: r.choice(3, 3, False, [0.5, 0, 0.5]), "got 2 that are not 0, expected at least 3"),
    (lambda r: r.shuffle([1, 2]), "shuffle: x: got list, expected a cuplug.Array"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_what_cannot_be_drawn(call, message):
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        call(cuplug.random.Generator(0))


def test_names_of_older_ways_to_draw():
    with pytest.raises(AttributeError, match=r"'rand': .* generator, as rng = default_rng\(seed\)"):
        cuplug.random.rand(3)
