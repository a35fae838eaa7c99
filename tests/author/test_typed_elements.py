# SPDX-License-Identifier: Apache-2.0
"""Typed functions of stock operators: element types by size and kind, strides, costs."""

import importlib
import sys

import numpy as np
import pytest
from builds import compile_module

ELEMENTS = {
    "signed char": "i1", "int8_t": "i1", "cnp.int8_t": "i1", "uint8_t": "u1", "cnp.uint8_t": "u1",
    "short": "i2", "int16_t": "i2", "cnp.int16_t": "i2", "uint16_t": "u2", "cnp.uint16_t": "u2",
    "int": "i4", "int32_t": "i4", "cnp.int32_t": "i4", "uint32_t": "u4", "cnp.uint32_t": "u4",
    "long": "i8", "long long": "i8", "int64_t": "i8", "cnp.int64_t": "i8", "cnp.intp_t": "i8",
    "Py_ssize_t": "i8", "intptr_t": "i8", "ptrdiff_t": "i8", "size_t": "u8", "uint64_t": "u8",
    "cnp.uint64_t": "u8", "unsigned long": "u8", "own_int": "i8", "float": "f4",
    "cnp.float32_t": "f4", "double": "f8", "cnp.float64_t": "f8", "own_float": "f8",
    "float complex": "c8", "double complex": "c16", "cnp.complex128_t": "c16",
}  # fmt: skip
STOCK = """
from libc.stdint cimport *
cimport numpy as cnp
from cuplug.typed cimport gather, view
from cuplug.typed.relu cimport relu
ctypedef cnp.int64_t own_int
ctypedef double own_float

def run_relu(const float[:, :] x, float[:, :] out):
    with nogil:
        relu(view(x), view(out))
"""
RUN_STOCK = """
def run_{k}(const {element}[:] source, const {index}[::1] index, {element}[::1] out):
    with nogil:
        gather(view(source), view(index), view(out))

def index_{k}(const float[::1] source, {index}[:] index, float[:] out):
    gather(view(source), view(index), view(out))
"""
# Memoryviews of each number of dimensions and layout that cuplug.views accepts.
LAYOUTS = {
    "[::1]": 1, "[:]": 1, "[:, ::1]": 2, "[:, :]": 2, "[::1, :]": 2, "[:, :, ::1]": 3,
    "[:, :, :]": 3, "[:, :, :, ::1]": 4, "[:, :, :, :]": 4,
}  # fmt: skip
RANKS = """
from cuplug.typed cimport View, index, relu
from cuplug.views cimport view

def run_list(const double[:, :] x, const long[:, :, :] first, const long[:, :, :] second,
             double[:, :, ::1] out):
    cdef View positions[2]
    positions[0], positions[1] = view(first), view(second)
    index(view(x), positions, 2, view(out))
"""
RUN_RANK = """
def run_{k}(const float{layout} x, float{out} out):
    with nogil:
        relu(view(x), view(out))

def write_{k}(const float{layout} x):
    relu(view(x), view(x))
"""


def module_of(once, name, text):
    """Compile a module once in a run, and import it."""

    def fill(folder):
        (folder / f"{name}.pyx").write_text(text)
        compile_module(folder / f"{name}.pyx", folder, options=[f"-I{np.get_include()}"])

    folder = once(f"typed_{name}", fill)
    sys.path.insert(0, str(folder))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(folder))


@pytest.fixture(scope="module")
def stock(once):
    """Compile calls of stock operators with every usual element type."""
    text = STOCK
    for k, element in enumerate(ELEMENTS):
        index = element if ELEMENTS[element][0] in "iu" else "int32_t"
        text += RUN_STOCK.format(k=k, element=element, index=index)
    return module_of(once, "stock", text)


@pytest.fixture(scope="module")
def ranks(once):
    """Compile calls with memoryviews of every layout."""
    text = RANKS
    for k, (layout, n) in enumerate(LAYOUTS.items()):
        out = f"[{':, ' * (n - 1)}::1]"
        text += RUN_RANK.format(k=k, layout=layout, out=out)
    return module_of(once, "ranks", text)


def packed(x):
    """Return the same values in the fields of packed structures."""
    y = np.zeros(x.shape, np.dtype([("a", "u1"), ("b", x.dtype)]))["b"]
    y[...] = x
    return y


def views_of(layout, n):
    """Yield arrays that a memoryview of this layout accepts."""
    shape = (2, 5, 3, 4)[-n:]
    x = np.random.default_rng(0).integers(-9, 9, shape).astype("f4")
    if layout.startswith("[::1, "):
        yield np.asfortranarray(x)
    elif layout.endswith("::1]"):
        yield np.ascontiguousarray(x)
    else:
        yield from (x, x.T, x[::-1], x[:1], x[:0], x[..., ::2], x.swapaxes(0, -1)[1:])
        yield from (packed(x), packed(x).T[::-1], packed(x)[:1], packed(x)[:0])


@pytest.mark.slow
@pytest.mark.parametrize("k", range(len(LAYOUTS)), ids=list(LAYOUTS))
def test_layouts_of_up_to_four_dimensions(ranks, k):
    layout, n = list(LAYOUTS.items())[k]
    for x in views_of(layout, n):
        out = np.full(x.shape, 7, "f4")
        getattr(ranks, f"run_{k}")(x, out)
        np.testing.assert_array_equal(out, np.maximum(x, 0))
        with pytest.raises(ValueError, match="relu: out: got a read-only array"):
            getattr(ranks, f"write_{k}")(x)
        if n > 2 and x.size:
            with pytest.raises(ValueError, match=r"relu: out: got float32\["):
                getattr(ranks, f"run_{k}")(x, np.empty((*x.shape[:-1], x.shape[-1] + 1), "f4"))


@pytest.mark.slow
def test_lists_of_strided_views(ranks):
    x = np.arange(42.0).reshape(6, 7)
    numbers = np.random.default_rng(3).integers(0, 6, (2, 4, 6, 5))
    first, second = numbers[:, ::-2, ::3].transpose(0, 3, 2, 1)
    for kind in (np.asarray, packed):
        out = np.empty(first.shape)
        ranks.run_list(kind(x), first, kind(second), out)
        np.testing.assert_array_equal(out, x[first, second])


@pytest.mark.slow
@pytest.mark.parametrize("k", range(len(ELEMENTS)), ids=list(ELEMENTS))
def test_element_types_by_size_and_kind(stock, k):
    dtype = np.dtype(list(ELEMENTS.values())[k])
    index = np.array([7, 2, 7], dtype if dtype.kind in "iu" else "i4")
    numbers = np.arange(60).astype(dtype)
    for source in (numbers[:20].copy(), numbers[::3], packed(numbers)):
        out = np.empty(3, dtype)
        getattr(stock, f"run_{k}")(source, index, out)
        np.testing.assert_array_equal(out, source[index])
    source, out = np.arange(9, dtype="f4"), np.empty(3, "f4")
    getattr(stock, f"index_{k}")(source, np.repeat(index, 2)[::2], out)
    np.testing.assert_array_equal(out, source[index])


@pytest.mark.slow
def test_strided_planes_and_errors_of_stock_functions(stock):
    x = np.arange(-12, 12, dtype="f4").reshape(4, 6)
    k = list(ELEMENTS).index("float")
    for view in (x, x.T, x[::2, ::-3]):
        out = np.empty(view.shape, "f4")
        stock.run_relu(view, out)
        np.testing.assert_array_equal(out, np.maximum(view, 0))
    with pytest.raises(IndexError):
        getattr(stock, f"run_{k}")(x[0], np.array([100], "i4"), np.empty(1, "f4"))
    getattr(stock, f"run_{k}")(x[0], np.empty(0, "i4"), np.empty(0, "f4"))
    with pytest.raises(ValueError, match="relu: out: got a misaligned array"):
        stock.run_relu(x, packed(x))
