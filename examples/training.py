# SPDX-License-Identifier: Apache-2.0
"""Operators of `examples/plugins` in PyTorch programs that train: each part is given its operator.

`cuplug.torch.Function(cuplug.load("libadam.so").adam)` is one.
"""

import torch


def train_with_adam(adam, model, loss_of, n_steps, lr):
    """All parameters, whatever their shapes, are updated by one call for each step."""
    params, losses = [*model.parameters()], []
    first, second = ([torch.zeros_like(x) for x in params] for _ in range(2))
    for step in range(1, n_steps + 1):
        loss = loss_of(model)
        grads = torch.autograd.grad(loss, params)
        with torch.no_grad():
            adam(params, grads, first, second, step, lr=lr)
        losses.append(loss.item())
    return losses


class Attention(torch.nn.Module):
    """Queries and keys are slices of one buffer, which are rotated where they are."""

    def __init__(self, rotary, n_heads=2, width=8):
        super().__init__()
        self.rotary, self.heads = rotary, (n_heads, width)
        self.qkv = torch.nn.Linear(n_heads * width, 3 * n_heads * width)

    def forward(self, x, cos, sin, positions):
        qkv = self.qkv(x).unflatten(-1, (3 * self.heads[0], self.heads[1]))
        q, k, v = (qkv.narrow(1, at * self.heads[0], self.heads[0]) for at in range(3))
        for part in (q, k):
            self.rotary(part, cos, sin, positions)
        scores = torch.einsum("ihd,jhd->hij", q, k).softmax(-1)
        return torch.einsum("hij,jhd->ihd", scores, v).flatten(1)


class LayerNorm(torch.nn.LayerNorm):
    """The forward pass returns the statistics of rows too, and the backward pass reads them."""

    def __init__(self, normalize, width):
        super().__init__(width)
        self.normalize = normalize

    def forward(self, x):
        return self.normalize(x, self.weight, self.bias, self.eps)[0]  # [1:]: the statistics
