# SPDX-License-Identifier: Apache-2.0
"""relu of 16 floats by PyTorch's dispatcher, with gradients and without, on the CPU and a GPU."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
from measurement import Comparison, Contender, Skip, Target, statement
from module import Run, run_module

X = np.linspace(-1, 1, 16, dtype=np.float32)
OWN, ATEN, CUSTOM = "torch.ops.cuplug.relu", "torch.ops.aten.relu", "custom_op of PyTorch"


@cache
def custom_operator() -> Callable[[Any], Any]:
    """Return cuplug's relu as PyTorch users wrap other libraries' functions."""
    import cuplug
    import torch
    from torch import library

    relu, relu_backward = cuplug.find("relu"), cuplug.find("relu_backward")

    def wrapped(x):  # type: ignore[no-untyped-def]
        return relu(x.detach())

    wrapped.__annotations__ = {"x": torch.Tensor, "return": torch.Tensor}
    made = library.custom_op("cuplug_benchmark::relu", wrapped, mutates_args=())
    made.register_fake(torch.empty_like)
    made.register_autograd(
        lambda ctx, grad: relu_backward(grad, ctx.saved_tensors[0].detach()),
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0]),
    )
    return made


def functions() -> dict[str, Callable[[], Any]]:
    """Return the contenders, as functions that create them."""
    import cuplug
    import cuplug.torch
    import torch

    return {
        OWN: lambda: torch.ops.cuplug.relu.default,
        "cuplug.torch.relu": lambda: cuplug.torch.relu,
        "cuplug.ops.relu": lambda: cuplug.find("relu"),
        ATEN: lambda: torch.ops.aten.relu.default,
        "torch.relu": lambda: torch.relu,
        CUSTOM: custom_operator,
    }


def forward(name: str, device: str, requires_grad: bool) -> Contender:
    """Return the calls of a function on one tensor."""
    import torch

    if device == "cuda" and not torch.cuda.is_available():
        raise Skip("PyTorch sees no GPU")
    x = torch.tensor(X, device=device, requires_grad=requires_grad)
    call = functions()[name]()
    return statement("call(x)", lambda: call(x).detach().cpu().numpy(), call=call, x=x)


def backward(name: str, device: str) -> Contender:
    """Return calls with their gradients."""
    import torch

    if device == "cuda" and not torch.cuda.is_available():
        raise Skip("PyTorch sees no GPU")
    x = torch.tensor(X, device=device, requires_grad=True)
    ones, call = torch.ones_like(x), functions()[name]()
    text = "grad(call(x), x, ones)"
    (result,) = torch.autograd.grad(call(x), x, ones)
    return statement(text, result.cpu().numpy, call=call, x=x, ones=ones, grad=torch.autograd.grad)


def wait() -> None:
    """Wait for the GPU, if there is one."""
    import torch

    if torch.cuda.is_available():
        torch.cuda.synchronize()


def comparison(title: str, device: str, prepare: Callable[..., Contender], **wanted: Any) -> Any:
    """Return one table."""
    made = Comparison(f"{title}, {device}", "us", ATEN, synchronize=wait, **wanted)
    for name in (OWN, "cuplug.torch.relu", "cuplug.ops.relu", ATEN, "torch.relu", CUSTOM):
        made.add(name, partial(prepare, name, device))
    return made


def measure(run: Run) -> None:
    """relu of 16 floats by PyTorch's dispatcher, with gradients and without."""
    plain = [Target(OWN, f"<= {ATEN}", (ATEN,))]
    recorded = [Target(OWN, f"<= 0.7 x {CUSTOM}", (CUSTOM,), 0.7)]
    relu, step = np.maximum(X, 0), (X > 0).astype(np.float32)
    tables = []
    for device in ("cpu", "cuda"):
        without = partial(forward, requires_grad=False)
        within = partial(forward, requires_grad=True)
        tables += [
            partial(comparison, "relu of 16 floats", device, without, targets=plain, expected=relu),
            partial(
                comparison, "the same, recorded", device, within, targets=recorded, expected=relu
            ),
            partial(comparison, "recorded, and its gradient", device, backward, expected=step),
        ]
    run.measure_all(tables)


if __name__ == "__main__":
    run_module(measure)
