# SPDX-License-Identifier: Apache-2.0
"""Arrays that are sharded over several devices: jax.shard_map, and automatic sharding by XLA."""

import os
import re
import subprocess
import sys

import cuplug
import numpy as np
import pytest
from jax_devices import jax, on
from places import FIXTURES, ROOT

from cuplug.jax import Function, gather, relu, scale  # isort: skip

jnp = jax.numpy
P = jax.sharding.PartitionSpec
AUTO, EXPLICIT = jax.sharding.AxisType.Auto, jax.sharding.AxisType.Explicit
MOVES = ("all-gather", "all-to-all", "collective-permute", "all-reduce")


@pytest.fixture(
    params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu(n=2))],
)
def devices(request):
    """Return the available devices of a kind, an even number."""
    found = jax.devices(request.param)
    with on(request.param):
        yield found[: len(found) // 2 * 2]


@pytest.fixture(scope="module")
def functions(build_plugin):
    """Return the operators of the plugin with one for each kind of argument."""
    operators = cuplug.load(build_plugin(FIXTURES / "arguments.c", "arguments")).operators
    return {operator.name: Function(operator) for operator in operators}


def mesh_of(devices, shape=(-1,), names=("i",), kind=AUTO):
    """Return a mesh of devices."""
    shape = np.array(devices).reshape(shape).shape
    return jax.make_mesh(shape, names, axis_types=(kind,) * len(names), devices=devices)


def spread(x, mesh, *axes):
    """Return an array sharded over axes of a mesh."""
    return jax.device_put(x, jax.sharding.NamedSharding(mesh, P(*axes)))


def check(function, arguments, wanted, *axes):
    """Run a program, check that devices exchange no data, and compare the result's sharding."""
    program = jax.jit(function)
    text = program.lower(*arguments).compile().as_text()
    assert not [move for move in MOVES if move in text], text
    seen = program(*arguments)
    np.testing.assert_allclose(seen, wanted, rtol=1e-6)
    assert seen.sharding.is_equivalent_to(
        jax.sharding.NamedSharding(seen.sharding.mesh, P(*axes)), seen.ndim
    )


def test_shard_map(devices):
    mesh = mesh_of(devices)
    x = jnp.linspace(-1, 1, 48).reshape(16, 3)
    function = jax.shard_map(relu, mesh=mesh, in_specs=P("i"), out_specs=P("i"))
    check(function, (spread(x, mesh, "i"),), jnp.maximum(x, 0), "i")


def test_shard_map_with_an_array_that_all_devices_have(devices):
    mesh = mesh_of(devices)
    x, i = jnp.arange(12.0).reshape(4, 3), jnp.arange(16) % 4
    function = jax.shard_map(gather, mesh=mesh, in_specs=(P(), P("i")), out_specs=P("i"))
    check(function, (spread(x, mesh), spread(i, mesh, "i")), x[i], "i")


def test_gradients_under_shard_map(devices):
    mesh = mesh_of(devices)
    x = jnp.linspace(-1, 1, 48).reshape(16, 3)

    def loss(x):
        return jax.lax.psum((scale(relu(x), 3.0) ** 2).sum(), "i")

    function = jax.jit(jax.grad(jax.shard_map(loss, mesh=mesh, in_specs=P("i"), out_specs=P())))
    wanted = jnp.where(x > 0, 18 * x, 0)
    np.testing.assert_allclose(function(spread(x, mesh, "i")), wanted, rtol=1e-6)


def test_gradients_of_an_array_that_all_devices_have(build_plugin):
    """Each device has a part of the gradient, and the parts are added."""
    file = build_plugin(FIXTURES / "gradients.c", "gradients")
    weigh = Function(cuplug.load(file).weigh)
    mesh = mesh_of(jax.devices("cpu"))

    def loss(x, w):
        return jax.lax.psum((weigh(x, w) ** 2).sum(), "i")

    with on("cpu"), jax.enable_x64(True):
        x, w = jnp.arange(48.0).reshape(16, 3), jnp.arange(3.0) + 1
        spread_loss = jax.shard_map(loss, mesh=mesh, in_specs=(P("i"), P()), out_specs=P())
        seen = jax.jit(jax.grad(spread_loss, (0, 1)))(spread(x, mesh, "i"), spread(w, mesh))
        np.testing.assert_allclose(seen[0], 2 * x * w**2)
        np.testing.assert_allclose(seen[1], (2 * x**2 * w).sum(0))


@pytest.mark.parametrize("axes", [("i",), (None, "i"), ("i", "j"), ("j", "i"), (("i", "j"),)])
@pytest.mark.parametrize("kind", [AUTO, EXPLICIT], ids=["auto", "explicit"])
def test_programs_are_cut_along_loop_dimensions(devices, axes, kind):
    mesh = mesh_of(devices, (2, -1), ("i", "j"), kind)
    x = jnp.linspace(-1, 1, 256).reshape(16, 16)
    with jax.set_mesh(mesh):
        check(lambda x: relu(relu(x) - 0.5), (spread(x, mesh, *axes),), jax.nn.relu(x - 0.5), *axes)
        check(jax.vmap(relu), (spread(x, mesh, *axes),), jax.nn.relu(x), *axes)


def test_gradients_are_cut_as_well(devices):
    mesh = mesh_of(devices)
    x = jnp.linspace(-1, 1, 48).reshape(16, 3)
    wanted = 2 * jnp.maximum(x, 0)
    check(jax.grad(lambda x: (relu(x) ** 2).sum()), (spread(x, mesh, "i"),), wanted, "i")


def test_arrays_in_place(devices):
    mesh = mesh_of(devices)
    x = jnp.arange(48.0).reshape(16, 3)
    check(lambda x: scale(x, 2.0), (spread(x, mesh, "i"),), 2 * x, "i")


def test_reductions_and_scans_are_cut_along_other_dimensions(devices):
    mesh = mesh_of(devices)
    total = Function(cuplug.reduction("total(x: T) -> T", reduce="a + b", identity="0"))
    running = Function(cuplug.scan("running(x: T) -> T", reduce="a + b", identity="0"))
    x = jnp.arange(96.0).reshape(16, 3, 2)
    given = (spread(x, mesh, "i"),)
    check(lambda x: total(x, axis=1), given, x.sum(1), "i")
    check(lambda x: total(x, axis=[-1, 1], keepdims=True), given, x.sum((1, 2), keepdims=True), "i")
    check(lambda x: running(x, axis=2), given, x.cumsum(2), "i")
    along = (spread(x, mesh, "i"),)
    np.testing.assert_allclose(jax.jit(lambda x: total(x, axis=0))(*along), x.sum(0))


def test_broadcasting(devices):
    mesh = mesh_of(devices)
    add = Function(cuplug.elementwise("add(a: T, b: T) -> T", "a + b"))
    a, b = jnp.arange(48.0).reshape(16, 3), jnp.arange(3.0)
    check(add, (spread(a, mesh, "i"), spread(b, mesh)), a + b, "i")
    check(add, (spread(b[None], mesh), spread(a, mesh, "i")), a + b, "i")


def test_broadcasting_by_copies(functions):
    mesh = mesh_of(jax.devices("cpu"))
    with on("cpu"), jax.enable_x64(True):
        a, b = jnp.arange(48.0).reshape(16, 3), jnp.arange(3.0)
        check(functions["add"], (spread(b, mesh), spread(a, mesh, "i")), a + b, "i")


@pytest.mark.parametrize("kind", [AUTO, EXPLICIT], ids=["auto", "explicit"])
def test_dimensions_that_are_independent(devices, kind):
    """The indices of gather and the elements of its rows may be sharded, but not the rows."""
    mesh = mesh_of(devices, kind=kind)
    x, i = jnp.arange(128.0).reshape(8, 16), jnp.arange(16) % 4
    with jax.set_mesh(mesh):
        check(gather, (spread(x, mesh), spread(i, mesh, "i")), x[i], "i")
        check(gather, (spread(x, mesh, None, "i"), spread(i, mesh)), x[i], None, "i")


def test_other_dimensions_are_brought_together(devices):
    mesh = mesh_of(devices)
    x, i = jnp.arange(48.0).reshape(16, 3), jnp.arange(16) % 4
    seen = jax.jit(gather)(spread(x, mesh, "i"), spread(i, mesh))
    np.testing.assert_array_equal(seen, x[i])


@pytest.mark.slow
def test_scaling_is_measured():
    command = [sys.executable, ROOT / "benchmarks" / "frameworks" / "jax_scaling.py"]
    sizes = ["--devices", "1,2", "--elements", "1000", "--calls", "2"]
    done = subprocess.run(
        [*command, *sizes],
        env=os.environ | {"JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert len(re.findall(r"^\| [12] \| \d", done.stdout, re.M)) == 2
