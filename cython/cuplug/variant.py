# SPDX-License-Identifier: Apache-2.0
"""What code is compiled for, and dtypes as generated code sees them."""

from __future__ import annotations

from dataclasses import dataclass

REAL = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "float32", "float64"),
)
HALVES = ("float16", "bfloat16")


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
    if dtype == "bool":
        return "uint8_t"
    if dtype in HALVES:
        return "uint16_t"
    return {"float32": "float", "float64": "double"}.get(dtype, f"{dtype}_t")


def computed(dtype: str) -> str:
    """Return the type that expressions compute with."""
    return {"bool": "bool", "float16": "float", "bfloat16": "float"}.get(dtype, stored(dtype))


def load(dtype: str, text: str) -> str:
    """Return the expression that makes a computed value of a stored one."""
    if dtype == "bool":
        return f"({text} != 0)"
    return f"cuplug_{dtype}_load({text})" if dtype in HALVES else text


def store(dtype: str, text: str) -> str:
    """Return the expression that makes a stored value of a computed one."""
    if dtype in HALVES:
        return f"cuplug_{dtype}_store({text})"
    return f"({stored(dtype)})(bool)({text})" if dtype == "bool" else f"({stored(dtype)})({text})"


def member(dtype: str) -> str:
    """Return the member of `cuplug_scalar` that holds a scalar of a dtype."""
    if dtype.startswith("uint"):
        return "u"
    return "i" if dtype == "bool" or dtype.startswith("int") else "f"


def accumulator(dtype: str) -> str:
    """Return the dtype in which values of a dtype are summed: as in NumPy, halves in float32."""
    if dtype in HALVES:
        return "float32"
    return "uint64" if dtype.startswith("uint") else "int64" if member(dtype) == "i" else dtype


def n_bytes(dtype: str) -> int:
    """Return the bytes of an element in memory."""
    sizes = {"bool": 1, "float16": 2, "bfloat16": 2, "float32": 4, "float64": 8}
    return sizes.get(dtype) or int(dtype.lstrip("uint")) // 8
