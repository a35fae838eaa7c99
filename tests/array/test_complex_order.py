# SPDX-License-Identifier: Apache-2.0
"""Complex numbers have no order: functions that need one name an alternative."""

import cuplug
import numpy as np
import pytest

OF_ONE = ("argmax", "argmin", "sort", "argsort", "max", "min", "median", "ptp")
OF_TWO = ("searchsorted", "clip", "maximum", "minimum", "less", "greater_equal")


@pytest.mark.parametrize("space", [cuplug.array_api, np], ids=lambda x: x.__name__)
@pytest.mark.parametrize("name", OF_ONE + OF_TWO)
def test_complex_numbers_have_no_order(name, space):
    z = cuplug.asarray(np.array([1j, -1j, 2.0]), device="cpu")
    with pytest.raises(TypeError, match="got complex128, expected real numbers; use real, imag"):
        getattr(space, name)(*[z] * (1 if name in OF_ONE else 3 if name == "clip" else 2))


@pytest.mark.parametrize("name", ["max", "min"])
def test_complex_numbers_have_no_order_in_fused_functions(name):
    function = cuplug.fuse(lambda x: getattr(np, name)(x))
    with pytest.raises(TypeError, match=f"{name}: got complex128, expected real numbers; use real"):
        function(np.array([1j, 2]))
    np.testing.assert_array_equal(function(np.array([3.0, 1, 2])), getattr(np, name)([3, 1, 2]))
