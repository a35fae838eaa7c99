# SPDX-License-Identifier: Apache-2.0
"""The stream of a call and the order of streams, on a driver without a GPU and on real ones."""

import cuplug
import numpy as np
import pytest
from cuplug.ops import gather, hello, relu, scale


def test_every_kind_of_stream(run_streams):
    run_streams(
        """
    s = make_stream()
    attribute = type("Attribute", (), {"__cuda_stream__": (0, s)})()
    torch_stream = type("Stream", (), {"cuda_stream": s})()
    cupy_stream = type("Stream", (), {"ptr": s, "begin_capture": None})()
    for stream in s, Protocol(s), attribute, torch_stream, cupy_stream, 0, 1, 2, None:
        assert np.array_equal(gpu.triple(a, stream=stream).numpy(), 3 * x)
        assert gpu.triple(a, out=out, stream=stream) is out
        assert np.array_equal(out.numpy(stream=stream), 3 * x)
    assert counts().misuses == 0
    """,
        FAKE_CUDA_LAZY="1",
    )


def test_what_is_no_stream(run_streams):
    run_streams("""
    event = type("Event", (), {"ptr": 1})()
    for other in "abc", 1.5, True, object(), event, x:
        with Raises(TypeError, f"triple: stream: got {type(other).__name__}, expected an object "
                               "with __cuda_stream__"):
            gpu.triple(a, stream=other)
    for value in 7, (1, 2, 3), (9, 1), None:
        bad = type("Bad", (), {"__cuda_stream__": value})()
        with Raises(TypeError, "triple: stream: got Bad, expected a valid __cuda_stream__"):
            gpu.triple(a, stream=bad)
    for number in -1, 1 << 64:
        with Raises(ValueError, f"triple: stream: got {number}, expected the handle"):
            gpu.triple(a, stream=number)
    with Raises(TypeError, "increase: got unknown argument streams, expected x, by, out, device or "
                           "stream"):
        gpu.increase(a, streams=1)
    """)


def test_stream_of_another_gpu(run_streams):
    run_streams("""
    with Raises(ValueError, "triple: stream: got one of cuda:1, expected one of cuda:0, where the "
                            "call runs"):
        gpu.triple(a, stream=make_stream(1))
    b = cuplug.asarray(x, device="cuda:1")
    assert np.array_equal(gpu.triple(b, stream=make_stream(1)).numpy(), 3 * x)
    assert counts().misuses == 0
    """)


def test_stream_for_arrays_of_the_host(run_streams):
    run_streams("""
    for keywords in {}, {"device": "cpu"}, {"device": "cuda"}:
        with Raises(ValueError, "triple: stream: got one for arrays of the host, expected arrays "
                                "on a GPU"):
            gpu.triple(x, stream=make_stream(), **keywords)
    assert np.array_equal(gpu.triple(x, stream=None), 3 * x)
    """)


def test_order_with_the_streams_of_the_arrays(run_streams):
    """Here, work is done only if something waits for it."""
    run_streams(
        """
    s, t = make_stream(), make_stream()
    gpu.increase(a, 1)                      # on the legacy stream
    gpu.increase(a, 1, stream=s)            # after it
    gpu.increase(Foreign(a, stream=t), 1)   # on t, ordered with the legacy stream
    gpu.triple(a, out=out, stream=s)
    cuplug.synchronize()
    assert np.array_equal(out.numpy(), 3 * (x + 3))
    gpu.increase(a, 1, stream=s)
    gpu.increase(a, 1)                      # the legacy stream waits for s
    assert np.array_equal(a.numpy(), x + 5)
    gpu.increase(Foreign(a, stream=t), 1, stream=s)   # t before and after
    assert np.array_equal(a.numpy(stream=t), x + 6)
    assert counts().misuses == 0
    """,
        FAKE_CUDA_LAZY="1",
    )


def test_no_hidden_synchronisation(run_streams):
    """Calls on GPU arrays use no driver function that waits."""
    run_streams(
        """
    index = cuplug.asarray(np.arange(10), device="cuda")
    s, t = make_stream(), make_stream()

    def work():
        for stream in None, s:
            b = gpu.triple(a, stream=stream)
            gpu.triple(b, out=out, stream=stream)
            gpu.increase(b, 2, stream=stream)
            gpu.pick(a, index, stream=stream)
            gpu.triple(Foreign(a, stream=t), stream=stream)
            gpu.triple_strided(Foreign(a, shape=(500,), strides=(8,)), stream=stream)

    work()  # the first calls make fault records and the pool
    before = counts().synchronizations
    names = [name for _ in range(5) for name in calls(work)]
    assert counts().synchronizations == before
    assert {"cuLaunchKernelEx", "cuEventRecord"} <= set(names)
    assert not WAITING & set(names), WAITING & set(names)
    assert not {"cuMemAllocFromPoolAsync", "cuMemFreeAsync"} & set(names)  # kept, and used again
    assert counts().misuses == 0
    """,
        FAKE_CUDA_LAZY="1",
    )


def test_first_calls_wait_for_nothing(run_streams):
    run_streams("""
    names = calls(gpu.triple, a)
    assert not {name for name in WAITING & set(names) if "Synchronize" in name}
    """)


def test_calls_without_a_stream_order_nothing(run_streams):
    run_streams("""
    gpu.triple(a, out=out)
    names = calls(gpu.triple, a, out=out)
    assert not [name for name in names if "Event" in name or "Stream" in name], names
    """)


def test_operator_without_arrays(run_streams, build_plugin):
    """It waits, since nothing orders later work with it, unless a stream is given."""
    plugin = build_plugin(
        """
        #include <cuplug/plugin.h>
        #include <dlfcn.h>
        CUPLUG_ENTRY int tick_cuda(const cuplug_call *call) { return call->stream ? 0 : 1; }
        CUPLUG_CUDA_OPERATOR(tick_cuda, "tick()", "Nothing.");
        CUPLUG_CUDA_OPERATOR(tick_cuda, "fresh(n: int) -> float32[4]", "Nothing.");
        CUPLUG_PLUGIN(tick, "1.0.0");
        """,
        "tick",
    )
    run_streams(f"""
    ticks = cuplug.load({str(plugin)!r})
    s = make_stream()
    ticks.tick()
    assert "cuStreamSynchronize" in calls(ticks.tick)
    assert "cuStreamSynchronize" not in calls(ticks.tick, stream=s)
    assert type(ticks.fresh(1, stream=s)) is cuplug.Array
    four = cuplug.empty(4, "float32")
    names = calls(ticks.fresh, 1, out=Foreign(four, stream=s))
    assert "cuStreamSynchronize" not in names
    with Raises(ValueError, "tick: stream: got one of cuda:0, expected one of cuda:1"):
        ticks.tick(device="cuda:1", stream=s)
    assert counts().misuses == 0
    """)


def test_interface_without_a_device(run_streams):
    """The driver reports the GPU."""
    run_streams("""
    b = cuplug.asarray(x, device="cuda:1")
    result = gpu.triple(Foreign(b))
    assert str(result.device) == "cuda:1" and np.array_equal(result.numpy(), 3 * x)
    with Raises(ValueError, "pick: index: got an array on cuda:0, expected cuda:1 (as source)"):
        gpu.pick(Foreign(b), Foreign(cuplug.asarray(np.arange(3))))
    assert counts().misuses == 0
    """)


def test_interface_on_a_machine_with_one_gpu(run_streams):
    run_streams(
        """
    assert "cuPointerGetAttribute" not in calls(gpu.triple, Foreign(a))
    """,
        FAKE_CUDA_DEVICES="1",
    )


def test_stream_that_cannot_be_asked(run_streams):
    run_streams(
        """
    s = make_stream()
    with Raises(cuplug.CudaError, "querying a stream's GPU: CUDA error 999"):
        gpu.triple(a, stream=s)
    assert np.array_equal(gpu.triple(a, stream=s).numpy(), 3 * x)
    """,
        FAKE_CUDA_FAIL="cuStreamGetCtx:1:999",
    )


# ---- On a GPU


def spin(torch, stream):
    """Keep a stream busy for much longer than any test."""
    with torch.cuda.stream(stream):
        torch.cuda._sleep(2_000_000_000)


@pytest.mark.gpu
def test_calls_return_while_the_stream_is_busy():
    """An event after a long kernel is still pending after calls on all kinds of arrays."""
    torch = pytest.importorskip("torch")
    x = torch.linspace(-1, 1, 1000, device="cuda")
    own, index = cuplug.asarray(np.arange(10.0)), torch.arange(3, device="cuda")
    stream, event = torch.cuda.Stream(), torch.cuda.Event()

    def work():
        scale(relu(x), 2)
        relu(x[::2], out=torch.empty(500, device="cuda"))
        gather(x, index)
        relu(own, stream=stream)
        hello(device="cuda", stream=stream)

    with torch.cuda.stream(stream):
        work()  # code is loaded
        torch.cuda.synchronize()
        spin(torch, stream)
        event.record()
        work()
        assert not event.query()
    torch.cuda.synchronize()
    assert event.query()


@pytest.mark.gpu
def test_named_stream_of_torch():
    torch = pytest.importorskip("torch")
    x, stream = torch.zeros(1 << 20, device="cuda"), torch.cuda.Stream()
    torch.cuda.synchronize()
    torch.cuda._sleep(200_000_000)
    x += 3
    y = relu(x, stream=stream)  # after the addition, on the stream that is current
    assert (y + 1).min().item() == 4  # and that stream after the call
    spin(torch, stream)
    z = relu(x, stream=stream)
    assert not stream.query()
    assert z.min().item() == 3
    assert relu(x, stream=stream.cuda_stream).min().item() == 3


@pytest.mark.gpu
def test_named_stream_of_cupy():
    cupy = pytest.importorskip("cupy")
    x, stream = cupy.zeros(1 << 22), cupy.cuda.Stream(non_blocking=True)
    cupy.cuda.Device().synchronize()
    for _ in range(50):
        x += 1
    y = relu(x, stream=stream)
    assert float((y + 1).min()) == 51
    out = cupy.zeros_like(x)
    with stream:
        for _ in range(50):
            x += 1
    relu(x, out=out, stream=stream)
    assert float(out.min()) == 100


@pytest.mark.gpu
def test_named_stream_for_own_arrays():
    torch = pytest.importorskip("torch")
    x, stream = cuplug.asarray(np.arange(5.0)), torch.cuda.Stream()
    spin(torch, stream)
    y = relu(x, stream=stream)
    assert not stream.query()
    scale(y, 2)
    assert y.numpy().tolist() == [0, 2, 4, 6, 8]
    assert stream.query()
    scale(y, 2, stream=stream)
    assert y.numpy(stream=stream).tolist() == [0, 4, 8, 12, 16]


@pytest.mark.gpu
def test_stream_of_cuda_core():
    core = pytest.importorskip("cuda.core")
    if not hasattr(core, "Device"):
        core = pytest.importorskip("cuda.core.experimental")
    device = core.Device(0)
    device.set_current()
    stream = device.create_stream()
    x = cuplug.asarray(np.array([-1.0, 2.0]))
    assert relu(x, stream=stream).numpy().tolist() == [0, 2]
    stream.close()
