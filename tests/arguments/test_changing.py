# SPDX-License-Identifier: Apache-2.0
"""Arrays that change while the arguments of a call are read, or while it runs."""

import threading
import time

import cuplug
import numpy as np
import pytest
from cuplug.ops import leaky_relu
from places import FIXTURES

# NumPy continues to allow such changes.
pytestmark = pytest.mark.filterwarnings("ignore:Setting the (shape|dtype):DeprecationWarning")

LARGE, SMALL = 1 << 20, 1000  # of 8 bytes: the removed part returns to the system


class Number:
    """A number that runs code when it is read."""

    def __init__(self, action, value=0.5):
        self.action, self.value = action, value

    def __float__(self):
        self.action()
        return self.value


class Whole(Number):
    """An integer that runs code when it is read."""

    def __index__(self):
        self.action()
        return int(self.value)


class Place:
    """A device that runs code when it is read."""

    def __init__(self, action):
        self.action = action

    @property
    def type(self):
        self.action()
        return "cpu"


class Array:
    """An array that runs code in `__dlpack__`."""

    def __init__(self, x, action):
        self.x, self.action = x, action

    def __dlpack_device__(self):
        return self.x.__dlpack_device__()

    def __dlpack__(self, **keywords):
        self.action()
        return self.x.__dlpack__(**keywords)


@pytest.fixture
def shrinking():
    """Return an array, and a function that shrinks its memory."""
    x = np.arange(-3.0, LARGE - 3)
    return x, lambda: x.resize(SMALL, refcheck=False)


def assert_leaky(result):
    assert result.tolist() == [-1.5, -1, -0.5, *range(SMALL - 3)]


@pytest.mark.parametrize("by_name", [False, True])
def test_a_number_resizes_an_array(shrinking, by_name):
    x, shrink = shrinking
    slope = Number(shrink)
    assert_leaky(leaky_relu(x, slope=slope) if by_name else leaky_relu(x, slope))


def test_an_integer_resizes_an_array(shrinking):
    x, shrink = shrinking
    assert len(leaky_relu(x, Whole(shrink, 1))) == SMALL


def test_a_device_resizes_an_array(shrinking):
    x, shrink = shrinking
    assert_leaky(leaky_relu(x, 0.5, device=Place(shrink)))


def test_an_array_resizes_another(ops, shrinking):
    x, shrink = shrinking
    added = ops.add(x, Array(np.ones(SMALL), shrink))
    assert added.tolist() == list(range(-2, SMALL - 2))


def test_an_output_resizes_an_array(shrinking):
    x, shrink = shrinking
    out = np.empty(SMALL)
    leaky_relu(x, 0.5, out=Array(out, shrink))
    assert_leaky(out)


def test_an_output_resizes_another(ops, shrinking):
    out, shrink = shrinking
    x, other = np.arange(-2.0, SMALL - 2), np.empty(SMALL)
    ops.split(x, out=(out, Array(other, shrink)))
    assert out.tolist() == [-2, -1] + [0] * (SMALL - 2)
    assert other.tolist() == [0, 0, *range(SMALL - 2)]


def test_a_subclass_is_resized(shrinking):
    class Mine(np.ndarray):
        pass

    x = np.ndarray.__new__(Mine, (LARGE,))
    x[:SMALL] = shrinking[0][:SMALL]
    assert_leaky(leaky_relu(x, Number(lambda: x.resize(SMALL, refcheck=False))))


def test_an_item_resizes_another(lasting, shrinking):
    x, shrink = shrinking
    assert lasting.sum_of_first([x, Array(np.ones(SMALL), shrink)])[0] == x.sum()


def test_an_array_takes_another_dtype():
    x = np.zeros(4)

    def change():
        x.dtype = np.int64

    with pytest.raises(TypeError, match=r"^leaky_relu: x: got int64\[4\], expected"):
        leaky_relu(x, Number(change))


@pytest.fixture(scope="module")
def lasting(build_plugin):
    """Return a plugin whose calls wait until they are released."""
    return cuplug.load(build_plugin(FIXTURES / "lasting.c", "lasting"))


def layout_seen(operator, x, change):
    """Return the layout that a call reads of an array that changes during the call."""
    turn, results = np.zeros(2, np.int32), []
    thread = threading.Thread(target=lambda: results.append(operator(x, turn).tolist()))
    thread.start()
    while not turn[0]:
        time.sleep(0.001)
    change()
    taken = [np.zeros((5,) * ndim) for ndim in range(5) for _ in range(100)]  # the freed part
    turn[1] = 1
    thread.join()
    assert len(taken) == 500
    return results[0]


@pytest.mark.parametrize("again", range(2))  # as new, and recalled
@pytest.mark.parametrize("name", ["layout", "strided_layout"])
def test_another_thread_sets_the_shape(lasting, name, again):
    x = np.zeros((6, 4))

    def change():
        x.shape = (2, 2, 6)

    strides = [4, 1, 0, 0] if name == "strided_layout" else [0] * 4
    assert layout_seen(getattr(lasting, name), x, change) == [6, 4, 0, 0, *strides], again


def test_another_thread_sets_the_shape_of_a_strided_array(lasting):
    x = np.zeros((6, 8))[:, ::2]

    def change():
        x.shape = (3, 2, 4)

    assert layout_seen(lasting.strided_layout, x, change) == [6, 4, 0, 0, 8, 2, 0, 0]
