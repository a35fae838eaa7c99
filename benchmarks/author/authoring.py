# SPDX-License-Identifier: Apache-2.0
"""From an edit of a source to the call of the new code, in a running Python."""

from __future__ import annotations

import itertools
import os
import tempfile
import time
from pathlib import Path

import cuplug
import native
import numpy as np
from cuplug._integration.commands import scaffold
from driver import Driver
from measurement import Comparison, Contender, Skip, Target
from module import Run, run_module

LIMIT_MS = 4000.0
X = np.arange(1024, dtype=np.float32)
CUDA = """
__global__ void twice_kernel(const float *x, float *y, long n) {{
  long i = (long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = {factor} * x[i];
}}
torch::Tensor twice(torch::Tensor x) {{
  auto y = torch::empty_like(x);
  twice_kernel<<<(x.numel() + 255) / 256, 256>>>(
      x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
  return y;
}}
"""
HOST = """
torch::Tensor twice(torch::Tensor x) {{
  auto y = torch::empty_like(x);
  for (long i = 0; i < x.numel(); i++) y.data_ptr<float>()[i] = {factor} * x.data_ptr<float>()[i];
  return y;
}}
"""


def edits(call: object) -> Contender:
    """Return a contender that edits, builds and calls; `call(factor)` returns the result."""
    factors = itertools.count(3)
    seen = [np.zeros(0)]

    def time_ns(number: int) -> float:
        begin = time.perf_counter_ns()
        for _ in range(number):
            factor = next(factors)
            seen[0] = call(factor) / factor  # type: ignore[operator]
        return time.perf_counter_ns() - begin

    return Contender(time_ns, lambda: seen[0])


def with_cuplug(folder: Path, device: str) -> Contender:
    """`cuplug.build` and `cuplug.reload` on the plugin that `cuplug new` writes."""
    scaffold.write_plugin("twice", str(folder))
    source = folder / "twice" / "twice.cu"
    text = source.read_text()
    operator = cuplug.load(cuplug.build(source)).twice

    def call(factor: int) -> np.ndarray:
        source.write_text(text.replace("factor * x[i]", f"{factor} * x[i]"))
        cuplug.build(source)
        cuplug.reload(operator)
        return operator(X, device=device)

    return edits(call)


def with_torch(device: str) -> Contender:
    """`torch.utils.cpp_extension.load_inline`, with a new module name for each edit."""
    import torch
    from torch.utils.cpp_extension import load_inline

    x = torch.from_numpy(X).to(device)
    if device == "cuda" and "TORCH_CUDA_ARCH_LIST" not in os.environ:
        major, minor = torch.cuda.get_device_capability()
        os.environ["TORCH_CUDA_ARCH_LIST"] = f"{major}.{minor}"

    def call(factor: int) -> np.ndarray:
        name = f"twice_{os.getpid()}_{factor}"
        if device == "cuda":
            declared = "torch::Tensor twice(torch::Tensor x);"
            cuda = CUDA.format(factor=factor)
            module = load_inline(name, declared, cuda_sources=cuda, functions=["twice"])
        else:
            module = load_inline(name, HOST.format(factor=factor), functions=["twice"])
        return module.twice(x).cpu().numpy()

    return edits(call)


def compare(device: str, folder: Path, torch_too: bool) -> Comparison:
    """Return the comparison on one device type."""
    peer = "torch load_inline"
    wanted = [Target("cuplug", "< 4 s", extra=LIMIT_MS), Target("cuplug", f"<= {peer}", (peer,))]
    title = f"edit to call, {device}"
    comparison = Comparison(title, "ms", peer, wanted, X, number=1, is_anew=True)
    comparison.settings["cuplug"] = "cuplug.build, checked, and cuplug.reload"
    comparison.add("cuplug", lambda: with_cuplug(folder, device))
    if torch_too:
        comparison.add(peer, lambda: with_torch(device))
    return comparison


def measure(run: Run) -> None:
    """From an edit of a source to the call of the new code, in a running Python."""
    run.min_rounds = 3
    native.nvcc()
    try:
        Driver()
        device = "cuda"
    except Skip:
        device = "cpu"
    with tempfile.TemporaryDirectory() as folder:
        run.measure(compare(device, Path(folder), torch_too=not run.quick), 0)


if __name__ == "__main__":
    run_module(measure)
