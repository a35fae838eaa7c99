# SPDX-License-Identifier: Apache-2.0
"""Offloaded pinned NumPy arrays, pinned by any library, need no copy on the host."""

import cuplug
import numpy as np
import pytest
from cuplug.ops import relu

SIZES = [1, 20_000, 300_000, 3_000_017]


def test_no_buffers(run_loops):
    """Nothing more is pinned for pinned arrays; pageable arrays get buffers."""
    run_loops(
        """
        def pinned(x):
            result = cuplug.empty_pinned(x.shape, x.dtype)
            result[...] = x
            return result

        gpu.plus(x[:2], x[:2], device="cuda")
        for n in 300_000, 3_000_017:
            x, y = numbers((n,), np.float32, 1), numbers((n,), np.float32, 2)
            a, b, out = pinned(x), pinned(y), cuplug.empty_pinned(n, "float32")
            before = counts().pinned
            assert gpu.plus(a, b, out=out, device="cuda") is out
            assert np.array_equal(out, x + y)
            on_gpu = cuplug.asarray(a, device="cuda")
            assert np.array_equal(on_gpu.numpy(out=out), x)
            assert counts().pinned == before
            for wanted in (a, y), (x, b), (a[::-1], b):
                assert np.array_equal(gpu.plus(*wanted, out=out, device="cuda"), sum(wanted))
        changed = pinned(x)
        gpu.accumulate(changed, b, device="cuda")
        assert np.array_equal(changed, x + y)
        part = a[1000:2_000_000]
        assert np.array_equal(gpu.plus(part, part, device="cuda:*"), 2 * part)
        del a, b, out, changed, part, on_gpu
        check_nothing_left()
        """,
        FAKE_CUDA_LAZY="1",
    )


def pinned_by_torch(x):
    """Return a copy in pinned memory of PyTorch."""
    torch = pytest.importorskip("torch")
    return torch.from_numpy(x).pin_memory().numpy()


def pinned_by_cupy(x):
    """Return a copy in pinned memory of CuPy."""
    cupyx = pytest.importorskip("cupyx")
    result = cupyx.empty_pinned(x.shape, x.dtype)
    result[...] = x
    return result


def pinned_by_cuplug(x):
    """Return a copy in pinned memory of cuplug."""
    result = cuplug.empty_pinned(x.shape, x.dtype)
    result[...] = x
    return result


@pytest.mark.gpu
@pytest.mark.sanitizer
@pytest.mark.parametrize("pinned", [pinned_by_torch, pinned_by_cupy, pinned_by_cuplug])
def test_whoever_pinned_them(pinned):
    for n in SIZES:
        x = np.random.default_rng(n).standard_normal(n, np.float32)
        source, out = pinned(x), pinned(np.zeros_like(x))
        for y in source, source[::-1], source[n // 3 :]:
            assert np.array_equal(relu(y, device="cuda"), np.maximum(y, 0))
        relu(source, out=out, device="cuda")
        assert np.array_equal(out, np.maximum(x, 0))
        relu(x, out=out, device="cuda")
        assert np.array_equal(out, np.maximum(x, 0))
        assert np.array_equal(cuplug.asarray(source, device="cuda").numpy(out=out), x)


@pytest.mark.gpu
def test_registered():
    """Registered NumPy memory; arrays that extend beyond it are copied like others."""
    torch = pytest.importorskip("torch")
    torch.cuda.init()
    x = np.random.default_rng(0).standard_normal(1 << 22, np.float32)
    memory, page = np.empty(x.nbytes + 8192, np.uint8), 4096
    start = -memory.ctypes.data % page
    aligned = memory[start : start + x.nbytes].view(np.float32)
    aligned[...] = x
    cudart, wanted = torch.cuda.cudart(), np.maximum(x, 0)
    for n_bytes in x.nbytes, x.nbytes // 2:
        assert int(cudart.cudaHostRegister(aligned.ctypes.data, n_bytes, 0)) == 0
        try:
            for part in aligned[: n_bytes // 4], aligned:
                assert np.array_equal(relu(part, device="cuda"), wanted[: part.size])
        finally:
            assert int(cudart.cudaHostUnregister(aligned.ctypes.data)) == 0
    assert np.array_equal(relu(aligned, device="cuda"), wanted)
