# SPDX-License-Identifier: Apache-2.0
"""One of two processes that run an operator on an array sharded by JAX. Arguments: port, rank."""

import sys

import jax
import numpy as np
from cuplug.jax import gather, relu
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

jax.config.update("jax_cpu_collectives_implementation", "gloo")
jax.distributed.initialize(f"127.0.0.1:{sys.argv[1]}", 2, int(sys.argv[2]))
X = np.arange(-12.0, 12.0, dtype="float32").reshape(4, 6)
mesh = Mesh(jax.devices(), "columns")
places = P(None, "columns")
x = jax.make_array_from_callback(X.shape, NamedSharding(mesh, places), lambda at: X[at])


def local(x):
    """Compute on the columns of a process, and sum over all."""
    y = relu(gather(x, np.array([3, 0])))
    return y, jax.lax.psum(y.sum(), "columns")


y, total = jax.jit(jax.shard_map(local, mesh=mesh, in_specs=places, out_specs=(places, P())))(x)
whole = multihost_utils.process_allgather(y, tiled=True)
np.testing.assert_array_equal(whole, np.maximum(X[[3, 0]], 0))
print(f"rank {jax.process_index()}: {y.addressable_data(0).shape} of {y.shape}, {float(total)}")
