# SPDX-License-Identifier: Apache-2.0
"""Structures, values by address, outputs of unknown sizes, and C and C++ in descriptions."""

import cuplug
import numpy as np
import pytest
from places import FIXTURES

pytest.importorskip("cffi")

PROTOTYPES = """
struct pair { double x; int k; };
struct slice { const double *data; long n; };
struct opaque;
double product(struct pair p);
int sum(struct slice *s, double *total);
int range(long n, int64_t **made, size_t *size);
void range_free(void *made);
size_t positive(const double *x, size_t n, double *found);
size_t too_many(const double *x, size_t n, double *found);
long alive(void);
"""
RANGE = {
    "signature": "range(n: int) -> r: int64[?]",
    "arguments": "n, made, size",
    "scratch": "made: int64[*]; size: uint64",
    "outputs": "r: made[size]",
    "free": "range_free",
}
POSITIVE = {
    "signature": "positive(x: float64[n]) -> found: float64[?]",
    "arguments": "x, n, room",
    "scratch": "room: float64[n]; size: uint64",
    "returns": "size",
    "outputs": "found: room[size]",
}
PRODUCT = {
    "signature": "product(x: float, k: int) -> r: float64[]",
    "arguments": "p",
    "scratch": "p: struct pair = {x, 2 * k}",
    "returns": "r",
}


@pytest.fixture
def adopt(build_plugin):
    """Return a function that adopts one function."""
    library = build_plugin(FIXTURES / "objects.c", "objects", extra=["-fvisibility=default"])

    def adopt(name, **description):
        found = cuplug.adopt(library, {"prototypes": PROTOTYPES, name: description})
        return getattr(found, name)

    return adopt


def test_a_structure_by_value(adopt):
    product = adopt("product", **PRODUCT)
    assert product(2.5, 3) == 15
    with pytest.raises(ValueError, match="product: arguments: 2 . k: got 4294967296"):
        product(2.5, 2**31)


def test_a_structure_by_address_with_an_array(adopt):
    total = adopt(
        "total",
        function="sum",
        signature="total(x: float64[n]) -> r: float64[]",
        arguments="s, r",
        scratch="s: struct slice = {x, n}",
    )
    x = np.arange(5.0)
    assert total(x) == 10
    assert total(x[::2]) == 6


def test_a_member_is_a_size(adopt):
    """The function leaves 0 in it."""
    empty = adopt(
        "empty",
        function="sum",
        signature="empty(x: float64[n]) -> (r: float64[], rest: float64[?])",
        arguments="s, r",
        scratch="s: struct slice = {x, n}; room: float64[n]",
        outputs="rest: room[s.n]",
    )
    total, rest = empty(np.ones(3))
    assert total == 3
    assert rest.shape == (0,)


@pytest.mark.parametrize("n", [0, 1, 1000])
def test_memory_that_the_function_allocates(adopt, n):
    alive = adopt("alive", signature="alive() -> r: int64[]", arguments="", returns="r")
    found = adopt("range", **RANGE)(n)
    assert np.array_equal(found, np.arange(n))
    assert found.dtype == np.int64
    assert alive() == 0


def test_memory_that_the_function_does_not_allocate(adopt):
    with pytest.raises(cuplug.PluginError, match="range: r: got NULL in made, expec"):
        adopt("range", **RANGE)(-1)


def test_room_that_is_used_in_part(adopt):
    positive = adopt("positive", **POSITIVE)
    x = np.random.default_rng(3).normal(size=100)
    np.testing.assert_array_equal(positive(x), x[x > 0])
    assert positive(x[:0]).shape == (0,)


def test_more_than_the_room(adopt):
    message = r"positive: found: got shape \(4,\), expected at most 3 elements in room"
    with pytest.raises(cuplug.PluginError, match=message):
        adopt("positive", **{**POSITIVE, "function": "too_many"})(np.ones(3))


def test_scratch_of_another_dtype(adopt):
    with pytest.raises(ValueError, match=r"positive: arguments: got room, expected double \*"):
        adopt(
            "positive",
            **{
                **POSITIVE,
                "scratch": "room: complex128[n]; size: uint64",
                "signature": "positive(x: float64[n]) -> found: complex128[?]",
            },
        )


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"outputs": "r: made"}, r"outputs: got 'r: made', expected output: scratch\[sizes\]"),
        ({"outputs": "r: made[size, size]"}, "outputs: got 'r: made.size, size.', expected output"),
        ({"outputs": "r: other[size]"}, "outputs: got 'r: other.size.', expected output: scratch"),
        ({"outputs": "r: size[size]"}, "outputs: r: got size of uint64, expected int64"),
        ({"outputs": ""}, r"signature: got \?, expected sizes that are known, or `outputs`"),
        ({"scratch": "made: int64[*]; size: struct opaque"}, "scratch: size: got struct opaque, e"),
        ({"scratch": "made: int64[*]; size: unknown"}, "scratch: size: got unknown, expected a dt"),
        ({"scratch": "made: int64[*]; size: uint64 = {n, n}"}, "scratch: size: got 2, expected 1 "),
        ({"scratch": "made: float64[*]; size: uint64",
          "signature": "range(n: int) -> r: float64[?]"},
         r"arguments: got made, expected int64_t \* \*"),
        ({"free": "unknown"}, "function: got 'unknown', expected a function"),
        ({"returns": "made"}, "returns: got int for made, expected a pointer"),
    ],
)  # fmt: skip
def test_wrong_descriptions(adopt, changed, message):
    with pytest.raises(ValueError, match=f"range: {message}"):
        adopt("range", **{**RANGE, **changed})


SOURCE = "int cuplug_answer(int x) { return OFFSET + x; }\n"
ANSWER = {
    "function": "cuplug_answer",
    "signature": "answer(x: int) -> r: int32[]",
    "arguments": "x",
    "returns": "r",
}


@pytest.mark.parametrize("language", ["", 'extern "C" '])
def test_functions_that_the_description_has(language):
    described = {
        "source": language + SOURCE,
        "options": ["-DOFFSET=40"],
        "prototypes": "int cuplug_answer(int x); double ceil(double x);",
        "answer": ANSWER,
        "ceil": {"signature": "ceil(x: float) -> r: float64[]", "arguments": "x", "returns": "r"},
    }
    found = cuplug.adopt("libm.so.6", described)
    assert found.answer(2) == 42
    assert found.ceil(2.5) == 3  # of the library itself
    other = cuplug.adopt("libm.so.6", {**described, "options": ["-DOFFSET=50"]})
    assert other.answer(2) == 52
    assert found.answer(2) == 42


def test_errors_of_source_show_its_lines():
    described = {"source": SOURCE, "prototypes": "int cuplug_answer(int x);", "answer": ANSWER}
    with pytest.raises(
        cuplug.CompileError, match="(?s)source: line 1: 'OFFSET' undeclared.*> 1 | int"
    ):
        cuplug.adopt("libm.so.6", described)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"source": 3}, "source: got 3, expected C or C.. as text"),
        ({"options": "-O3"}, "options: got '-O3', expected a list of texts"),
    ],
)
def test_source_and_options_are_checked(changed, message):
    described = {"prototypes": "int cuplug_answer(int x);", "answer": ANSWER, **changed}
    with pytest.raises(ValueError, match=message):
        cuplug.adopt("libm.so.6", described)
