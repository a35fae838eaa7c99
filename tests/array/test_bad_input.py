# SPDX-License-Identifier: Apache-2.0
"""Whatever functions of arrays are given, they do what is meant or say what they wanted."""

import inspect
from typing import Any

import cuplug
import numpy as np
import pytest
from cuplug import array_api

ARRAY = cuplug.asarray(np.arange(6.0).reshape(2, 3), device="cpu")
BAD: list[Any] = [None, "a", b"ab", 0.5, -1, 10**400, 1j, float("nan"), object(), int, print, ...]
BAD += [(), (1, 2), [], [[1], [2, 3]], {1: 2}, slice(None), np.zeros((2, 2)), np.array("a")]
FUNCTIONS = [x for x in map(array_api.__dict__.get, array_api.__all__) if callable(x)]
FUNCTIONS.remove(array_api.__array_namespace_info__)  # which takes nothing


def check(call: Any, *arguments: Any, **keywords: Any) -> None:
    """Call; an exception must say what was wanted."""
    try:
        call(*arguments, **keywords)
    except (TypeError, ValueError, IndexError, MemoryError) as error:
        said = str(error)
        if "seen" not in said or not any(
            x in said for x in ("wanted", "which", "cannot", "has to")
        ):
            raise AssertionError(f"{call.__name__}{arguments} {keywords}: {error!r}") from error


def tried(call: Any, first: Any) -> None:
    """Call with one bad argument after the other, in each place."""
    known = inspect.signature(call).parameters.values()
    named = [x.name for x in known if x.kind is x.KEYWORD_ONLY and x.name != "api_version"]
    places = [x for x in known if x.kind in (x.POSITIONAL_ONLY, x.POSITIONAL_OR_KEYWORD)]
    needed = [x for x in places if x.default is x.empty]
    for bad in BAD:
        check(call, *[bad] * max(len(needed), 1))
        check(call, first, *[bad] * (len(needed) - 1))
        for name in named:
            check(call, first, *[1] * (len(needed) - 1), **{name: bad})


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
