# SPDX-License-Identifier: Apache-2.0
"""The operators of the model for PyTorch: cuplug's, and the same by PyTorch's own functions."""

from pathlib import Path
from typing import Any, NamedTuple

import cuplug
import torch
from cuplug.torch import Function, gather, log_softmax, take_along_axis
from torch.nn import functional

HERE = Path(__file__).resolve().parent
BUILD = HERE.parents[1] / "build" / "model"


class Operators(NamedTuple):
    embed: Any  # (table[v, n], tokens[...]) -> [..., n]
    rms_norm: Any  # (x[..., n], weight[n]) -> [..., n]
    rotary: Any  # (x[b, t, h, d], cos[m, d / 2], sin[m, d / 2]) -> x, which may be changed
    silu_and_mul: Any  # (x[..., 2 n]) -> [..., n]
    cross_entropy: Any  # (logits[n, v], targets[n]) -> the mean


def load_plugin():
    """Return the plugin of `transformer.cu`, compiled if the library is missing or older."""
    source, library = HERE / "transformer.cu", BUILD / "libtransformer.so"
    if not library.exists() or library.stat().st_mtime < source.stat().st_mtime:
        BUILD.mkdir(parents=True, exist_ok=True)
        cuplug.build(source, library)
    return cuplug.load(library)


def of_cuplug(plugin):
    rotate = Function(plugin.rotary)

    def rotary(x, cos, sin):
        rotate(x, cos, sin)
        return x

    def cross_entropy(logits, targets):
        return -take_along_axis(log_softmax(logits.float()), targets[:, None], axis=1).mean()

    norm, gate = Function(plugin.rms_norm), Function(plugin.silu_and_mul)
    return Operators(gather, norm, rotary, gate, cross_entropy)


def of_torch():
    def rotary(x, cos, sin):
        (a, b), t = x.float().chunk(2, -1), x.shape[1]
        c, s = cos[:t, None], sin[:t, None]
        return torch.cat((a * c - b * s, b * c + a * s), -1).to(x.dtype)

    def silu_and_mul(x):
        gate, up = x.chunk(2, -1)
        return functional.silu(gate) * up

    return Operators(
        lambda table, tokens: functional.embedding(tokens, table),
        lambda x, weight: functional.rms_norm(x, weight.shape, weight, 1e-6),
        rotary,
        silu_and_mul,
        lambda logits, targets: functional.cross_entropy(logits.float(), targets),
    )
