# SPDX-License-Identifier: Apache-2.0
"""The distribution of plugin files from a scheduler to its workers, without a cluster."""

import asyncio
import hashlib
from collections import Counter
from types import SimpleNamespace

import cuplug
import pytest
from raw_plugins import named_plugin

pytest.importorskip("distributed")
from cuplug._integration.dask.distribution import PART_BYTES, Distribution
from cuplug._integration.dask.plugins import PluginFiles

DATA = bytes(range(256)) * (PART_BYTES // 256) + b"end"


@pytest.fixture
def scheduler():
    """Return a replacement for a scheduler, with 40 workers."""
    plugins, workers = {}, {f"w{k}": None for k in range(40)}
    found = SimpleNamespace(address="s", workers=workers, plugins=plugins, handlers={})
    found.add_plugin = lambda plugin: plugins.update({plugin.name: plugin})
    return found


def test_a_file_is_kept_once_and_read_in_parts(scheduler):
    distribution = Distribution.of(scheduler)
    assert Distribution.of(scheduler) is distribution
    digest = distribution.add(DATA)
    assert distribution.add(bytes(bytearray(DATA))) == digest
    assert list(distribution.data) == [digest]
    read = scheduler.handlers["cuplug_read"]
    assert read(digest, 0) + read(digest, PART_BYTES) == DATA
    assert read(digest, len(DATA)) == b""


def test_workers_read_from_each_other(scheduler):
    """No source serves more than two at a time, and the scheduler serves few in all."""
    distribution = Distribution.of(scheduler)
    digest = distribution.add(DATA)
    served, busy = Counter(), Counter()

    async def fetch(worker):
        source = await distribution.borrow(digest, worker)
        busy[source] += 1
        served[source] += 1
        assert busy[source] <= 2
        await asyncio.sleep(0)
        busy[source] -= 1
        distribution.take_back(digest, source, worker, failed=False)

    async def fetch_all():
        await asyncio.gather(*map(fetch, scheduler.workers))

    asyncio.run(fetch_all())
    assert served.total() == 40
    assert served["s"] <= 10
    assert len(served) > 10
    assert not any(distribution.lent.values())


def test_workers_that_end_block_nobody(scheduler):
    """While they read, while they wait, and while others read from them."""

    async def fetch_all():
        distribution = Distribution.of(scheduler)
        digest = distribution.add(DATA)
        assert [await distribution.borrow(digest, f"w{k}") for k in range(2)] == ["s", "s"]
        waits = [asyncio.create_task(distribution.borrow(digest, f"w{k}")) for k in (2, 3)]
        await asyncio.sleep(0)
        for k in (0, 2):  # one that reads, one that waits
            del scheduler.workers[f"w{k}"]
            distribution.remove_worker(scheduler, f"w{k}")
        assert await asyncio.gather(*waits) == ["s", "s"]
        distribution.take_back(digest, "s", "w1", failed=False)
        distribution.take_back(digest, "s", "w3", failed=False)
        del scheduler.workers["w1"]
        distribution.remove_worker(scheduler, "w1")
        assert sorted(distribution.free[digest]) == ["s", "s", "w3", "w3"]
        while await distribution.borrow(digest, "w4") != "w3":
            pass
        distribution.take_back(digest, "w3", "w4", failed=True)
        assert sorted(distribution.free[digest]) == ["w3", "w4", "w4"]

    asyncio.run(fetch_all())


class Worker:
    """A replacement for a worker. Its source has some data, the scheduler the correct data."""

    def __init__(self, folder, data, of_source):
        self.address, self.local_directory = "w", str(folder)
        self.handlers, self.events, self.returned = {}, [], []
        self.data = {"s": data, "other": of_source}
        self.scheduler = SimpleNamespace(
            address="s", cuplug_borrow=self.borrow, cuplug_return=self.take_back
        )

    def log_event(self, topic, event):
        self.events.append((topic, event["source"], event["bytes"], event["of_bytes"]))

    def rpc(self, source):
        return SimpleNamespace(cuplug_read=lambda **place: self.read(source, **place))

    async def read(self, source, digest, offset):
        if self.data[source] is None:
            raise OSError("it has gone")
        return self.data[source][offset : offset + PART_BYTES]

    async def borrow(self, digest, worker):
        return "other"

    async def take_back(self, digest, source, worker, failed):
        """From now on others are sent here."""
        part = self.handlers["cuplug_read"](digest, 0)
        self.returned.append((source, worker, failed, part == self.data["s"][:PART_BYTES]))


@pytest.mark.parametrize("source", ["right", "wrong", "short", "gone"])
def test_what_a_source_lacks_comes_from_the_scheduler(tmp_path, monkeypatch, source):
    monkeypatch.setenv("CUPLUG_CACHE_DIR", str(tmp_path / "cache"))
    name = f"of{source}"
    file = named_plugin(tmp_path / f"lib{name}.so", name)
    with file.open("ab") as end:
        end.write(bytes(PART_BYTES))
    data = file.read_bytes()
    sent = {"right": data, "wrong": data[::-1], "short": data[:100], "gone": None}[source]
    worker = Worker(tmp_path / "local", data, sent)
    (tmp_path / "local").mkdir(mode=0o700)
    digest = hashlib.sha256(data).hexdigest()
    asyncio.run(PluginFiles(((file.name, digest, len(data)),)).setup(worker))
    asyncio.run(PluginFiles(()).setup(worker))  # another registration
    assert worker.handlers["cuplug_read"](digest, PART_BYTES) == data[PART_BYTES : 2 * PART_BYTES]
    failed = source != "right"
    assert worker.returned == [("other", "w", failed, True)]
    loaded = "s" if failed else "other"
    assert worker.events[-1] == ("cuplug-plugins", loaded, len(data), len(data))
    assert cuplug.find(name).path == str(tmp_path / "local/cuplug" / digest / file.name)
