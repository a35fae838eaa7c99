# SPDX-License-Identifier: Apache-2.0
"""Keywords of overloads that name their parameters differently: each is bound by its names."""

from itertools import permutations

import cuplug
import numpy as np
import pytest
from places import FIXTURES

F4, F8 = np.ones(3, "float32"), np.ones(3)


@pytest.fixture(scope="module")
def renamed(build_plugin):
    return cuplug.load(build_plugin(FIXTURES / "renamed.c", "renamed"))


@pytest.mark.parametrize(("x", "row"), [(F4, 1), (F8, 2)])
def test_names_in_another_order(renamed, x, row):
    keywords = {"x": x, "low": 1.5, "high": 2.5}
    for names in permutations(keywords):
        for n_named in range(1, 4):
            named = {name: keywords[name] for name in names[-n_named:]}
            rest = [name for name in ("x",) if name not in named]
            if len(rest) + n_named == 3:
                args = [keywords[name] for name in rest]
                assert renamed.swapped(*args, **named).tolist() == [row, 2.5, 1.5]
    assert renamed.swapped(x, 1.5, 2.5).tolist() == [row, *([2.5, 1.5], [1.5, 2.5])[row - 1]]
    assert renamed.swapped.infer(x, low=1, high=2).overload == row - 1


def test_a_name_that_stands_further_behind(renamed):
    f = renamed.longer
    assert f(F4, lr=0.5).tolist() == f(lr=0.5, x=F4).tolist() == [1, 0.5, 0]
    for call in (
        lambda: f(F4, F4, lr=0.5),
        lambda: f(F4, master=F4, lr=0.5),
        lambda: f(F4, lr=0.5, master=F4),
        lambda: f(master=F4, lr=0.5, x=F4),
        lambda: f(F4, F4, 0.5),
    ):
        assert call().tolist() == [2, 0.5, 0]


def test_an_overload_without_the_name_is_passed_over(renamed):
    f = renamed.renamed
    assert f(F4, scale=2.0).tolist() == [1, 2, 0]
    assert f(F4, shift=2.0).tolist() == [2, 2, 0]
    assert f.infer(F4, shift=2.0).overload == 1
    assert f(F4, 2.0).tolist() == [1, 2, 0]


def test_defaults_are_those_of_the_overload(renamed):
    f = renamed.later
    assert f(F4).tolist()[0] == f(F4, axis=3).tolist()[0] == 1
    assert f(F4, scale=2.0).tolist() == f(scale=2.0, x=F4).tolist() == [2, 2, 0]
    assert f(F4, axis=3, scale=2.0).tolist() == [2, 2, 0]


def test_outputs_and_devices_stand_beside_them(renamed):
    out = np.zeros(3)
    assert renamed.swapped(F8, low=1, out=out, device="cpu", high=2) is out
    assert out.tolist() == [2, 2, 1]


def test_scalars_and_arrays_of_numpy(renamed):
    f = renamed.swapped
    for x in (F4, np.repeat(F8, 2)[::2]):
        seen = f(x, low=np.float32(1.5), high=np.array(2.5))
        assert seen.tolist() == [1 if x is F4 else 2, 2.5, 1.5]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda f: f.renamed(F4, scale=1, shift=2),
            r"renamed: got the keywords scale, shift, expected those of one overload:\n"
            r"  renamed\(x: float32\[n\], scale: float\) -> float64\[3\]\n  renamed\(x: ",
        ),
        (lambda f: f.longer(F4, 0.5, lr=0.5), "longer: master: .*closest of 2 signatures"),
        (lambda f: f.renamed(F4, 1, scale=2), "renamed: scale: got two values, by position and k"),
        (
            lambda f: f.swapped(F4, low=1, hgih=2),
            "swapped: got unknown argument hgih, expected x, low",
        ),
        (lambda f: f.swapped(F4, low=1), "swapped: high: "),
        (lambda f: f.swapped("x", low=1, high=2), r"swapped: x: got .* \(the closest of 2 sign"),
    ],
)
def test_refusals(renamed, call, message):
    with pytest.raises(TypeError, match=message):
        call(renamed)
