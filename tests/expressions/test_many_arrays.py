# SPDX-License-Identifier: Apache-2.0
"""Operators from source text with 64 arrays, the limit of signatures, and more."""

import importlib.util

import cuplug
import numpy as np
import pytest
from backends import assert_same
from cuplug.errors import SignatureError

N_ARRAYS = [33, 62, 63, 64]  # outputs included
pytestmark = pytest.mark.sanitizer


def names(n):
    return [f"a{k}" for k in range(n)]


def arrays(n, dtype="float64"):
    return [np.arange(k, k + 5).astype(dtype) for k in range(n)]


def listed(n, form):
    return ", ".join(f"{name}: {form}" for name in names(n))


@pytest.fixture(params=["apart", "together", "few", "halves"])
def given(request):
    """Make arrays of various layouts and sizes, whose elements differ."""

    def make(n):
        if request.param == "halves":
            return [x % 2 for x in arrays(n, "float16")]
        if request.param == "few":
            return [x[:1] for x in arrays(n)]
        return [np.repeat(x, 2)[::2] for x in arrays(n)] if request.param == "apart" else arrays(n)

    return make


@pytest.mark.parametrize("n", N_ARRAYS)
def test_elementwise(n, given):
    f = cuplug.elementwise(f"f({listed(n - 1, 'T[...]')}) -> T[...]", " + ".join(names(n - 1)))
    xs = given(n - 1)
    for _ in range(2):  # also by the code that was found the first time
        assert_same(f(*xs), sum(xs))


@pytest.mark.parametrize("n", N_ARRAYS)
def test_functions_of_whole_groups(n):
    f = cuplug.elementwise(f"f({listed(n - 1, 'T[...]')}) -> T[...]", f"exp({names(n - 1)[-1]})")
    xs = [x[:, None] for x in arrays(n - 1)]
    np.testing.assert_allclose(f(*xs[:-1], xs[-1] - n), np.exp(xs[-1] - n))


@pytest.mark.parametrize("n", N_ARRAYS)
def test_arrays_that_stand_still(n):
    f = cuplug.elementwise(f"f({listed(n - 1, 'T[...]')}) -> T[...]", " + ".join(names(n - 1)))
    xs = [np.full((300, 1), k, "float32") for k in range(n - 2)]
    last = np.arange(300, dtype="float32")
    assert_same(f(*xs, last), sum(xs) + last)


@pytest.mark.parametrize("n", N_ARRAYS)
def test_outputs(n):
    outputs = names(n - 1)
    f = cuplug.elementwise(
        f"f(x: T[...]) -> ({listed(n - 1, 'T[...]')})",
        "; ".join(f"{name} = x + {k}" for k, name in enumerate(outputs)),
    )
    for k, y in enumerate(f(np.arange(5.0))):
        assert_same(y, np.arange(5.0) + k)


@pytest.mark.parametrize("n", N_ARRAYS)
def test_arrays_that_are_changed(n, given):
    f = cuplug.elementwise(
        f"f({', '.join(f'inout {name}: T' for name in names(n))})",
        "; ".join(f"{name} = {name} + 1" for name in names(n)),
    )
    xs = given(n)
    before = [x.copy() for x in xs]
    f(*xs)
    for x, y in zip(xs, before, strict=True):
        assert_same(np.ascontiguousarray(x), y + 1)


@pytest.mark.parametrize("n", N_ARRAYS)
def test_arrays_read_at_any_index(n):
    raw = names(n - 1)[1:]
    f = cuplug.elementwise(
        f"f(a0: T[...], {', '.join(f'{name}: T[m]' for name in raw)}) -> T[...]",
        "a0 + " + " + ".join(f"{name}[1]" for name in raw),
    )
    xs = arrays(n - 1)
    assert_same(f(*xs), xs[0] + sum(x[1] for x in xs[1:]))


@pytest.mark.slow
@pytest.mark.parametrize("n", [33, 62, 63])  # a reduction has two more parameters
def test_reductions(n, given):
    f = cuplug.reduction(
        f"f({listed(n - 1, 'T[...]')}) -> T[...]", map=" + ".join(names(n - 1)), reduce="a + b"
    )
    xs = [x.astype("float64") for x in given(n - 1)]
    assert_same(f(*xs), np.asarray(sum(xs).sum()))
    wide = [np.stack([x, x]) for x in xs]
    assert_same(f(*wide, axis=0), sum(wide).sum(0))


@pytest.mark.sample(16)
@pytest.mark.parametrize("n", N_ARRAYS)
def test_scans(n, given):
    f = cuplug.scan(
        f"f({listed(n - 1, 'T[...]')}) -> T[...]", map=" + ".join(names(n - 1)), reduce="a + b"
    )
    xs = [x.astype("float64") for x in given(n - 1)]
    assert_same(f(*xs), np.cumsum(sum(xs)))


@pytest.mark.parametrize("n", N_ARRAYS)
def test_whole_functions(n):
    pointers = ", ".join(f"const double *{name}" for name in names(n - 1))
    f = cuplug.operator(
        f"f({listed(n - 1, 'float64[n]')}) -> y: float64[n]",
        arguments=f"{', '.join(names(n - 1))}, y, n",
        host=f"""void f({pointers}, double *y, long n) {{
          for (long i = 0; i < n; i++) y[i] = {" + ".join(f"{name}[i]" for name in names(n - 1))};
        }}""",
    )
    xs = arrays(n - 1)
    assert_same(f(*xs), sum(xs))


@pytest.mark.parametrize("n", N_ARRAYS)
def test_fused_functions(n, tmp_path):
    path = tmp_path / "fused_by_a_test.py"
    path.write_text(f"def f({', '.join(names(n - 1))}):\n    return {' + '.join(names(n - 1))}\n")
    spec = importlib.util.spec_from_file_location("fused_by_a_test", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    xs = arrays(n - 1)
    assert_same(cuplug.fuse(module.f)(*xs), sum(xs))


@pytest.mark.parametrize("make", [cuplug.elementwise, cuplug.reduction, cuplug.scan])
def test_more_are_refused_where_they_are_defined(make):
    texts = {"expression": "a0"} if make is cuplug.elementwise else {"reduce": "a + b"}
    texts |= {} if make is cuplug.elementwise else {"map": "a0"}
    with pytest.raises(SignatureError, match="at most 64"):
        make(f"f({listed(64, 'T[...]')}) -> T[...]", **texts)
    with pytest.raises(SignatureError, match="at most 64"):
        cuplug.operator(
            f"f({listed(64, 'float64[n]')}) -> y: float64[n]",
            arguments="y",
            host="void f(double *y) {}",
        )
