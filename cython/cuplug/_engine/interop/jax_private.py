# SPDX-License-Identifier: Apache-2.0
"""The undocumented names of JAX that cuplug.jax uses; no other module has any.

`jax.extend.core.Primitive`, which is public, has no rules of its own. The documented alternative,
`jax.ffi.ffi_call` inside `jax.custom_vjp`, has no forward mode next to backward mode, and no
sharding of its own.

| name | use |
|---|---|
| `ad.Zero`, `ad.instantiate_zeros`, `ad.is_undefined_primal` | arrays without derivative |
| `ad.primitive_jvps`, `ad.primitive_transposes` | rules of derivatives |
| `batching.primitive_batchers` | rules of `jax.vmap` |
| `mlir.lower_fun`, `mlir.register_lowering` | rules of compilation |
| `xla.apply_primitive` | calls outside of `jax.jit` |
| `dispatch.prim_requires_devices_during_lowering` | sharding: the rule of compilation receives \
  the devices, like the rule of `jax.experimental.custom_partitioning` itself |
"""

from jax._src import dispatch
from jax.interpreters import ad, batching, mlir, xla

__all__ = ["ad", "batching", "dispatch", "mlir", "xla"]
