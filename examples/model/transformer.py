# SPDX-License-Identifier: Apache-2.0
"""A decoder-only transformer of bytes in PyTorch. Its operators are an argument."""

from pathlib import Path

import torch
from torch import nn
from torch.nn.functional import linear, scaled_dot_product_attention

N_BYTES = 256  # the vocabulary
DOCS = Path(__file__).parents[2] / "docs"


class Block(nn.Module):
    def __init__(self, ops, width, n_heads):
        super().__init__()
        self.ops, self.n_heads, hidden = ops, n_heads, 4 * width
        self.norms = nn.ParameterList(torch.ones(width) for _ in range(2))
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.gate_up = nn.Linear(width, 2 * hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x, cos, sin):
        qkv = self.qkv(self.ops.rms_norm(x, self.norms[0])).unflatten(-1, (3 * self.n_heads, -1))
        qk, v = qkv[:, :, : 2 * self.n_heads], qkv[:, :, 2 * self.n_heads :]
        q, k = self.ops.rotary(qk, cos, sin).transpose(1, 2).chunk(2, 1)
        y = scaled_dot_product_attention(q, k, v.transpose(1, 2), is_causal=True)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        gate_up = self.gate_up(self.ops.rms_norm(x, self.norms[1]))
        return x + self.down(self.ops.silu_and_mul(gate_up))


class Model(nn.Module):
    def __init__(self, ops, width=128, n_heads=4, n_blocks=2, length=64, seed=0):
        super().__init__()
        torch.manual_seed(seed)
        self.ops = ops
        self.table = nn.Parameter(0.02 * torch.randn(N_BYTES, width))
        self.blocks = nn.ModuleList(Block(ops, width, n_heads) for _ in range(n_blocks))
        self.norm = nn.Parameter(torch.ones(width))
        r = width // n_heads // 2
        angles = torch.outer(torch.arange(length), 10000.0 ** -(torch.arange(r) / r))
        self.angles = angles.cos(), angles.sin()

    def _apply(self, function, recurse=True):
        """Move the tables of angles with the parameters. They stay float32."""
        device = function(torch.empty(0)).device
        self.angles = tuple(x.to(device) for x in self.angles)
        return super()._apply(function, recurse)

    def forward(self, tokens):
        x = self.ops.embed(self.table, tokens)
        for block in self.blocks:
            x = block(x, *self.angles)
        return linear(self.ops.rms_norm(x, self.norm), self.table)

    def loss(self, tokens):
        """Return the mean loss of each byte, given the preceding ones."""
        logits = self(tokens[:, :-1])
        return self.ops.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())


def corpus():
    """Return the text of the pages in `docs` as bytes."""
    text = b"".join(path.read_bytes() for path in sorted(DOCS.glob("*.md")))
    return torch.frombuffer(bytearray(text), dtype=torch.uint8)


def batches(n, size, length, device="cpu", seed=0):
    """Yield n batches int64[size, length + 1] from random positions of the corpus."""
    data, generator = corpus(), torch.Generator().manual_seed(seed)
    for _ in range(n):
        first = torch.randint(len(data) - length, (size, 1), generator=generator)
        yield data[first + torch.arange(length + 1)].long().to(device)


def train(model, loss_of, tokens, lr=3e-3):
    """Return the losses of AdamW, one step for each batch."""
    optimizer, losses = torch.optim.AdamW(model.parameters(), lr), []
    for batch in tokens:
        loss = loss_of(batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses).tolist()
