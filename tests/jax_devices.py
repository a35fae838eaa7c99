# SPDX-License-Identifier: Apache-2.0
"""JAX for the tests: eight CPU devices, and the GPU if one is available."""

import os

import pytest

# Set before JAX starts. It allocates GPU memory as needed, since other tests need some as well.
os.environ["XLA_FLAGS"] = (
    f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8"
)
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

jax = pytest.importorskip("jax", minversion="0.10")

on_each_device = pytest.mark.parametrize(
    "device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
)


def on(device):
    """Return a context in which arrays are created, and programs run, on "cpu" or "cuda"."""
    return jax.default_device(jax.devices(device)[0])
