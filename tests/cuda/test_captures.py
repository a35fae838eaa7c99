# SPDX-License-Identifier: Apache-2.0
"""Calls while a CUDA graph is captured, and in its replays, on a driver without a GPU."""

CAPTURE = """
    def on_device(function, stream):
        before, context = ctypes.c_void_p(), ctypes.c_void_p()
        assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
        assert driver.cuCtxGetCurrent(ctypes.byref(before)) == 0
        assert driver.cuCtxSetCurrent(context) == 0
        assert getattr(driver, "fake_cuda_" + function)(ctypes.c_void_p(stream)) == 0
        assert driver.cuCtxSetCurrent(before) == 0


    class Captured:
        "What is put on a stream in this block is kept for replays."

        def __enter__(self):
            self.stream = make_stream()
            on_device("begin_capture", self.stream)
            return self

        def __exit__(self, *exception):
            on_device("end_capture", self.stream)

        def replay(self):
            on_device("replay", self.stream)
"""


def test_capture_and_replay_with_given_outputs(run_streams):
    """The capture includes the first calls of the process."""
    run_streams(
        CAPTURE
        + """
    with Captured() as graph:
        gpu.triple(a, out=out, stream=graph.stream)
        gpu.increase(out, 1, stream=graph.stream)
    for _ in range(3):
        graph.replay()
        assert np.array_equal(out.numpy(stream=graph.stream), 3 * x + 1)
        gpu.increase(a, 1)
        x += 1
    assert counts().misuses == 0
    """
    )


def test_capture_is_not_ordered_with_other_streams(run_streams):
    """Events cannot lead into a capture or out of it."""
    run_streams(
        CAPTURE
        + """
    s = make_stream()
    with Captured() as graph:
        names = calls(gpu.triple, Foreign(a, stream=s), out=out, stream=graph.stream)
        assert "cuStreamWaitEvent" not in names
        assert gpu.triple(Foreign(a, stream=s)).shape == a.shape  # on s: not part of the graph
    graph.replay()
    assert np.array_equal(out.numpy(), 3 * x)
    assert counts().misuses == 0
    """
    )


def test_own_outputs_are_refused_in_a_capture(run_streams):
    run_streams(
        CAPTURE
        + """
    with Captured() as graph:
        with Raises(ValueError, "triple: stream: got one that a CUDA graph captures, expected an "
                                "output given with out="):
            gpu.triple(a, stream=graph.stream)
        with Raises(ValueError, "numpy: stream: got one that a CUDA graph captures"):
            out.numpy(stream=graph.stream)
        gpu.triple(a, out=out, stream=graph.stream)
    graph.replay()
    assert np.array_equal(out.numpy(), 3 * x)
    assert counts().misuses == 0
    """
    )


def test_other_calls_leave_a_capture_intact(run_streams):
    """Offloaded host arrays, copies, and first calls are not part of the graph."""
    run_streams(
        CAPTURE
        + """
    big = np.ones(3_000_000, np.float32)  # pinned buffers are made for it
    with Captured() as graph:
        gpu.triple(a, out=out, stream=graph.stream)
        assert np.array_equal(gpu.triple(x, device="cuda"), 3 * x)
        assert np.array_equal(cuplug.asarray(big).numpy(), big)
        assert np.array_equal(gpu.triple(big, device="cuda"), 3 * big)
        few = big[: 1 << 19]  # the driver copies it
        assert np.array_equal(gpu.triple(few, device="cuda"), 3 * few)
        gpu.pick(a, cuplug.asarray(np.arange(5)))
        with Raises(IndexError, "pick: index: index 1000 at position 0"):
            gpu.pick(x, np.array([1000]))
    graph.replay()
    assert np.array_equal(out.numpy(), 3 * x)
    assert counts().misuses == 0
    """
    )


def test_fault_in_a_replay(run_streams):
    run_streams(
        CAPTURE
        + """
    index = cuplug.asarray(np.array([1, 2, 3]))
    wrong, picked = cuplug.asarray(np.array([1, 5000, 3])), cuplug.empty(3, "float32")
    with Captured() as graph:
        gpu.triple(a, out=out, stream=graph.stream)
        gpu.pick(a, index, out=picked, stream=graph.stream)
        gpu.triple(picked, out=cuplug.asarray(x[:3]), stream=graph.stream)
    graph.replay()
    assert picked.numpy(stream=graph.stream).tolist() == [1, 2, 3]
    with Captured() as bad:
        gpu.pick(a, wrong, out=picked, stream=bad.stream)
    for _ in range(2):
        bad.replay()
        with Raises(IndexError, "pick: index: index 5000 at position 1 is out of bounds"):
            gpu.triple(a, out=out)
        graph.replay()
        assert picked.numpy(stream=graph.stream).tolist() == [1, 2, 3]
    assert counts().misuses == 0
    """
    )


def test_fault_of_an_earlier_call_in_a_capture(run_streams):
    """It is raised before anything is captured, and the capture continues."""
    run_streams(
        CAPTURE
        + """
    gpu.pick(a, cuplug.asarray(np.array([4000])))
    with Captured() as graph:
        with Raises(IndexError, "pick: index: index 4000"):
            gpu.triple(a, out=out, stream=graph.stream)
        gpu.triple(a, out=out, stream=graph.stream)
    graph.replay()
    assert np.array_equal(out.numpy(), 3 * x)
    assert counts().misuses == 0
    """
    )
