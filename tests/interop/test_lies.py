# SPDX-License-Identifier: Apache-2.0
"""DLPack capsules with arbitrary fields: a message, or the correct result."""

import ctypes
from dataclasses import dataclass

import cuplug
import numpy as np
import pytest
from dltensor import Tensor
from hypothesis import assume, example, given
from hypothesis import strategies as st

MEMORY = 4096  # bytes; arrays begin in the middle
CPU, CUDA, CUDA_HOST = 1, 2, 3


class Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    ]


@dataclass
class Claim:
    """The fields of a capsule. Memory, sizes and strides of None are null pointers."""

    ndim: int
    shape: list | None
    strides: list | None
    dtype: tuple = (2, 64, 1)
    device: tuple = (CPU, 0)
    byte_offset: int = 0
    has_memory: bool = True

    def is_sound(self):
        """Return whether such an array is possible."""
        return 0 <= self.ndim <= 64 and (self.shape is not None or not self.ndim)

    def sizes(self):
        return self.shape[: self.ndim] if self.ndim else []

    def steps(self):
        """Return the strides, in elements."""
        if self.strides is not None:
            return self.strides[: self.ndim]
        sizes = self.sizes()
        return [int(np.prod(sizes[k + 1 :], dtype=object)) for k in range(self.ndim)]

    def reach(self):
        """Return the lowest and highest byte from the first element on, as Python counts."""
        ends = [(n - 1) * step for n, step in zip(self.sizes(), self.steps(), strict=True)]
        item = self.dtype[1] * self.dtype[2] // 8
        low = sum(end for end in ends if end < 0) * item
        return low, sum(end for end in ends if end > 0) * item + item

    def is_inside(self):
        """Return whether all elements are inside the memory."""
        low, high = self.reach()
        begin = MEMORY // 2 + self.byte_offset
        return begin + low >= 0 and begin + high <= MEMORY


class Liar:
    """An array with given fields."""

    def __init__(self, claim):
        self.claim, self.memory = claim, np.arange(MEMORY // 8, dtype=np.float64)
        count = ctypes.c_int64 * 64
        self.shape = count(*(claim.shape or []))
        self.strides = count(*(claim.strides or []))
        address = ctypes.addressof
        self.managed = Versioned(1, 0, None, None, 0)
        self.managed.tensor = Tensor(
            self.memory.ctypes.data + MEMORY // 2 if claim.has_memory else None,
            *claim.device,
            claim.ndim,
            *claim.dtype,
            address(self.shape) if claim.shape is not None else None,
            address(self.strides) if claim.strides is not None else None,
            claim.byte_offset,
        )

    def __dlpack_device__(self):
        return self.claim.device

    def __dlpack__(self, **keywords):
        make = ctypes.pythonapi.PyCapsule_New
        make.restype = ctypes.py_object
        make.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return make(ctypes.addressof(self.managed), b"dltensor_versioned", None)

    def array(self):
        """Return the array of a true claim, as read by NumPy."""
        kinds = {0: "i", 1: "u", 2: "f", 5: "c"}
        dtype = np.dtype(f"{kinds[self.claim.dtype[0]]}{self.claim.dtype[1] // 8}")
        pairs = zip(self.claim.sizes(), self.claim.steps(), strict=True)
        strides = [step * dtype.itemsize if n > 1 else 0 for n, step in pairs]
        begin = MEMORY // 2 + self.claim.byte_offset
        return np.ndarray(self.claim.sizes(), dtype, self.memory.data, begin, strides)


INT64 = 2**63
ABSURD = [-INT64, -1, 2**61, 2**62, INT64 - 1, INT64 // 12]
sizes = st.integers(0, 4) | st.sampled_from([-1, -INT64, INT64 // 2, INT64 - 1])
steps = st.integers(-6, 6) | st.sampled_from([*ABSURD, 1 - INT64, -(2**62), -(2**61)])
dtypes = st.sampled_from([(2, 64, 1), (2, 32, 1), (0, 8, 1), (1, 64, 1), (5, 128, 1)]) | st.tuples(
    st.integers(0, 255), st.integers(0, 255), st.integers(0, 65535)
)
devices = st.just((CPU, 0)) | st.tuples(
    st.sampled_from([CPU, CUDA_HOST, 0, 4, 10, -1, 2**31 - 1]),
    st.sampled_from([0, 1, -1, 2**31 - 1]),
)


@st.composite
def claims(draw):
    dims = draw(st.integers(0, 4))
    lists = {"min_size": dims, "max_size": dims}
    absurd = st.sampled_from([-1, 65, 1000, 2**31 - 1, -(2**31)])
    return Claim(
        ndim=dims if draw(st.integers(0, 9)) else draw(absurd),
        shape=draw(st.lists(sizes, **lists)) if draw(st.integers(0, 9)) else None,
        strides=draw(st.none() | st.lists(steps, **lists)),
        dtype=draw(dtypes),
        device=draw(devices),
        byte_offset=draw(st.sampled_from([0, 0, 8, 64, 2**64 - 1, 2**64 - 8])),
        has_memory=draw(st.integers(0, 9)) > 0,
    )


def is_true(claim):
    """Return whether operators accept the claimed array; None for a lie that cannot be detected.

    That is an array of possible sizes beyond its memory. Arrays too large for any machine are
    rejected, since no memory is available for the output.
    """
    if not claim.is_sound() or not claim.has_memory or claim.byte_offset > MEMORY:
        return False
    if claim.device[0] not in (CPU, CUDA_HOST) or claim.dtype[2] != 1:
        return False
    if any(n < 0 for n in claim.sizes()) or 0 in claim.sizes():
        return False
    n_bytes = int(np.prod([claim.dtype[1] // 8, *claim.sizes()], dtype=object))
    low, high = claim.reach()
    if n_bytes >= 2**55 or low < -(2**62) or high > 2**62:
        return False
    if not claim.is_inside():
        return None
    return claim.dtype in [(2, 64, 1), (2, 32, 1), (0, 8, 1), (1, 64, 1), (5, 128, 1)]


def call(function):
    """Return a call's result; None if it raised a message that names the operator."""
    try:
        return function()
    except (TypeError, ValueError, MemoryError, cuplug.Error) as error:
        sentence = str(error)
    # The last is NumPy's, for an output without elements but with extreme sizes.
    assert sentence.startswith(("copy: ", "row_sums: ", "array is too big")), sentence
    return None


@given(claims())
@example(Claim(1, [4], [INT64 - 1]))
@example(Claim(2, [3, 4], [INT64 // 12, 1]))
@example(Claim(1, [2**61], None))
@example(Claim(1, [3], None, byte_offset=2**64 - 8))
@example(Claim(64, None, None))
@example(Claim(3, [INT64 - 1, 0, INT64 - 1], None, has_memory=False))
def test_inputs(ops, claim):
    truth, liar = is_true(claim), Liar(claim)
    assume(truth is not None)
    result = call(lambda: ops.copy(liar))
    if truth:
        assert result is not None
        assert result.tobytes() == liar.array().tobytes()
    elif result is not None:  # arrays without elements
        assert result.size == 0
    call(lambda: ops.row_sums(liar))


@given(claims())
@example(Claim(2, [2, 3], [3, INT64 - 1]))
def test_outputs(ops, claim):
    truth, liar = is_true(claim), Liar(claim)
    assume(truth is not None)
    before = liar.memory.copy()
    shape = tuple(claim.sizes()) if truth else (2, 3)
    dtype = liar.array().dtype if truth else np.float64
    x = np.arange(int(np.prod(shape)), dtype=dtype).reshape(shape)
    if call(lambda: ops.copy(x, out=liar)) is None:
        assert np.array_equal(liar.memory, before)
    else:
        assert truth
        assert liar.array().tobytes() == x.tobytes()


def test_a_true_claim(ops):
    """The other tests would pass if all claims were rejected."""
    claim = Claim(2, [2, 3], [-3, 1])
    assert is_true(claim)
    assert ops.copy(Liar(claim)).tolist() == [[256, 257, 258], [253, 254, 255]]
    with pytest.raises(ValueError, match="expected elements within 2.62 bytes"):
        ops.copy(Liar(Claim(2, [2, 3], [INT64 - 1, 1])))
