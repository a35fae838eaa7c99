# SPDX-License-Identifier: Apache-2.0
"""NumPy arrays offloaded in slices and parts, on a driver without a GPU, compared with NumPy."""

import textwrap

import pytest
from selection import runs_all


@pytest.mark.parametrize("memory", ["6000", "100000", "1073741824"])
def test_parts_and_whole(run_loops, memory):
    """Small arrays, complete or halved until they fit the GPU."""
    body = """
    from hypothesis import example, given, settings, strategies as st

    layouts = st.sampled_from(LAYOUTS)

    @example([3, 4, 6, 7], 0, "contiguous", "contiguous", set(), (1, True))
    @settings(max_examples=60, deadline=None, database=None, derandomize=True)
    @given(shape=st.lists(st.integers(1, 7), min_size=2, max_size=4), seed=st.integers(0, 99),
           layout=layouts, other=layouts, axes=st.sets(st.integers(0, 3)),
           room=st.tuples(st.sampled_from([1, -1, 3, -2]), st.booleans()))
    def test(shape, seed, layout, other, axes, room):
        check_all(tuple(shape), seed, layout, other, axes, room)

    test()
    check_nothing_left()
    """
    run_loops(body, FAKE_CUDA_MEMORY_BYTES=memory, FAKE_CUDA_LAZY="1")


SHAPES = [(100003, 21), (3, 700, 1001), (1100, 1901), (9, 300000)]
SLICED = ["contiguous", "gaps", "transposed", "unaligned", "field"]


@pytest.mark.sample(12)
@pytest.mark.parametrize("layout", SLICED)
def test_slices(run_loops, layout):
    """From 16 MiB on; rows of many sizes."""
    shapes = SHAPES if runs_all() else SHAPES[SLICED.index(layout) % 2 :: 2]
    body = f"""
    for shape in {shapes}:
        check_all(shape, 5, {layout!r}, "contiguous", {{len(shape) - 2}}, (2, False))
        check_all(shape, 6, "contiguous", {layout!r}, {{0}}, (-1, True))
    check_nothing_left()
    """
    run_loops(body, FAKE_CUDA_LAZY="1")


@pytest.mark.slow
@pytest.mark.parametrize("memory", ["30000000", "110000000"])
def test_larger_than_the_gpu(run_loops, memory):
    """In parts of the GPU's memory, if it has no room for slices, and in slices."""
    body = """
    for shape in (200003, 201), (11, 1500000):
        x, y = np.ones(shape, np.float32), np.arange(shape[1], dtype=np.float32)
        assert np.array_equal(gpu.add_row(x, y, device="cuda"), x + y)
    assert np.array_equal(gpu.plus(np.float32([2])[:, None], x, device="cuda"), x + 2)
    check_nothing_left()
    """
    run_loops(body, FAKE_CUDA_MEMORY_BYTES=memory)


def test_empty_and_without_loops(run_loops):
    body = """
    for shape in (0,), (5,), (0, 5), (5, 0), (3, 0, 2), (1, 1, 4):
        x = np.ones(shape, np.float32)
        assert np.array_equal(gpu.total(x, device="cuda"), x.sum(-1, dtype=np.float64))
        assert np.array_equal(gpu.plus(x, np.float32(1)[None], device="cuda"), x + 1)
    assert np.array_equal(gpu.last_axes(x, device="cuda"), x + x)
    check_nothing_left()
    """
    run_loops(body)


def test_what_cannot_be_cut(run_loops):
    body = """
    x = np.ones(5000, np.float32)
    with Raises(MemoryError, "add_row: out of device memory: requested 20000 bytes") as caught:
        gpu.add_row(x[None], x, device="cuda")
    needed = "the call needs x (20000 bytes), y (20000 bytes), its output (20000 bytes) at once: "
    assert needed in str(caught.error)
    with Raises(MemoryError, "one step of the loop dimensions is that large"):
        gpu.add_row(np.ones((3, 5000), np.float32), x, device="cuda")
    with Raises(MemoryError, "its loop dimensions cannot be split"):
        gpu.last_axes(np.ones((100, 300), np.float32), device="cuda")
    check_nothing_left()
    """
    run_loops(body, FAKE_CUDA_MEMORY_BYTES="50000")


def test_no_loop_dimensions(run_fake):
    body = """
    with Raises(MemoryError, "pick: out of device memory: requested 8000 bytes") as caught:
        gpu.pick(x, np.zeros(1000, np.int64))
    assert str(caught.error).endswith(
        "the call needs source (4000 bytes), index (8000 bytes), its output (4000 bytes) at once: "
        "its signature has no loop dimensions")
    """
    run_fake(body, FAKE_CUDA_MEMORY_BYTES="9000")


def test_lists_of_arrays_that_do_not_fit(run_fake):
    body = """
    with Raises(MemoryError, "stack: out of device memory: requested ") as caught:
        gpu.stack([x, x, x])
    items = ", ".join(f"xs[{k}] (4000 bytes)" for k in range(3))
    assert f"the call needs {items}, its output (12000 bytes) at once" in str(caught.error)
    """
    run_fake(body, FAKE_CUDA_MEMORY_BYTES="9000")


@pytest.mark.parametrize(("shape", "memory"), [((500, 40), "100000"), ((200000, 12), "1073741824")])
def test_faults_say_positions_in_the_whole_array(run_loops, shape, memory):
    body = f"""
    x = np.ones({shape}, np.int64)
    for k in x.size - 1, x.size // 2 + 3, 17, 0:
        x.flat[k] = -k - 1
        for y in x, lay_out(x, "gaps"):
            with Raises(IndexError, f"root: x: index {{-k - 1}} at position {{k}} is out of"):
                gpu.root(y)
    assert np.array_equal(gpu.root(abs(x)), abs(x))
    check_nothing_left()
    """
    run_loops(body, FAKE_CUDA_MEMORY_BYTES=memory, FAKE_CUDA_LAZY="1")


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "function",
    [
        *("cuMemAllocFromPoolAsync", "cuMemHostAlloc", "cuStreamCreate", "cuEventCreate"),
        *("cuEventSynchronize", "cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync", "cuStreamSynchronize"),
    ],
)
@pytest.mark.parametrize("code", [2, 999])
def test_driver_calls_that_fail(run_loops, function, code):
    """If memory is short, parts are smaller; after another error, the next call is correct."""
    body = """
    x, y = np.ones((5000, 1001), np.float32), np.arange(1001, dtype=np.float32)
    try:
        result = gpu.add_row(lay_out(x, "gaps"), y, device="cuda")
    except (cuplug.CudaError, MemoryError) as error:
        assert str(error).startswith("add_row: "), error
        result = gpu.add_row(lay_out(x, "gaps"), y, device="cuda")
    assert np.array_equal(result, x + y)
    check_nothing_left()
    """
    for n in (1, 2, 4, 5) if runs_all() else (1, 4):
        run_loops(body, FAKE_CUDA_FAIL=f"{function}:{n}:{code}", FAKE_CUDA_LAZY="1")


NAPS = """
import io, signal, sys, threading, time
x = np.arange(6 << 20, dtype=np.float32)
"""


@pytest.mark.parametrize("fails", ["", "cuMemAllocFromPoolAsync:1:2"])
def test_interrupt(run_loops, fails):
    """Ctrl-C ends a long call between two slices; nothing is lost, and later calls work."""
    body = """
    gpu.nap(x[:10])
    signal.setitimer(signal.ITIMER_REAL, 0.12)
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        for _ in range(50):
            gpu.nap(x)
    except KeyboardInterrupt:
        pass
    else:
        raise AssertionError("not interrupted")
    assert np.array_equal(gpu.nap(x), x)
    check_nothing_left()
    """
    run_loops(NAPS + textwrap.dedent(body))


def test_interrupt_reaches_into_a_call(run_loops):
    body = """
    def fail(signum, frame):
        raise RuntimeError("from the handler")

    signal.signal(signal.SIGALRM, fail)
    out = np.full_like(x, -1)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    with Raises(RuntimeError, "from the handler"):
        gpu.nap(x, out=out)
        raise AssertionError("the call went on to its end")
    assert out[-1] == -1
    check_nothing_left()
    """
    run_loops(NAPS + textwrap.dedent(body))


def test_progress(run_loops):
    body = """
    def shown(work):
        sys.stderr = io.StringIO()
        work()
        text, sys.stderr = sys.stderr.getvalue(), sys.__stderr__
        return text

    def long_call():
        with cuplug.progress():
            assert np.array_equal(gpu.nap(x), x)

    def short_call():
        with cuplug.progress():
            gpu.nap(x[:10])
            assert np.array_equal(cuplug.asarray(x[:10]).numpy(), x[:10])

    assert "nap" in shown(long_call) and "48.0/48.0" in shown(long_call).replace(" ", "")
    assert "nap" not in shown(short_call)
    assert "nap" not in shown(lambda: gpu.nap(x))

    def in_threads():
        with cuplug.progress():
            threads = [threading.Thread(target=gpu.nap, args=(x,)) for _ in range(2)]
            [thread.start() for thread in threads]
            [thread.join() for thread in threads]

    assert "nap" not in shown(in_threads)
    check_nothing_left()
    """
    run_loops(NAPS + textwrap.dedent(body))
