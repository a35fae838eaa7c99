# SPDX-License-Identifier: Apache-2.0
"""Outputs that a signature calls detached, in PyTorch."""

import cuplug
import pytest
from places import FIXTURES

torch = pytest.importorskip("torch")
Function = pytest.importorskip("cuplug.torch").Function


@pytest.fixture(scope="module")
def divide(build_plugin):
    plugin = build_plugin(FIXTURES / "outputs.c", "outputs", defines=["CUPLUG_ARCHITECTURES=900"])
    return Function(cuplug.load(plugin).divide)


def test_a_detached_output_does_not_require_grad(divide):
    x = torch.tensor([1.0, 4.0, 2.0], dtype=torch.float64, requires_grad=True)
    y, scale = divide(x)
    assert (y.requires_grad, scale.requires_grad) == (True, False)
    (y * scale).sum().backward()
    torch.testing.assert_close(x.grad, torch.ones(3, dtype=torch.float64))


def test_below_no_grad_nothing_is_recorded(divide):
    with torch.no_grad():
        y, scale = divide(torch.ones(2, dtype=torch.float64, requires_grad=True))
    assert not y.requires_grad
    assert float(scale) == 1
