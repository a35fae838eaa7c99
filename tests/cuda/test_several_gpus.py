# SPDX-License-Identifier: Apache-2.0
"""Two GPUs: calls run on the device of their arrays, and the current GPU does not change."""

import cuplug
import numpy as np
import pytest
from cuplug.ops import gather, relu, scale

two_gpus = pytest.mark.gpu(n=2)
HOST = np.array([-1.0, 2.0, 3.0], np.float32)


def current_gpu() -> int:
    """Return the current GPU of this thread, from PyTorch."""
    torch = pytest.importorskip("torch")
    return torch.cuda.current_device()


def test_calls_on_two_gpus_by_turns(run_streams):
    """Each call runs on its GPU, and restores the current context, or the absence of one."""
    run_streams("""
    context, now = ctypes.c_void_p(), ctypes.c_void_p()
    b = cuplug.asarray(x, device="cuda:1")
    for current in None, 0, 1:
        if current is not None:
            assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), current) == 0
        assert driver.cuCtxSetCurrent(context) == 0
        for device, array in enumerate((a, b)):
            result = gpu.triple(array)
            assert str(result.device) == f"cuda:{device}"
            assert cuplug.last_call().device == f"cuda:{device}"
            assert np.array_equal(result.numpy(), 3 * x)
            assert np.array_equal(gpu.triple(x, device=f"cuda:{device}"), 3 * x)
            assert gpu.triple(array, stream=make_stream(device)).shape == x.shape
            assert driver.cuCtxGetCurrent(ctypes.byref(now)) == 0
            assert now.value == context.value
    with Raises(ValueError, "triple: out: "):
        gpu.triple(a, out=b)
    cuplug.synchronize()
    assert counts().misuses == 0
    """)


@two_gpus
@pytest.mark.parametrize("current", [0, 1])
def test_torch(current):
    torch = pytest.importorskip("torch")
    with torch.cuda.device(current):
        x = torch.tensor(HOST, device="cuda:1")
        y = relu(x)
        assert y.device == torch.device("cuda:1")
        assert y.tolist() == [0, 2, 3]
        assert cuplug.last_call().device == "cuda:1"
        scale(x, 2)
        assert relu(x, out=torch.empty_like(x)).tolist() == [0, 4, 6]
        assert relu(x[::2]).tolist() == [0, 6]
        assert current_gpu() == current
    with pytest.raises(ValueError, match="^gather: index: got an array on cuda:0, expected cuda:1"):
        gather(x, torch.tensor([0], device="cuda:0"))
    with pytest.raises(ValueError, match="^relu: out: "):
        relu(x, out=torch.empty(3, device="cuda:0"))


@two_gpus
def test_torch_streams():
    """On GPU 1, that GPU's current stream is used, and a stream of GPU 0 is rejected."""
    torch = pytest.importorskip("torch")
    x = torch.zeros(1 << 20, device="cuda:1")
    stream, other = torch.cuda.Stream(device="cuda:1"), torch.cuda.Stream(device="cuda:0")
    torch.cuda.synchronize(1)
    with torch.cuda.device(1), torch.cuda.stream(stream):
        torch.cuda._sleep(200_000_000)
        x.fill_(3)
        y = relu(x)
    assert not stream.query()
    stream.synchronize()
    assert y.min().item() == 3
    assert relu(x, stream=stream).min().item() == 3
    with pytest.raises(
        ValueError, match="^relu: stream: got one of cuda:0, expected one of cuda:1"
    ):
        relu(x, stream=other)


@two_gpus
@pytest.mark.parametrize("current", [0, 1])
def test_cupy(current):
    cupy = pytest.importorskip("cupy")
    with cupy.cuda.Device(1):
        x = cupy.asarray(HOST)
    with cupy.cuda.Device(current):
        y = relu(x)
        assert y.device.id == 1
        assert cupy.cuda.runtime.getDevice() == current
    with cupy.cuda.Device(1):
        assert y.tolist() == [0, 2, 3]
        assert relu(x[::2]).tolist() == [0, 3]
        assert relu(x, out=cupy.zeros_like(x)).tolist() == [0, 2, 3]
    with pytest.raises(ValueError, match="^gather: index: got an array on cuda:0, expected cuda:1"):
        gather(x, cupy.array([0]))


@two_gpus
@pytest.mark.parametrize("device", ["cuda:1", 1])
def test_own_arrays(device):
    x = cuplug.asarray(HOST, device=device)
    y = relu(x)
    assert (str(x.device), str(y.device)) == ("cuda:1", "cuda:1")
    assert y.numpy().tolist() == [0, 2, 3]
    scale(y, 2)
    assert y.numpy().tolist() == [0, 4, 6]
    assert cuplug.asarray(y, device="cuda:0").numpy().tolist() == [0, 4, 6]
    with pytest.raises(ValueError, match="^gather: index: got an array on cuda:0, expected cuda:1"):
        gather(x, cuplug.asarray(np.array([0]), device="cuda:0"))
    cuplug.synchronize(device)


@two_gpus
def test_host_arrays():
    index = np.array([2, 0])
    assert relu(HOST, device="cuda:1").tolist() == [0, 2, 3]
    assert cuplug.last_call()[1:3] == ("cuda:1", True)
    assert gather(HOST, index, device="cuda:1").tolist() == [3, -1]
    with pytest.raises(IndexError, match="^gather: index: index 9 at position 0"):
        gather(HOST, index + 7, device="cuda:1")
    large = np.ones(5_000_000, np.float32)
    assert np.array_equal(relu(large, device="cuda:1"), large)


@two_gpus
def test_interface_without_a_device():
    """Numba arrays do not name their GPU."""

    class Foreign:
        def __init__(self, x):
            self.x, self.__cuda_array_interface__ = x, x.__cuda_array_interface__

    x = cuplug.asarray(HOST, device="cuda:1")
    y = relu(Foreign(x))
    assert str(y.device) == "cuda:1"
    assert y.numpy().tolist() == [0, 2, 3]
    with pytest.raises(ValueError, match="^gather: index: got an array on cuda:0, expected cuda:1"):
        gather(Foreign(x), Foreign(cuplug.asarray(np.array([0]))))


@two_gpus
def test_fault_on_either_gpu():
    for device in ("cuda:0", "cuda:1"):
        x = cuplug.asarray(HOST, device=device)
        y = gather(x, cuplug.asarray(np.array([0, 50]), device=device))
        with pytest.raises(IndexError, match="^gather: index: index 50 at position 1"):
            cuplug.synchronize(device)
        with pytest.raises(IndexError, match="^gather: index: index 50 at position 1"):
            y.numpy()  # as does each read of a result with the fault


@two_gpus
def test_graph_on_the_second_gpu():
    torch = pytest.importorskip("torch")
    with torch.cuda.device(1):
        x, graph = torch.tensor(HOST, device="cuda"), torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=torch.cuda.Stream()):  # its default is of one GPU
            y = relu(x)
        x.fill_(7)
        graph.replay()
        assert y.tolist() == [7, 7, 7]
