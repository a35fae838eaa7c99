# SPDX-License-Identifier: Apache-2.0
"""Memory that is held, given back and made ready; nothing is lost over many calls."""

import gc
import resource
from pathlib import Path

import cuplug
import numpy as np
import pytest
from cuplug.ops import gather, relu, scale
from test_fake_cuda import fake_gpu, run  # noqa: F401  (fixtures)


def test_memory_info_and_trim(run):  # noqa: F811
    run("""
    d = cuplug.asarray(np.zeros(1 << 20, np.uint8))
    before = cuplug.memory_info()
    assert before.used_bytes >= 1 << 20
    assert before.pinned_bytes > 0
    assert before.reserved_bytes >= before.used_bytes
    assert before.total_bytes > before.free_bytes
    assert cuplug.memory_info("cuda:1").used_bytes == 0
    assert np.array_equal(d.numpy(), np.zeros(1 << 20, np.uint8))
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


def test_what_lives_is_not_given_back(run):  # noqa: F811
    run("""
    d = cuplug.asarray(x)
    cuplug.trim()
    assert np.array_equal(d.numpy(), x)
    assert cuplug.memory_info().used_bytes >= x.nbytes
    """)


def test_trim_gives_large_outputs_back():
    cuplug.trim()
    relu(np.zeros(6 << 20, np.float32))  # 24 MiB, freed at once
    gc.collect()
    assert cuplug.trim() >= 24 << 20
    assert cuplug.trim() == 0


def test_prepare_loads_code(build_plugin):
    path = build_plugin(Path(__file__).parent / "fixtures" / "locks.c", "locks_prepared")
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


def test_prepare_for_a_gpu(run):  # noqa: F811
    run("""
    cuplug.prepare(gpu.triple, device="cuda:1")
    pinned = counts().pinned
    d = cuplug.asarray(x, device="cuda:1")
    assert counts().pinned - pinned <= 1  # buffers of a lane; the fault record is there
    assert np.array_equal(gpu.triple(d).numpy(), 3 * x)
    with Raises(ValueError, "device"):
        cuplug.prepare(gpu.triple, device="cuda:7")
    """)


def test_prepare_wants_an_entry_for_the_gpu(run, build_plugin):  # noqa: F811
    path = build_plugin(Path(__file__).parent / "fixtures" / "locks.c", "locks_on_host")
    run(f"""
    host = cuplug.load({str(path)!r})
    with Raises(ValueError, "held: it was to be prepared for cuda:0 but has no CUDA entry"):
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
        relu(x, out=x)

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
    for _ in range(100_000):
        gather(x, index)
    torch.cuda.synchronize()
    assert torch.cuda.memory_allocated() == tensors
    assert resident_bytes() - before < 16 << 20


@pytest.mark.gpu
def test_memory_on_a_gpu():
    cuplug.trim()
    before = cuplug.memory_info()
    d = cuplug.asarray(np.ones(64 << 20, np.uint8))
    info = cuplug.memory_info()
    assert info.used_bytes - before.used_bytes >= 64 << 20
    assert info.most_used_bytes >= info.used_bytes
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
    with pytest.raises(MemoryError, match=r"out of device memory: wanted .* cuplug uses"):
        cuplug.empty(wanted, "uint8")
    del d
    cuplug.synchronize()
    cuplug.trim()
    assert cuplug.memory_info().free_bytes > wanted


@pytest.mark.gpu
def test_prepare_on_a_gpu():
    cuplug.prepare(["relu", gather], device="cuda")
    assert relu(cuplug.asarray(np.array([-1.0, 2.0]))).numpy().tolist() == [0, 2]
    assert gather.loaded
