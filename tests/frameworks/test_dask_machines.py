# SPDX-License-Identifier: Apache-2.0
"""A cluster like one of several machines: a separate scheduler, and workers that share nothing.

Each of the four workers has its own user (if root runs the tests), folder, cache and version of a
plugin. `make cluster-test` runs this with more blocks.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import cuplug
import numpy as np
import pytest
from cuplug.ops import relu
from places import FIXTURES
from raw_plugins import named_plugin, quoted

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")
import cuplug.dask  # noqa: E402

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("dask"),
    pytest.mark.filterwarnings("default"),
]
N_WORKERS = 4
N_BLOCKS = 10_000 if os.environ.get("CUPLUG_TEST_LARGE") == "1" else 200
BLOCK_BYTES = 64 << 10
FIRST_USER = 61_000
SETTINGS = {
    "DASK_DISTRIBUTED__WORKER__MEMORY__TARGET": "0.01",  # of the limit: the excess is spilled
    "DASK_DISTRIBUTED__WORKER__MEMORY__SPILL": "False",
    "DASK_DISTRIBUTED__WORKER__MEMORY__PAUSE": "False",
    "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "3",
    "DASK_DISTRIBUTED__COMM__RETRY__COUNT": "2",
}
LIMIT_BYTES = 200 << 20
FLAGS = ["--no-dashboard", "--host", "127.0.0.1"]


class Machines:
    """Processes on this machine that represent others; all may read `folder`."""

    def __init__(self, folder):
        self.folder = folder
        self.processes = {}
        self.has_users = runs_as(FIRST_USER)
        file = self.prepare("scheduler") / "scheduler.json"
        self.start("scheduler", "--port", "0", "--scheduler-file", str(file))
        self.client = distributed.Client(scheduler_file=str(file), timeout=60)
        for k in range(N_WORKERS):
            version = named_plugin(
                self.prepare(f"worker{k}") / "plugins/libowned.so",
                "owned",
                VERSION=quoted(f"{k}.0"),
            )
            assert version.stat().st_uid == os.geteuid()
            self.start_worker(k)
        self.client.wait_for_workers(N_WORKERS, timeout=60)

    def prepare(self, name):
        """Create the folder of a machine: plugins for its user, and files that the user writes."""
        (self.folder / name / "plugins").mkdir(parents=True)
        (self.folder / name / "local").mkdir(mode=0o700)
        if self.has_users:
            user = self.user_of(name)
            for own in (self.folder / name, self.folder / name / "local"):
                os.chown(own, user, user)
        return self.folder / name

    def user_of(self, name):
        return FIRST_USER + int(name.removeprefix("worker") if name != "scheduler" else N_WORKERS)

    def start_worker(self, k):
        local, limit = str(self.folder / f"worker{k}/local"), str(LIMIT_BYTES)
        options = ["--nthreads", "1", "--no-nanny", "--memory-limit", limit, "--name", str(k)]
        address = self.client.scheduler.address
        self.start(f"worker{k}", address, *options, "--local-directory", local)

    def start(self, name, *options):
        role = "scheduler" if name == "scheduler" else "worker"
        python = [*(as_user(self.user_of(name)) if self.has_users else ()), sys.executable]
        place = self.folder / name
        own = {
            "HOME": str(place),
            "CUPLUG_CACHE_DIR": str(place / "local/cache"),
            "LD_LIBRARY_CUPLUG_PATH": str(place / "plugins"),
            "TMPDIR": str(place / "local"),
        }
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                [*python, "-m", f"distributed.cli.dask_{role}", *FLAGS, *options],
                env=os.environ | SETTINGS | own,
                cwd=place,
                stdout=log,
                stderr=log,
            )

    def kill(self, pid):
        """Kill a worker, and return its number."""
        (name,) = (name for name, process in self.processes.items() if process.pid == pid)
        self.processes[name].kill()
        self.processes[name].wait()
        return int(name.removeprefix("worker"))

    def close(self):
        self.client.close()
        for process in self.processes.values():
            process.send_signal(signal.SIGKILL)
            process.wait()


def as_user(user):
    """Return the command prefix that runs a command as another user, in the same process."""
    return ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]


def runs_as(user):
    """Return whether another user can run this Python, which only root may be able to read."""
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        return False
    command = [*as_user(user), sys.executable, "-c", "import cuplug, distributed"]
    return subprocess.run(command, cwd="/", check=False).returncode == 0


@pytest.fixture(scope="module")
def machines():
    folder = Path(tempfile.mkdtemp(prefix="cuplug-machines-"))
    folder.chmod(0o755)
    found = Machines(folder)
    yield found
    found.close()
    shutil.rmtree(folder)


@pytest.fixture
def client(machines):
    return machines.client


@pytest.fixture
def writable(machines):
    """Return a folder where every worker may write."""
    folder = Path(tempfile.mkdtemp(dir=machines.folder))
    folder.chmod(0o1777)
    return folder


def blocks(n_blocks=N_BLOCKS, seed=1):
    """Return a dask array of blocks of BLOCK_BYTES, and their values."""
    n = BLOCK_BYTES // 8
    values = np.random.default_rng(seed).normal(size=n)

    def make(block_info=None):
        return values * (1 + block_info[None]["chunk-location"][0])

    x = da.map_blocks(make, chunks=((n,) * n_blocks,), dtype=values.dtype, meta=values[:0])
    return x, values


def wait_for(ask, most_s=60):
    """Return what `ask` returns as soon as that is true."""
    end = time.monotonic() + most_s
    while time.monotonic() < end:
        if found := ask():
            return found
        time.sleep(0.05)
    raise TimeoutError


def test_users_and_caches_differ(machines, client):
    users = client.run(os.geteuid)
    assert len(set(users.values())) == (N_WORKERS if machines.has_users else 1)
    assert len(set(client.run(lambda: os.environ["CUPLUG_CACHE_DIR"]).values())) == N_WORKERS


def test_versions_differ_until_one_is_brought(client, tmp_path):
    """Tasks on workers with other versions fail; then workers read the file from each other."""
    mine = named_plugin(tmp_path / "libowned.so", "owned", VERSION=quoted("2.0"))
    with mine.open("ab") as end:
        end.write(bytes(9 << 20))
    owned = cuplug.load(mine).owned
    x = np.arange(3.0)
    outcomes = Counter()
    for worker in client.scheduler_info()["workers"]:
        future = client.submit(owned, x, workers=[worker], pure=False)
        error = future.exception(timeout=60)
        outcomes[type(error)] += 1
        assert str(error).startswith("owned.owned: got version ")
    assert outcomes == {cuplug.PluginError: N_WORKERS}
    client.register_plugin(cuplug.dask.Plugins([owned]))
    assert set(client.run(lambda: cuplug.find("owned").version).values()) == {"2.0"}
    found = client.map(owned, [x] * 20, pure=False)
    assert all(y.shape == x.shape for y in client.gather(found))
    cut = da.from_array(np.zeros((6, 8)), chunks=(2, 4))
    for y in (owned(cut), cut.map_blocks(owned, dtype=cut.dtype, meta=cut._meta)):
        assert client.compute(y).result(timeout=60).shape == cut.shape
    done = [e for _, e in client.get_events("cuplug-plugins") if e["bytes"] == e["of_bytes"]]
    assert len({event["worker"] for event in done}) == len(done) == N_WORKERS
    assert {event["source"] for event in done} & {event["worker"] for event in done}


def test_many_blocks(client):
    x, values = blocks()
    sums = relu(x).map_blocks(lambda block: block.sum(keepdims=True), chunks=(1,)).compute()
    wanted = [np.maximum(values * (1 + k), 0).sum() for k in range(N_BLOCKS)]
    np.testing.assert_array_equal(sums, wanted)


def test_arrays_are_spilled(client):
    """cuplug blocks beyond a worker's memory are read back from its disk."""
    x, values = blocks(400)
    own = x.map_blocks(cuplug.asarray, dtype=x.dtype, meta=x._meta)
    kept = client.persist(relu(own))
    distributed.wait(kept)
    on_disk = client.run(lambda dask_worker: len(dask_worker.data.disk))
    assert sum(on_disk.values()) > 100
    twice = (kept + kept).map_blocks(lambda block: np.asarray(block).sum(keepdims=True))
    wanted = [np.add(y := np.maximum(values * (1 + k), 0), y).sum() for k in range(400)]
    np.testing.assert_array_equal(np.asarray(twice.compute()), wanted)


def test_a_worker_that_is_killed_in_a_call(machines, client, build_plugin, writable):
    """The others compute its blocks; when it is started again, it has the plugins."""
    plugin = cuplug.load(build_plugin(FIXTURES / "blocks.c", "blocks"))
    client.register_plugin(cuplug.dask.Plugins([plugin]))
    x, values = blocks(20)
    kept = client.persist(x + 1)
    distributed.wait(kept)
    future = client.compute(plugin.hang_once(kept, file=str(writable / "called")))
    mark = writable / "called"
    victim = wait_for(lambda: int(mark.read_text() or 0) if mark.exists() else 0)
    number = machines.kill(victim)
    wanted = np.concatenate([values * (1 + k) + 1 for k in range(20)])
    np.testing.assert_array_equal(future.result(timeout=60), wanted)
    machines.start_worker(number)
    client.wait_for_workers(N_WORKERS, timeout=60)
    wait_for(lambda: len(client.run(os.getpid)) == N_WORKERS)
    paths = client.run(lambda: [cuplug.find(x).path for x in ("blocks.hang_once", "owned")])
    assert len({path for pair in paths.values() for path in pair}) == 2 * N_WORKERS


def test_cancelled_calls(client):
    """Waiting tasks are dropped, and the workers continue."""

    def slow(x):
        time.sleep(0.2)
        return relu(x)

    futures = client.map(slow, [np.arange(-2.0, 2.0)] * 200, pure=False)
    wait_for(lambda: any(future.done() for future in futures))
    client.cancel(futures)
    assert client.submit(relu, np.arange(-2.0, 2.0)).result(timeout=60).tolist() == [0, 0, 0, 1]
    assert all(future.cancelled() for future in futures)


def test_retries(client, writable):
    """A call that fails at first is repeated up to the given number of times."""

    def unreliable(x, folder, n_failures):
        attempt = len(os.listdir(folder))
        Path(folder, str(attempt)).touch()
        return relu(x if attempt >= n_failures else "no array")

    x = np.arange(-2.0, 2.0)
    call = {"folder": str(writable), "n_failures": 2}
    assert client.submit(unreliable, x, **call, retries=2).result(60).tolist() == [0, 0, 0, 1]
    call["n_failures"] = 9
    with pytest.raises(TypeError, match="relu: x: got"):
        client.submit(unreliable, x, **call, retries=1, pure=False).result(60)
    assert len(os.listdir(writable)) == 5


def test_a_cluster_that_grows_and_shrinks(tmp_path):
    """Workers that are added for work have the plugins, and leave after it."""
    lagging = cuplug.load(named_plugin(tmp_path / "liblagging.so", "lagging")).lagging
    options = {"threads_per_worker": 1, "dashboard_address": None, "silence_logs": "ERROR"}
    with (
        distributed.LocalCluster(n_workers=0, **options, local_directory=tmp_path) as cluster,
        distributed.Client(cluster) as client,
    ):
        client.register_plugin(cuplug.dask.Plugins([lagging]))
        cluster.adapt(minimum=0, maximum=2, interval="50ms", wait_count=2, target_duration="50ms")
        x, values = blocks(100)
        y = lagging(x).map_blocks(lambda block: np.full(1, block.size), chunks=(1,))
        assert (y.compute() == values.size).all()
        wait_for(lambda: not client.scheduler_info()["workers"])
