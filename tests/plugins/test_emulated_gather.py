# SPDX-License-Identifier: Apache-2.0
"""The kernels of gather and of gather_backward, run without a GPU."""

import pytest
from cuplug._source.compilers import toolkit

pytestmark = pytest.mark.slow  # other tests have small parts of it

BODY = """
import os

import ml_dtypes
import numpy as np
import cuplug
from cuplug.testing import numpy_dtype
from emulation import build_plugin

build_plugin("gather")
gather, gather_backward = cuplug.ops.gather, cuplug.ops.gather_backward
random = np.random.default_rng(0)
assert gather.path.startswith(os.environ["EMULATED"]), gather.path


def put(x, shift=0):
    "On the GPU, `shift` elements behind an aligned address."
    padded = np.concatenate([np.zeros(shift, x.dtype), x.reshape(-1)])
    flat = cuplug.asarray(padded, device="cuda")[shift:]
    return cuplug.array_api.reshape(flat, x.shape)


def values(shape, dtype):
    return random.integers(-4, 5, shape).astype(dtype)


def check(shape, index, dtype, axis=0, mode="raise", shift=0):
    source, m = values(shape, dtype), shape[axis]
    wanted = np.take(source, index.astype(np.int64), axis, mode=mode)
    what = f"{shape} {index.shape} {index.dtype} {dtype} {axis} {mode} {shift}"
    seen = gather(put(source, shift), put(index), axis=axis, mode=mode)
    np.testing.assert_array_equal(seen.numpy(), wanted, what)
    if np.dtype(dtype).kind in "iu":
        return
    grad = values(wanted.shape, dtype)
    rows = {"raise": index, "wrap": index % m, "clip": np.clip(index, 0, m - 1)}[mode]
    out = np.zeros(shape, "float32" if source.dtype.itemsize == 2 else dtype)
    at = axis % len(shape)
    moved = np.moveaxis(grad, range(at, at + index.ndim), range(index.ndim))
    np.add.at(np.moveaxis(out, at, 0), rows.astype(np.int64), moved.astype(out.dtype))
    seen = gather_backward(put(grad, shift), put(index), put(source), axis=axis, mode=mode)
    np.testing.assert_array_equal(seen.numpy(), out.astype(dtype), what)
"""

CASES = {
    "rows": """
    for width in (0, 1, 3, 4, 8, 31, 129):
        for n, dtype in ((0, "float32"), (1, "float32"), (1025, "float32"), (77, "float16"),
                         (77, ml_dtypes.bfloat16), (77, "float64"), (77, "complex128"),
                         (77, "int8")):
            index = random.integers(-50, 50, n)
            check((50, width), index, dtype)
            check((50, width), index.astype("int32"), dtype, shift=1)
    """,
    "moved dtypes": """
    for name in ("float8_e4m3fnuz", "float8_e8m0fnu", "float4_e2m1fn_x2", "int4_x2"):
        x = random.integers(0, 256, (50, 7), "uint8").view(numpy_dtype(name))
        index = random.integers(0, 50, 77)
        for shift in (0, 1):
            seen = gather(put(x, shift), put(index))
            assert seen.dtype == x.dtype and seen.numpy().tobytes() == x[index].tobytes()
        staged = gather(x, index, device="cuda")
        assert staged.dtype == x.dtype and staged.tobytes() == x[index].tobytes()
    """,
    "numbers": """
    for n in (1, 1023, 4097):
        for dtype in ("float32", "float16", "float64", "complex64", "int8", "int16"):
            for shift in (0, 1):
                check((700,), random.integers(-700, 700, n), dtype, shift=shift)
                check((700,), random.integers(-700, 700, n).astype("int32"), dtype, shift=shift)
    """,
    "axes": """
    for axis in (1, -1):
        for dtype in ("int8", "uint8", "int16", "uint32", "int32", "int64", "uint64"):
            index = random.integers(0, 13, (7, 11)).astype(dtype)
            check((5, 17, 13), index, "float32", axis)
            check((5, 17, 13), index, "float16", axis)
    """,
    "columns": """
    shapes = ((1, 5, 1), (2, 5, 1), (8, 9, 1), (9, 9, 1), (70, 9, 1), (2300, 3, 1), (33, 5, 3),
              (17, 4, 64), (3, 4, 300), (9, 300, 1))
    for shape in shapes:
        for n in (1, 3, 4, 6, 132, 300):
            index = random.integers(-shape[1], shape[1], n)
            for dtype in ("int8", "float16", "float32", "float64", "complex128"):
                check(shape, index, dtype, 1, shift=int(n == 4))
    for shape in ((40, 1, 5), (40, 5, 0), (0, 5, 2), (5, 6, 2)):
        check(shape, np.zeros(0, "int64"), "float32", 1)
        check(shape, np.zeros((1, 2), "int8"), "int32", 1)
    for mode in ("wrap", "clip"):
        check((21, 9, 2), random.integers(-100, 100, 44).astype("int16"), "float32", 1, mode)
    # more than fill a GPU: threads come back for further parts
    check((5, 3), random.integers(0, 3, 256 * 2049), "int8", 1)
    check((9, 3), random.integers(0, 3, 256 * 2049), "int16", 1)
    """,
    "bad columns": """
    for n, dtype in ((44, "float32"), (45, "float32"), (44, "int8"), (44, "complex128")):
        source, index = values((50, 9), dtype), random.integers(-9, 9, n)
        wanted = np.take(source, index, 1)
        index[[0, 7, 43]], wanted[:, [0, 7, 43]] = (9, -10, 2**40), 0
        out = put(np.zeros_like(wanted))
        try:
            gather(put(source), put(index), axis=1, out=out)
            cuplug.synchronize()
        except IndexError as error:
            assert "is out of bounds for size 9" in str(error), error
        else:
            raise AssertionError(f"{n} {dtype}")
        seen = cuplug.from_pointer(out.data_ptr, out.shape, out.dtype, out.device, owner=[out])
        np.testing.assert_array_equal(seen.numpy(), wanted)
    """,
    "modes": """
    for mode in ("wrap", "clip"):
        for dtype in ("int8", "int32", "int64"):
            index = random.integers(-100, 100, 600).astype(dtype)
            for shape in ((9,), (9, 3), (9, 4), (9, 200)):
                check(shape, index, "float32", 0, mode)
    """,
    "bad indices": """
    for width in (1, 3, 64):
        for dtype in ("int64", "int32", "int16"):
            index = random.integers(-9, 9, 5000).astype(dtype)
            index[4321] = 9
            for f, arrays in (
                (gather, [values((9, width), "float32")]),
                (gather_backward, [values((5000, width), "float32"), np.ones((9, width), "f4")]),
            ):
                first, *more = map(put, arrays)
                try:
                    f(first, put(index), *more).numpy()
                except IndexError as error:
                    assert "index 9 at position 4321 is out of bounds" in str(error), error
                else:
                    raise AssertionError(f"{f} {width} {dtype}")
    """,
    "one index": """
    for axis in (0, 1, 2):
        source = values((5, 6, 7), "float32")
        seen = gather(put(source), -2, axis=axis)
        np.testing.assert_array_equal(seen.numpy(), np.take(source, -2, axis))
    for shape, axis in (((2100, 3), 1), ((3, 2100), 0), ((3, 1000, 2), 1), ((4,), 0)):
        for dtype in ("int8", "float64"):
            source = values(shape, dtype)
            seen = gather(put(source, 1), 1, axis=axis)
            np.testing.assert_array_equal(seen.numpy(), np.take(source, 1, axis))
    for shape in ((3, 0), (2, 3, 0)):
        try:
            gather(put(np.zeros(shape)), put(np.array([1, 3], "int16")), axis=len(shape) - 2)
            cuplug.synchronize()
        except IndexError as error:
            assert "index 3 at position 1 is out of bounds for size 3" in str(error), error
        else:
            raise AssertionError(shape)
    """,
}


@pytest.mark.parametrize("name", CASES)
def test_gather(run_emulated, emulated_cuda, name):
    if not toolkit.find_nvcc():
        pytest.skip("needs the headers of nvcc")
    lines = CASES[name].replace("\n    ", "\n")
    run_emulated(BODY + lines, LD_LIBRARY_CUPLUG_PATH=str(emulated_cuda))
