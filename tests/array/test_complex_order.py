# SPDX-License-Identifier: Apache-2.0
"""Complex numbers have no order: what needs one says what to use."""

import cuplug
import numpy as np
import pytest


@pytest.mark.parametrize("name", ["argmax", "argmin", "sort", "argsort"])
def test_complex_numbers_have_no_order(name):
    z = cuplug.asarray(np.array([1j, -1j, 2.0]), device="cpu")
    with pytest.raises(TypeError, match=f"{name}: x: got complex128, expected real numbers; use"):
        getattr(cuplug.array_api, name)(z)


@pytest.mark.parametrize("name", ["max", "min"])
def test_complex_numbers_have_no_order_in_fused_functions(name):
    function = cuplug.fuse(lambda x: getattr(np, name)(x))
    with pytest.raises(TypeError, match=f"{name}: got complex128, expected real numbers; use real"):
        function(np.array([1j, 2]))
    np.testing.assert_array_equal(function(np.array([3.0, 1, 2])), getattr(np, name)([3, 1, 2]))
