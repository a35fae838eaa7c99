# SPDX-License-Identifier: Apache-2.0
"""All functions of NumPy, called with cuplug arrays: NumPy's results, or an error."""

import cuplug
import numpy as np
import pytest

X = np.array([[3.0, 1, 2], [5, 4, 6]])
V = np.array([1.0, 2, 3])
N = np.array([0, 1, 2])
B = np.array([False, True, True])
Z = np.array([1j, 2 - 1j, -3])
M = np.array([[4.0, 1, 0], [1, 3, 1], [0, 1, 5]])
CALLS = [
    *[(x,) for x in (X, V, N, B, Z, M)],
    *[(x, 1) for x in (X, V, N, Z, M)],
    *[(x, x) for x in (X, V, N, B, Z, M)],
    *[(M, V), (V, N), (X, V), (V, V, V), (N, N, N), (Z, Z, Z), (B, V, V), (V, 1, 2), (X, 0, 1)],
    *[(N, 1, 2), (V, (3, 1)), (X, (3, 2)), (X, (1, 0)), ("ij,jk", M, M)],
    *[([x, x],) for x in (V, X, Z, B)],
]
# They create NumPy arrays, or arrays of a shape, use files, have no comparable values, or
# compute integers in float64.
LEFT_OUT = {
    *("reciprocal", "array", "asarray", "asanyarray", "asarray_chkfinite", "ascontiguousarray"),
    *("asfortranarray", "asmatrix", "bmat", "require", "from_dlpack", "frombuffer", "fromfile"),
    *("fromiter", "fromregex", "fromstring", "genfromtxt", "loadtxt", "load", "save"),
    *("savetxt", "savez", "savez_compressed", "empty", "empty_like", "full", "indices", "ones"),
    *("zeros", "array_repr", "array_str", "array2string", "may_share_memory", "shares_memory"),
    *("unique_values", "test", "info", "set_printoptions", "printoptions", "seterr"),
    *("seterrcall", "setbufsize", "show_config", "show_runtime"),
}
# dtypes differ, as documented.
OTHER_DTYPES = {"nanquantile", "quantile"}
SPACES = {"numpy": np, "numpy.linalg": np.linalg, "numpy.fft": np.fft}
NAMES = [
    f"{space}.{name}"
    for space, module in SPACES.items()
    for name in dir(module)
    if name[0] != "_" and name not in LEFT_OUT
    if callable(getattr(module, name)) and not isinstance(getattr(module, name), type)
]


def ours(x):
    """Return an argument with its arrays as cuplug arrays."""
    if isinstance(x, list):
        return [ours(each) for each in x]
    return cuplug.asarray(x.copy(), device="cpu") if isinstance(x, np.ndarray) else x


def outcome(function, arguments):
    try:
        with np.errstate(all="ignore"):
            return function(*arguments)
    except Exception as error:
        return error


def compare(found, wanted, name, is_listed):
    """Compare results. If NumPy itself joins lists of arrays, results may be NumPy arrays."""
    if isinstance(wanted, list | tuple):
        assert len(found) == len(wanted)
        for x, y in zip(found, wanted, strict=True):
            compare(x, y, name, is_listed)
    elif isinstance(wanted, np.ndarray | np.generic):
        own = bool | int | cuplug.Array | (np.ndarray | np.generic if is_listed else cuplug.Array)
        assert isinstance(found, own), type(found)
        x = np.asarray(found)
        assert x.dtype == wanted.dtype or name in OTHER_DTYPES
        np.testing.assert_allclose(x, wanted, rtol=1e-9, atol=1e-12)
    else:
        assert type(found) is type(wanted)
        assert str(found) == str(wanted)


@pytest.mark.sample(12)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("full_name", NAMES)
def test_results_are_those_of_numpy_or_an_error(full_name):
    space, _, name = full_name.rpartition(".")
    function = getattr(SPACES[space], name)
    for arguments in CALLS:
        wanted = outcome(
            function, [x.copy() if isinstance(x, np.ndarray) else x for x in arguments]
        )
        found = outcome(function, list(map(ours, arguments)))
        if isinstance(found, Exception):
            assert isinstance(found, TypeError | ValueError | IndexError | AttributeError), found
        elif not isinstance(wanted, Exception):
            compare(found, wanted, name, isinstance(arguments[0], list))
