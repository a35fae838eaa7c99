# SPDX-License-Identifier: Apache-2.0
"""What a dtype is: the one table of dtypes, which everything else reads."""

from __future__ import annotations

from cuplug._engine.base.strings import dtype_ids

# Of an element in memory in C, of one in CUDA C++, and the header of CUDA's that declares that;
# for the other dtypes both types are <name>_t.
_TYPES = {
    "bool": ("uint8_t", "bool", ""),
    "float8_e4m3fn": ("uint8_t", "__nv_fp8_e4m3", "cuda_fp8.h"),
    "float8_e5m2": ("uint8_t", "__nv_fp8_e5m2", "cuda_fp8.h"),
    "float16": ("uint16_t", "__half", "cuda_fp16.h"),
    "bfloat16": ("uint16_t", "__nv_bfloat16", "cuda_bf16.h"),
    "float32": ("float", "float", ""),
    "float64": ("double", "double", ""),
    "complex64": ("complex64_t", "float2", ""),
    "complex128": ("complex128_t", "double2", ""),
}
# By DLPack's codes; the others are kinds of floats.
_KINDS = {0: "int", 1: "uint", 5: "complex", 6: "bool"}
# The Python type of a scalar, and the member of `cuplug_scalar` that holds it.
_SCALARS: dict[str, tuple[type, str]] = {
    "bool": (bool, "i"),
    "int": (int, "i"),
    "uint": (int, "u"),
    "float": (float, "f"),
    "complex": (complex, "c"),
}


class Dtype:
    """A dtype of the core.

    Attributes
    ----------
    name : str
        As in signatures: "float32".
    id : int
        As in <cuplug/plugin.h>: `code` << 24 | bits << 16 | lanes.
    code : int
        DLPack's.
    n_bytes : int
        Of an element.
    kind : str
        "bool", "int", "uint", "float" or "complex".
    stored, computed : str
        The C type of an element in memory, and the one that expressions compute with.
    cuda, cuda_header : str
        The type that a kernel's pointers point to, and the header of CUDA's that declares it.
    scalar : type
        What takes any scalar of it in Python.
    member : str
        Of `cuplug_scalar`, that holds one.
    """

    def __init__(self, name: str, id: int) -> None:
        self.name, self.id = name, id
        self.code, self.n_bytes = id >> 24, (id >> 16 & 0xFF) // 8
        self.kind = _KINDS.get(self.code, "float")
        self.stored, self.cuda, self.cuda_header = _TYPES.get(name, (f"{name}_t", f"{name}_t", ""))
        self.computed = "bool" if name == "bool" else "float" if self.is_narrow else self.stored
        self.scalar, self.member = _SCALARS[self.kind]

    @property
    def is_narrow(self) -> bool:
        """Whether it is a float that is computed with as float32."""
        return self.kind == "float" and self.n_bytes < 4

    @property
    def is_half(self) -> bool:
        """Whether it is a float of 16 bits."""
        return self.is_narrow and self.n_bytes == 2


# In the order of the core's sets of dtypes.
DTYPES = {name: Dtype(name, id) for name, id in dtype_ids().items()}
BY_ID = {x.id: x for x in DTYPES.values()}
