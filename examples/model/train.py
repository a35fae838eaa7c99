# SPDX-License-Identifier: Apache-2.0
"""Trains the model with cuplug's operators and with PyTorch's own: the losses are the same.

python examples/model/train.py [--device cuda] [--steps 100]
"""

import argparse

import torch
from operators import of_cuplug, of_torch
from transformer import Model, batches, train


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int, default=100)
    given = parser.parse_args(arguments)
    losses = []
    for ops in (of_cuplug(), of_torch()):
        model = Model(ops).to(given.device)
        compiled = torch.compile(model.loss, fullgraph=True)
        losses.append(train(model, compiled, batches(given.steps, 8, 64, given.device)))
    print("| step | loss with cuplug | loss with PyTorch |\n|---|---|---|")
    for step in range(0, given.steps, max(1, given.steps // 10)):
        print(f"| {step} | {losses[0][step]:.5f} | {losses[1][step]:.5f} |")


if __name__ == "__main__":
    main()
