# SPDX-License-Identifier: Apache-2.0
"""True is not an axis, as in NumPy; other integer parameters accept bools, as in Python."""

import cuplug
import numpy as np
import pytest
from cuplug import array_api as xp
from cuplug.ops import cumulative_sum, gather, sort

total = cuplug.reduction("total(x: T) -> T", reduce="a + b", identity="0")
HOST = np.ones((2, 3))
CALLS = [
    lambda axis: total(HOST, axis=axis),
    lambda axis: total(HOST, axis=(axis,)),
    lambda axis: gather(HOST, np.array([0]), axis=axis),
    lambda axis: sort(HOST, axis=axis),
    lambda axis: cumulative_sum(HOST, axis=axis),
    lambda axis: xp.sum(cuplug.asarray(HOST), axis=axis),
    lambda axis: xp.sum(cuplug.asarray(HOST), axis=(axis,)),
    lambda axis: xp.flip(cuplug.asarray(HOST), axis=axis),
    lambda axis: xp.concat([cuplug.asarray(HOST)] * 2, axis=axis),
    lambda axis: xp.argmax(cuplug.asarray(HOST), axis=axis),
]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("axis", [True, False, np.True_])
def test_bools_are_refused(call, axis):
    with pytest.raises(TypeError, match="axis: "):
        call(axis)
    call(int(axis))


def test_other_integers_take_bools():
    x = cuplug.asarray(HOST)
    assert xp.repeat(x, True, axis=0).shape == (2, 3)
    assert cumulative_sum(HOST, axis=0, include_initial=True).shape == (3, 3)
