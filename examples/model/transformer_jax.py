# SPDX-License-Identifier: Apache-2.0
"""The same model in JAX, with the weights of the PyTorch model."""

import jax
import jax.numpy as jnp
from cuplug.jax import cross_entropy, gather, rms_norm, rotary, silu_and_mul


def weights_of(model):
    """Return the parameters of a PyTorch model as JAX arrays."""
    return {name: jnp.asarray(x.detach().cpu().numpy()) for name, x in model.named_parameters()}


def loss_function(model):
    """Return loss(weights, tokens) for the sizes and the tables of angles of a model."""
    cos, sin = (jnp.asarray(x.cpu().numpy()) for x in model.angles)
    n_blocks, n_heads = len(model.blocks), model.blocks[0].n_heads

    def rotate(x):
        b, t, *head = x.shape
        positions = jnp.tile(jnp.arange(t), b)
        y = rotary(x.reshape(b * t, *head), cos, sin, positions)  # returns the modified array
        return y.reshape(x.shape)

    def block(weights, x):
        qkv = rms_norm(x, weights["norms.0"]) @ weights["qkv.weight"].T
        qk, v = jnp.split(qkv.reshape(*x.shape[:2], 3 * n_heads, -1), [2 * n_heads], axis=2)
        q, k = jnp.split(rotate(qk), 2, axis=2)
        y = jax.nn.dot_product_attention(q, k, v, is_causal=True)
        x = x + y.reshape(x.shape) @ weights["out.weight"].T
        gate_up = rms_norm(x, weights["norms.1"]) @ weights["gate_up.weight"].T
        return x + silu_and_mul(gate_up) @ weights["down.weight"].T

    def loss(weights, tokens):
        x = gather(weights["table"], tokens[:, :-1])
        for k in range(n_blocks):
            start = f"blocks.{k}."
            own = {key.removeprefix(start): weights[key] for key in weights if start in key}
            x = block(own, x)
        logits = rms_norm(x, weights["norm"]) @ weights["table"].T
        return cross_entropy(logits, tokens[:, 1:]).mean()

    return loss
