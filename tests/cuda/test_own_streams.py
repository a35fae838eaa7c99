# SPDX-License-Identifier: Apache-2.0
"""cuplug's streams, events and graphs: on a driver without a GPU, and on a GPU."""

import cuplug
import numpy as np
import pytest
from emulated_driver import need_nvrtc


def test_work_in_a_block_goes_to_its_stream(run_streams):
    run_streams(
        """
    with cuplug.Stream() as s:
        names = calls(gpu.triple, a, out=out)
        assert "cuEventRecord" not in names and "cuLaunchKernelEx" in names
        y = gpu.triple(out)
        assert np.array_equal(y.numpy(), 9 * x)
        with cuplug.stream(s) as same:
            assert same.handle == s.handle and same is not s
    assert s.done and s.device == 0 and s.__cuda_stream__() == (0, s.handle)
    before = counts().streams
    del same, s  # y keeps it, for its memory
    assert counts().streams == before
    del y
    assert counts().streams == before - 1
    assert counts().misuses == 0
    """
    )


def test_blocks_are_of_one_gpu_and_of_one_thread(run_streams):
    run_streams(
        """
    import threading
    b = cuplug.asarray(x, device=1)
    results = []
    with cuplug.Stream(device=1), cuplug.Stream():
        thread = threading.Thread(target=lambda: results.append(gpu.triple(a).numpy()))
        thread.start()
        thread.join()
        assert np.array_equal(gpu.triple(b).numpy(), 3 * x)
        assert np.array_equal(gpu.triple(a).numpy(), 3 * x)
    assert np.array_equal(results[0], 3 * x)
    assert counts().misuses == 0
    """
    )


def test_events(run_streams):
    run_streams(
        """
    s, t = cuplug.Stream(), cuplug.Stream(non_blocking=True, priority=-1)
    start, end = cuplug.Event(), cuplug.Event()
    with Raises(ValueError, "elapsed_time: got <event "):
        start.elapsed_time(end)
    assert start.record(s) is start and start.done
    with s:
        gpu.triple(a, out=out)
        end.record()
    assert not end.done and not s.done
    with Raises(ValueError, "got an event whose work is not done"):
        start.elapsed_time(end)
    t.wait(end)
    t.wait(s)
    t.synchronize()
    end.synchronize()
    assert end.done
    assert start.elapsed_time(end) > 0, start.elapsed_time(end)
    quiet = cuplug.Event(timing=False).record()
    with Raises(ValueError, "expected a recorded event with timing=True"):
        start.elapsed_time(quiet)
    assert s.record().done and s.record(end) is end
    del s, t, start, end, quiet
    assert counts().misuses == 0, counts().misuses
    """,
        FAKE_CUDA_LAZY="1",
    )


def test_wrong_streams_and_events(run_streams):
    run_streams(
        """
    with Raises(ValueError, "Stream: device: got 'cpu', expected a GPU"):
        cuplug.Stream("cpu")
    with Raises(TypeError, "stream: stream: got str"):
        cuplug.stream("s")
    with Raises(ValueError, "stream: stream: got one of cuda:0, expected one of cuda:1"):
        cuplug.stream(cuplug.Stream(), device=1)
    for made in (cuplug.Stream(), cuplug.Event(), cuplug.Graph()):
        with Raises(TypeError, "it is of this process and cannot be pickled"):
            pickle.dumps(made)
    """
    )


def test_a_graph_is_captured_and_launched(run_streams):
    run_streams(
        """
    graph = cuplug.Graph()
    with Raises(ValueError, "Graph: got one without work"):
        graph.launch()
    gpu.triple(x, device="cuda")  # its lane keeps memory
    before = cuplug.memory_info().used_bytes
    with graph:
        y = gpu.triple(a)
        gpu.increase(y, 1)
        z = gpu.triple(y, out=out)
        host = gpu.triple(x, device="cuda")  # runs at once
        gpu.triple(y, out=cuplug.empty(x.shape, x.dtype, "cuda"))  # which the graph keeps
    assert np.array_equal(host, 3 * x)
    for k in range(3):
        graph.launch()
        assert np.array_equal(y.numpy(), 3 * (x + k) + 1)
        assert np.array_equal(z.numpy(), 9 * (x + k) + 3)
        gpu.increase(a, 1)
    with cuplug.Stream():
        graph.launch()
    graph.launch(stream=cuplug.Stream())
    with Raises(ValueError, "Graph: got one that was captured, expected a new one"):
        graph.__enter__()
    del y
    assert cuplug.memory_info().used_bytes == before + 2 * z.nbytes  # the graph works on them
    del graph
    assert cuplug.memory_info().used_bytes == before
    assert counts().misuses == 0
    """
    )


def test_a_block_that_fails_leaves_no_capture(run_streams):
    run_streams(
        """
    graph = cuplug.Graph()
    with Raises(KeyError, "mine"):
        with graph:
            gpu.triple(a, out=out)
            raise KeyError("mine")
    assert np.array_equal(gpu.triple(a).numpy(), 3 * x)
    with Raises(ValueError, "numpy: stream: got one that a CUDA graph captures"):
        with graph:
            gpu.triple(a).numpy()
    with graph:
        gpu.triple(a, out=out)
    graph.launch()
    assert np.array_equal(out.numpy(), 3 * x)
    assert counts().misuses == 0
    """
    )


def test_captures_of_others_want_outputs(run_streams):
    run_streams(
        """
    s = make_stream()
    assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context := ctypes.c_void_p()), 0) == 0
    assert driver.cuCtxSetCurrent(context) == 0
    assert driver.cuStreamBeginCapture_v2(ctypes.c_void_p(s), 2) == 0
    with cuplug.stream(s):
        with Raises(ValueError, "triple: stream: got one that a CUDA graph captures, expected"):
            gpu.triple(a)
        gpu.triple(a, out=out)
    assert counts().misuses == 0
    """
    )


SCALE = (
    "__global__ void scale(float *x, float f) { x[blockIdx.x * blockDim.x + threadIdx.x] *= f; }"
)


@pytest.mark.gpu
@pytest.mark.sanitizer
def test_streams_on_a_gpu():
    need_nvrtc()
    scale = cuplug.compile(SCALE)["scale"]
    x = cuplug.asarray(np.ones(1 << 20, np.float32), device="cuda")
    start, end = cuplug.Event(), cuplug.Event()
    with cuplug.Stream() as s:
        start.record()
        for _ in range(10):
            scale[1 << 12, 256](x, 2)
        end.record()
        y = cuplug.ops.relu(x)
    end.synchronize()
    assert start.elapsed_time(end) > 0
    assert np.array_equal(y.numpy(), np.full(1 << 20, 1024, np.float32))
    assert np.array_equal(x.numpy(), y.numpy())  # ordered with the legacy default stream
    other = cuplug.Stream(non_blocking=True, priority=-1)
    other.wait(s)
    scale[1 << 12, 256, 0, other](x, 0.5)
    other.synchronize()
    assert other.done
    assert x.numpy()[-1] == 512


@pytest.mark.gpu
@pytest.mark.sanitizer
def test_a_graph_on_a_gpu():
    need_nvrtc()
    scale = cuplug.compile(SCALE)["scale"]
    x = cuplug.asarray(np.arange(-512, 512, dtype=np.float32), device="cuda")
    graph = cuplug.Graph()
    with graph:
        y = cuplug.ops.relu(x)
        scale[4, 256](y, 2)
        z = cuplug.array_api.sum(y)
    for k in range(1, 4):
        x.set(np.full(1024, k, np.float32))
        graph.launch()
        assert np.array_equal(y.numpy(), np.full(1024, 2 * k, np.float32))
        assert z.numpy() == 2048 * k
    with cuplug.Stream():
        graph.launch()
    assert z.numpy() == 2048 * 3


@pytest.mark.gpu
def test_streams_of_torch():
    torch = pytest.importorskip("torch")
    mine = torch.cuda.Stream()
    x = cuplug.asarray(np.ones(100, np.float32), device="cuda")
    with cuplug.stream(mine):
        y = cuplug.ops.relu(x)
        assert y.numpy().sum() == 100
    with cuplug.Stream() as s, torch.cuda.stream(torch.cuda.ExternalStream(s.handle)):
        assert float(cuplug.ops.relu(torch.ones(100, device="cuda")).sum()) == 100
