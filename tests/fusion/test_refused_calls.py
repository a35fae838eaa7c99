# SPDX-License-Identifier: Apache-2.0
"""Calls that fused functions reject, with the function's name."""

import cuplug
import numpy as np
import pytest


def test_arguments_and_calls_that_a_function_has_not():
    @cuplug.fuse
    def add(x, y):
        return x + y

    @cuplug.fuse
    def endless(x):
        return endless(x)

    x = np.ones(3, np.float32)
    for call in (lambda: add(x), lambda: cuplug.fuse(lambda x: add(x))(x)):
        with pytest.raises(TypeError, match="^fuse: add: missing a required argument: 'y'$"):
            call()
    with pytest.raises(TypeError, match="^fuse: add: too many positional arguments$"):
        add(x, x, x)
    with pytest.raises(RecursionError, match="^fuse: endless: it calls itself without end$"):
        endless(x)
