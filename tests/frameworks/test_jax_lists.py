# SPDX-License-Identifier: Apache-2.0
"""Lists of arrays and optional in-out arrays in functions of JAX and on dask arrays."""

import cuplug
import numpy as np
import pytest
from places import FIXTURES, ROOT

jax = pytest.importorskip("jax")


@pytest.fixture(scope="module")
def ops(build_plugin):
    return cuplug.load(build_plugin(FIXTURES / "lists.c", "lists"))


@pytest.fixture(autouse=True)
def _wide():
    with jax.enable_x64(True):
        yield


def test_lists_that_are_changed_are_refused(ops):
    import cuplug.jax

    function = cuplug.jax.Function(ops.add_to)
    with pytest.raises(TypeError, match=r"add_to: xs: got a list of JAX arrays, which the call wo"):
        function([jax.numpy.ones(3)])


def test_lists_that_are_read(ops):
    import cuplug.jax

    function = cuplug.jax.Function(ops.seen)
    xs = [jax.numpy.ones(3), jax.numpy.ones((2, 2))]
    np.testing.assert_array_equal(jax.jit(function)(xs), [2, 1, 2, 0])
    with pytest.raises(TypeError, match="seen: got 65 arrays in a function of JAX, expected at mo"):
        function(xs[:1] * 65)


def test_optional_arrays_that_are_changed(ops):
    import cuplug.jax

    function = cuplug.jax.Function(ops.rescale)
    x = jax.numpy.arange(3.0)
    np.testing.assert_allclose(jax.jit(function)(x), np.arange(3) / 6)
    residual, out = function(x, jax.numpy.ones(3))
    np.testing.assert_array_equal(residual, [1, 2, 3])
    np.testing.assert_allclose(out, np.arange(1, 4) / 15)


@pytest.mark.xdist_group("examples")  # one worker compiles the plugin
@pytest.mark.parametrize("has_keys", [False, True])
def test_gradients_of_optional_arrays_that_are_changed(build_plugin, has_keys):
    import cuplug.jax
    from jax.test_util import check_grads

    library = build_plugin(ROOT / "examples" / "plugins" / "rotary.cu", "rotary", cuda=True)
    rotary = cuplug.jax.Function(cuplug.load(library).rotary)
    random = np.random.default_rng(0)
    q, k = (random.standard_normal((5, n, 8)) for n in (2, 3))
    angles = random.standard_normal((9, 3)).astype(np.float32)
    positions = random.integers(0, 9, 5)

    def cubes(q, *more):
        rotated = rotary(q, np.cos(angles), np.sin(angles), positions, *more)
        return sum((x**3).sum() for x in (rotated if more else [rotated]))

    check_grads(cubes, (q, k) if has_keys else (q,), order=1)


def test_dask_arrays_in_lists_that_are_changed(ops):
    array = pytest.importorskip("dask.array")
    with pytest.raises(TypeError, match="add_to: xs: got a Dask array, expected a NumPy"):
        ops.add_to([array.ones(3)])
    np.testing.assert_array_equal(ops.seen([array.ones(3)]).compute(), [2, 1, 1, 0])
