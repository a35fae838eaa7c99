# SPDX-License-Identifier: Apache-2.0
"""Memory that is held, released and prepared; many calls lose none."""

import gc
import resource

import cuplug
import numpy as np
import pytest
from cuplug.ops import gather, relu, scale
from places import FIXTURES


def test_memory_info_and_trim(run_fake):
    run_fake("""
    d = cuplug.asarray(np.zeros(1 << 20, np.uint8))
    assert np.array_equal(d.numpy(), np.zeros(1 << 20, np.uint8))
    before = cuplug.memory_info()
    assert before.used_bytes >= 1 << 20
    assert before.pinned_bytes > 0
    assert before.reserved_bytes >= before.used_bytes
    assert before.total_bytes > before.free_bytes
    assert cuplug.memory_info("cuda:1").used_bytes == 0
    del d
    cuplug.synchronize()
    freed = cuplug.trim("cuda:0")
    after = cuplug.memory_info()
    assert after.used_bytes == after.pinned_bytes == after.reserved_bytes == 0, after
    assert freed >= before.pinned_bytes
    assert cuplug.trim("cuda") == 0
    assert np.array_equal(gpu.triple(x, device="cuda"), 3 * x)  # lanes are made again
    assert counts().misuses == 0
    """)


def test_what_lives_is_not_given_back(run_fake):
    run_fake("""
    d = cuplug.asarray(x)
    cuplug.trim()
    assert np.array_equal(d.numpy(), x)
    assert cuplug.memory_info().used_bytes >= x.nbytes
    """)


CACHING_LIBRARY = """
import sys, types

kept = []  # what a library of arrays would keep, and 1 GiB that is in use
calls = []

def empty_cache():
    calls.append(len(kept))
    kept.clear()

torch = types.ModuleType("torch")
torch.cuda = types.SimpleNamespace(
    is_initialized=lambda: True, empty_cache=empty_cache, memory_reserved=lambda device: 1 << 30
)
sys.modules["torch"] = torch

def fill(n_bytes):
    kept.append(cuplug.empty(n_bytes, "uint8"))
    calls.clear()
"""


@pytest.mark.parametrize(
    "work",
    {
        "an array": "assert cuplug.empty(600_000, 'uint8').nbytes == 600_000",
        "a copy": "assert cuplug.asarray(np.ones(600_000, np.uint8)).numpy().all()",
        "a staged call": "assert np.array_equal(gpu.triple(y, device='cuda'), 3 * y)",
        "an output": "d = cuplug.asarray(y)\nassert np.array_equal(gpu.triple(d).numpy(), 3 * y)",
    }.items(),
    ids=lambda work: work[0],
)
def test_other_libraries_are_asked_for_memory(run_fake, work):
    run_fake(
        CACHING_LIBRARY
        + "y = np.arange(75_000, dtype=np.float32)\nfill(700_000)\n"
        + work[1]
        + "\nassert calls == [1] and counts().misuses == 0",
        FAKE_CUDA_MEMORY_BYTES="1048576",
    )


def test_a_workspace_is_worth_asking_for(run_fake):
    """It is requested during a call, without Python's lock."""
    run_fake(
        CACHING_LIBRARY
        + """
a, out = cuplug.asarray(np.ones(8)), cuplug.empty(8, "float32")
fill((1 << 20) - a.nbytes - out.nbytes - 50)
gpu.divide(a, out=out)
assert calls == [1] and out.numpy().all() and counts().misuses == 0
""",
        FAKE_CUDA_MEMORY_BYTES="1048576",
    )


def test_who_holds_memory_is_said(run_fake):
    run_fake(
        CACHING_LIBRARY
        + """
sys.modules["cupy"] = types.ModuleType("cupy")  # that is being imported
for _ in range(2):
    with Raises(MemoryError, "of 0.00 GiB, cuplug uses 0.00 GiB, PyTorch 1.00 GiB"):
        d = cuplug.empty(600_000, "uint8")
        cuplug.empty(600_000, "uint8")
torch.cuda.is_initialized = lambda: False
with Raises(MemoryError, "cuplug uses 0.00 GiB") as caught:
    cuplug.empty(600_000, "uint8")
assert "PyTorch" not in str(caught.error) and len(calls) == 2
""",
        FAKE_CUDA_MEMORY_BYTES="1048576",
    )


def test_trim_gives_large_outputs_back():
    cuplug.trim()
    relu(np.zeros(6 << 20, np.float32))  # 24 MiB, freed at once
    gc.collect()
    assert cuplug.trim() >= 24 << 20
    assert cuplug.trim() == 0


def test_prepare_loads_code(build_plugin):
    path = build_plugin(FIXTURES / "locks.c", "locks_prepared")
    plugin = cuplug.load(path)
    assert not plugin.held.loaded
    cuplug.prepare([plugin.held, "gather.gather"])
    assert plugin.held.loaded
    cuplug.prepare(iter([plugin.held]), device="cpu")
    with pytest.raises(cuplug.NotFoundError):
        cuplug.prepare("no_such_operator")
    with pytest.raises(TypeError):
        cuplug.prepare([3])
    with pytest.raises(ValueError, match="device"):
        cuplug.prepare("gather", device="gpu")


def test_prepare_for_a_gpu(run_fake):
    run_fake("""
    cuplug.prepare(gpu.triple, device="cuda:1")
    pinned = counts().pinned
    d = cuplug.asarray(x, device="cuda:1")
    assert counts().pinned - pinned <= 1  # buffers of a lane; the fault record is there
    assert np.array_equal(gpu.triple(d).numpy(), 3 * x)
    with Raises(ValueError, "device"):
        cuplug.prepare(gpu.triple, device="cuda:7")
    """)


KERNEL_CALLS = [
    "cuKernelGetLibrary", "cuLibraryGetKernelCount", "cuLibraryEnumerateKernels",
    "cuKernelGetFunction", "cuFuncLoad",
]  # fmt: skip


@pytest.mark.parametrize("failing", ["", *KERNEL_CALLS])
def test_prepare_loads_kernels(run_fake, tmp_path, failing):
    """If loading fails, the first launch loads them."""
    log = tmp_path / "log"
    run_fake(
        """
        cuplug.prepare(gpu.triple, device="cuda")
        d = cuplug.asarray(x)
        assert np.array_equal(gpu.triple(d).numpy(), 3 * x)
        assert counts().misuses == 0
        """,
        FAKE_CUDA_LOG=str(log),
        FAKE_CUDA_FAIL=f"{failing}:1:999",
    )
    calls = log.read_text().split()
    if not failing:
        assert [name for name in calls if name in KERNEL_CALLS[3:]] == 2 * KERNEL_CALLS[3:]
    else:
        assert failing in calls


def test_prepare_wants_an_entry_for_the_gpu(run_fake, build_plugin):
    path = build_plugin(FIXTURES / "locks.c", "locks_on_host")
    run_fake(f"""
    host = cuplug.load({str(path)!r})
    with Raises(ValueError, "held: device: got cuda:0, expected the host"):
        cuplug.prepare(host.held, device="cuda")
    """)


def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def many_calls(n, call, wrong):
    """Make n calls, each tenth with an error."""
    for i in range(n // 10):
        for _ in range(9):
            call()
        try:
            wrong()
        except ValueError:
            continue
        raise AssertionError(i)


def test_nothing_leaks_over_a_million_calls():
    x, out = np.arange(8.0), np.empty(8)

    def call():
        relu(x)
        relu(x, out=out)

    def wrong():
        relu(x, out=out[:3])

    many_calls(20_000, call, wrong)
    before = resident_bytes()
    many_calls(500_000, call, wrong)
    assert resident_bytes() - before < 4 << 20


@pytest.mark.gpu
def test_nothing_leaks_over_a_million_calls_on_a_gpu():
    x = cuplug.asarray(np.arange(8.0))
    out = cuplug.empty(8, "float64")

    def call():
        relu(x)
        relu(x, out=out)

    def wrong():
        relu(x, out=out[:3])

    many_calls(20_000, call, wrong)
    cuplug.synchronize()
    cuplug.trim()
    before, used = resident_bytes(), cuplug.memory_info().used_bytes
    for _ in range(10):
        many_calls(50_000, call, wrong)
        cuplug.synchronize()
    cuplug.trim()
    assert cuplug.memory_info().used_bytes == used
    assert resident_bytes() - before < 16 << 20


@pytest.mark.gpu
def test_nothing_leaks_with_tensors():
    torch = pytest.importorskip("torch")
    x, index = torch.arange(8.0, device="cuda"), torch.tensor([1, 2], device="cuda")
    for _ in range(1000):
        gather(x, index)
    torch.cuda.synchronize()
    before, tensors = resident_bytes(), torch.cuda.memory_allocated()
    reserved = cuplug.memory_info().reserved_bytes, torch.cuda.memory_reserved()
    for _ in range(10):
        for _ in range(100_000):
            gather(x, index)
        torch.cuda.synchronize()
    assert torch.cuda.memory_allocated() == tensors
    assert resident_bytes() - before < 16 << 20
    assert (cuplug.memory_info().reserved_bytes, torch.cuda.memory_reserved()) == reserved


@pytest.mark.gpu
def test_memory_on_a_gpu():
    cuplug.trim()
    before = cuplug.memory_info()
    d = cuplug.asarray(np.ones(64 << 20, np.uint8))
    info = cuplug.memory_info()
    assert info.used_bytes - before.used_bytes >= 64 << 20
    assert info.peak_used_bytes >= info.used_bytes
    assert info.pinned_bytes > 0
    assert info.total_bytes == cuplug.devices()[0].memory_bytes
    scale(d, 2)
    assert d.numpy()[-1] == 2
    del d
    cuplug.synchronize()
    assert cuplug.trim() >= 64 << 20
    after = cuplug.memory_info()
    assert after.used_bytes == before.used_bytes
    assert after.pinned_bytes == 0


@pytest.mark.gpu
@pytest.mark.alone
def test_other_libraries_give_their_caches_back():
    torch = pytest.importorskip("torch")
    cuplug.trim()
    torch.cuda.empty_cache()
    free = cuplug.memory_info().free_bytes
    wanted = int(free * 0.6)
    held = torch.empty(wanted, dtype=torch.uint8, device="cuda")
    del held  # PyTorch keeps it
    assert cuplug.memory_info().free_bytes < wanted
    d = cuplug.empty(wanted, "uint8")
    assert d.nbytes == wanted
    with pytest.raises(MemoryError, match=r"out of device memory: requested .* cuplug uses"):
        cuplug.empty(wanted, "uint8")
    del d
    cuplug.synchronize()
    cuplug.trim()
    assert cuplug.memory_info().free_bytes > wanted


@pytest.mark.gpu
@pytest.mark.alone
def test_cuplug_gives_its_cache_back():
    """A PyTorch output needs the memory in cuplug's pool."""
    torch = pytest.importorskip("torch")
    cuplug.trim()
    torch.cuda.empty_cache()
    kept = cuplug.memory_info().total_bytes // 16 // 64 * 64
    d = cuplug.empty(kept, "uint8")
    del d
    cuplug.synchronize()
    info = cuplug.memory_info()
    assert info.reserved_bytes - info.used_bytes >= kept
    x = torch.ones(1000, device="cuda")
    index = torch.zeros(kept // 8, dtype=torch.int32, device="cuda")
    free = torch.cuda.mem_get_info()[0]
    rest = torch.empty(free - kept // 4, dtype=torch.uint8, device="cuda")
    out = gather(x, index)  # of kept // 2 bytes
    assert out.numel() == kept // 8
    assert out[-1] == 1
    assert cuplug.memory_info().reserved_bytes < kept
    del rest, out, x, index
    torch.cuda.empty_cache()


@pytest.mark.gpu
def test_prepare_on_a_gpu():
    cuplug.prepare(["relu", gather], device="cuda")
    assert relu(cuplug.asarray(np.array([-1.0, 2.0]))).numpy().tolist() == [0, 2]
    assert gather.loaded


@pytest.mark.gpu
def test_prepared_kernels_are_loaded(run_python):
    """The driver reports it for each, in a separate process in which none has been launched."""
    done = run_python("""
import ctypes, sys
import cuplug
from cuplug.ops import relu

cuplug.prepare(relu, device="cuda")
driver, plugin = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL(relu.path)
context, library, n = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint()
assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert driver.cuCtxSetCurrent(context) == 0
plugin.cuplug_any_kernel.restype = ctypes.c_void_p
any_kernel = ctypes.c_void_p(plugin.cuplug_any_kernel())
assert any_kernel.value, "no kernel"
if driver.cuKernelGetLibrary(ctypes.byref(library), any_kernel):
    sys.exit("no library")
assert driver.cuLibraryGetKernelCount(ctypes.byref(n), library) == 0 and n.value > 1, n
kernels = (ctypes.c_void_p * n.value)()
assert driver.cuLibraryEnumerateKernels(kernels, n, library) == 0
for kernel in kernels:
    function, state = ctypes.c_void_p(), ctypes.c_int(-1)
    assert driver.cuKernelGetFunction(ctypes.byref(function), ctypes.c_void_p(kernel)) == 0
    assert driver.cuFuncIsLoaded(ctypes.byref(state), function) == 0 and state.value == 1, state
""")
    assert done.returncode == 0, done.stderr
