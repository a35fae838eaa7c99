# SPDX-License-Identifier: Apache-2.0
"""Objects that can be passed as an array or a scalar, without a GPU. NumPy is the reference."""

import array
import decimal
import fractions
import re

import cuplug
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from layouts import LAYOUTS, assert_same

DTYPES = [
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
    *(ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2),
]
LARGE = ["uint8", "float32", pytest.param("complex128", marks=pytest.mark.slow)]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: getattr(d, "__name__", d))
def test_every_dtype_and_layout_arrives_as_it_is(ops, dtype, layout):
    x = LAYOUTS[layout](np.arange(24).astype(dtype))
    assert_same(ops.copy(x), np.ascontiguousarray(x).reshape(x.shape))


@given(data=st.data())
def test_any_array_arrives_as_it_is(ops, data):
    dtype = data.draw(st.sampled_from(DTYPES[:14]))
    x = data.draw(hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=6, min_side=0)))
    if x.ndim:
        x = x[data.draw(hnp.basic_indices(x.shape, allow_newaxis=True))]
    x = np.asarray(x)
    assert_same(ops.copy(x), np.array(x, order="C"))


@given(data=st.data())
def test_transposed_arrays_arrive_as_they_are(ops, data):
    """Some are larger than the tiles of the copy."""
    shape = data.draw(hnp.array_shapes(min_dims=2, max_dims=4, max_side=70))
    dtype = data.draw(st.sampled_from(DTYPES))
    x = np.resize(np.arange(251, dtype=np.uint8), (*shape, np.dtype(dtype).itemsize)).view(dtype)
    x = x[..., 0].transpose(data.draw(st.permutations(range(len(shape)))))
    x = x[data.draw(hnp.basic_indices(x.shape, allow_newaxis=True))]
    assert_same(ops.copy(np.asarray(x)), np.array(x, order="C"))


def test_no_memory_for_a_copy(ops):
    x = np.broadcast_to(np.float32(1), (1 << 50, 1))
    text = f"copy: x: no memory for its C-contiguous copy, of shape {x.shape}, which is needed"
    with pytest.raises(MemoryError, match=re.escape(text)):
        ops.copy(x)


@pytest.mark.parametrize("dtype", LARGE)
def test_large_arrays_arrive_as_they_are(ops, dtype):
    """Copied by several threads: transposed, in Fortran order, reversed, repeated, misaligned."""
    x = np.arange(1200 * 41 * 130).astype(dtype).reshape(1200, 41, 130)
    row = x[3]
    misaligned = np.zeros(x.nbytes + 1, np.uint8)[1:].view(dtype).reshape(x.shape)
    misaligned[...] = x
    for y in x.T, x.transpose(1, 0, 2), x.transpose(0, 2, 1)[::-1, ::2], misaligned.T:
        assert_same(ops.copy(y), np.array(y, order="C"))
    for y in np.broadcast_to(row.T, (900, 130, 41)), np.broadcast_to(row[:, :1], (41, 90000)):
        assert_same(ops.copy(y), np.array(y, order="C"))


@given(shapes=hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=5))
def test_loop_dimensions_broadcast_as_in_numpy(ops, shapes):
    a, b = (np.random.default_rng(0).random(shape) for shape in shapes.input_shapes)
    assert_same(ops.add(a, b), np.add(a, b, out=np.empty(shapes.result_shape)))


def test_dimensionless_array(ops):
    assert_same(ops.copy(np.array(3.5)), np.array(3.5))


def test_read_only_input_is_taken(ops):
    x = np.arange(4.0)
    x.flags.writeable = False
    assert_same(ops.copy(x), x)


@pytest.mark.parametrize("offset", [1, 2, 4, 7])
def test_misaligned_input_is_copied(ops, offset):
    memory = np.zeros(8 * 5 + offset, np.uint8)
    x = memory[offset : offset + 40].view(np.float64)
    x[:] = [1, 2, 3, 4, 5]
    assert_same(ops.copy(x), np.array([1.0, 2, 3, 4, 5]))


def test_field_of_a_packed_structure(ops):
    """Its strides are not multiples of its element size."""
    table = np.zeros(5, [("a", "i1"), ("b", "f8")])
    table["b"] = [1, 2, 3, 4, 5]
    assert_same(ops.copy(table["b"]), np.array([1.0, 2, 3, 4, 5]))
    assert_same(ops.copy(memoryview(table["b"])), np.array([1.0, 2, 3, 4, 5]))


def test_row_that_takes_strides_is_given_them(ops):
    x = np.arange(24.0).reshape(4, 6)
    for view in (x, x.T, x[::-1, ::2], np.broadcast_to(x[0], (3, 6))):
        np.testing.assert_array_equal(ops.row_sums(view), view.sum(axis=1))


def test_subclass_is_an_array(ops):
    class Own(np.ndarray):
        pass

    x = np.arange(4.0)
    assert_same(ops.copy(x.view(Own)), x)


REFUSED = {
    "object": (lambda: np.array([1, None]), "array of dtype object"),
    "string": (lambda: np.array(["a"]), "array of dtype <U1"),
    "datetime": (lambda: np.zeros(2, "M8[s]"), "array of dtype datetime64[s]"),
    "longdouble": (lambda: np.zeros(2, np.longdouble), "array of dtype float128"),
    "structured": (lambda: np.zeros(2, "i4,f4"), "array of dtype [('f0', '<i4'), ('f1', '<f4')]"),
    "int4": (lambda: np.zeros(2, ml_dtypes.int4), "array of dtype int4"),
    "swapped": (lambda: np.arange(2, dtype=">i4"), "byte-swapped int32[2]"),
    "masked": (
        lambda: np.ma.array([1.0], mask=[True]),
        "a masked array, whose mask would be lost (pass x.data or x.filled())",
    ),
    "list": (lambda: [1.0, 2.0], "a list of 2 items"),
    "tuple": (lambda: (1.0,), "a list of 1 item"),
    "none": (lambda: None, "None"),
    "float": (lambda: 2.5, "the float 2.5"),
    "numpy_scalar": (lambda: np.float32(2.5), "the float 2.5"),
    "datetime_scalar": (lambda: np.datetime64("2020"), "numpy.datetime64"),
    "set": (set, "set"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_array_is_refused_by_name(ops, name):
    make, seen = REFUSED[name]
    wanted = "native byte order" if name == "swapped" else "T[*n] with T: any dtype"
    if name in ("list", "tuple", "float", "numpy_scalar"):
        wanted += "; pass numpy.array or cuplug.asarray of it"
    with pytest.raises(TypeError) as raised:
        ops.copy(make())
    assert str(raised.value) == f"copy: x: got {seen}, expected {wanted}"


BUFFERS = {
    "bytes": b"abc",
    "bytearray": bytearray(b"abc"),
    "array": array.array("d", [1.5, -2]),
    "memoryview": memoryview(np.arange(6, dtype=np.int16).reshape(2, 3)),
    "strided": memoryview(np.arange(6, dtype=np.int16))[::-2],
    "dimensionless": memoryview(np.array(7.0)),
    "empty": memoryview(b""),
    "bool": memoryview(np.array([True, False])),
    "complex": memoryview(np.array([1j, 2])),
    "half": memoryview(np.array([1.5], np.float16)),
    "cast": memoryview(bytes(16)).cast("N"),
}


@pytest.mark.parametrize("name", BUFFERS)
def test_buffers_are_arrays(ops, name):
    buffer = BUFFERS[name]
    assert_same(ops.copy(buffer), np.array(memoryview(buffer)))


@pytest.mark.parametrize("code", "bBhHiIlLqQfd")
def test_every_format_of_array_array(ops, code):
    x = array.array(code, [1, 2, 3])
    assert ops.copy(x).tolist() == [1, 2, 3]


def test_buffer_of_the_other_byte_order(ops):
    with pytest.raises(TypeError, match=r"^copy: x: got byte-swapped int32\[2\], expected native"):
        ops.copy(memoryview(np.arange(2, dtype=">i4")))


def test_buffer_of_characters_is_refused(ops):
    with pytest.raises(TypeError, match="got memoryview of format 'c', expected"):
        ops.copy(memoryview(b"ab").cast("c"))


def test_closed_buffer_is_refused(ops):
    view = memoryview(b"abc")
    view.release()
    with pytest.raises(TypeError, match=r"^copy: x: got memoryview that cannot be read"):
        ops.copy(view)


def test_buffer_is_released_after_the_call(ops):
    x = bytearray(b"abc")
    ops.copy(x)
    x.append(1)  # BufferError while it is exported
    with pytest.raises(TypeError):
        ops.add(x, x)
    x.append(1)


@pytest.mark.parametrize(
    ("interface", "seen"),
    [
        ({"mask": object()}, "with a mask, which would be lost"),
        ({"typestr": "|O8"}, "array of dtype object"),
        ({"shape": (2, "x")}, "whose __cuda_array_interface__ is ill-formed"),
        ({"data": 3}, "whose __cuda_array_interface__ is ill-formed"),
        ({"strides": (8,)}, "whose __cuda_array_interface__ is ill-formed"),
        ({"typestr": "no"}, "whose __cuda_array_interface__ is ill-formed"),
    ],
)
def test_bad_cuda_array_interface(ops, interface, seen):
    good = {"shape": (2, 3), "typestr": "<f8", "data": (4096, False), "version": 3}

    class Bad:
        __cuda_array_interface__ = property(lambda self: {**good, **interface})

    with pytest.raises(TypeError, match=f"^copy: x: got .*{seen}"):
        ops.copy(Bad())


# ---- Scalars: seen as f: float64, i: int64, b: bool, c: complex128, u: uint8, s: str, a choice


class Index:
    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value

    def __repr__(self):  # in the names of tests
        return f"Index({self.value})"


@pytest.mark.parametrize(
    "value",
    [
        *(2.5, 3, True, -(2**63), 2**63, 2**64 - 1, float("inf")),
        *(np.float16(2.5), np.float32(2.5), np.float64(2.5), np.longdouble(2.5)),
        *(np.int8(-3), np.uint64(2**63), np.bool_(True), np.array(2.5), np.array(4, np.int8)),
        *(ml_dtypes.bfloat16(2.5), fractions.Fraction(5, 2), decimal.Decimal("2.5"), Index(4)),
    ],
    ids=repr,
)
def test_numbers_for_a_float(ops, value):
    assert ops.scalars(value, 0)[0] == float(value)


def test_number_whose_conversion_fails(ops):
    class Symbol:
        def __float__(self):
            raise TypeError("it has no value yet.\nand more")

    wanted = "scalars: f: got Symbol that cannot be read: it has no value yet, expected a scalar"
    with pytest.raises(TypeError, match=f"^{wanted}"):
        ops.scalars(Symbol(), 0)
    with pytest.raises(TypeError, match="^scalars: i: got Index that cannot be read: .*str"):
        ops.scalars(0.0, Index("4"))


@pytest.mark.parametrize(
    "value", [3, -(2**63), 2**63 - 1, True, np.int8(-3), np.uint64(7), np.array(5), Index(-2)]
)
def test_numbers_for_an_integer(ops, value):
    assert ops.scalars(0, value)[1] == float(int(value))


@pytest.mark.parametrize("value", [2.0, np.float32(2), "2", None, 1j, [2], np.array([2])])
def test_what_is_no_integer(ops, value):
    with pytest.raises(TypeError, match=r"^scalars: i: got .*, expected a scalar of dtype int64$"):
        ops.scalars(0, value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"i": 2**63},
            "i: got the integer 9223372036854775808, expected a value in the range of int64",
        ),
        ({"i": 2**70}, "i: got an integer beyond 64 bits, expected a value in the range of int64"),
        (
            {"i": -(2**70)},
            "i: got an integer beyond 64 bits, expected a value in the range of int64",
        ),
        ({"u": 256}, "u: got the integer 256, expected a value in the range of uint8"),
        ({"u": -1}, "u: got the integer -1, expected a value in the range of uint8"),
    ],
)
def test_integers_out_of_range(ops, arguments, message):
    with pytest.raises(ValueError, match=r"^scalars: ") as raised:
        ops.scalars(**{"f": 0, "i": 0, **arguments})
    assert str(raised.value) == f"scalars: {message}"


def test_complex_and_bool(ops):
    assert ops.scalars(0, 0, c=1 + 2j)[3:5].tolist() == [1, 2]
    assert ops.scalars(0, 0, c=np.complex64(1 + 2j))[3:5].tolist() == [1, 2]
    assert ops.scalars(0, 0, c=np.array(3j))[3:5].tolist() == [0, 3]
    assert ops.scalars(0, 0, b=np.bool_(False))[2] == 0
    with pytest.raises(TypeError, match=r"^scalars: b: "):
        ops.scalars(0, 0, b=1)


@pytest.mark.parametrize("text", ["", "abc", "é\u4e2d", "x" * 100000])
def test_strings_arrive_as_utf8(ops, text):
    assert ops.scalars(0, 0, s=text)[6] == len(text.encode())
    assert ops.scalars(0, 0, s=np.str_(text))[6] == len(text.encode())


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("a\0b", r"a string with a zero character, 'a\x00b'"),
        ("\ud800", r"a string that cannot be encoded as UTF-8, '\ud800'"),
        (b"abc", "uint8[3]"),
        (3, "the integer 3"),
    ],
)
def test_strings_that_are_refused(ops, text, seen):
    with pytest.raises(TypeError) as raised:
        ops.scalars(0, 0, s=text)
    assert str(raised.value) == f"scalars: s: got {seen}, expected a string"


def test_error_in_a_conversion_is_not_hidden(ops):
    class Broken:
        def __float__(self):
            raise ZeroDivisionError("own")

    with pytest.raises(ZeroDivisionError, match="own"):
        ops.scalars(Broken(), 0)


@pytest.mark.parametrize(("shape", "strides"), [((6,), (0,)), ((2, 6), (8, 4)), ((3, 2), (4, -4))])
def test_written_arrays_have_memory_for_each_element(shape, strides):
    twice = cuplug.elementwise("twice(x: T) -> T", "2 * x")
    double = cuplug.elementwise("double_(inout y: T)", "y = 2 * y")
    memory = np.ones(16, np.float32)
    shared = np.lib.stride_tricks.as_strided(memory[8:], shape, strides)
    wanted = "got an array whose elements share memory, expected one with memory for each"
    with pytest.raises(ValueError, match=f"^twice: out: {wanted}$"):
        twice(np.ones(shape, np.float32), out=shared, device="cpu")
    with pytest.raises(ValueError, match=rf"^double_: y: {wanted} \(it is changed in place\)"):
        double(shared, device="cpu")
    assert (memory == 1).all()
    assert (twice(shared, device="cpu") == 2).all()


@pytest.mark.parametrize("dtype", LARGE)
def test_large_transposed_arrays_in_expressions(dtype):
    """Inputs are copied to the order of the outputs; written or repeated arrays are not."""
    add = cuplug.elementwise("add(a: T, b: T) -> T", "a + b")
    count = cuplug.elementwise("count(x: T) -> (same: T, number: int64)", "same = x; number = i")
    add_to = cuplug.elementwise("add_to(inout y: T, x: T)", "y = x + y")
    x = (np.arange(2100 * 2500) % 97).astype(dtype).reshape(2100, 2500)
    y = np.ascontiguousarray(x[::-1, ::-1].T)
    assert_same(add(x, y.T), x + y.T)
    assert_same(add(y[::-1], x.T), y[::-1] + x.T)
    assert_same(add(x, y[:1].T), x + y[:1].T)
    same, number = count(y.T)
    assert_same(same, np.ascontiguousarray(y.T))
    assert_same(number, np.arange(y.size).reshape(y.T.shape))
    wanted = x + y.T
    add_to(y.T, x)
    assert_same(np.ascontiguousarray(y.T), wanted)
    out = np.zeros_like(x.T)
    add(x.T, y, out=out)
    assert_same(out.copy("C"), x.T + y)
