# SPDX-License-Identifier: Apache-2.0
"""NumPy arrays offloaded to all GPUs, `device="cuda:*"`: split along loop dimensions."""

import cuplug
import numpy as np
import pytest
from cuplug.ops import gather, relu

N = (5 << 20) + 42  # floats: 40 MiB there and back, for two GPUs


def test_cut_on_two_gpus(run_loops):
    """Each has some of the rows; arrays without loop dimensions are on both."""
    run_loops(
        f"""
        x, y = numbers(({N},), np.float32, 1), numbers((1,), np.float32, 2)
        for a, b in (x, y), (x[::-1], x), (x.reshape(-1, 2, 1), y):
            assert np.array_equal(gpu.plus(a, b, device="cuda:*"), a + b)
            assert cuplug.last_call() == ("plus", "cuda:*", True, os.environ["PLUGIN"])
        rows, row = numbers((1 << 18, 21), np.float32, 3), numbers((21,), np.float32, 4)
        assert np.array_equal(gpu.add_row(rows, row, device="cuda:*"), rows + row)
        changed = x.copy()
        assert gpu.accumulate(changed, x, device="cuda:*") is None
        assert np.array_equal(changed, x + x)
        check_nothing_left()
        """,
        FAKE_CUDA_LAZY="1",
    )


def test_small_arrays_on_one(run_loops):
    """One GPU is enough for few bytes, or one row; an empty array is fine."""
    run_loops("""
    for shape in (3, 5), (1, 1), (0, 3):
        x = numbers(shape, np.float32, 1)
        assert np.array_equal(gpu.plus(x, x, device="cuda:*"), x + x)
        assert cuplug.last_call().device == "cuda:0"
    with cuplug.Device("cuda:*"):
        assert np.array_equal(gpu.plus(x, x), x + x)
        assert str(cuplug.empty((2,)).device) == "cuda:0"
    cuplug.prepare(gpu.plus, device="cuda:*")
    cuplug.synchronize()
    check_nothing_left()
    """)


def test_what_cannot_be_cut(run_loops):
    """Small or large, it is rejected with the reason; so is "cuda:*" where one GPU is expected."""
    run_loops("""
    for shape in (3, 5), (1 << 20, 5):
        x = numbers(shape, np.float32, 1)
        out = np.zeros((*shape[:-1], 10), np.float32)[..., ::2]
        with Raises(ValueError, "device: got cuda:*, expected one GPU: out: its elements are "
                    "not contiguous in memory"):
            gpu.plus(x, x, out=out, device="cuda:*")
        with Raises(ValueError, "expected one GPU: its entry requires whole arrays"):
            gpu.whole(x, x, device="cuda:*")
        with Raises(ValueError, "expected one GPU: x: its loop dimensions are not first"):
            gpu.last_axes(x, device="cuda:*")
    on_gpu = cuplug.asarray(x, device="cuda")
    with Raises(ValueError, "plus: device: got cuda:*, expected cuda:0 (as the arrays)"):
        gpu.plus(on_gpu, on_gpu, device="cuda:*")
    with Raises(ValueError, "asarray: device: got 'cuda:*', expected one GPU, or 'cpu'"):
        cuplug.asarray(x, device="cuda:*")
    with Raises(ValueError, "device: got 'cuda:**', expected"):
        gpu.plus(x, x, device="cuda:**")
    """)


def test_faults_on_all(run_loops):
    """The first fault by rows is raised, with its position in the whole array."""
    run_loops(
        """
        x = np.ones((200_000, 22), np.int64)
        for k in x.size - 1, x.size // 2 + 3, x.size // 2 - 1, 5:
            x.flat[k] = -k - 1
            with Raises(IndexError, f"root: x: index {-k - 1} at position {k} is out of"):
                gpu.root(x, device="cuda:*")
        assert np.array_equal(gpu.root(abs(x), device="cuda:*"), abs(x))
        check_nothing_left()
        """,
        FAKE_CUDA_LAZY="1",
    )


@pytest.mark.sample(2)
@pytest.mark.parametrize("memory", ["9000000", "1073741824"])
def test_failures_on_all(run_loops, memory):
    """If memory is short, parts are smaller; after an error, the next call is correct."""
    body = f"""
    x = numbers(({N},), np.float32, 1)
    try:
        result = gpu.plus(x, x, device="cuda:*")
    except cuplug.CudaError as error:
        assert "plus: " in str(error) and "999" in str(error), error
        result = gpu.plus(x, x, device="cuda:*")
    assert np.array_equal(result, x + x)
    check_nothing_left()
    """
    for fails in "", "cuMemcpyHtoDAsync:3:999", "cuStreamCreate:4:999":
        run_loops(body, FAKE_CUDA_MEMORY_BYTES=memory, FAKE_CUDA_FAIL=fails, FAKE_CUDA_LAZY="1")


def test_interrupt_on_all(run_loops):
    """Ctrl-C ends the work of all GPUs."""
    run_loops("""
    import signal
    x = np.arange(12 << 20, dtype=np.float32)
    gpu.nap(x[:10], device="cuda:*")
    signal.setitimer(signal.ITIMER_REAL, 0.12)
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        for _ in range(50):
            gpu.nap(x, device="cuda:*")
    except KeyboardInterrupt:
        pass
    else:
        raise AssertionError("not interrupted")
    assert np.array_equal(gpu.nap(x, device="cuda:*"), x)
    check_nothing_left()
    """)


@pytest.mark.gpu
def test_on_real_gpus():
    """On all available GPUs."""
    x = np.random.default_rng(0).standard_normal(40 << 20, np.float32)
    assert np.array_equal(relu(x, device="cuda:*"), np.maximum(x, 0))
    assert np.array_equal(relu(x[::-1], device="cuda:*"), np.maximum(x[::-1], 0))
    out = np.empty_like(x)
    assert relu(x, out=out, device="cuda:*") is out
    assert np.array_equal(out, np.maximum(x, 0))
    pinned, result = (
        cuplug.empty_pinned(x.shape, "float32"),
        cuplug.empty_pinned(x.shape, "float32"),
    )
    pinned[...] = x
    relu(pinned, out=result, device="cuda:*")
    assert np.array_equal(result, out)
    with pytest.raises(ValueError, match="^gather: device: got cuda:\\*, expected one GPU: "):
        gather(x, np.arange(3), device="cuda:*")


@pytest.mark.gpu(n=2)
def test_on_two_real_gpus():
    x = np.random.default_rng(0).standard_normal((1 << 20, 16), np.float32)
    assert np.array_equal(relu(x, device="cuda:*"), np.maximum(x, 0))
    assert cuplug.last_call().device == "cuda:*"
