# SPDX-License-Identifier: Apache-2.0
"""The operators of the model for PyTorch: cuplug's, and PyTorch's own functions."""

from typing import Any, NamedTuple

import torch
from cuplug.torch import cross_entropy, gather, rms_norm, rotary, silu_and_mul
from torch.nn import functional


class Operators(NamedTuple):
    embed: Any  # (table[v, n], tokens[...]) -> [..., n]
    rms_norm: Any  # (x[..., n], weight[n]) -> [..., n]
    rotary: Any  # (x[b, t, h, d], cos[m, d / 2], sin[m, d / 2]) -> x, which may be modified
    silu_and_mul: Any  # (x[..., 2 n]) -> [..., n]
    cross_entropy: Any  # (logits[n, v], targets[n]) -> the mean


def of_cuplug():
    def rotate(x, cos, sin):
        b, t, *head = x.shape
        positions = torch.arange(t, device=x.device).repeat(b)
        rotary(x.view(b * t, *head), cos, sin, positions)
        return x

    def mean(logits, targets):
        return cross_entropy(logits, targets).mean()

    return Operators(gather, rms_norm, rotate, silu_and_mul, mean)


def of_torch():
    def rotate(x, cos, sin):
        (a, b), t = x.float().chunk(2, -1), x.shape[1]
        c, s = cos[:t, None], sin[:t, None]
        return torch.cat((a * c - b * s, b * c + a * s), -1).to(x.dtype)

    def gate(x):
        first, second = x.chunk(2, -1)
        return functional.silu(first) * second

    return Operators(
        lambda table, tokens: functional.embedding(tokens, table),
        lambda x, weight: functional.rms_norm(x, weight.shape, weight, 1e-6),
        rotate,
        gate,
        lambda logits, targets: functional.cross_entropy(logits.float(), targets),
    )
