# SPDX-License-Identifier: Apache-2.0
"""Host entries that take no strides, called for blocks of strided and broadcast arrays."""

import cuplug
import numpy as np
import pytest
from places import FIXTURES

FEW, MANY = (6, 10), (300, 700)  # elements of one block, of one thread; of several threads
LAYOUTS = {
    "columns": lambda x: x[:, ::2],
    "rows": lambda x: x[::3],
    "reversed": lambda x: x[::-1, ::-1],
    "repeated": lambda x: np.broadcast_to(x[:, :1], x.shape),
    "one": lambda x: np.broadcast_to(x[2, 3], x.shape),
    "transposed": lambda x: x.T,
    "shifted": lambda x: x[:, 1:],
    "planes": lambda x: x.reshape(2, -1, x.shape[1])[:, ::2, 1::3],
    "empty": lambda x: x[:, :0:2],
}
DTYPES = ["int8", "float16", "bfloat16", "float32", "int64"]


@pytest.fixture(scope="module")
def pieces(build_plugin):
    return cuplug.load(build_plugin(FIXTURES / "pieces.c", "pieces"))


def numbers(shape, dtype="float32"):
    if dtype == "bfloat16":
        dtype = pytest.importorskip("ml_dtypes").bfloat16
    values = np.random.default_rng(1).integers(-100, 100, shape)
    return values.astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [FEW, MANY])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_stock_operators_give_what_copies_give(layout, shape, dtype):
    relu, backward = cuplug.find("relu"), cuplug.find("relu_backward")
    x = LAYOUTS[layout](numbers(shape, dtype))
    whole, out = x.copy(), np.empty(x.shape, x.dtype)
    np.testing.assert_array_equal(relu(x), relu(whole))
    assert relu(x, out=out) is out
    np.testing.assert_array_equal(out, relu(whole))
    np.testing.assert_array_equal(backward(x, whole), backward(whole, whole))
    np.testing.assert_array_equal(backward(whole, x), backward(whole, whole))


def test_arrays_are_broadcast_against_each_other():
    backward = cuplug.find("relu_backward")
    column, row = numbers((40, 1)), numbers((1, 50))[:, ::-1]
    wanted = np.where(row <= 0, 0, column)
    np.testing.assert_array_equal(backward(column, row), wanted)
    assert backward(column, row).flags.c_contiguous


def test_arrays_that_are_not_aligned():
    memory = np.zeros(4 * 21 + 1, np.uint8)
    x = memory[1:].view(np.float32)[::2]
    x[...] = np.arange(11) - 5
    np.testing.assert_array_equal(cuplug.find("relu")(x), np.maximum(x, 0))


def test_an_output_shares_no_memory_with_strided_inputs():
    x = numbers((8, 8))
    with pytest.raises(ValueError, match="overlaps"):
        cuplug.find("relu")(x[::-1], out=x)


def test_blocks_are_for_entries_that_take_microseconds_and_count_nothing(pieces):
    x = np.zeros(MANY, np.float32)[:, ::2]
    assert pieces.sizes(x).max() < x.size
    assert (pieces.sizes(x.copy()) == x.size).all()
    assert (pieces.whole_sizes(x) == x.size).all()
    assert (pieces.waiting_sizes(x) == x.size).all()
    assert (pieces.row_sizes(x) == x.size).all()


@pytest.mark.parametrize("shape", [FEW, MANY])
def test_several_outputs_and_memory_of_the_call(pieces, shape):
    x = np.abs(numbers(shape))[::-1]
    low, high = pieces.square(x)
    np.testing.assert_array_equal(low, x)
    np.testing.assert_array_equal(high, x * x)


@pytest.mark.parametrize("shape", [FEW, MANY])
def test_a_block_that_fails_is_told(pieces, shape):
    x = np.ones(shape, np.float32)
    x[3, 4] = -7
    with pytest.raises(ValueError, match=r"^square: x: got -7, expected at least 0$"):
        pieces.square(x[:, ::-1])
    np.testing.assert_array_equal(pieces.square(np.abs(x)[:, ::-1]).high, (x * x)[:, ::-1])


@pytest.mark.parametrize("shape", [FEW, MANY])
def test_in_out_arrays_beside_strided_ones(pieces, shape):
    x, y = numbers(shape), numbers(shape[1])[::-1]
    wanted = x + 2 * y
    pieces.add(x, y, 2)
    np.testing.assert_array_equal(x, wanted)
    with pytest.raises(ValueError, match="C-contiguous"):
        pieces.add(x[:, ::2], y[::2])
