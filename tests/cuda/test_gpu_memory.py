# SPDX-License-Identifier: Apache-2.0
"""Memory, copies, order and faults on a real GPU, through the Python API."""

import gc
import os
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor

import cuplug
import numpy as np
import pytest
from cuplug.ops import gather

pytestmark = pytest.mark.gpu

MIB = 1 << 20
PINNED_SMALL, PINNED_LARGE = 256 << 10, 8 * MIB  # the sizes of a channel's pinned buffers
SIZES = [0, 1, 3, 255, 4097, PINNED_SMALL - 1, PINNED_SMALL, PINNED_SMALL + 1]
SIZES += [PINNED_LARGE - 1, PINNED_LARGE, PINNED_LARGE + 1, 3 * PINNED_LARGE + 13, 200 * MIB + 7]


def random_bytes(n: int, seed: int = 0) -> np.ndarray:
    """Return n random bytes."""
    return np.random.default_rng(seed).integers(0, 256, n, dtype=np.uint8)


@pytest.mark.parametrize("n", SIZES)
def test_round_trip(n):
    host = random_bytes(n, seed=n)
    device = cuplug.asarray(host, device="cuda")
    assert device.shape == (n,)
    assert device.nbytes == n
    assert np.array_equal(device.numpy(), host)


@pytest.mark.large
def test_round_trip_beyond_32_bits():
    n = (1 << 32) + 5
    host = np.zeros(n, np.uint8)
    host[[0, 1 << 31, 1 << 32, n - 1]] = [1, 2, 3, 4]
    back = cuplug.asarray(host, device="cuda").numpy()
    assert back[[0, 1 << 31, 1 << 32, n - 1]].tolist() == [1, 2, 3, 4]
    assert int(back.sum(dtype=np.int64)) == 10


def test_source_may_change_after_the_copy():
    host = random_bytes(3 * PINNED_LARGE)
    wanted = host.copy()
    device = cuplug.asarray(host, device="cuda")
    host[:] = 0
    assert np.array_equal(device.numpy(), wanted)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (5, 4, 3)])
@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.float16, np.float64, np.complex128])
def test_shapes_and_dtypes(shape, dtype):
    host = np.ones(shape, dtype)
    back = cuplug.asarray(host, device="cuda").numpy()
    assert back.dtype == host.dtype
    assert back.shape == shape
    assert np.array_equal(back, host)


def test_memory_is_reused():
    """A thousand times 1 GiB fits into a GPU only if each is given back."""
    for _ in range(1000):
        cuplug.empty((1 << 30,), np.uint8, "cuda")
    gc.collect()
    cuplug.synchronize()


def test_out_of_memory_says_sizes():
    n = 1 << 50
    wanted = rf"requested {n} bytes \(1048576\.00 GiB\) on cuda:0, free .* of .* GiB"
    for _ in range(3):
        with pytest.raises(MemoryError, match=wanted):
            cuplug.empty((n,), np.uint8, "cuda")
    host = random_bytes(1000)
    assert np.array_equal(cuplug.asarray(host, device="cuda").numpy(), host)


@pytest.mark.alone
def test_out_of_memory_step_by_step():
    """Allocate blocks of 4 GiB until memory runs out; all of it is available again afterwards."""
    blocks = []

    def fill():
        while len(blocks) < 1000:
            blocks.append(cuplug.empty((4 << 30,), np.uint8, "cuda"))

    with pytest.raises(MemoryError, match="out of device memory"):
        fill()
    n_first = len(blocks)
    assert n_first > 0
    blocks.clear()
    cuplug.synchronize()
    blocks = [cuplug.empty((4 << 30,), np.uint8, "cuda") for _ in range(n_first)]
    blocks.clear()
    cuplug.synchronize()


def test_fault_of_a_staged_call():
    source, index = np.arange(10, dtype=np.float32), np.array([1, 2, 10, 11])
    message = "gather: index: index 10 at position 2 is out of bounds for size 10"
    for _ in range(3):
        with pytest.raises(IndexError, match=message):
            gather(source, index, device="cuda")
    assert gather(source, index[:2], device="cuda").tolist() == [1, 2]
    cuplug.synchronize()


def test_fault_of_an_asynchronous_call():
    source = cuplug.asarray(np.arange(10, dtype=np.float32), device="cuda")
    bad = cuplug.asarray(np.array([3, -11], np.int32), device="cuda")
    message = "gather: index: index -11 at position 1 is out of bounds for size 10"
    out = gather(source, bad)
    for _ in range(2):
        with pytest.raises(IndexError, match=message):
            out.numpy()
    out = gather(source, bad)
    with pytest.raises(IndexError, match=message):
        cuplug.synchronize()
    cuplug.synchronize()


def test_fault_is_told_by_a_later_call():
    source = cuplug.asarray(np.arange(10, dtype=np.float32), device="cuda")
    bad = cuplug.asarray(np.array([99], np.int32), device="cuda")
    good = cuplug.asarray(np.array([4], np.int32), device="cuda")

    def go_on():
        for _ in range(100_000):
            gather(source, good)

    gather(source, bad)
    with pytest.raises(IndexError, match="gather: index: index 99 at position 0"):
        go_on()
    assert gather(source, good).numpy().tolist() == [4]


def stage_and_copy(k: int) -> None:
    """Make calls whose data and faults differ from other threads'."""
    source = np.random.default_rng(k).standard_normal(300_000 + k).astype(np.float32)
    index = np.arange(source.size)[::-1].copy()
    bad = np.array([source.size + k])
    for _ in range(10):
        assert np.array_equal(gather(source, index, device="cuda"), source[::-1])
        assert np.array_equal(cuplug.asarray(source, device="cuda").numpy(), source)
        with pytest.raises(IndexError, match=f"index {source.size + k} at position 0"):
            gather(source, bad, device="cuda")


def test_threads():
    with ThreadPoolExecutor(8) as pool:
        for _ in pool.map(stage_and_copy, range(8)):
            pass


def run_alone(body: str) -> None:
    """Run Python text in a separate process, which must end with status 0."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(body)],
        env=os.environ,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_fork_after_start():
    run_alone("""
        import os, numpy as np, cuplug
        x = np.ones(3, np.float32)
        cuplug.asarray(x, device="cuda")
        child = os.fork()
        if child == 0:
            try:
                cuplug.asarray(x, device="cuda")
            except cuplug.CudaError as error:
                os._exit(0 if "forked after CUDA started" in str(error) else 2)
            os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
        assert cuplug.asarray(x, device="cuda").numpy().tolist() == [1, 1, 1]
    """)


def test_exit_with_everything_alive():
    """Arrays, an unread fault and channels of threads exist when the process ends."""
    run_alone("""
        import numpy as np, cuplug
        from cuplug.ops import gather
        kept = [cuplug.asarray(np.ones(n, np.float32), device="cuda") for n in (1, 10, 10**7)]
        gather(np.ones(3), np.array([1]), device="cuda")
        gather(kept[1], cuplug.asarray(np.array([77]), device="cuda"))
    """)
