# SPDX-License-Identifier: Apache-2.0
"""CUDA through the Python API on a driver without a GPU (tests/fixtures/fake_cuda.c).

A process starts CUDA once, so each test runs its body in a separate process.
"""

import os
import subprocess
import sys

import pytest
from places import FIXTURES


def has_real_driver() -> bool:
    """Return whether the machine has a driver, which the fake one only hides."""
    text = "import ctypes; ctypes.CDLL('libcuda.so.1')"
    environment = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"}
    return (
        subprocess.run(
            [sys.executable, "-c", text], env=environment, check=False, capture_output=True
        ).returncode
        == 0
    )


START_FAILURES = {
    "FAKE_CUDA_DRIVER_VERSION=11040": "got CUDA 11.4, expected 12.0 or newer; update the driver",
    "FAKE_CUDA_DEVICES=0": "the NVIDIA driver found no GPU",
    "FAKE_CUDA_INIT_ERROR=100": "the NVIDIA driver found no GPU",
    "FAKE_CUDA_INIT_ERROR=803": "have different versions",
    "FAKE_CUDA_INIT_ERROR=999": "CUDA error 999",
}


@pytest.mark.parametrize("setting", START_FAILURES)
def test_cuda_does_not_start(run_fake, setting):
    name, value = setting.split("=")
    body = f"""
    for _ in range(2):
        with Raises(cuplug.CudaError, {START_FAILURES[setting]!r}):
            gpu.triple(x, device="cuda")
        with Raises(cuplug.CudaError, {START_FAILURES[setting]!r}):
            cuplug.asarray(x, device="cuda")
    assert np.array_equal(gpu.triple(x), 3 * x)
    """
    run_fake(body, **{name: value})


@pytest.mark.skipif(has_real_driver(), reason="this machine has an NVIDIA driver")
def test_no_driver(run_fake):
    body = """
    with Raises(cuplug.CudaError, "no NVIDIA driver: libcuda.so.1 was not found"):
        gpu.triple(x, device="cuda")
    with Raises(cuplug.CudaError, "no NVIDIA driver: libcuda.so.1 was not found"):
        gpu.pick(x, np.zeros(3, np.int64))
    assert np.array_equal(gpu.triple(x), 3 * x)
    """
    run_fake(body, libraries="")


@pytest.mark.parametrize("lazy", ["0", "1"])
def test_staged_equals_host(run_fake, lazy):
    body = """
    rng = np.random.default_rng(0)
    for dtype in np.float32, np.float64:
        for shape in (), (0,), (1,), (7,), (3, 0, 2), (5, 4, 3), (2_500_000,):
            a = rng.standard_normal(shape).astype(dtype)
            host, staged = gpu.triple(a), gpu.triple(a, device="cuda")
            assert type(staged) is type(host) and staged.dtype == dtype
            assert staged.shape == shape and np.array_equal(staged, host)
            assert cuplug.last_call().offloaded and cuplug.last_call().device == "cuda:0"
    y = np.array([1, -2, 3, 0], np.float32)
    assert gpu.positive(y).tolist() == [1, 3]
    gpu.increase(y, by=2.5, device="cuda")
    assert y.tolist() == [3.5, 0.5, 5.5, 2.5]
    out = np.empty_like(x)
    assert gpu.triple(x, out=out, device="cuda") is out and np.array_equal(out, 3 * x)
    cuplug.trim()
    assert counts().misuses == 0 and counts().allocations == 0
    """
    run_fake(body, FAKE_CUDA_LAZY=lazy)


@pytest.mark.parametrize("lazy", ["0", "1"])
def test_lists_of_arrays(run_fake, lazy):
    """Offloaded, on the GPU, strided, without elements, and on both devices."""
    body = """
    rng = np.random.default_rng(0)
    for shape in (), (0,), (7,), (3, 0, 2), (5, 4), (700_000,):
        for n in 1, 2, 20:
            xs = [rng.standard_normal(shape).astype(np.float32) for _ in range(n)]
            assert np.array_equal(gpu.stack(xs), xs)
            sums = [x + np.float32(k) for k, x in enumerate(xs)]
            assert np.array_equal(gpu.stack(xs, list(range(n))), sums)
            assert cuplug.last_call().offloaded
            there = [cuplug.asarray(x, device="cuda") for x in xs]
            assert np.array_equal(gpu.stack(there).numpy(), xs)
            assert not cuplug.last_call().offloaded
            out = np.empty((n, *shape), np.float32)
            assert gpu.stack(xs, out=out) is out and np.array_equal(out, xs)
    y = rng.standard_normal((40, 30)).astype(np.float32)
    xs = [y[:30], y.T[:, :30], y[::-1][:30], y[:30, ::-1]]
    assert np.array_equal(gpu.stack(xs), np.stack(xs))
    with Raises(ValueError, "xs"):
        gpu.stack([y, cuplug.asarray(y, device="cuda")])
    there = xs = None
    cuplug.trim()
    assert counts().misuses == 0 and counts().allocations == 0
    """
    run_fake(body, FAKE_CUDA_LAZY=lazy)


def test_where_it_runs(run_fake):
    body = """
    def device_of(**keywords):
        assert np.array_equal(gpu.triple(x, **keywords), 3 * x)
        return cuplug.last_call().device

    assert device_of() == "cpu"
    assert device_of(device="cuda") == "cuda:0"
    assert device_of(device="cuda:1") == "cuda:1"
    with cuplug.Device("cuda:1"):
        assert device_of() == "cuda:1"
        assert device_of(device="cpu") == "cpu"
    assert device_of() == "cpu"
    with Raises(ValueError, "got cuda:2, expected cuda:0 to cuda:1"):
        gpu.triple(x, device="cuda:2")
    gpu.pick(x, np.array([3]))  # no host entry
    assert cuplug.last_call().device == "cuda:0" and cuplug.last_call().offloaded
    """
    run_fake(body)


def test_device_from_the_environment(run_fake):
    body = """
    gpu.triple(x)
    assert cuplug.last_call().device == "cuda:1"
    """
    run_fake(body, CUPLUG_DEVICE="cuda:1")


def test_device_arrays(run_fake):
    body = """
    for device in "cuda:0", "cuda:1":
        a = cuplug.asarray(x, device=device)
        b = gpu.triple(a)
        assert type(b) is type(a) and b.shape == x.shape and b.dtype == x.dtype
        assert str(b.device) == device and not cuplug.last_call().offloaded
        assert np.array_equal(b.numpy(), 3 * x) and np.array_equal(a.numpy(), x)
        gpu.increase(a)
        assert np.array_equal(a.numpy(), x + 1)
        again = pickle.loads(pickle.dumps(a))
        assert str(again.device) == device and np.array_equal(again.numpy(), x + 1)
        del again
    del a, b
    cuplug.synchronize("cuda:0")
    cuplug.synchronize("cuda:1")
    cuplug.trim()
    assert counts().misuses == 0 and counts().allocations == 0
    """
    run_fake(body, FAKE_CUDA_LAZY="1")


def test_calls_on_device_arrays_do_not_wait(run_fake):
    body = """
    a = cuplug.asarray(x, device="cuda")
    b = gpu.triple(a)
    before = counts().synchronizations
    for _ in range(10):
        b = gpu.triple(b)
    assert counts().synchronizations == before
    """
    run_fake(body, FAKE_CUDA_LAZY="1")


def test_two_devices_mixed(run_fake):
    body = """
    a = cuplug.asarray(x, device="cuda:0")
    i = cuplug.asarray(np.zeros(3, np.int64), device="cuda:1")
    with Raises(ValueError, "cuda:1") as caught:
        gpu.pick(a, i)
    assert "pick: index:" in str(caught.error) and "cuda:0" in str(caught.error)
    with Raises(ValueError, "pick: "):
        gpu.pick(a, np.zeros(3, np.int64))
    with Raises(ValueError, "cuda:1"):
        gpu.triple(a, device="cuda:1")
    """
    run_fake(body)


STAGED_FAULT = "pick: index: index 1000 at position 2 is out of bounds for size 1000"


def test_fault_of_a_staged_call(run_fake):
    run_fake(f"""
    for _ in range(3):
        with Raises(IndexError, {STAGED_FAULT!r}):
            gpu.pick(x, np.array([0, 1, 1000, 2000]))
        assert gpu.pick(x, np.array([5, 7])).tolist() == [5, 7]
    """, FAKE_CUDA_LAZY="1")  # fmt: skip


@pytest.mark.parametrize(
    "later",
    ["gpu.triple(a)", "gpu.triple(x, device='cuda')", "a.numpy()", "cuplug.synchronize()"],
)
def test_fault_of_an_asynchronous_call(run_fake, later):
    body = f"""
    a = cuplug.asarray(x, device="cuda")
    bad = cuplug.asarray(np.array([0, 1, 1000]), device="cuda")
    good = cuplug.asarray(np.array([5, 7]), device="cuda")
    b = gpu.pick(a, bad)
    with Raises(IndexError, {STAGED_FAULT!r}):
        {later}
    {later}
    assert gpu.pick(a, good).numpy().tolist() == [5, 7]
    with Raises(IndexError, {STAGED_FAULT!r}):
        b.numpy()
    """
    # Another operator's call does not wait for the kernel, which must have run to report a fault.
    run_fake(body, FAKE_CUDA_LAZY="0" if "gpu" in later else "1")


def test_faults_of_two_gpus_at_once(run_streams):
    """Each GPU has its own record, since it could not see writes of the other one."""
    body = """
    streams = [make_stream(k) for k in range(2)]
    for k, stream in enumerate(streams):
        a, bad = (cuplug.asarray(y, device=k) for y in (x, np.array([0, 1000 + k])))
        gpu.pick(a, bad, stream=stream)
    context = ctypes.c_void_p()
    for k, stream in enumerate(streams):  # by the driver, which takes no faults
        assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), k) == 0
        assert driver.cuCtxSetCurrent(context) == 0
        assert driver.cuStreamSynchronize(ctypes.c_void_p(stream)) == 0
    seen = []
    for _ in range(2):
        with Raises(IndexError, "pick: index: index 100") as caught:
            cuplug.synchronize()
        seen.append(str(caught.error).split()[3])
    assert sorted(seen) == ["1000", "1001"], seen
    cuplug.synchronize()
    """
    run_streams(body, FAKE_CUDA_LAZY="1")


def test_gpus_that_only_c_has_used_are_waited_for(run_streams):
    run_streams("""
    core, pointer = ctypes.CDLL("libcuplug.so.1"), ctypes.c_void_p()
    assert calls(cuplug.synchronize).count("cuCtxSynchronize") == 1  # the arrays' one
    size = ctypes.c_uint64(16)
    assert core.cuplug_allocate_device(1, size, None, ctypes.byref(pointer), None) == 0
    assert calls(cuplug.synchronize).count("cuCtxSynchronize") == 2
    """)


def test_out_of_device_memory(run_fake):
    body = """
    for _ in range(5):
        with Raises(MemoryError, "requested 4000 bytes (0.00 GiB) on cuda:0, free "):
            gpu.crash(x)
        with Raises(MemoryError, "requested 1048576 bytes"):
            cuplug.empty((1 << 20,), np.uint8, "cuda")
    d = cuplug.asarray(x)
    with Raises(MemoryError, "triple: out: out of device memory: requested 4000 bytes"):
        gpu.triple(d)
    del d
    assert np.array_equal(gpu.triple(x, device="cuda"), 3 * x)  # in parts
    cuplug.trim()
    assert counts().allocations == 0 and counts().misuses == 0
    """
    run_fake(body, FAKE_CUDA_MEMORY_BYTES="6000")


def test_failing_operator(run_fake):
    body = """
    for _ in range(10):
        with Raises(ValueError, "refuse: x: got this, expected that"):
            gpu.refuse(x)
    with Raises(cuplug.CudaError, "too_new: kernel launch: CUDA error 35; the plugin was built "
                                  "with a newer CUDA than the driver supports (13.0)") as caught:
        gpu.too_new(x)
    assert caught.error.code == 35
    with Raises(cuplug.PluginError, "newer_grid: launch: got flags 0x4, expected only bits of 0x3"):
        gpu.newer_grid(x)
    assert np.array_equal(gpu.triple(x, device="cuda"), 3 * x)
    assert counts().streams == 1
    cuplug.trim()
    assert counts().allocations == 0 and counts().streams == 0
    """
    run_fake(body)


@pytest.mark.parametrize("staged", [True, False])
def test_sticky_error(run_fake, staged):
    array = "x" if staged else "cuplug.asarray(x, device='cuda')"
    body = f"""
    with Raises(cuplug.CudaError, "first seen after operator crash: restart it") as caught:
        gpu.crash({array})
        cuplug.synchronize()
    assert caught.error.code == 700
    for _ in range(2):
        with Raises(cuplug.CudaError, "triple: CUDA failed before: CUDA error 700") as caught:
            gpu.triple(x, device="cuda")
        assert "first seen after operator crash: restart it" in str(caught.error)
        assert caught.error.code == 700
    assert np.array_equal(gpu.triple(x), 3 * x)
    """
    run_fake(body, FAKE_CUDA_LAZY="1")


@pytest.mark.parametrize("listed", ["1000,1200", "800a,1000f"])
def test_wrong_architecture(run_fake, build_plugin, listed):
    source, defines = FIXTURES / "fake_gpu.c", [f"CUPLUG_ARCHITECTURES={listed}"]
    text = {"1000,1200": "10.0, 12.0", "800a,1000f": "8.0a, 10.0f"}[listed]
    body = f"""
    with Raises(cuplug.PluginError, "capability {text}, and cuda:0 has 9.0; rebuild") as caught:
        gpu.triple(x, device="cuda")
    assert os.environ["PLUGIN"] in str(caught.error)
    assert np.array_equal(gpu.triple(x), 3 * x)
    """
    run_fake(body, plugin=build_plugin(source, "other_gpus", defines=defines))


def test_fork_after_start(run_fake):
    body = """
    gpu.triple(x, device="cuda")
    child = os.fork()
    if child == 0:
        status = 1
        try:
            with Raises(cuplug.CudaError, "CUDA cannot be used in a process forked after CUDA "
                                          "started") as caught:
                gpu.triple(x, device="cuda")
            assert "spawn" in str(caught.error)
            assert np.array_equal(gpu.triple(x), 3 * x)
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert np.array_equal(gpu.triple(x, device="cuda"), 3 * x)
    """
    run_fake(body)


def test_fork_before_start(run_fake):
    body = """
    child = os.fork()
    result = np.array_equal(gpu.triple(x, device="cuda"), 3 * x)
    if child == 0:
        os._exit(0 if result else 1)
    assert result and os.waitpid(child, 0)[1] == 0
    """
    run_fake(body)


def test_no_memory_pools(run_fake):
    body = """
    with Raises(cuplug.CudaError, "cuda:0 has no stream-ordered memory pools"):
        gpu.triple(x, device="cuda")
    """
    run_fake(body, FAKE_CUDA_NO_POOLS="1")


def test_driver_calls_that_fail(run_fake):
    body = """
    with Raises(cuplug.CudaError, "triple: copying to the device: CUDA error 999") as caught:
        gpu.triple(x, device="cuda")
    assert caught.error.code == 999
    with Raises(cuplug.CudaError, "triple: copying to the host: CUDA error 999"):
        gpu.triple(x, device="cuda")
    assert np.array_equal(gpu.triple(x, device="cuda"), 3 * x)
    cuplug.trim()
    assert counts().allocations == 0
    """
    run_fake(body, FAKE_CUDA_FAIL="cuMemcpyHtoDAsync:1:999,cuMemcpyDtoHAsync:1:999")


def test_threads(run_fake):
    body = """
    from concurrent.futures import ThreadPoolExecutor

    def work(k):
        device = f"cuda:{k % 2}"
        for i in range(20):
            n = 100 * k + i + 1
            assert np.array_equal(gpu.triple(x[:n], device=device), 3 * x[:n])
            with Raises(IndexError, f"index {n} at position 0 is out of bounds for size {n}"):
                gpu.pick(x[:n], np.array([n]), device=device)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    cuplug.synchronize("cuda:0")
    cuplug.synchronize("cuda:1")
    cuplug.trim()
    assert counts().misuses == 0 and counts().allocations == 0
    """
    run_fake(body, FAKE_CUDA_LAZY="1")
