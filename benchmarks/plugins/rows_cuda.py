# SPDX-License-Identifier: Apache-2.0
"""The stock operators of rows on device arrays, against PyTorch, `fuse` and a device copy."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from driver import DeviceTimer, Driver
from measurement import Comparison, Contender, Skip, Target
from module import GIB, Run, run_module

N_ELEMENTS = 16 << 20  # of x
LENGTHS = (64, 1 << 10, 1 << 12, 1 << 14, 1 << 16)
COPY, EPS = "device copy", 1e-5
ALONG = {"axis": -1, "keepdims": True}


@dataclass(frozen=True)
class Case:
    """A row operator: the call of each library, and the minimum of bytes read and written."""

    title: str
    n_bytes: int
    calls: dict[str, Callable[[], Any]]


def softmax(x: Any) -> Any:
    """Return powers divided by their sum, as text for `fuse`."""
    e = np.exp(x - np.max(x, **ALONG))
    return e / np.sum(e, **ALONG)


def layer_norm(x: Any, weight: Any, bias: Any) -> Any:
    """Return rows with mean 0 and variance 1, scaled and shifted, as text for `fuse`."""
    distances = x - np.mean(x, **ALONG)
    return distances / np.sqrt(np.var(x, **ALONG) + EPS) * weight + bias


def cases(dtype: str, n: int) -> Iterator[Case]:
    """Yield the operators to measure on rows of n elements."""
    import cuplug
    import torch
    from cuplug import ops

    F = torch.nn.functional
    m, kind = N_ELEMENTS // n, getattr(torch, dtype)
    title = f"{m:,} x {n:,} {dtype}"
    torch.manual_seed(0)
    x = torch.randn(m, n, device="cuda").to(kind)
    grad, residual = torch.randn_like(x), torch.randn_like(x)
    weight, bias = (torch.rand(n, device="cuda").to(kind) for _ in range(2))
    target = torch.randint(0, n, (m,), device="cuda")
    bytes_of_x, y = x.numel() * x.element_size(), torch.softmax(x, -1)
    fused = {f.__name__: cuplug.fuse(f) for f in (softmax, layer_norm)}
    backward = torch.ops.aten

    def case(name: str, moved: float, ours: Any, peer: Any, **more: Any) -> Case:
        return Case(
            f"{name}, {title}", int(moved * bytes_of_x), {"cuplug": ours, "torch": peer, **more}
        )

    yield case(
        "softmax",
        2,
        lambda: ops.softmax(x),
        lambda: torch.softmax(x, -1),
        fuse=lambda: fused["softmax"](x),
    )
    yield case(
        "gradient of softmax",
        3,
        lambda: ops.softmax_backward(grad, y),
        lambda: backward._softmax_backward_data(grad, y, -1, kind),
    )
    yield case(
        "rms_norm",
        2,
        lambda: ops.rms_norm(x, weight, EPS),
        lambda: F.rms_norm(x, (n,), weight, EPS),
    )
    yield case(
        "layer_norm",
        2,
        lambda: ops.layer_norm(x, weight, bias, EPS),
        lambda: F.layer_norm(x, (n,), weight, bias, EPS),
        fuse=lambda: fused["layer_norm"](x, weight, bias),
    )
    _, mean, inverse = backward.native_layer_norm(x, [n], weight, bias, EPS)
    yield case(
        "gradients of layer_norm",
        3,
        lambda: ops.layer_norm_backward(grad, x, weight, EPS)[0],
        lambda: backward.native_layer_norm_backward(
            grad, x, [n], mean, inverse, weight, bias, [True, True, True]
        )[0],
    )
    yield case(
        "add_rms_norm",
        4,
        lambda: ops.add_rms_norm(residual, x, weight, EPS),
        lambda: F.rms_norm(residual.add_(x), (n,), weight, EPS),
    )
    yield case(
        "cross_entropy",
        1,
        lambda: ops.cross_entropy(x, target),
        lambda: F.cross_entropy(x, target, reduction="none").float(),
    )
    yield case(
        "silu_and_mul",
        1.5,
        lambda: ops.silu_and_mul(x),
        lambda: F.silu(x[:, : n // 2]) * x[:, n // 2 :],
    )


def contender(timer: DeviceTimer, call: Callable[[], Any], expected: Any, near: float) -> Contender:
    """Return a library's contender. Its result is 1 if it is close to PyTorch's result."""

    def result() -> np.ndarray:
        found = call().double()
        return np.array(
            [float((found - expected).abs().max()) <= near * (1 + float(expected.abs().max()))]
        )

    return timer.contender(itertools.repeat(call), result=result)


def compare(timer: DeviceTimer, case: Case, dtype: str) -> Comparison:
    """Return the comparison of a case. If it modifies its arguments, values are not compared."""
    target = Target("cuplug", ">= 0.9 of a device copy", (COPY,), 1 / 0.9)
    best = Target("cuplug", "<= torch", ("torch",))
    comparison = Comparison(case.title, "us", COPY, (target, best), n_bytes=case.n_bytes)
    comparison.expected = np.array([True])
    copy = itertools.repeat(timer.driver.copier(case.n_bytes // 2))
    comparison.add(COPY, lambda: timer.contender(copy))
    changes = case.title.startswith("add_")
    expected = None if changes else case.calls["torch"]().double()
    near = 0.02 if dtype == "bfloat16" else 1e-5
    for name, call in case.calls.items():
        made = partial(timer.contender, itertools.repeat(call))
        comparison.add(name, made if changes else partial(contender, timer, call, expected, near))
    return comparison


def measure(run: Run) -> None:
    """Rows on device arrays, against PyTorch, `fuse` and a device copy of as many bytes."""
    try:
        import torch  # noqa: F401
    except ModuleNotFoundError as error:
        raise Skip(f"PyTorch makes the arrays: {error}") from None
    run.require_memory(GIB)
    timer = DeviceTimer(Driver())
    sizes = itertools.product(("bfloat16", "float32"), LENGTHS[1:3] if run.quick else LENGTHS)
    run.measure_all(
        partial(compare, timer, case, dtype) for dtype, n in sizes for case in cases(dtype, n)
    )


if __name__ == "__main__":
    run_module(measure)
