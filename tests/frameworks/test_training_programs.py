# SPDX-License-Identifier: Apache-2.0
"""The programs of examples/training.py have the same losses as with PyTorch operators."""

import copy
import importlib.util
from pathlib import Path

import cuplug
import pytest

torch = pytest.importorskip("torch")

from cuplug.torch import Function  # noqa: E402

pytestmark = pytest.mark.xdist_group("examples")  # one worker compiles the plugins

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
on_devices = pytest.mark.parametrize("device", DEVICES)
N_STEPS, N, WIDTH = 20, 12, 16


@pytest.fixture(scope="module")
def training():
    spec = importlib.util.spec_from_file_location("training", EXAMPLES / "training.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def load(build_plugin):
    """Return a function that compiles an example, and returns its operator for PyTorch."""

    def load_example(name):
        library = build_plugin(EXAMPLES / "plugins" / f"{name}.cu", name, cuda=True)
        return Function(getattr(cuplug.load(library), name))

    return load_example


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def losses(model, loss_of):
    """Return the losses of a model that a PyTorch optimizer trains."""
    optimizer, found = torch.optim.Adam(model.parameters(), 0.02), []
    for _ in range(N_STEPS):
        loss = loss_of(model)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


def check(found, wanted):
    assert found[-1] < found[0] / 1.2
    torch.testing.assert_close(torch.tensor(found), torch.tensor(wanted), rtol=1e-4, atol=1e-5)


def squares(device, *more):
    """Return a loss function of a model: the squared distance from a target."""
    x, target = (torch.randn(N, WIDTH).to(device) for _ in range(2))
    return lambda model: (model(x, *more) - target).square().mean()


@on_devices
def test_adam(training, load, device):
    layers = torch.nn.Linear(WIDTH, 24), torch.nn.Tanh(), torch.nn.Linear(24, WIDTH)
    model, loss_of = torch.nn.Sequential(*layers).to(device), squares(device)
    own = copy.deepcopy(model)
    found = training.train_with_adam(load("adam"), own, loss_of, N_STEPS, 0.02)
    check(found, losses(model, loss_of))
    for x, y in zip(own.parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(x, y, rtol=1e-3, atol=1e-4)


def rotated(x, cos, sin, positions):
    """Compute rotary position embedding with PyTorch functions."""
    c, s = cos[positions][:, None], sin[positions][:, None]
    a, b, rest = x.tensor_split((cos.shape[1], 2 * cos.shape[1]), -1)
    x.copy_(torch.cat((a * c - b * s, b * c + a * s, rest), -1))


@on_devices
def test_rotary(training, load, device):
    angles = torch.randn(40, 3)
    places = (x.to(device) for x in (angles.cos(), angles.sin(), torch.randperm(40)[:N]))
    loss_of = squares(device, *places)
    own = training.Attention(load("rotary")).to(device)
    model = copy.deepcopy(own)
    model.rotary = rotated
    check(losses(own, loss_of), losses(model, loss_of))


@on_devices
def test_layer_norm(training, load, device):
    own = training.LayerNorm(load("normalize"), WIDTH)
    layers = [(torch.nn.Linear(WIDTH, WIDTH), x) for x in (own, torch.nn.LayerNorm(WIDTH))]
    layers[1][0].load_state_dict(layers[0][0].state_dict())
    first, second = (torch.nn.Sequential(*x).to(device) for x in layers)
    loss_of = squares(device)
    check(losses(first, loss_of), losses(second, loss_of))


@on_devices
def test_gradients_of_the_statistics(load, device):
    normalize = load("normalize")
    x, weight, bias = (torch.randn(n, device=device) for n in ((5, 7), 7, 7))
    of = [y.requires_grad_() for y in (x, weight, bias)]
    weights = [torch.randn(n, device=device) for n in ((5, 7), 5, 5)]

    def by_torch():
        mean = x.mean(1)
        rstd = (x.var(1, correction=0) + 1e-5).rsqrt()
        return (x - mean[:, None]) * rstd[:, None] * weight + bias, mean, rstd

    for some in ((0, 1, 2), (0,), (1,), (2,)):
        found, wanted = (
            torch.autograd.grad(
                sum((y[k] * weights[k]).sum() for k in some), of, materialize_grads=True
            )
            for y in (normalize(*of), by_torch())
        )
        for a, b in zip(found, wanted, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
