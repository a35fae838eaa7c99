# SPDX-License-Identifier: Apache-2.0
"""Addresses and strides that a signature guarantees: inputs are copied, others are rejected."""

import textwrap

import cuplug
import numpy as np
import pytest
from cuplug._engine.signature.signature import parse
from places import FIXTURES


@pytest.fixture(scope="session")
def guarantees_file(build_plugin):
    source = FIXTURES / "guarantees.c"
    return build_plugin(source, "guarantees", defines=["CUPLUG_ARCHITECTURES=900"])


@pytest.fixture
def ops(guarantees_file):
    return cuplug.load(guarantees_file)


def at(offset, n=64, dtype=np.float32):
    """Return n numbers at an address that is `offset` past a multiple of 16."""
    memory = np.zeros(4 * n + 32, np.uint8)
    memory = memory[-memory.ctypes.data % 16 + offset :][: 4 * n].view(dtype)
    memory[:] = np.arange(n)
    assert memory.ctypes.data % 16 == offset
    return memory


def test_arrays_that_fit_are_not_copied(ops):
    x = at(0).reshape(8, 8)[:, :4]
    for _ in range(2):
        sums, seen = ops.rows(x)
        np.testing.assert_array_equal(sums, x.sum(1))
        assert seen.tolist() == [0, 8]
    column = at(0)[:8, None]  # one element in each row: no two of them need to be adjacent
    assert ops.rows(column).seen.tolist() == [0, 1]
    assert ops.rows(np.lib.stride_tricks.as_strided(column, (3, 1), (4, 40))).seen[0] == 0


OTHERS = {
    "an address": lambda: at(4).reshape(8, 8),
    "the address of a slice": lambda: at(12).reshape(8, 8)[:, :4],
    "rows of 28 bytes": lambda: at(0, 56).reshape(8, 7)[:, :4],
    "columns from the second on": lambda: at(0).reshape(8, 8)[:, 1:],
    "transposed": lambda: at(0).reshape(8, 8).T,
    "every second column": lambda: at(0).reshape(8, 8)[:, ::2],
    "columns reversed": lambda: at(0).reshape(8, 8)[:, ::-1],
    "rows reversed": lambda: at(0).reshape(8, 8)[::-1],
    "repeated columns": lambda: np.broadcast_to(at(0, 8)[:, None], (8, 5)),
}


@pytest.mark.parametrize("layout", OTHERS)
def test_others_are_copied(ops, layout):
    x = OTHERS[layout]()
    for _ in range(2):
        sums, seen = ops.rows(x)
        np.testing.assert_array_equal(sums, x.sum(1))
        assert seen.tolist() == [0, x.shape[1]]


def test_the_same_shape_at_other_addresses(ops):
    for offset in (0, 4, 0, 0, 8, 12, 0):
        assert ops.aligned(at(offset)).tolist() == [0]


def test_arrays_that_broadcasting_would_repeat(ops):
    y = np.zeros((5, 7), np.float32)
    sums, seen = ops.broad(at(0, 7)[None], y)  # rows repeat, their elements do not
    np.testing.assert_array_equal(sums, np.full(5, 21))
    assert seen.tolist() == [0, 0]
    x = at(0, 5)[:, None]
    sums, seen = ops.spread(x, y[0])
    np.testing.assert_array_equal(sums, 7 * np.arange(5))
    assert seen.tolist() == [0, 7]


def test_in_out_arrays_are_rejected(ops):
    x = at(0)
    assert ops.bump(x).tolist() == [0]
    assert ops.bump(x.reshape(8, 8)[:, :4]).tolist() == [0]
    for wrong, message in (
        (x[1:], r"the address 0x\w+, expected a multiple of 16"),
        (x[::2], r"strides \(2,\), expected 1 in the last dimension"),
        (x[-4::-1], r"strides \(-1,\), expected 1 in the last dimension"),
        (
            x[:56].reshape(8, 7)[:, :4],
            r"strides \(7, 1\), expected multiples of 16 bytes, and none",
        ),
        (
            x.reshape(8, 8)[::-1],
            r"strides \(-8, 1\), expected multiples of 16 bytes, and none below 0",
        ),
    ):
        with pytest.raises(
            ValueError, match=rf"^bump: x: got {message}.* \(it is changed in place\)$"
        ):
            ops.bump(wrong)


def test_outputs_that_are_given_are_rejected(ops):
    x = at(4)
    assert ops.fill(x).seen.tolist() == [4, 0]
    assert ops.fill(x, out=(at(8), None)).seen.tolist() == [4, 8]
    for wrong, message in (
        (at(12), r"the address 0x\w+, expected a multiple of 8"),
        (at(0, 128)[::2], r"strides \(2,\), expected 1 in the last dimension"),
    ):
        with pytest.raises(ValueError, match=f"^fill: y: got {message}$"):
            ops.fill(x, out=(wrong, None))


def test_elements_in_blocks(ops):
    """Blocks of elements would begin at other addresses."""
    x, y = at(0, 4096)[::2], at(0, 2048)
    np.testing.assert_array_equal(ops.add(x, y), x + y)
    np.testing.assert_array_equal(ops.add(x[1:], y[1:]), (x + y)[1:])


def test_contiguous_arrays(ops):
    """Other layouts, and arrays that are broadcast, are copied, but rejected as out=."""
    x = at(0).reshape(8, 8)
    for given, seen in ((x, 0), (x[:, :4], 0), (x.T, 0), (at(4, 16).reshape(2, 8), 4)):
        sums, found = ops.whole(given, given)
        np.testing.assert_array_equal(sums, given.sum(1))
        assert found.tolist() == [seen, given.shape[1]]
    assert ops.whole(at(0, 8)[None], x).seen[1] == 8
    assert ops.whole(x, x, out=(at(4, 8), None)).seen[1] == 8
    message = r"whole: sums: got strides \(2,\), expected those of a C-contiguous array"
    with pytest.raises(ValueError, match=message):
        ops.whole(x, x, out=(at(0, 16)[::2], None))


@pytest.mark.parametrize("n", [3, 70])
def test_lists(ops, n):
    """Items without the guarantee are copied, also of more than 64, which are stored apart."""
    square = at(0).reshape(8, 8)
    fitting = [square[:, 4:]] * n
    assert ops.items(fitting).addresses.tolist() == [0] * n
    assert ops.items(fitting).strides.tolist() == [8] * n
    for wrong in (square[:, 1:5], square.T[:, :4], at(4, 32).reshape(8, 4), square[::-1, :4]):
        addresses, strides = ops.items([*fitting[1:], wrong])
        assert addresses.tolist() == [0] * n
        assert strides[-1] == 4
        assert {*strides.tolist()} <= {4, 8}


def test_lists_of_sizes_of_their_own(ops):
    """Only inputs are copied: in-out arrays keep their strides, or are rejected."""
    ys = [at(0).reshape(8, 8)[:, 2:4], at(0).reshape(8, 8)[:4, :3], at(8, 6).reshape(2, 3)]
    xs = [at(0).reshape(8, 8)[:, :2], at(4, 12).reshape(4, 3), at(0, 6).reshape(2, 3)]
    addresses, strides = ops.each(ys, xs)
    assert addresses.tolist() == [0, 0, 0]
    assert strides.tolist() == [2, 3, 3]
    assert [y.flat[0] for y in ys] == [-1, -1, -1]
    ys[2] = at(4, 6).reshape(2, 3)
    message = r"^each: ys: item 2: got the address 0x\w+, expected a multiple of 8 \(it is changed"
    with pytest.raises(ValueError, match=message):
        ops.each(ys, xs)


VIEWS = """
square = np.arange(4096, dtype=np.float32).reshape(64, 64)
views = [lambda x: x, lambda x: x.T, lambda x: x[:, 1:], lambda x: x[::-1]]
views += [lambda x: x[:, ::-2], lambda x: x[:, :8]]
"""


def test_arrays_of_the_host_on_a_gpu(run_fake, guarantees_file):
    body = """
    for view in views:
        sums, seen = gpu.rows(view(square), device="cuda")
        assert np.array_equal(sums, view(square).sum(1)) and seen[0] == 0
    assert counts().misuses == 0
    """
    run_fake(VIEWS + textwrap.dedent(body), plugin=guarantees_file)


def test_arrays_of_a_gpu(run_emulated, guarantees_file):
    text = """
    install_expressions()
    rows = cuplug.load(os.environ["PLUGIN"]).rows
    for view in views:
        sums, seen = rows(view(cuplug.asarray(square, device="cuda")))
        assert np.array_equal(sums.numpy(), view(square).sum(1)) and seen.numpy()[0] == 0
    assert seen.numpy()[1] == 64
    """
    head = "import os, cuplug, numpy as np\nfrom emulation import install_expressions\n"
    run_emulated(head + VIEWS + textwrap.dedent(text), PLUGIN=str(guarantees_file))


@pytest.mark.parametrize(
    ("clause", "message", "at"),
    [
        ("strid(x, -1) == 1", 'got "strid" before a bracket; did you mean stride?', 0),
        ("algin (x) >= 16", 'got "algin" before a bracket; did you mean align?', 0),
        ("lne(s) > 1", 'got "lne" before a bracket; did you mean len?', 0),
        (
            "rank(x) > 1",
            "expected stride, align, contiguous, len, prod, min or max before '('",
            0,
        ),
        ("stride(y, -1) == 1", "expected an array with dimensions", 7),
        ("stride(n, -1) == 1", "expected an array with dimensions", 7),
        ("contiguous(n)", "expected an array with dimensions", 11),
        ("contiguous(x) >= 16", "expected the signature's end", 14),
        ("align(z) >= 16", "expected an array with dimensions", 6),
        ("stride(x, 0) == 1", "expected ', -1' (the last dimension)", 10),
        ("stride(x) == 1", "expected ', -1' (the last dimension)", 8),
        ("stride(x, -1) == 2", "expected '== 1' (adjacent elements)", 17),
        ("stride(x, -1) <= 1", "expected '== 1' (adjacent elements)", 14),
        ("align(x) >= 32", "expected '>=' and 1, 2, 4, 8 or 16 bytes", 12),
        ("align(x) >= 3", "expected '>=' and 1, 2, 4, 8 or 16 bytes", 12),
        ("align(x) >= -2", "expected '>=' and 1, 2, 4, 8 or 16 bytes", 12),
        ("align(x) == 16", "expected '>=' and 1, 2, 4, 8 or 16 bytes", 9),
        ("align(x) >= 16 or n == 1", "expected ',' (a guarantee has no alternatives)", 14),
    ],
)
def test_ill_formed_guarantees(clause, message, at):
    text = f"f(x: float32[n], z: float32[], xs: float32[*s][]) where {clause}"
    with pytest.raises(cuplug.SignatureError) as raised:
        parse(text)
    assert message in str(raised.value)
    assert raised.value.position == text.index(clause) + at


def test_names_that_are_no_guarantees():
    parse("f(stride: int, align: int, x: float32[n]) where stride > 0, align >= 16, n == align")
    parse("f(x: float32[n], s: int[]) where len(s) > 1, min(n, 3) == 3, prod ( s ) == n")


def test_short_signatures():
    double = cuplug.elementwise("double(x: T) -> T where T: float32, align(x) >= 16", "2 * x")
    for x in (at(0), at(4), at(0)[::2]):
        np.testing.assert_array_equal(double(x), 2 * x)
    with pytest.raises(cuplug.SignatureError, match="did you mean align"):
        cuplug.elementwise("double(x: T) -> T where T: float32, algn(x) >= 16", "2 * x")
