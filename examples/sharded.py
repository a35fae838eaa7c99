# SPDX-License-Identifier: Apache-2.0
"""Operators on PyTorch's DTensor: torchrun --nproc-per-node 2 examples/sharded.py."""

import torch
import torch.distributed as dist
from cuplug.torch import gather, relu
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor


def main() -> None:
    """Gather rows of a table whose columns are sharded over the processes."""
    on_gpu = torch.cuda.is_available()
    mesh = init_device_mesh("cuda" if on_gpu else "cpu", (dist.get_world_size(),))
    table = torch.arange(-12.0, 12.0).reshape(4, 6)
    columns = distribute_tensor(table, mesh, [Shard(1)]).requires_grad_()
    index = distribute_tensor(torch.tensor([3, 0, 3]), mesh)
    y = relu(gather(columns, index))
    y.sum().backward()
    assert torch.equal(y.full_tensor().cpu(), table[[3, 0, 3]].relu())
    local = tuple(y.to_local().shape)
    print(f"rank {dist.get_rank()}: {local} of {tuple(y.shape)}, {y.placements}")


if __name__ == "__main__":
    dist.init_process_group()
    main()
    dist.destroy_process_group()
