# SPDX-License-Identifier: Apache-2.0
"""Elementwise operators on the CPU: relu and leaky_relu on 128 Mi floats."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from measurement import SETTLED_S, Comparison, Contender, Target, statement
from module import GIB, Run, run_module

MI = 1 << 20
SLOPE = 0.01


def new_array(prepare: Callable[[], Callable[..., np.ndarray]], x: np.ndarray) -> Contender:
    """Return a contender that creates a new array in each call."""
    call = prepare()
    return statement("call(x)", lambda: call(x), call=call, x=x)


def given_array(prepare: Callable[[], Callable[..., object]], x: np.ndarray) -> Contender:
    """Return a contender that writes to an existing array, in C order."""
    call, z = prepare(), np.full(x.shape, np.nan, x.dtype)
    return statement("call(x, z)", lambda: z, call=call, x=x, z=z)


def cuplug_relu(into: bool) -> Callable[..., np.ndarray]:
    """cuplug's stock relu."""
    import cuplug

    relu = cuplug.find("relu")
    return (lambda x, z: relu(x, out=z, device="cpu")) if into else lambda x: relu(x, device="cpu")


def cuplug_leaky_relu() -> Callable[..., np.ndarray]:
    """cuplug's stock leaky_relu."""
    import cuplug

    leaky_relu = cuplug.find("leaky_relu")
    return lambda x: leaky_relu(x, SLOPE, device="cpu")


def torch_relu() -> Callable[..., np.ndarray]:
    """PyTorch's relu on the memory of the NumPy array."""
    import torch

    return lambda x: torch.relu(torch.from_numpy(x)).numpy()


def torch_relu_into() -> Callable[..., object]:
    """PyTorch's clamp to zero, which writes to an existing array."""
    import torch

    return lambda x, z: torch.clamp_min(torch.from_numpy(x), 0.0, out=torch.from_numpy(z))


def torch_leaky_relu() -> Callable[..., np.ndarray]:
    """PyTorch's leaky_relu on the memory of the NumPy array."""
    import torch

    return lambda x: torch.nn.functional.leaky_relu(torch.from_numpy(x), SLOPE).numpy()


def numpy_leaky_relu() -> Callable[..., np.ndarray]:
    """NumPy's usual spelling."""
    return lambda x: np.maximum(x, np.float32(SLOPE) * x)


def compare(
    name: str, x: np.ndarray, expected: np.ndarray, make: Callable, **of: Callable
) -> Comparison:
    """Return the comparison of the contenders `of`, which create or fill an array."""
    title = f"{name}, {x.size // MI} Mi floats, CPU"
    wanted = [Target("cuplug", "<= torch", ("torch",))]
    comparison = Comparison(title, "ms", "torch", wanted, expected, 2 * x.nbytes, number=1)
    comparison.pause_s = SETTLED_S
    for contender, prepare in of.items():
        comparison.add(contender, lambda prepare=prepare: make(prepare, x))
    return comparison


def measure(run: Run) -> None:
    """Elementwise operators on the CPU: relu and leaky_relu on 128 Mi floats."""
    n = 8 * MI if run.quick else 128 * MI
    run.require_memory(GIB + 8 * 4 * n)
    x = np.random.default_rng(2).standard_normal(n, np.float32)
    expected = np.maximum(x, 0)
    relus = {
        "cuplug": lambda: cuplug_relu(into=False),
        "numpy": lambda: lambda x: np.maximum(x, 0),
        "torch": torch_relu,
    }
    run.measure(compare("relu, new array", x, expected, new_array, **relus), 3)
    relus = {
        "cuplug": lambda: cuplug_relu(into=True),
        "numpy": lambda: lambda x, z: np.maximum(x, 0, out=z),
        "torch": torch_relu_into,
    }
    run.measure(compare("relu, array given", x, expected, given_array, **relus), 2)
    y = x[: n // 4].reshape(4096, -1).T
    title, expected = "relu, transposed, array given", np.maximum(y, 0)
    run.measure(compare(title, y, expected, given_array, **relus), 1)
    leaky = {"cuplug": cuplug_leaky_relu, "numpy": numpy_leaky_relu, "torch": torch_leaky_relu}
    expected = numpy_leaky_relu()(x)
    run.measure(compare("leaky_relu, new array", x, expected, new_array, **leaky), 0)


if __name__ == "__main__":
    run_module(measure)
