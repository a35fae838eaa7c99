# SPDX-License-Identifier: Apache-2.0
"""Outputs that a signature calls detached or optional, in frameworks."""

import cuplug
import pytest
from places import FIXTURES

torch = pytest.importorskip("torch")
Function = pytest.importorskip("cuplug.torch").Function


@pytest.fixture(scope="module")
def ops(build_plugin):
    plugin = build_plugin(FIXTURES / "outputs.c", "outputs", defines=["CUPLUG_ARCHITECTURES=900"])
    return cuplug.load(plugin)


@pytest.fixture(scope="module")
def divide(ops):
    return Function(ops.divide)


def test_a_detached_output_does_not_require_grad(divide):
    x = torch.tensor([1.0, 4.0, 2.0], dtype=torch.float64, requires_grad=True)
    y, scale = divide(x)
    assert (y.requires_grad, scale.requires_grad) == (True, False)
    (y * scale).sum().backward()
    torch.testing.assert_close(x.grad, torch.ones(3, dtype=torch.float64))


def test_a_detached_output_of_an_operator_without_a_gradient(ops):
    x = torch.arange(12, dtype=torch.float32).reshape(3, 4).requires_grad_()
    y, mean, _ = Function(ops.center)(x)
    assert (y.requires_grad, mean.requires_grad) == (True, False)
    with pytest.raises(NotImplementedError, match=r"^center: it has no gradient: "):
        y.sum().backward()


def test_below_no_grad_nothing_is_recorded(divide):
    with torch.no_grad():
        y, scale = divide(torch.ones(2, dtype=torch.float64, requires_grad=True))
    assert not y.requires_grad
    assert float(scale) == 1


def test_functions_of_pytorch_compute_all_outputs(ops):
    x = torch.arange(12, dtype=torch.float32).reshape(3, 4)
    for function in (Function(ops.center), torch.compile(Function(ops.center), backend="eager")):
        y, mean, most = function(x)
        torch.testing.assert_close(y, x - x.mean(1, keepdim=True))
        torch.testing.assert_close(mean, x.mean(1))
        torch.testing.assert_close(most, x[:, 3])


def test_operators_leave_them_out_of_tensors_too(ops):
    x = torch.arange(12, dtype=torch.float32).reshape(3, 4)
    y, mean, most = ops.center(x, return_mean=True)
    torch.testing.assert_close(mean, x.mean(1))
    assert most is None
    assert isinstance(y, torch.Tensor)


def test_dask_arrays_compute_what_was_asked_for(ops):
    da = pytest.importorskip("dask.array")
    x = da.arange(12, chunks=4).reshape(3, 4).rechunk((1, 4)).astype("float32")
    y, mean, most = ops.center(x)
    assert (mean, most) == (None, None)
    assert y.numblocks == (3, 1)
    found = ops.center(x, return_most=True)
    assert found.mean is None
    assert found.most.compute().tolist() == [3, 7, 11]
    found = ops.center(x, return_most=False, return_mean=True)
    assert found.most is None
    assert found.mean.compute().tolist() == [1.5, 5.5, 9.5]
    assert found.y.compute().tolist() == [[-1.5, -0.5, 0.5, 1.5]] * 3


def test_functions_of_jax_compute_all_outputs(ops):
    jax = pytest.importorskip("jax")
    from cuplug.jax import Function as JaxFunction

    x = jax.numpy.arange(12, dtype="float32").reshape(3, 4)
    for function in (JaxFunction(ops.center), jax.jit(JaxFunction(ops.center))):
        _, mean, most = function(x)
        assert mean.tolist() == x.mean(1).tolist()
        assert most.tolist() == x[:, 3].tolist()
