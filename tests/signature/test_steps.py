# SPDX-License-Identifier: Apache-2.0
"""The steps of formulas: the core and Python compute the same numbers, with the same errors."""

import re

import cuplug
import pytest
from cuplug._engine.signature.evaluate import conditions_hold, shape_of
from cuplug._engine.signature.signature import parse
from cuplug._engine.signature.steps import NoValue
from hypothesis import example, given
from hypothesis import strategies as st

PARAMETERS = (
    "x: int8[n, m], y: int8[*s], z: int8[k, ..., j], a: int, b: int, u: uint64, l: int[], "
    "p: float = 0.5, o: int = None"
)
LEAVES = [
    "n",
    "m",
    "k",
    "j",
    "a",
    "b",
    "u",
    "len(s)",
    "prod(s)",
    "len(l)",
    "prod(l)",
    "0",
    "1",
    "2",
    "7",
]
LARGE = st.integers(-(2**63), 2**63 - 1)
INTEGERS = st.integers(-3, 5) | LARGE | st.sampled_from((2**62, -(2**63), 2**63 - 1))


def operations(inner):
    """Return a strategy for nested formulas."""
    pairs = st.tuples(inner, st.sampled_from(["+", "-", "*", "//", "%"]), inner)
    return st.one_of(
        pairs.map(lambda x: f"({x[0]} {x[1]} {x[2]})"),
        pairs.map(lambda x: f"{x[0]} {x[1]} {x[2]}"),
        inner.map(lambda x: f"-{x}"),
        st.tuples(inner, inner).map(lambda x: f"min({x[0]}, {x[1]})"),
        st.tuples(inner, inner).map(lambda x: f"max({x[0]}, {x[1]})"),
        inner.map(lambda x: f"s[{x}]"),
        inner.map(lambda x: f"l[{x}]"),
    )


FORMULAS = st.recursive(st.sampled_from(LEAVES), operations, max_leaves=6)
REAL_LEAVES = st.sampled_from([*LEAVES, "p", "o", "0.5", "1e300", "9007199254740993"])
NUMBERS = st.recursive(REAL_LEAVES, operations, max_leaves=4)
ARGUMENTS = st.fixed_dictionaries(
    {
        "n": st.integers(0, 4) | st.just(2**40),
        "m": st.integers(0, 4),
        "k": st.integers(0, 4),
        "j": st.integers(1, 4),
        "s": st.lists(st.integers(0, 4), max_size=3).map(tuple),
        "a": INTEGERS,
        "b": INTEGERS,
        "u": st.integers(0, 5) | st.integers(2**63, 2**64 - 1),
        "l": st.lists(INTEGERS, max_size=3).map(tuple),
    },
    optional={"p": st.floats(), "o": st.none() | INTEGERS},
)
SOME = {"n": 3, "m": 2, "k": 1, "j": 4, "s": (2, 3), "a": 7, "b": -2, "u": 2**63 + 1, "l": (5, -4)}


def core_infers(text, names):
    """Return the core's result for a call: the sizes of the output, or the reason for none."""
    f = cuplug.operator(text, arguments="y0", host="void f(signed char *y0) {}")
    spec = cuplug.ArraySpec
    arrays = {
        "x": spec("int8", (names["n"], names["m"])),
        "y": spec("int8", names["s"]),
        "z": spec("int8", (names["k"], 9, names["j"])),
    }
    scalars = {name: names[name] for name in ("a", "b", "u", "l", "p", "o") if name in names}
    try:
        return f.infer(**arrays, **scalars).outputs[0].shape
    except ValueError as error:
        return str(error)


def size_or_reason(signature, names):
    try:
        return shape_of(signature, signature.outputs[0], names)[0]
    except NoValue as error:
        return str(error)


@given(FORMULAS, ARGUMENTS)
@example("l[0] // l[1] * u", SOME)
@example("-a % b", SOME | {"a": -(2**63)})
@example("a // b", SOME | {"a": -(2**63), "b": -1})
@example("a % b", SOME | {"a": -(2**63), "b": -1})
@example("a % (n - 3)", SOME)
@example("s[-2] * s[2]", SOME)
@example("prod(s) * a", SOME | {"s": (0, 3)})
def test_sizes_are_those_of_the_core(formula, names):
    if not re.search(r"[a-z]", formula):
        formula += " + 0 * n"
    signature = parse(f"f({PARAMETERS}) -> y0: int8[1 * ({formula})]")
    found = core_infers(signature.text, names)
    size = size_or_reason(signature, names)
    if isinstance(size, str):
        assert size in found
    elif isinstance(size, float):  # of an unsigned number beyond all integers
        assert "it is not an integer" in found
    elif size < 0:
        assert f"got {size}, expected 0 or more" in found
    else:
        assert found == (size,)


RELATIONS = st.sampled_from(["<", "<=", "==", "!=", ">=", ">"])
CHAINS = st.one_of(
    st.tuples(NUMBERS, RELATIONS, NUMBERS).map(" ".join),
    st.tuples(NUMBERS, RELATIONS, NUMBERS, RELATIONS, NUMBERS).map(" ".join),
    st.tuples(NUMBERS, st.lists(NUMBERS, min_size=1, max_size=3).map(", ".join)).map(
        lambda x: f"{x[0]} in {{{x[1]}}}"
    ),
    st.tuples(NUMBERS, RELATIONS, NUMBERS, NUMBERS).map(
        lambda x: f"{x[0]} {x[1]} {x[2]} in {{{x[3]}, 1}}"
    ),
)


@given(st.lists(CHAINS, min_size=1, max_size=3).map(" or ".join), ARGUMENTS)
@example("1 // (n - 3) == 1 or n in {a // 0, 3}", SOME)
@example("1 // (n - 3) in {1} or n < 3", SOME)
@example("prod(l) == -20 or 0 < 1", SOME)
@example("0 < n in {1, 2}", SOME)
@example("3 < n in {3} or m < 0", SOME)
def test_alternatives_and_sets_are_those_of_the_core(condition, names):
    signature = parse(f"f({PARAMETERS}) -> y0: int8[] where {condition}")
    assert signature.conditions == (condition,)
    found = core_infers(signature.text, names)
    names = {"p": 0.5, "o": None} | names
    assert (found == ()) == conditions_hold(signature, names), found


@given(NUMBERS, RELATIONS, NUMBERS, ARGUMENTS)
@example("9007199254740993", "==", "p", SOME | {"p": 9007199254740992.0})
@example("p", "!=", "p", SOME | {"p": float("nan")})
@example("min(p, 1)", "==", "p", SOME | {"p": float("nan")})
@example("max(1, p)", "<=", "1", SOME | {"p": float("nan")})
@example("u", ">", "9223372036854775807", SOME)
@example("o", ">", "0", SOME)
@example("s[p]", "==", "2", SOME | {"p": 0.0})
def test_conditions_are_those_of_the_core(left, relation, right, names):
    signature = parse(f"f({PARAMETERS}) -> y0: int8[] where {left} {relation} {right}")
    found = core_infers(signature.text, names)
    names = {"p": 0.5, "o": None} | names
    assert (found == ()) == conditions_hold(signature, names), found


def test_names_that_stand_for_nothing_yet():
    signature = parse("f(x: int8[n], k: int) -> int8[n + k]")
    for names in ({"n": 1}, {"n": 1, "k": None}):
        with pytest.raises(NoValue, match="k is not known"):
            shape_of(signature, signature.outputs[0], names)


def test_positions_of_what_is_worked_out():
    text = "f(x: int8[*s], k: int) -> int8[ k + 1, *s[1:]] where  k > 2, len(s) > 0"
    signature = parse(text)
    found = [value for _, value in signature.outputs[0].dims] + list(signature.ranges)
    assert [text[x.at : x.at + len(x.text)] for x in found] == [x.text for x in found]
    assert [x.names for x in found] == [{"k"}, {"s"}, {"k"}, {"s"}]
