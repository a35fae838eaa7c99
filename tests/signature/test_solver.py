# SPDX-License-Identifier: Apache-2.0
"""Arguments that satisfy the conditions of a signature."""

import re

import pytest
from cuplug import testing
from cuplug._engine.signature.evaluate import LOOP, conditions_hold
from cuplug._engine.signature.signature import parse
from cuplug._engine.signature.solver import Unsolved, solve
from cuplug._integration.author.bench_arguments import sized_arguments
from hypothesis import HealthCheck, given, settings

SOLVED = {
    "c % 256 == 0": "x: float32[n, c]",
    "2 <= width <= 4": "x: float32[d, n], w: float32[d, width]",
    "n == 2 * m": "x: float32[n], y: float32[m]",
    "heads % groups == 0, groups > 1": "x: float32[heads], y: float32[groups]",
    "h % g == 0, h > g, d % 16 == 0, 32 <= d <= 256, g > 2": "x: float32[h, d], y: float32[g, d]",
    "0 <= k < n": "x: float32[n], k: int",
    "rows * cols == n, rows > 1, cols > 1": "x: float32[n], rows: int, cols: int",
    "m % 64 == 0, n % 64 == 0, k % 32 == 0, m > 0, n > 0": "x: float32[m, k], y: float32[k, n]",
    "k * k == n, k > 2": "x: float32[n], k: int",
    "n == groups * size, size % 32 == 0": "x: float32[n], groups: int, size: int",
    "0 < p < 0.5": "x: float32[n], p: float",
    "n % 2 == 1": "x: float32[n - 1], y: float32[n]",
    "len(s) >= 3, -len(s) <= axis < len(s), s[0] % 8 == 0": "x: float32[*s], axis: int",
    "len(sizes) == len(xs), len(xs) > 3": "xs: float32[n][], sizes: int[]",
    "n % 7 == 3, n > 1000": "x: float32[n]",
}


def drawn(text, **how):
    """Return arguments that are drawn for a signature."""
    found = []

    @given(testing.arguments(text, **how))
    @settings(max_examples=15, database=None, deadline=None, suppress_health_check=[*HealthCheck])
    def draw(arguments):
        found.append(arguments)

    draw()
    return found


def names_of(signature, arguments):
    """Return the values of a signature's names in a call, read from the arrays."""
    names = {x.name: arguments.get(x.name, x.default) for x in signature.parameters}
    for x in signature.parameters:
        array = arguments[x.name][0] if x.kind == "arrays" else arguments[x.name]
        for at, (kind, value) in enumerate(x.dims):
            if kind == "variadic":
                names[signature.dim_names[value]] = array.shape
            elif kind == "named":
                names[signature.dim_names[value]] = array.shape[at]
    return names


@pytest.mark.parametrize("conditions", SOLVED)
def test_conditions_are_solved(conditions):
    text = f"f({SOLVED[conditions]}) where {conditions}"
    signature = parse(text)
    found = drawn(text, sizes=testing.SMALL)
    assert found
    for arguments in (*found, sized_arguments(signature, 1 << 16)):
        assert conditions_hold(signature, names_of(signature, arguments))


def test_sizes_differ_from_each_other():
    found = drawn("f(x: float32[n, c]) where c % 256 == 0", sizes=testing.SMALL)
    assert len({arguments["x"].shape[1] for arguments in found}) > 2


def test_memory_is_bounded():
    found = drawn("f(x: float32[n], k: int) -> float32[n, k] where k % 1000 == 0")
    for arguments in found:
        assert arguments["x"].size * arguments["k"] * 4 <= testing.MAX_BYTES


def test_close_to_what_was_wished():
    signature = parse("f(x: float32[n, m], k: int) where n % 64 == 0, k <= m")
    fixed = {LOOP: (), "x": (None,)}
    assert solve(signature, fixed, {"n": 1000, "m": 7, "k": 3}) == fixed | {
        "n": 1024,
        "m": 7,
        "k": 3,
    }
    assert 0 <= solve(signature, fixed | {"m": 2}, {"n": 64, "k": 3})["k"] <= 2
    assert solve(signature, fixed | {"m": 2}, {"n": 64, "k": 300})["k"] == 2


@pytest.mark.parametrize(
    ("conditions", "named"),
    [
        ("n > 5, n < 3", "n > 5, n < 3"),
        ("n >= 0, n % 2 == 1, n % 4 == 0", "n % 2 == 1, n % 4 == 0"),
        pytest.param(
            "m >= 0, n * n == 2 * m * m + 3, n < 10",
            "n * n == 2 * m * m + 3",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_conditions_that_nothing_satisfies_are_named(conditions, named):
    signature = parse(f"f(x: float32[n], y: float32[m]) where {conditions}")
    with pytest.raises(Unsolved, match=f"^f: no values satisfy {re.escape(named)}$"):
        solve(signature, {}, {"n": 3, "m": 3})
    with pytest.raises(Unsolved):
        drawn(signature.text)


def test_elements_in_a_range_that_conditions_state():
    text = "f(x: float32[m], index: int64[n]) where 0 <= index < m"
    for all_bits in (False, True):
        for arguments in drawn(text, all_bits=all_bits):
            assert all(0 <= i < arguments["x"].size for i in arguments["index"])
    assert sized_arguments(parse(text), 1 << 12)["index"].max() > 0


def test_arguments_are_made_by_functions():
    def k(names):
        return names["n"] + 1

    def index(names):
        assert names["dtype"] == "int64"
        return [names["n"]] * names["shape"][0]

    for arguments in drawn("f(x: int8[n], index: int64[n], k: int)", made={"k": k, "index": index}):
        n = arguments["x"].size
        assert (arguments["k"], arguments["index"]) == (n + 1, [n] * n)
    with pytest.raises(ValueError, match=r"^arguments: made: got unknown name z, expected"):
        testing.arguments("f(x: int8[n])", made={"z": k})


def test_conditions_do_not_empty_arrays():
    """An unnamed output does not belong to a condition on sizes."""
    text = (
        "f(x: float32[rows, c], eps: float = 0.5) -> float32[rows, c] where c % 256 == 0, 0 < eps"
    )
    assert any(arguments["x"].size for arguments in drawn(text))
