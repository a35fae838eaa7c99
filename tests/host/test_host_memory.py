# SPDX-License-Identifier: Apache-2.0
"""NumPy outputs are ordinary arrays; large ones are in memory that is used again."""

import gc
import threading

import cuplug
import numpy
import pytest
from cuplug.ops import relu

N = 5 << 20  # 20 MiB of floats


def ramp(n=N):
    return numpy.arange(-2, n - 2, dtype=numpy.float32)


def test_output_is_an_ordinary_array():
    y = relu(ramp())
    assert y.flags.owndata
    assert y.flags.writeable
    numpy.testing.assert_array_equal(y, numpy.maximum(ramp(), 0))


@pytest.mark.parametrize("n", [N, 10_000])
def test_memory_of_a_freed_output_is_used_again(n):
    x = ramp(n)
    y = relu(x)
    address = y.ctypes.data
    del y
    gc.collect()
    again = relu(x)
    assert again.ctypes.data == address
    assert relu(x).ctypes.data != address


def test_old_contents_do_not_show():
    relu(ramp())
    numpy.testing.assert_array_equal(relu(-numpy.abs(ramp())), numpy.zeros(N, numpy.float32))


def test_resize_keeps_the_contents():
    y = relu(ramp())
    y.resize(N + 1000, refcheck=False)
    numpy.testing.assert_array_equal(y[:N], numpy.maximum(ramp(), 0))
    assert not y[N:].any()
    y.resize(10, refcheck=False)
    numpy.testing.assert_array_equal(y, numpy.maximum(ramp(10), 0))


def test_outputs_freed_on_other_threads():
    held = [relu(ramp()) for _ in range(4)]
    threads = [threading.Thread(target=held.pop) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    numpy.testing.assert_array_equal(relu(ramp()), numpy.maximum(ramp(), 0))


def test_other_arrays_keep_the_default_allocator():
    relu(ramp())
    core = numpy.core if numpy.__version__.startswith("1.") else numpy._core
    handler = core.multiarray.get_handler_name
    assert handler(numpy.empty(N, numpy.float32)) == "default_allocator"
    assert handler(relu(ramp())) == "cuplug"
    assert handler(relu(ramp(100))) == "default_allocator"


@pytest.mark.parametrize(
    ("name", "outputs", "text"),
    [("out", "T", "x"), ("p", "(p: T, q: T)", "p = q = x")],
)
def test_no_memory_for_an_output(name, outputs, text):
    same = cuplug.elementwise(f"same(x: T) -> {outputs}", text)
    x = numpy.broadcast_to(numpy.float32(1), (1 << 50,))
    wanted = rf"^same: {name}: Unable to allocate 4\.00 PiB .*float32$"
    with pytest.raises(MemoryError, match=wanted):
        same(x, device="cpu")
    assert numpy.all(same(x[:1], device="cpu") == numpy.ones(1))
