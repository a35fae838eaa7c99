# SPDX-License-Identifier: Apache-2.0
"""Program for torchrun: calls of stock operators on DTensors, sharded in each way, and on tensors.

It prints a line for each operator: its name, and the number of calls with a sharded output.
"""

import itertools
import sys

import torch
import torch.distributed as dist
from cuplug import ops
from cuplug.torch import Function
from test_torch_opcheck import SAMPLES, overload
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.utils._pytree import tree_leaves


def is_sharded(x):
    return isinstance(x, DTensor) and any(k.is_shard() for k in x.placements)


def check(mesh, call, sample):
    """Compare the results of a call; return the number of placements with a sharded result."""
    wanted = tree_leaves(call(*sample))
    ways = [
        [Replicate(), *map(Shard, range(x.ndim))] if isinstance(x, torch.Tensor) else [None]
        for x in sample
    ]
    n_sharded = 0
    for places in itertools.product(*ways):
        given = [
            x if place is None else distribute_tensor(x.detach(), mesh, [place])
            for x, place in zip(sample, places, strict=True)
        ]
        found = tree_leaves(call(*given))
        n_sharded += any(map(is_sharded, found))
        for x, y in zip(found, wanted, strict=True):
            assert torch.equal(x.full_tensor(), y), (call, places)
    return n_sharded


def main():
    """Check the operators that the arguments name."""
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for name in sys.argv[1:]:
        packet = Function(getattr(ops, name)).packet
        n_sharded = sum(check(mesh, overload(packet, x), x) for x in SAMPLES[name])
        if not dist.get_rank():
            print(name, n_sharded, flush=True)
    dist.barrier()  # no rank ends while another needs it
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
