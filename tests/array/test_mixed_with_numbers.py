# SPDX-License-Identifier: Apache-2.0
"""Arrays with Python numbers, NumPy scalars and arrays without dimensions, as in NumPy."""

import operator
import warnings

import cuplug
import numpy as np
import pytest
from cuplug import array_api as xp
from cuplug.array_api.dtypes import NAMES

_ARITHMETIC = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow")
_BITS = ("and_", "or_", "xor", "lshift", "rshift")
_COMPARED = ("eq", "ne", "lt", "le", "gt", "ge")
OPERATORS = {name: getattr(operator, name) for name in (*_ARITHMETIC, *_BITS, *_COMPARED)}
OPERATORS["divmod"] = divmod
IN_PLACE = [f"i{name.rstrip('_')}" for name in (*_ARITHMETIC, *_BITS)]
ORDERED = ("lt", "le", "gt", "ge")  # the standard has no order of complex numbers; NumPy has one
# Small numbers of each kind, and ones that wrap, round or exceed the range of some dtype.
PYTHON = [
    True,
    0,
    3,
    -1,
    200,
    300,
    2**31,
    -(2**40),
    2**63,
    2**70,
    0.5,
    1e5,
    1e300,
    float("inf"),
    2j,
]
VALUES = {"b": [True], "i": [3, -1, 100], "u": [3, 200], "f": [0.5, 3, 1e4], "c": [2j]}
OTHERS = PYTHON + [np.dtype(x).type(v) for x in NAMES for v in VALUES[np.dtype(x).kind]]
OTHERS += [np.array(v, x) for x in NAMES for v in VALUES[np.dtype(x).kind][-1:]]


def elements(dtype):
    kind = np.dtype(dtype).kind
    return np.array(
        {"b": [0, 1, 1], "i": [-7, 2, 100], "u": [7, 2, 200]}.get(kind, [-7.5, 2, 300]), dtype
    )


def outcome(function, *args):
    """Return the result of a call: an array, or "none"."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            found = function(*args)
        except (TypeError, ValueError, OverflowError, NotImplementedError):
            return None
    return found


def differ(found, wanted):
    """Return the difference of two outcomes; "" if they are equal."""
    if found is None or wanted is None:
        return None if found is wanted else f"{found!r}, expected {wanted!r}"
    if isinstance(wanted, tuple):
        return next(filter(None, map(differ, found, wanted)), None)
    if not isinstance(found, cuplug.Array):
        return f"{found!r} of {type(found).__name__}"
    if found.dtype != wanted.dtype or found.shape != wanted.shape:
        return f"{found.dtype}{found.shape}, expected {wanted.dtype}{wanted.shape}"
    if are_close(found.numpy(), wanted):
        return None
    return f"{found.numpy()}, expected {wanted}"


def are_close(x, y):
    """Compare exactly, except powers of complex numbers, which NumPy computes by multiplication."""
    if y.dtype.kind != "c":
        eps = 0 if y.dtype.kind in "biu" else 4 * float(np.finfo(y.dtype).eps)
        return np.allclose(x, y, rtol=eps, atol=0, equal_nan=True)
    are_finite = np.isfinite(x) & np.isfinite(y)
    x, y, eps = x[are_finite], y[are_finite], 400 * np.finfo(y.dtype).eps
    return bool(np.all(abs(x - y) <= eps * abs(y)))


def is_apart(name, x, other):
    """Return whether a case differs from the standard, or is undefined, as in docs/arrays.md."""
    kinds = x.dtype.kind + np.result_type(other).kind
    return name in ORDERED and "c" in kinds


@pytest.mark.sample(60)
@pytest.mark.parametrize("dtype", [*NAMES, "float16"])
@pytest.mark.parametrize("name", OPERATORS)
def test_operators_promote_numbers_as_numpy_does(name, dtype):
    x, function, wrong = elements(dtype), OPERATORS[name], []
    ours = cuplug.asarray(x.copy(), device="cpu")
    for other in OTHERS:
        if is_apart(name, x, other):
            continue
        for args, theirs in (((ours, other), (x, other)), ((other, ours), (other, x))):
            seen = differ(outcome(function, *args), outcome(function, *theirs))
            if seen:
                side = "left" if args[0] is ours else "right"
                wrong.append(f"{side} of {other!r} of {type(other).__name__}: {seen}")
    assert not wrong, f"{len(wrong)}:\n" + "\n".join(wrong[:20])


@pytest.mark.sample(12)
@pytest.mark.parametrize("dtype", [*NAMES, "float16"])
@pytest.mark.parametrize("name", IN_PLACE)
def test_in_place_operators_cast_numbers_as_numpy_does(name, dtype):
    wrong, function = [], getattr(operator, name)
    for other in OTHERS:
        x = elements(dtype)
        ours = cuplug.asarray(x.copy(), device="cpu")
        wanted = outcome(function, x, other)
        seen = differ(outcome(function, ours, other), wanted)
        seen = seen or differ(ours, elements(dtype) if wanted is None else x)
        if seen:
            wrong.append(f"{other!r} of {type(other).__name__}: {seen}")
    assert not wrong, f"{len(wrong)}:\n" + "\n".join(wrong[:20])


@pytest.mark.sample(4)
@pytest.mark.parametrize("dtype", [*NAMES, "float16"])
def test_functions_promote_numbers_as_numpy_does(dtype):
    x, wrong = elements(dtype), []
    ours = cuplug.asarray(x.copy(), device="cpu")
    mask = np.array([True, False, True])
    chosen = cuplug.asarray(mask, device="cpu")
    numbers = [
        np.int8(3),
        np.uint16(300),
        np.int64(-1),
        np.float32(0.5),
        np.float64(9),
        np.array(5),
    ]
    for other in [*numbers, True, 3, 0.5, 1e300]:
        calls = [
            (lambda f, m, a, b=other: f.where(m, a, b), "where(m, x, k)"),
            (lambda f, m, a, b=other: f.where(m, b, a), "where(m, k, x)"),
            (lambda f, m, a, b=other: f.where(m, b, 2), "where(m, k, 2)"),
            (lambda f, m, a, b=other: f.where(m, 2.5, b), "where(m, 2.5, k)"),
        ]
        if x.dtype.kind != "c":
            calls += [
                (lambda f, m, a, b=other: f.maximum(a, b), "maximum(x, k)"),
                (lambda f, m, a, b=other: f.minimum(b, a), "minimum(k, x)"),
            ]
        if x.dtype.kind not in "cb":
            calls.append((lambda f, m, a, b=other: f.clip(a, b, 100), "clip(x, k, 100)"))
        for call, text in calls:
            wanted = outcome(call, np, mask, x)
            seen = differ(outcome(call, xp, chosen, ours), wanted)
            if seen:
                wrong.append(f"{text}, k = {other!r} of {type(other).__name__}: {seen}")
    assert not wrong, f"{len(wrong)}:\n" + "\n".join(wrong[:20])


def test_numbers_of_numpy_decide_the_result_type():
    x = xp.asarray([1], dtype="uint8", device="cpu")
    for other in (1, 1.0, np.int64(1), np.float64(1), np.bool_(True), np.array(1, "int16")):
        assert xp.result_type(x, other) == np.result_type(np.ones(1, "uint8"), other)
    assert xp.full((2,), np.float32(3), device="cpu").dtype == np.float32
