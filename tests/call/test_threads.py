# SPDX-License-Identifier: Apache-2.0
"""Calls from several threads."""

import sysconfig
import threading

import cuplug
import numpy as np
import pytest
from cuplug.ops import gather, relu, scale
from places import FIXTURES


def test_calls_release_the_gil(ops):
    """Two threads can be inside the entry only if neither holds the GIL there."""
    results = []
    threads = [threading.Thread(target=lambda: results.append(int(ops.meet(3)[0]))) for _ in "ab"]
    for thread in threads:
        thread.start()
    results.append(int(ops.meet(3)[0]))
    for thread in threads:
        thread.join()
    assert results == [3, 3, 3]


@pytest.mark.skipif(
    not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="needs a free-threaded Python"
)
def test_free_threaded_python_stays_so(run_python):
    """A module that does not declare support for it would enable the GIL again."""
    done = run_python("""
import importlib, pkgutil, sys
import cuplug
for module in pkgutil.walk_packages(cuplug.__path__, "cuplug."):
    if importlib.util.find_spec(module.name).origin.endswith(".so"):
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            assert error.name == "torch"
assert not sys._is_gil_enabled()
""")
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def locks(build_plugin):
    """Return the plugin that reports whether its caller holds the GIL."""
    return cuplug.load(build_plugin(FIXTURES / "locks.c", "locks"))


def test_small_calls_that_never_wait_keep_the_gil(locks):
    small, large = np.zeros(16 << 10, np.uint8), np.zeros((16 << 10) + 1, np.uint8)
    for operator in (locks.held, locks.held_briefly, locks.held_rows):
        operator.load()
    assert locks.held_briefly(small)[0] == 1
    assert locks.held_briefly(large)[0] == 0
    assert locks.held(small)[0] == 0
    assert locks.held_rows(small[:2048])[0] == 1
    assert locks.held_rows(small[:2049])[0] == 0  # its output is larger


def test_the_first_call_loads_without_the_gil(build_plugin):
    fresh = cuplug.load(build_plugin(FIXTURES / "locks.c", "locks_again"))
    small = np.zeros(1, np.uint8)
    assert [fresh.held_briefly(small)[0] for _ in range(2)] == [0, 1]


def test_many_threads_call_at_once(ops):
    failures = []

    def work(seed):
        x = np.random.default_rng(seed).random(50) - 0.5
        for _ in range(300):
            if ops.positive(x).tolist() != x[x > 0].tolist():
                failures.append(seed)
            if ops.add(x[:, None], x).tolist() != (x[:, None] + x).tolist():
                failures.append(seed)
            if len(ops.scalars(1, 2, s="a" * seed, mode="x")) != 8:
                failures.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_new_array_types_from_many_threads(ops):
    """Types are inspected once and cached; here, each is new to all threads at the same time."""
    types = [type(f"Array{k}", (np.ndarray,), {}) for k in range(300)]
    failures = []

    def work():
        for cls in types:
            if ops.copy(np.arange(3.0).view(cls)).tolist() != [0, 1, 2]:
                failures.append(cls)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def in_turns(block, inside=lambda: None, outside=lambda: None):
    """Enter one block in two threads; leave it in the first while the second is still inside."""
    turns, failures = [threading.Event() for _ in range(3)], []

    def first():
        with block:
            turns[0].set()
            assert turns[1].wait(20)
            inside()
        outside()
        turns[2].set()

    def second():
        assert turns[0].wait(20)
        with block, block:
            turns[1].set()
            assert turns[2].wait(20)
            inside()
        outside()

    def run(work):
        try:
            work()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_one_device_block_in_two_threads(ops):
    def inside():
        with pytest.raises(ValueError, match="no CUDA entry in"):
            ops.copy(np.arange(3.0))

    def outside():
        assert ops.copy(np.arange(3.0)).tolist() == [0, 1, 2]

    in_turns(cuplug.Device("cuda"), inside, outside)


def test_one_progress_block_in_two_threads():
    in_turns(cuplug.progress())


def test_device_arrays_on_streams_of_threads(run_streams):
    """Each thread has its own arrays and stream; faults of one do not affect others."""
    run_streams("""
    from concurrent.futures import ThreadPoolExecutor

    def retry(function, *arguments, **keywords):
        while True:
            try:
                return function(*arguments, **keywords)
            except IndexError as error:
                assert "pick: index: index -1 at position 0" in str(error), error

    def work(k):
        device, n = k % 2, 50 + k
        stream = make_stream(device)
        mine = retry(cuplug.asarray, x[:n], device=device)
        index = retry(cuplug.asarray, np.full(3, -1 if k == 0 else n - 1), device=device)
        for i in range(40):
            retry(gpu.increase, mine, 1, stream=stream if i % 3 else None)
            picked = retry(gpu.pick, mine, index, stream=stream)
            assert k == 0 or retry(picked.numpy).tolist() == [n + i] * 3
            host = x[: n + i]
            assert np.array_equal(retry(gpu.triple, host, device=device), 3 * host)
            assert cuplug.last_call().device == f"cuda:{device}" and cuplug.last_call().offloaded
        assert np.array_equal(retry(mine.numpy, stream=stream), x[:n] + 40)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    retry(cuplug.synchronize)
    assert counts().misuses == 0
    """, FAKE_CUDA_LAZY="1")  # fmt: skip


# ---- On a GPU


def run_in_threads(work, n_threads):
    """Run work(k) in threads; return their exceptions."""
    failures = []

    def run_one(k):
        try:
            work(k)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run_one, args=(k,)) for k in range(n_threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return failures


@pytest.mark.gpu
def test_threads_with_streams_of_torch():
    torch = pytest.importorskip("torch")
    torch.cuda.synchronize()

    def work(k):
        stream = torch.cuda.Stream()
        named = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            x = torch.arange(1000.0 + k, device="cuda") - 500
            index = torch.arange(999 + k, -1, -1, device="cuda")
            wanted = 2 * x.clamp(min=0).flip(0)
            for i in range(200):
                y = gather(relu(x), index, stream=named if i % 2 else None)
                scale(y, 2)
                assert torch.equal(y, wanted)
                assert cuplug.last_call().operator == "scale"

    assert run_in_threads(work, 8) == []
    cuplug.synchronize()


@pytest.mark.gpu
def test_threads_with_all_kinds_of_arrays():
    torch, cupy = pytest.importorskip("torch"), pytest.importorskip("cupy")
    put = [
        lambda x: torch.from_numpy(x).cuda(),
        cupy.asarray,
        cuplug.asarray,
        lambda x: x,
    ]
    take = [lambda x: x.cpu().numpy(), cupy.asnumpy, lambda x: x.numpy(), lambda x: x]

    def work(k):
        host = np.random.default_rng(k).standard_normal(10_000 + k).astype(np.float32)
        x, index = put[k % 4](host), put[k % 4](np.arange(host.size)[::-1].copy())
        keywords = {"device": "cuda"} if k % 8 == 3 else {}
        for _ in range(100):
            y = take[k % 4](relu(gather(x, index, **keywords), **keywords))
            assert np.array_equal(y, np.maximum(host[::-1], 0))

    assert run_in_threads(work, 16) == []
    cuplug.synchronize()


@pytest.mark.uninstrumented
def test_threads_with_small_stacks(run_python):
    """A frame that is too large would end the process."""
    done = run_python("""
import threading
import numpy as np
import cuplug
from cuplug.ops import gather, relu

x, index = np.arange(-6.0, 6).reshape(3, 4), np.array([2, 0])
z = np.ones((300, 400), np.complex128)
add = cuplug.elementwise("add(a: T, b: T, c: T) -> T", "a + b + c")
total = cuplug.reduction("total(x: T) -> T", reduce="a + b")

def first_use():
    assert gather(x, index).tolist() == x[[2, 0]].tolist()

def later():
    first_use()
    assert gather(x.T, index).tolist() == x.T[[2, 0]].tolist()
    relu(x, out=np.empty((3, 4)))
    try:
        gather(x, x)
    except TypeError as error:
        assert str(error).startswith("gather: index: got float64[3, 4]")

def expressions():
    assert (add(z[:, ::2], z[:, 1::2], 1) == 3).all()
    assert total(z[:, ::2]) == 60_000
    assert (total(z[:, ::2], axis=0) == 300).all()

add(z, z, 1), total(z)  # compiled
threading.stack_size(64 << 10)
finished = []
for use in (first_use, later, expressions):
    thread = threading.Thread(target=lambda: (use(), finished.append(use)))
    thread.start()
    thread.join()
assert finished == [first_use, later, expressions]
""")
    assert done.returncode == 0, done.stderr
