# SPDX-License-Identifier: Apache-2.0
"""The kernels of examples/model, run without a GPU: what the host entries compute."""

import pytest

pytestmark = pytest.mark.slow

BODY = """
import os
import emulation
import ml_dtypes
import numpy as np
import cuplug
from places import ROOT

emulation.COMPILER += ["-D__CUDA_ARCH__=900", "-DCUPLUG_ARCHITECTURES=900"]
emulation.build_plugin("transformer", [ROOT / "examples" / "model" / "transformer"])
op = cuplug.load(os.path.join(os.environ["EMULATED"], "libtransformer.so"))
random = np.random.default_rng(0)


def draw(shape, dtype):
    return random.standard_normal(shape).astype(dtype)


def check(found, wanted):
    close = 2e-5 if found.dtype == np.float32 else 2e-2
    scale = abs(wanted).max(initial=1)
    np.testing.assert_allclose(found.astype("float64"), wanted, rtol=close, atol=close * scale)


def wide(*arrays):
    return (x.astype("float64") for x in arrays)


def normalise(dtype, m, n):
    x, weight, grad = draw((m, n), dtype), draw(n, dtype), draw((m, n), dtype)
    found = op.rms_norm(x, weight, device="cuda")
    back = op.rms_norm_backward(grad, x, weight, device="cuda")
    x, weight, grad = wide(x, weight, grad)
    r = 1 / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6)
    check(found, x * r * weight)
    slope = r * (grad * weight - x * r**2 * (grad * weight * x).mean(-1, keepdims=True))
    check(back.grad_x, slope)
    check(back.grad_weight, (grad * x * r).sum(0))


def gate(dtype, m, n):
    x, grad = draw((m, n), dtype), draw((m, n // 2), dtype)
    found = op.silu_and_mul(x, device="cuda")
    back = op.silu_and_mul_backward(grad, x, device="cuda")
    x, grad = wide(x, grad)
    g, u = np.split(x, 2, -1)
    s = 1 / (1 + np.exp(-g))
    check(found, g * s * u)
    check(back, np.concatenate([grad * u * s * (1 + g * (1 - s)), grad * g * s], -1))


def rotate(dtype, b, t, h, d):
    buffer, angles = draw((b, t, h + 2, d), dtype), draw((t + 1, d // 2), "float32")
    there = cuplug.asarray(buffer, device="cuda")
    tables = [cuplug.asarray(x, device="cuda") for x in (np.cos(angles), np.sin(angles))]
    op.rotary(there[:, :, 1:-1], *tables)
    first, second = np.split(buffer.astype("float64"), 2, -1)
    cos, sin = np.cos(angles)[:t, None], np.sin(angles)[:t, None]
    wanted = np.concatenate([first * cos - second * sin, second * cos + first * sin], -1)
    wanted[:, :, [0, -1]] = buffer[:, :, [0, -1]]
    check(there.numpy(), wanted)
    op.rotary_backward(there[:, :, 1:-1], *tables)
    check(there.numpy(), buffer.astype("float64"))


for dtype in ("float32", ml_dtypes.bfloat16):
    for m, n in ((0, 4), (1, 1), (3, 7), (5, 64), (2, 1032), (1030, 8)):
        normalise(dtype, m, n)
        gate(dtype, m, 2 * n)
    rotate(dtype, 2, 3, 2, 8)
    rotate(dtype, 1, 2, 9, 64)
print("done")
"""


def test_kernels(run_emulated):
    assert run_emulated(BODY).split() == ["done"]
