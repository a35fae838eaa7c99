# SPDX-License-Identifier: Apache-2.0
"""The transformer of examples/model computes the same numbers as with PyTorch operators."""

import importlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

import cuplug
import numpy as np
import pytest
from places import ROOT

torch = pytest.importorskip("torch")
import cuplug.ops  # noqa: E402
import cuplug.torch  # noqa: E402

pytestmark = pytest.mark.xdist_group("examples")  # one worker compiles

MODEL = ROOT / "examples" / "model"
MODULES = ["operators", "package", "throughput", "train", "transformer"]
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
on_devices = pytest.mark.parametrize("device", DEVICES)
with_backends = pytest.mark.parametrize(
    "backend",
    ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)],
)
VERSION = tuple(int(x) for x in torch.__version__.split(".")[:2])
# Found before other tests load plugins that have operators of these names.
NAMES = ["cross_entropy", "gather", "rms_norm", "rotary", "silu_and_mul"]
STOCK = {name: getattr(cuplug.ops, name) for name in NAMES}
OF_TORCH = {name: getattr(cuplug.torch, name) for name in NAMES}
SIZES = {"width": 32, "n_heads": 2, "n_blocks": 2, "length": 16}


@pytest.fixture
def example(monkeypatch):
    """Return the modules of the example."""
    monkeypatch.syspath_prepend(MODEL)
    for name, function in OF_TORCH.items():
        monkeypatch.setattr(cuplug.torch, name, function, raising=False)
    for name in MODULES:
        monkeypatch.delitem(sys.modules, name, raising=False)
    found = {name: importlib.import_module(name) for name in MODULES}
    torch._dynamo.reset()
    yield found
    torch._dynamo.reset()
    torch.set_flush_denormal(False)  # set by the libraries of PyTorch 2.4's inductor
    for name in MODULES:
        del sys.modules[name]


@pytest.fixture
def both(example):
    """Return the operators of cuplug and PyTorch."""
    module = example["operators"]
    return module.of_cuplug(), module.of_torch()


def losses(example, ops, device, n_steps=12, compiled=lambda loss: loss):
    module = example["transformer"]
    model = module.Model(ops, **SIZES).to(device)
    tokens = module.batches(n_steps, 4, SIZES["length"], device)
    return torch.tensor(module.train(model, compiled(model.loss), tokens, lr=1e-2))


@on_devices
def test_losses(example, both, device):
    found, wanted = (losses(example, ops, device) for ops in both)
    assert found[-1] < found[0] - 1
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)


@on_devices
@with_backends
def test_losses_of_one_graph(example, both, device, backend):
    def compiled(loss):
        return torch.compile(loss, fullgraph=True, backend=backend)

    found = losses(example, both[0], device, 4, compiled)
    torch.testing.assert_close(found, losses(example, both[1], device, 4), rtol=1e-4, atol=1e-4)


@pytest.mark.slow
@pytest.mark.skipif(VERSION < (2, 15), reason="code of other versions differs")
def test_inductor_rotates_the_product_in_place(example, both):
    from torch._inductor.utils import run_fw_bw_and_get_code

    module = example["transformer"]
    model = module.Model(both[0], **SIZES)
    (tokens,) = module.batches(1, 4, SIZES["length"])
    loss = torch.compile(model.loss, fullgraph=True)
    _, (forward, *_) = run_fw_bw_and_get_code(lambda: loss(tokens))
    products = re.findall(r"mm\(.*out=(buf\d+)\)", forward)
    rotated = re.findall(r"cuplug\.rotary\.default\(reinterpret_tensor\((buf\d+),", forward)
    assert len(rotated) == SIZES["n_blocks"]
    assert {*rotated} <= {*products}


INPUTS = {  # shapes of arguments with a gradient, then other arguments
    "embed": ([(5, 3)], (torch.tensor([[0, 4], [4, 4]]),)),
    "rms_norm": ([(2, 3, 40), (40,)], ()),
    "silu_and_mul": ([(2, 5, 48)], ()),
    "cross_entropy": ([(6, 9)], (torch.tensor([0, 8, 3, 3, 1, 2]),)),
}
ODD = {"rms_norm": [(7, 13), (13,)], "silu_and_mul": [(3, 14)], "many": [(5000, 8), (8,)]}
CASES = [*((name, shapes) for name, (shapes, _) in INPUTS.items()), *ODD.items()]


@on_devices
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize(("name", "shapes"), CASES, ids=str)
def test_operators_and_gradients(both, device, dtype, name, shapes):
    name = "rms_norm" if name == "many" else name
    torch.manual_seed(0)
    given = [torch.randn(shape, device=device).to(dtype).requires_grad_() for shape in shapes]
    more = [x.to(device) for x in INPUTS[name][1]]
    tolerance = 1e-4 if dtype == torch.float32 else 3e-2
    wide = [x.detach().float().requires_grad_() for x in given]
    found = getattr(both[0], name)(*given, *more)
    wanted = getattr(both[1], name)(*wide, *more)
    weights = torch.randn_like(wanted)
    pairs = [(found, wanted)]
    pairs += zip(
        torch.autograd.grad((found.float() * weights).sum(), given),
        torch.autograd.grad((wanted * weights).sum(), wide),
        strict=True,
    )
    for x, y in pairs:
        scale = y.abs().max().item()
        torch.testing.assert_close(x.float(), y, rtol=tolerance, atol=tolerance * scale)


@on_devices
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_rotary_of_a_slice(both, device, dtype):
    torch.manual_seed(0)
    buffer = torch.randn(2, 5, 7, 12, device=device).to(dtype)
    angles = torch.randn(6, 9, device=device)[:, 1:7]
    given = buffer.clone().requires_grad_(), buffer.float().requires_grad_()
    weights = torch.randn(2, 5, 7, 12, device=device)
    found = []
    for x, ops in zip(given, both, strict=True):
        whole = x * 1
        rotated = ops.rotary(whole[:, :, 1:5], angles.cos(), angles.sin())
        y = torch.cat((whole[:, :, :1], rotated, whole[:, :, 5:]), 2)
        found.append((y.float(), *torch.autograd.grad((y.float() * weights).sum(), x)))
    for x, y in zip(*found, strict=True):
        tolerance = 1e-5 if dtype == torch.float32 else 3e-2
        torch.testing.assert_close(x.float(), y, rtol=tolerance, atol=tolerance)


def test_rotary_wants_angles_of_each_position(both):
    angles = torch.zeros(4, 2)
    with pytest.raises(IndexError, match="rotary: positions: got 4 at position 4"):
        both[0].rotary(torch.zeros(2, 5, 1, 4), angles, angles)


def test_rotary_never_rotates_a_copy(both):
    angles, x = torch.zeros(4, 2), torch.zeros(3, 2, 1, 4).transpose(0, 1)
    with pytest.raises(RuntimeError, match="view"):
        both[0].rotary(x, angles, angles)


@pytest.mark.parametrize("name", ["torch", "jax", "dask"])
def test_functions_are_of_operators_alone(name):
    pytest.importorskip(name)
    function = importlib.import_module(f"cuplug.{name}").Function
    for given, kind in ((cuplug.fuse(lambda x: x + 1), "Fused"), (abs, "builtin_function_or_meth")):
        with pytest.raises(
            TypeError, match=f"^Function: operator: got {kind}.*, expected a cuplug"
        ):
            function(given)


def test_bytes_of_the_docs(example):
    module = example["transformer"]
    found = [*module.batches(3, 2, 8)]
    text = bytes(module.corpus().tolist())
    assert [x.shape for x in found] == [(2, 9)] * 3
    assert all(bytes(row.tolist()) in text for x in found for row in x)
    assert (ROOT / "docs" / "model.md").read_bytes() in text


@on_devices
def test_programs(example, monkeypatch, tmp_path, capsys, device):
    monkeypatch.setattr(torch, "compile", lambda function, **_: function)  # tested above
    example["train"].main(["--device", device, "--steps", "2"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("|")[1].strip() for line in lines] == ["step", "---", "0", "1"]
    module, table = example["throughput"], tmp_path / "table.md"
    monkeypatch.setattr(module, "N_TURNS", 1)
    monkeypatch.setitem(module.SIZES, device, (32, 2, 1, 16, 2, torch.float32))
    module.main(["--device", device, "--output", str(table)])
    names = re.findall(r"^\| (\w+, \w+) \| [\d,]+ \| \d+\.\d\d \|$", table.read_text(), re.M)
    kinds = ("eager", "compiled")
    assert names == [f"{name}, {kind}" for name in ("PyTorch", "cuplug") for kind in kinds]


@pytest.fixture
def in_jax(example, monkeypatch):
    """Give a PyTorch model, its loss function in JAX, its weights there, and tokens."""
    jax = pytest.importorskip("jax")
    import cuplug.jax

    for name, operator in STOCK.items():
        monkeypatch.setattr(cuplug.jax, name, cuplug.jax.Function(operator), raising=False)
    monkeypatch.delitem(sys.modules, "transformer_jax", raising=False)
    import transformer_jax

    module = example["transformer"]
    model = module.Model(example["operators"].of_torch(), **SIZES)
    (tokens,) = module.batches(1, 3, SIZES["length"])
    loss = transformer_jax.loss_function(model)
    with jax.default_matmul_precision("highest"):  # GPUs would round to TensorFloat-32
        yield model, loss, transformer_jax.weights_of(model), tokens


def test_loss_and_gradients_in_jax(in_jax):
    import jax

    model, loss, weights, tokens = in_jax
    wanted = model.loss(tokens)
    wanted.backward()
    found, gradients = jax.jit(jax.value_and_grad(loss))(weights, tokens.numpy().astype("int32"))
    np.testing.assert_allclose(found, wanted.item(), rtol=1e-5)
    assert gradients.keys() == dict(model.named_parameters()).keys()
    for name, x in model.named_parameters():
        np.testing.assert_allclose(gradients[name], x.grad, rtol=1e-3, atol=1e-5, err_msg=name)


def test_losses_in_jax(in_jax):
    import jax

    model, loss, weights, tokens = in_jax
    optimizer = torch.optim.SGD(model.parameters(), 0.5)
    both = jax.jit(jax.value_and_grad(loss))
    for _ in range(6):
        optimizer.zero_grad()
        wanted = model.loss(tokens)
        wanted.backward()
        optimizer.step()
        found, gradients = both(weights, tokens.numpy().astype("int32"))
        np.testing.assert_allclose(found, wanted.item(), rtol=1e-4)
        weights = jax.tree.map(lambda x, g: x - 0.5 * g, weights, gradients)
    assert found < 5


@pytest.fixture
def package(example, both, request, tmp_path):
    """Return the path of a package, and the model that it has."""
    if VERSION < (2, 10):
        pytest.skip("needs at::toDLPackNonOwning, which PyTorch has from 2.10 on")
    model = example["transformer"].Model(both[0], **SIZES).to(request.param)
    model.requires_grad_(False)
    path = example["package"].write_package(model, tmp_path / "model.pt2", SIZES["length"])
    return path, model


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # PyTorch's export has some
@pytest.mark.parametrize("package", DEVICES, indirect=True)
def test_package(example, package, tmp_path):
    path, model = package
    device = str(model.table.device.type)
    loaded = torch._inductor.aoti_load_package(path)
    for n in (2, 5, SIZES["length"]):
        (tokens,) = example["transformer"].batches(1, 1, n - 1, device)
        torch.testing.assert_close(loaded(tokens), model(tokens), rtol=1e-4, atol=1e-5)
    module, text = example["package"], "cuplug"
    wanted = module.go_on(loaded, text.encode(), 20, SIZES["length"], device)
    assert len(wanted) == len(text) + 20
    check_program(module, path, text, wanted, tmp_path)


def check_program(module, path, text, wanted, folder):
    """The program without Python writes the same bytes."""
    headers = Path(torch.__file__).parent / "include" / "torch" / "library.h"
    if not shutil.which("g++") or not headers.exists():
        pytest.skip("needs g++ and PyTorch's headers for the program")
    program = module.build_program(folder)
    needed = subprocess.run(["ldd", program], capture_output=True, text=True).stdout
    assert "libcuplug" in needed
    assert "libpython" not in needed
    done = subprocess.run([program, path, text, "20"], capture_output=True, timeout=300)
    assert (done.stdout, done.returncode) == (wanted + b"\n", 0), done.stderr
