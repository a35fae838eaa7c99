# SPDX-License-Identifier: Apache-2.0
"""What code is compiled for, and dtypes as generated code sees them."""

from __future__ import annotations

import re
from dataclasses import dataclass

FLOAT8 = ("float8_e4m3fn", "float8_e5m2")
NARROW = ("float16", "bfloat16", *FLOAT8)  # computed with as float32
COMPLEX = ("complex64", "complex128")
DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float32", "float64", *NARROW, *COMPLEX),
)
_STORED = {
    **{"bool": "uint8_t", "float32": "float", "float64": "double", "float16": "uint16_t"},
    **{"bfloat16": "uint16_t", "float8_e4m3fn": "uint8_t", "float8_e5m2": "uint8_t"},
}


@dataclass(frozen=True)
class Variant:
    """One combination of device, dtypes and layout; the fields are those of `cuplug_variant`."""

    device: int  # the number of a GPU; -1: the host
    types: tuple[str, ...]  # of each array
    still: int = 0
    width: int = 1
    unroll: int = 1
    ndim: int = 0
    n_reduced: int = 0
    wide: bool = False
    columns: bool = False

    @property
    def on_host(self) -> bool:
        """True for code that runs on the CPU."""
        return self.device < 0


def stored(dtype: str) -> str:
    """Return the type of an element in memory."""
    return _STORED.get(dtype, f"{dtype}_t")


def computed(dtype: str) -> str:
    """Return the type that expressions compute with."""
    if dtype in NARROW:
        return "float"
    return "bool" if dtype == "bool" else stored(dtype)


def load(dtype: str, text: str) -> str:
    """Return the expression that makes a computed value of a stored one."""
    if dtype == "bool":
        return f"({text} != 0)"
    return f"cuplug_{dtype}_load({text})" if dtype in NARROW else text


def store(dtype: str, text: str) -> str:
    """Return the expression that makes a stored value of a computed one."""
    if dtype in NARROW:
        return f"cuplug_{dtype}_store({text})"
    return f"({stored(dtype)})(bool)({text})" if dtype == "bool" else f"({stored(dtype)})({text})"


def member(dtype: str) -> str:
    """Return the member of `cuplug_scalar` that holds a scalar of a dtype."""
    if dtype in COMPLEX:
        return "c"
    if dtype.startswith("uint"):
        return "u"
    return "i" if dtype == "bool" or dtype.startswith("int") else "f"


def accumulator(dtype: str) -> str:
    """Return the dtype in which values of a dtype are summed: as in NumPy, narrow ones wider."""
    if dtype in NARROW:
        return "float32"
    return "uint64" if dtype.startswith("uint") else "int64" if member(dtype) == "i" else dtype


def n_bytes(dtype: str) -> int:
    """Return the bytes of an element in memory."""
    kind = "uint8_t" if dtype in ("bool", *FLOAT8) else dtype
    return int(re.findall(r"\d+", kind)[0]) // 8
