# SPDX-License-Identifier: Apache-2.0
"""How files of plugins spread from a scheduler to its workers, without a cluster."""

import asyncio
from collections import Counter
from types import SimpleNamespace

import pytest

pytest.importorskip("distributed")
from cuplug._integration.dask.distribution import PART_BYTES, Distribution

DATA = bytes(range(256)) * (PART_BYTES // 256) + b"end"


@pytest.fixture
def scheduler():
    """Return what is used of a scheduler, with 40 workers."""
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
    """No source serves more than two at a time, and the scheduler few."""
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
