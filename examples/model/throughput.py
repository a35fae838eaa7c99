# SPDX-License-Identifier: Apache-2.0
"""Measures training in tokens per second, and writes a table.

    python examples/model/throughput.py [--device cuda] [--output throughput.md]

The four programs run in turn, several times. Each figure is the median of its runs.
"""

import argparse
import statistics
import time

import torch
from operators import of_cuplug, of_torch
from transformer import Model, batches

SIZES = {  # width, heads, blocks, length, batch, dtype
    "cpu": (128, 4, 2, 64, 8, torch.float32),
    "cuda": (1024, 16, 4, 1024, 8, torch.bfloat16),
}
N_TURNS, N_STEPS = 5, {"cpu": 2, "cuda": 10}


def programs(device):
    """Return the functions that run a step, by their names in the table, and the batches."""
    width, n_heads, n_blocks, length, size, dtype = SIZES[device]
    found, tokens = {}, [*batches(N_STEPS[device], size, length, device)]
    for name, ops in (("PyTorch", of_torch()), ("cuplug", of_cuplug())):
        model = Model(ops, width, n_heads, n_blocks, length).to(device, dtype)
        optimizer = torch.optim.AdamW(model.parameters(), 1e-4, fused=True)
        for kind, loss in (("eager", model.loss), ("compiled", torch.compile(model.loss))):
            found[f"{name}, {kind}"] = step_of(loss, optimizer)
    return found, tokens


def step_of(loss, optimizer):
    def step(batch):
        loss(batch).backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def seconds(step, tokens, device):
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    wait()
    start = time.perf_counter()
    for batch in tokens:
        step(batch)
    wait()
    return time.perf_counter() - start


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu", choices=SIZES)
    parser.add_argument("--output", default="/dev/stdout")
    given = parser.parse_args(arguments)
    steps, tokens = programs(given.device)
    for step in steps.values():  # compiles in this call
        seconds(step, tokens[:2], given.device)
    times = {name: [] for name in steps}
    for _ in range(N_TURNS):
        for name, step in steps.items():
            times[name].append(seconds(step, tokens, given.device))
    n_tokens = sum(x[:, 1:].numel() for x in tokens)
    rates = {name: n_tokens / statistics.median(x) for name, x in times.items()}
    eager = rates["PyTorch, eager"]
    rows = [f"| {name} | {rate:,.0f} | {rate / eager:.2f} |" for name, rate in rates.items()]
    with open(given.output, "w") as file:
        print("| program | tokens/s | as a ratio to PyTorch, eager |\n|---|---|---|", file=file)
        print(*rows, sep="\n", file=file)


if __name__ == "__main__":
    main()
