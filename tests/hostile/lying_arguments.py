# SPDX-License-Identifier: Apache-2.0
"""Arrays and numbers with false fields, and ones that run code while they are read."""

from __future__ import annotations

import ctypes
from pathlib import Path
from random import Random
from typing import Any

import cuplug
import numpy as np
from attacks import attack, refusals
from cuplug.ops import gather, leaky_relu, relu
from dltensor import Tensor

ERRORS = (TypeError, ValueError, IndexError, MemoryError, BufferError, cuplug.Error)
CAPSULE = b"dltensor"


class Managed(ctypes.Structure):
    """The contents of a capsule: a tensor, and its deleter."""

    _anonymous_ = ("tensor",)
    _fields_ = (("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Liar:
    """A tensor with false fields. Fields that could be true are."""

    def __init__(self, random: Random) -> None:
        self.memory = np.arange(4096, dtype=np.float32)
        ndim = random.choice([0, 1, 1, 2, 3, 64])
        self.shape = (ctypes.c_int64 * 64)(*[random.choice([0, 1, 2, 3]) for _ in range(3)])
        self.strides = (ctypes.c_int64 * 64)(*[random.choice([0, 1, 4, 16]) for _ in range(3)])
        self.tensor = Managed(Tensor(self.memory.ctypes.data, 1, 0, min(ndim, 3), 2, 32, 1))
        self.tensor.shape = ctypes.addressof(self.shape)
        self.tensor.strides = random.choice([None, ctypes.addressof(self.strides)])
        self.is_true = random.random() < 0.2
        if not self.is_true:
            self.lie(random, ndim)

    def lie(self, random: Random, ndim: int) -> None:
        """Change a field to a value that exceeds this machine's memory, or that is undefined."""
        huge = random.choice([-(2**63), 2**62, 2**63 - 1])
        match random.randrange(8):
            case 0:
                self.tensor.ndim = random.choice([-1, -(2**31), 65, 1000, 2**31 - 1])
            case 1:
                self.tensor.ndim, self.shape[0] = max(ndim % 4, 1), random.choice([-1, huge])
            case 2:
                self.tensor.ndim, self.shape[0], self.strides[0] = 1, 3, huge
                self.tensor.strides = ctypes.addressof(self.strides)
            case 3:
                self.tensor.code = random.choice([3, 7, 9, 13, 99, 255])
            case 4:
                self.tensor.lanes = random.choice([0, 2, 65535])
            case 5:
                self.tensor.shape, self.tensor.ndim = None, 1
            case 6:
                self.tensor.device_type = random.choice([0, 5, 12, 99, -1])
            case 7:
                self.tensor.byte_offset, self.shape[0] = 2**64 - 4, 2
                self.tensor.ndim = 1

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def __dlpack__(self, **keywords: Any) -> Any:
        return new_capsule(ctypes.addressof(self.tensor), CAPSULE, None)


KEPT: list[Liar] = []  # readers of a capsule call no deleter, so the memory stays


@attack
def lying_tensors(random: Random, folder: Path) -> int:
    """DLPack capsules with fields that cannot be true."""
    x = np.arange(6, dtype=np.float32)
    axpy = cuplug.elementwise("axpy(x: T, y: T) -> T", "x + y")
    for _ in range(3000):
        liar = Liar(random)
        KEPT.append(liar)
        operator, arguments = random.choice(
            [
                (relu, (liar,)),
                (gather, (x, liar)),
                (gather, (liar, np.array([0]))),
                (axpy, (liar, x[:1])),
            ]
        )
        with refusals(*ERRORS):
            operator(*arguments)
            assert liar.is_true or liar.tensor.strides or 0 in liar.shape[:3], liar.tensor.ndim
        if len(KEPT) > 100:
            KEPT.clear()
    return 3000


class Resizing:
    """A number, an index or an array that resizes other arrays when it is read."""

    def __init__(self, random: Random, arrays: list[np.ndarray]) -> None:
        self.random, self.arrays = random, arrays

    def act(self) -> None:
        x = self.random.choice(self.arrays)
        if self.random.random() < 0.5:
            x.resize(self.random.choice([0, 10, 100_000]), refcheck=False)
        else:
            x.shape = (-1, 1) if x.ndim == 1 else (-1,)

    def __float__(self) -> float:
        self.act()
        return 0.5

    def __index__(self) -> int:
        self.act()
        return 0

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def __dlpack__(self, **keywords: Any) -> Any:
        self.act()
        return np.zeros(3, np.int64).__dlpack__()


@attack
def arrays_resized_by_others(random: Random, folder: Path) -> int:
    """Arguments before and after such an argument have their state at the time of the run."""
    for _ in range(1500):
        x, out = np.arange(1000, dtype=np.float32), np.zeros(1000, np.float32)
        evil = Resizing(random, [x, out])
        with refusals(*ERRORS):
            match random.randrange(4):
                case 0:
                    result = leaky_relu(x, evil)
                    assert result.shape == x.shape
                    np.testing.assert_array_equal(result, np.maximum(x, 0))
                case 1:
                    result = gather(x, evil)
                case 2:
                    leaky_relu(x, evil, out=out)
                    np.testing.assert_array_equal(out, np.maximum(x, 0))
                case 3:
                    relu(x, out=out, device=evil)
    return 1500
