# SPDX-License-Identifier: Apache-2.0
"""With any arguments, functions of arrays return correct results or report what they expected."""

import inspect
from typing import Any

import cuplug
import numpy as np
import pytest
from cuplug import array_api

ARRAY = cuplug.asarray(np.arange(6.0).reshape(2, 3), device="cpu")
BAD: list[Any] = [None, "a", b"ab", 0.5, -1, 10**400, 1j, float("nan"), object(), int, print, ...]
BAD += [(), (1, 2), [], [[1], [2, 3]], {1: 2}, slice(None), np.zeros((2, 2)), np.array("a")]
FUNCTIONS = [x for x in (getattr(array_api, name) for name in array_api.__all__) if callable(x)]
FUNCTIONS.remove(array_api.__array_namespace_info__)  # which takes no arguments


def check(call: Any, *arguments: Any, **keywords: Any) -> None:
    """Call; the message of an exception must contain the expectation."""
    try:
        call(*arguments, **keywords)
    except (TypeError, ValueError, IndexError, MemoryError) as error:
        said = str(error)
        wanted = ("expected", "which", "cannot", "has to")
        if not ("got " in said and any(x in said for x in wanted)):
            raise AssertionError(f"{call.__name__}{arguments} {keywords}: {error!r}") from error


def tried(call: Any, first: Any) -> None:
    """Call with each bad argument in each position."""
    known = inspect.signature(call).parameters.values()
    named = [x.name for x in known if x.kind is x.KEYWORD_ONLY and x.name != "api_version"]
    places = [x for x in known if x.kind in (x.POSITIONAL_ONLY, x.POSITIONAL_OR_KEYWORD)]
    needed = [x for x in places if x.default is x.empty]
    for bad in BAD:
        check(call, *[bad] * max(len(needed), 1))
        check(call, first, *[bad] * (len(needed) - 1))
        for name in named:
            check(call, first, *[1] * (len(needed) - 1), **{name: bad})


@pytest.mark.sample(6)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda x: x.__name__)
def test_functions_of_arrays(function):
    tried(function, ARRAY)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "name", ["random", "uniform", "normal", "integers", "permutation", "choice", "spawn", "shuffle"]
)
def test_random_numbers(name):
    tried(getattr(cuplug.random.default_rng(1), name), 2)


def test_random_numbers_that_no_dtype_holds():
    rng = cuplug.random.default_rng(1)
    for low, high, dtype in [
        (-1.7e308, 1.7e308, "float64"),
        (0, np.inf, "float64"),
        (0, 1e39, "f4"),
    ]:
        with pytest.raises(ValueError, match="uniform: low, high: got .*, expected numbers whose"):
            rng.uniform(low, high, 3, dtype)


def test_a_failed_draw_draws_nothing():
    rng = cuplug.random.default_rng(1)
    with pytest.raises(ValueError, match="uniform: out: got"):
        rng.random(5, out=np.empty(4))
    assert rng.position == 0


SENTENCES = [
    (lambda x: cuplug.Array(1), "cuplug.Array: make one with cuplug.asarray"),
    (lambda x: cuplug.Module(1), "cuplug.Module: make one with cuplug.compile"),
    (lambda x: cuplug.Kernel(1), "cuplug.Kernel: get one from a module"),
    (lambda x: cuplug.Operator(1), "cuplug.Operator: get one with cuplug.find"),
    (lambda x: cuplug.Plugin(), "cuplug.Plugin: get one with cuplug.load"),
    (lambda x: cuplug.Plugin((1,)), "cuplug.Plugin: operators: got int, expected cuplug.Operator"),
    (lambda x: x.__delitem__(0), "cuplug.Array: elements cannot be deleted"),
    (lambda x: x.__array__("nope"), "__array__: dtype: got 'nope', expected a dtype"),
    (lambda x: x.__array__("\udcff"), "__array__: dtype: got .*, expected a dtype"),
    (lambda x: x.__dlpack__(max_version="a"), "max_version: got 'a', expected two integers"),
    (lambda x: x.__dlpack__(dl_device=5), "dl_device: got 5, expected two integers"),
    (lambda x: pow(x, 2, 3), "unsupported operand"),
    (lambda x: cuplug.empty_pinned(3, 10**400), "empty_pinned: dtype: got"),
    (
        lambda x: cuplug.elementwise("f(x: T) -> T where T: float32", "x", options=np.array(1)),
        "a seq",
    ),
    (lambda x: array_api.nextafter(*[array_api.astype(x, "float16")] * 2), "expected float32 or"),
]


@pytest.mark.parametrize(("call", "says"), SENTENCES, ids=[says[:30] for _, says in SENTENCES])
def test_sentences(call, says):
    with pytest.raises(TypeError, match=says):
        call(ARRAY)


def test_long_integers():
    """Python itself does not write integers of more than 4,300 digits."""
    for call in (cuplug.empty, cuplug.Device, lambda n: array_api.sum(ARRAY, axis=n)):
        with pytest.raises(ValueError, match="beyond"):
            call(10**5000)


def test_names_of_devices_of_any_str():
    assert str(cuplug.empty(1, device=np.str_("cpu")).device) == "cpu"


def test_lists_that_are_too_deep_beside_what_is_no_number():
    deep: Any = 1
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(TypeError, match="asarray: x: got list, expected numbers"):
        cuplug.asarray([deep, np.array("a"), _Refusing()])


class _Refusing:
    def __array__(self, dtype=None, copy=None):
        raise TypeError("no")


@pytest.mark.parametrize(
    ("indices", "exception", "message"),
    [
        (np.zeros((2, 3)), TypeError, "indices: got float64, expected integers"),
        (np.zeros((2, 3), bool), TypeError, "indices: got bool, expected integers"),
        (np.zeros(3, int), ValueError, "indices: got 1 dimensions, expected 2, as x has"),
    ],
)
def test_indices_along_an_axis(indices, exception, message):
    with pytest.raises(exception, match=f"take_along_axis: {message}"):
        array_api.take_along_axis(ARRAY, cuplug.asarray(indices, device="cpu"))
