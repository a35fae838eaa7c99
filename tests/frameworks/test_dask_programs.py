# SPDX-License-Identifier: Apache-2.0
"""One worker for each GPU; the example on a store; results of the benchmarks of clusters."""

import os
import re
import runpy
import shutil
import signal
import subprocess
import sys
import time

import cuplug
import numpy as np
import pytest
from cuplug.ops import gather, piecewise_scale, relu
from places import FIXTURES, ROOT

da = pytest.importorskip("dask.array")
pytest.importorskip("distributed")

GPUS = ROOT / "examples" / "dask_gpus.py"
STORE = ROOT / "examples" / "larger_than_memory.py"
SCHEDULER = ROOT / "benchmarks" / "frameworks" / "dask_scheduler.py"
SCALING = ROOT / "benchmarks" / "frameworks" / "dask_scaling.py"
SEVERAL = ROOT / "benchmarks" / "frameworks" / "several_gpus.py"
MIB = 1 << 20

# Warnings of a cluster are not cuplug's.
pytestmark = [pytest.mark.xdist_group("dask"), pytest.mark.filterwarnings("default")]


def run(*command):
    """Run a program that must succeed; return its output."""
    done = subprocess.run(
        [sys.executable, *map(str, command)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


# ---- One worker for each GPU ---------------------------------------------------------------------


def visible_gpus():
    """Return the GPUs that the receiving process may use."""
    import os

    return os.environ["CUDA_VISIBLE_DEVICES"]


def gpu_of_a_call(x):
    """Return the number of a worker's GPUs, and the device on which a call ran."""
    y = relu(x, device="cuda")
    return len(cuplug.devices()), cuplug.last_call().device, y.tolist()


@pytest.mark.slow
def test_each_worker_has_a_variable_of_its_own():
    with runpy.run_path(str(GPUS))["start"](2, 1) as client, client.cluster:
        assert sorted(client.run(visible_gpus).values()) == ["0", "1"]
        x = np.arange(-8.0, 8.0)
        assert (relu(da.from_array(x, chunks=2)).compute() == relu(x)).all()


@pytest.mark.gpu(n=2)
def test_each_worker_has_a_gpu_of_its_own():
    with runpy.run_path(str(GPUS))["start"](2, 1) as client, client.cluster:
        seen = client.run(gpu_of_a_call, np.array([-1.0, 2.0]))
        assert list(seen.values()) == [(1, "cuda:0", [0.0, 2.0])] * 2
        x = np.arange(-8.0, 8.0)
        assert (relu(da.from_array(x, chunks=2), device="cuda").compute() == relu(x)).all()


# ---- A store that is larger than memory ----------------------------------------------------------


@pytest.mark.parametrize("n", [0, pytest.param(1, marks=pytest.mark.gpu)])
def test_the_example_in_this_process(tmp_path, capsys, n):
    """It compares its output with NumPy, on the CPU and on GPUs, if available."""
    pytest.importorskip("zarr")
    runpy.run_path(str(STORE))["work"](tmp_path, 3 * MIB, MIB)
    printed = capsys.readouterr().out
    found = re.match(r"0\.00315 GB in 3 blocks, (\d+) GPUs\ngathered and scaled: \d", printed)
    assert found
    assert int(found[1]) >= n


@pytest.mark.slow
def test_the_example_is_killed_and_resumed(tmp_path):
    """In full runs, the store has five times the memory of the worker; all bits are equal."""
    zarr = pytest.importorskip("zarr")
    megabytes, block = (2560, 16) if os.environ.get("CUPLUG_TEST_LARGE") == "1" else (40, 1)
    options = ["--gigabytes", megabytes / 1000, "--block", block, "--workers", 1, "--keep"]
    options += ["--memory", "512 MB", "--folder", tmp_path / "x"]
    command = [sys.executable, *map(str, (STORE, *options))]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)
    blocks = tmp_path / "x" / "result" / "c" / "0"
    while sum(path.name.isdigit() for path in blocks.glob("*")) < 5:  # not of half a block
        assert process.poll() is None
        time.sleep(0.005)
    os.killpg(process.pid, signal.SIGKILL)  # the client, the scheduler and the worker
    process.wait()
    printed = run(STORE, *options, "--resume")
    assert int(re.search(r"(\d+) blocks were there", printed)[1]) > 4
    assert "GB/s; read and written alone: " in printed
    x = zarr.open_array(str(tmp_path / "x" / "source"), mode="r")[:]
    index = np.random.default_rng(2).integers(0, len(x), len(x) // 4, dtype="int32")
    wanted = piecewise_scale(gather(x, index))
    result = zarr.open_array(str(tmp_path / "x" / "result"), mode="r")[:]
    assert np.array_equal(result.view("int32"), wanted.view("int32"))
    shutil.rmtree(tmp_path / "x")


def test_an_example_that_computes_something_else_is_found_out(tmp_path, monkeypatch):
    pytest.importorskip("zarr")
    program = runpy.run_path(str(STORE))
    monkeypatch.setitem(program["work"].__globals__, "gathered", lambda x, index: x[: len(index)])
    with pytest.raises(AssertionError):
        program["work"](tmp_path, MIB, MIB)


# ---- Benchmarks ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def busy_share():
    """Return the result of the simulation of a cluster, for Dask's times per task."""
    program = runpy.run_path(str(SCHEDULER))

    def busy_share(n_workers, task_s, graph_s=0.0, scheduler_s=0.0, worker_s=0.0, **options):
        costs = program["Costs"](graph_s, scheduler_s, worker_s)
        return program["busy_share"](n_workers, task_s, costs, **options)

    return busy_share


def test_tasks_that_cost_nothing_else_keep_all_workers_busy(busy_share):
    assert busy_share(1000, 1.0) == pytest.approx(1, abs=0.01)


def test_a_scheduler_bounds_what_workers_can_do(busy_share):
    """A task of 10 ms for each of 100 workers takes 10,000 a second; the scheduler does 1,000."""
    assert busy_share(100, 0.01, scheduler_s=0.001) == pytest.approx(0.1, rel=0.05)
    assert busy_share(100, 1.0, scheduler_s=0.001) > 0.95


def test_workers_wait_for_the_whole_graph(busy_share):
    """800 tasks take half a second to send, and 20 ms on each of 40 workers as long to run."""
    assert busy_share(40, 0.02, graph_s=0.0005) == pytest.approx(0.5, rel=0.05)


def test_what_a_worker_does_beside_a_task_is_not_in_it(busy_share):
    assert busy_share(10, 0.01, worker_s=0.01) == pytest.approx(0.5, rel=0.05)


def test_workers_of_one_process_share_its_time(busy_share):
    """40 workers that take 1 ms for each task begin one task in 1 ms, of 40 that end in 20 ms."""
    alone = busy_share(40, 0.02, worker_s=0.001)
    assert alone == pytest.approx(20 / 21, rel=0.05)
    assert busy_share(40, 0.02, worker_s=0.001, in_one_process=True) == pytest.approx(0.5, rel=0.05)


@pytest.mark.slow
def test_the_scheduler_is_measured():
    printed = run(SCHEDULER, "--tasks", 40)
    assert re.search(r"scheduler: \d+ us of CPU time for each", printed)
    assert re.search(r"workers: \d+ us of CPU time for each", printed)
    assert len(re.findall(r"^\| (?:10|100|1,000) \|", printed, re.M)) == 3


@pytest.mark.slow
def test_scaling_is_measured():
    printed = run(SCALING, "--workers", "1,2", "--blocks", 2, "--elements", 1000, "--calls", 2)
    assert len(re.findall(r"^\| [12] \| \d", printed, re.M)) == 2


@pytest.mark.slow
def test_all_is_written_to_one_page(tmp_path):
    pytest.importorskip("zarr")
    options = ["--gigabytes", 0.01, "--elements", 1 << 12, "--calls", 2, "--gpus", 1]
    run(SEVERAL, "--store", tmp_path / "store", "--output", tmp_path, *options)
    (page,) = tmp_path.glob("several-gpus-*.md")
    text = page.read_text()
    assert re.search(r"^\| commit \| \w+", text, re.M)
    assert re.search(r"^\| 1 \| \d", text, re.M)
    assert "GB/s; read and written alone: " in text


def test_keywords_of_overloads_that_name_arguments_differently(build_plugin):
    f = cuplug.load(build_plugin(FIXTURES / "renamed.c", "renamed")).swapped
    for dtype, row in (("float32", 1), ("float64", 2)):
        x = da.ones(3, chunks=3, dtype=dtype)
        assert f(x, low=1.5, high=2.5).compute().tolist() == [row, 2.5, 1.5]
