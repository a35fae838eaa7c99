# SPDX-License-Identifier: Apache-2.0
"""Training of a small model with operators: the losses equal PyTorch's."""

import os
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

from cuplug.torch import gather, leaky_relu, relu  # noqa: E402
from torch.distributed import fsdp  # noqa: E402

MODEL = """
import torch
from cuplug.torch import gather, leaky_relu, relu

FUNCTIONS = {
    "cuplug": (gather, relu, lambda x: leaky_relu(x, slope=0.1)),
    "torch": (
        lambda table, index: table[index],
        torch.relu,
        lambda x: torch.nn.functional.leaky_relu(x, 0.1),
    ),
}


class Model(torch.nn.Module):
    def __init__(self, kind):
        super().__init__()
        torch.manual_seed(0)
        self.table = torch.nn.Parameter(torch.randn(16, 8))
        self.first, self.second = torch.nn.Linear(8, 32), torch.nn.Linear(32, 4)
        self.functions = FUNCTIONS[kind]

    def forward(self, index):
        take, first, second = self.functions
        return second(self.second(first(self.first(take(self.table, index)))))


def losses(model, device, steps=8, rank=0):
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    generator = torch.Generator().manual_seed(1 + rank)
    found = []
    for _ in range(steps):
        index = torch.randint(16, (12,), generator=generator).to(device)
        loss = (model(index) - 1).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found
"""
DISTRIBUTED = """
import os, sys
import torch.distributed as dist
from model import Model, losses, torch
from torch.distributed.device_mesh import init_device_mesh

device, wrap = sys.argv[1:]
dist.init_process_group("nccl" if device == "cuda" else "gloo")
rank = dist.get_rank()
if device == "cuda":
    torch.cuda.set_device(rank)
place = torch.device(device, rank) if device == "cuda" else torch.device("cpu")
found = []
for kind in ("cuplug", "torch"):
    model = Model(kind).to(place)
    if wrap == "fsdp":
        from torch.distributed.fsdp import FullyShardedDataParallel

        model = FullyShardedDataParallel(model, device_id=place, use_orig_params=True)
    elif wrap == "fully_shard":
        from torch.distributed.fsdp import fully_shard

        mesh = init_device_mesh(device, (2,))
        for part in (model.first, model.second, model):
            fully_shard(part, mesh=mesh)
    else:
        from torch.nn.parallel import DistributedDataParallel

        model = DistributedDataParallel(model)
    found.append(losses(model, place, rank=rank))
dist.destroy_process_group()
assert found[0][-1] < found[0][0]
assert torch.allclose(*map(torch.tensor, found), rtol=1e-4, atol=1e-5), found
print("equal", flush=True)
os._exit(0)  # threads of PyTorch 2.15 end some processes at exit: "terminate called"
"""
WRAPS = ["ddp", "fsdp"]
if hasattr(fsdp, "fully_shard"):  # PyTorch 2.6
    WRAPS.append("fully_shard")
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


@pytest.fixture
def model(tmp_path, monkeypatch):
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "distributed.py").write_text(DISTRIBUTED)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "model", raising=False)
    import model

    yield model
    del sys.modules["model"]


def are_close(seen, wanted):
    return torch.allclose(torch.tensor(seen), torch.tensor(wanted), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("device", DEVICES)
def test_losses(model, device):
    seen, wanted = (
        model.losses(model.Model(kind).to(device), device) for kind in ("cuplug", "torch")
    )
    assert seen[-1] < seen[0]
    assert are_close(seen, wanted)


@pytest.mark.slow
@pytest.mark.parametrize("device", DEVICES)
def test_losses_compiled(model, device):
    compiled = torch.compile(model.Model("cuplug").to(device), fullgraph=True)
    wanted = model.losses(model.Model("torch").to(device), device)
    assert are_close(model.losses(compiled, device), wanted)
    torch.set_flush_denormal(False)  # set by the libraries of PyTorch 2.4's inductor


@pytest.mark.parametrize("device", DEVICES)
def test_autocast(model, device):
    index = torch.arange(12, device=device)
    with torch.autocast(device, dtype=torch.bfloat16):
        seen, wanted = (model.Model(kind).to(device)(index) for kind in ("cuplug", "torch"))
    assert seen.dtype == wanted.dtype == torch.bfloat16
    assert torch.allclose(seen.float(), wanted.float(), atol=1e-2)
    seen.sum().backward()


def run_distributed(folder, device, wrap):
    hidden = {} if device == "cuda" else {"CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
    done = subprocess.run(
        [*command, str(folder / "distributed.py"), device, wrap],
        env=os.environ | hidden | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("equal") == 2


@pytest.mark.slow
@pytest.mark.parametrize("wrap", WRAPS)
def test_two_processes(model, tmp_path, wrap):
    run_distributed(tmp_path, "cpu", wrap)


@pytest.mark.gpu(n=2)
@pytest.mark.parametrize("wrap", WRAPS)
def test_two_gpus_in_two_processes(model, tmp_path, wrap):
    run_distributed(tmp_path, "cuda", wrap)


@pytest.mark.gpu(n=2)
def test_two_gpus_in_one_process(model):
    parallel = torch.nn.DataParallel(model.Model("cuplug").cuda(), [0, 1])
    wanted = model.losses(model.Model("torch").cuda(), "cuda")
    assert are_close(model.losses(parallel, "cuda"), wanted)


@pytest.mark.gpu(n=2)
def test_tensors_of_a_gpu_that_is_not_the_current_one():
    x = torch.randn(5, 3, device="cuda:1", requires_grad=True)
    index = torch.tensor([4, 0], device="cuda:1")
    y = leaky_relu(relu(gather(x, index)))
    assert y.device == x.device
    assert torch.equal(y, x[index].relu())
    y.sum().backward()
    assert torch.equal(x.grad[index], (x[index] > 0).float())
    assert torch.cuda.current_device() == 0
