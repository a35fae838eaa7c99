# SPDX-License-Identifier: Apache-2.0
"""Operators on the workers of a cluster: two processes on this machine."""

import hashlib
import os
import time
from pathlib import Path

import cuplug
import numpy as np
import pytest
from cuplug.ops import relu
from raw_plugins import named_plugin, quoted

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")
import cuplug.dask  # noqa: E402

# Warnings of a cluster are not cuplug's.
pytestmark = [pytest.mark.xdist_group("dask"), pytest.mark.filterwarnings("default")]
X = np.random.default_rng(5).normal(size=(6, 8)).astype("float32")
CUT = da.from_array(X, chunks=(2, 4))
SETTINGS = {
    "distributed.scheduler.allowed-failures": 3,
    "distributed.worker.memory.terminate": False,
    "distributed.admin.log-format": "",
}


@pytest.fixture(scope="module")
def search_path(tmp_path_factory):
    """Return the folder of plugins that the workers search, and the client."""
    folder = tmp_path_factory.mktemp("searched", numbered=True)
    folder.chmod(0o755)
    return folder


@pytest.fixture(scope="module")
def client(search_path):
    """Return the client of two workers with one thread each."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LD_LIBRARY_CUPLUG_PATH", str(search_path))
        for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
            patch.setenv(name, "1")  # what dask sets for its workers, and leaves here
        import dask

        with (
            dask.config.set(SETTINGS),
            distributed.LocalCluster(
                n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
            ) as cluster,
            distributed.Client(cluster) as client,
        ):
            yield client


def digest(file):
    """Return the SHA-256 of a file, as digits."""
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()


def set_variable(name, value):
    """Set a variable of the environment, in the process that this is sent to."""
    os.environ[name] = value


def test_results(client):
    assert (relu(CUT).compute() == relu(X)).all()
    kept = client.persist(relu(CUT + 1))
    distributed.wait(kept)
    assert len({worker for (worker,) in client.who_has(kept).values()}) == 2


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_blocks_of_cuplug_move(client, device):
    """Between workers, if an array is split again, and to the client."""
    own = CUT.map_blocks(cuplug.asarray, device=device, dtype=X.dtype, meta=X[:0, :0])
    kept = client.persist(relu(own))
    whole = relu(kept.rechunk((6, 8))).compute()
    assert (type(whole), whole.device.type) == (cuplug.Array, device)
    assert (whole.numpy() == relu(X)).all()


def test_operators_that_are_sent(client):
    assert client.submit(cuplug.dask.relu, X).result().tolist() == relu(X).tolist()
    assert client.submit(relu, X).result().tolist() == relu(X).tolist()


def test_errors_come_back_as_they_were(client):
    index = np.array([6])
    with pytest.raises(IndexError, match="gather: index"):
        cuplug.dask.gather(CUT.rechunk({0: -1}), index).compute()


def test_a_worker_with_other_code_refuses(client, search_path, tmp_path):
    """Both versions are named, and both files."""
    mine = named_plugin(tmp_path / "libtwofold.so", "twofold", VERSION=quoted("1.0"))
    theirs = named_plugin(search_path / "libtwofold.so", "twofold", VERSION=quoted("2.0"))
    y = cuplug.load(mine).twofold(CUT)
    with pytest.raises(cuplug.PluginError) as caught:
        y.compute()
    assert str(caught.value) == (
        f"twofold.twofold: got version 2.0 with SHA-256 {digest(theirs)}, in {theirs}, "
        f"expected version 1.0 with SHA-256 {digest(mine)}"
    )


def test_a_worker_without_the_plugin_names_it(client, tmp_path):
    mine = named_plugin(tmp_path / "liblacking.so", "lacking")
    with pytest.raises(cuplug.NotFoundError, match=r"lacking\.lacking"):
        cuplug.load(mine).lacking(CUT).compute()


@pytest.mark.parametrize("other", [False, True])
def test_an_operator_that_is_sent_ends_no_worker(client, search_path, tmp_path, other):
    """The task fails like any other, and the workers continue."""
    name = f"sent{other:d}"
    mine = named_plugin(tmp_path / f"lib{name}.so", name, VERSION=quoted("1.0"))
    if other:
        named_plugin(search_path / f"lib{name}.so", name, VERSION=quoted("2.0"))
    operator = getattr(cuplug.load(mine), name)
    pids = client.run(os.getpid)
    for send in (operator, lambda x: operator(x), cuplug.dask.Function(operator)):
        with pytest.raises(cuplug.PluginError, match=f"version 1.0 with SHA-256 {digest(mine)}"):
            client.submit(send, X).result(timeout=60)
    with pytest.raises(cuplug.PluginError, match=f"SHA-256 {digest(mine)}"):
        CUT.map_blocks(operator, dtype=X.dtype, meta=X[:0, :0]).compute()
    assert client.run(os.getpid) == pids


def test_fused_functions_are_sent(client):
    factor = 3
    fused = cuplug.fuse(lambda x: x * factor + 1)
    assert (client.submit(fused, X).result(timeout=60) == X * 3 + 1).all()
    assert (fused(CUT).compute() == X * 3 + 1).all()


def test_plugins_are_brought(client, tmp_path):
    mine = named_plugin(tmp_path / "libbrought.so", "brought", VERSION=quoted("1.0"))
    plugin = cuplug.load(mine)
    client.register_plugin(cuplug.dask.Plugins([plugin]))
    assert plugin.brought(CUT).compute().shape == X.shape
    for path in client.run(lambda: cuplug.find("brought").path).values():
        assert path != str(mine)
        assert Path(path).parent.name == digest(path) == digest(mine)
        assert os.stat(Path(path).parent).st_mode & 0o777 == 0o700


def test_a_newer_version_is_brought_beside_the_old(client, tmp_path):
    files = {}
    for version in ("1.0", "2.0"):
        (tmp_path / version).mkdir()
        file = named_plugin(tmp_path / version / "libnewer.so", "newer", VERSION=quoted(version))
        client.register_plugin(cuplug.dask.Plugins([str(file)]))
        files[version] = cuplug.load(file)
        assert files[version].newer(CUT).compute().shape == X.shape
    assert set(client.run(lambda: cuplug.find("newer").version).values()) == {"2.0"}
    with pytest.raises(cuplug.PluginError, match=r"got version 2\.0 .*, expected version 1\.0"):
        files["1.0"].newer(CUT + 1).compute()


def test_an_older_version_is_brought_back(client, tmp_path):
    plugins = {}
    for version in ("1.0", "2.0"):
        (tmp_path / version).mkdir()
        file = named_plugin(tmp_path / version / "libback.so", "back", VERSION=quoted(version))
        plugins[version] = cuplug.load(file)
    for version in ("1.0", "2.0", "1.0", "1.0", "2.0"):
        client.register_plugin(cuplug.dask.Plugins([plugins[version]]))
        assert set(client.run(lambda: cuplug.find("back").version).values()) == {version}
        assert plugins[version].back(CUT).compute().shape == X.shape


def test_what_is_brought_obeys_the_allow_list(client, tmp_path):
    file = named_plugin(tmp_path / "libunlisted.so", "unlisted")
    (tmp_path / "list").write_text(f"{'0' * 64}  nothing\n")
    (tmp_path / "list").chmod(0o644)
    client.run(set_variable, "CUPLUG_ALLOW_LIST", str(tmp_path / "list"))
    try:
        with pytest.raises(cuplug.PluginError, match=f"not on the allow-list.*{digest(file)}"):
            client.register_plugin(cuplug.dask.Plugins([file]))
    finally:
        client.run(set_variable, "CUPLUG_ALLOW_LIST", "")


def test_what_is_brought_obeys_the_rules_of_who_may_write(tmp_path):
    brought = cuplug.dask.Plugins([named_plugin(tmp_path / "libopen.so", "open")])
    (tmp_path / "local").mkdir()
    (tmp_path / "local").chmod(0o777)
    options = {"n_workers": 1, "processes": False, "dashboard_address": None}
    with (
        distributed.LocalCluster(**options, local_directory=tmp_path / "local") as cluster,
        distributed.Client(cluster) as client,
        pytest.raises(cuplug.PluginError, match=r"local, on the way to it: anyone may write it"),
    ):
        client.register_plugin(brought)


def test_a_file_travels_once_for_workers_of_one_cache(client, tmp_path):
    """The others read it there; progress and speed are reported as events."""
    file = named_plugin(tmp_path / "libweighty.so", "weighty")
    with file.open("ab") as end:
        end.write(bytes(9 << 20))  # three messages
    events = []
    usual = os.environ["CUPLUG_CACHE_DIR"]
    client.run(set_variable, "CUPLUG_CACHE_DIR", str(tmp_path / "cache"))
    client.subscribe_topic("cuplug-plugins", lambda event: events.append(event[1]))
    client.register_plugin(cuplug.dask.Plugins([file]))
    client.run(set_variable, "CUPLUG_CACHE_DIR", usual)
    assert len(set(client.run(lambda: cuplug.find("weighty").path).values())) == 2
    (done,) = [x for _, x in client.get_events("cuplug-plugins") if x["file"] == file.name]
    wait_for(lambda: done in events)
    assert done["bytes"] == done["of_bytes"] == file.stat().st_size
    assert done["bytes_per_s"] > 0
    assert done["source"] == client.scheduler.address


def wait_for(ask, most_s=60):
    """Return what `ask` returns as soon as that is true."""
    end = time.monotonic() + most_s
    while time.monotonic() < end:
        found = ask()
        if found:
            return found
        time.sleep(0.02)
    raise TimeoutError
