# SPDX-License-Identifier: Apache-2.0
"""The table of dtypes, which everything else reads."""

from __future__ import annotations

from cuplug._engine.base.strings import dtype_ids

# C types of elements in memory whose names are not <name>_t, by DLPack's codes and bytes. Elements
# of other dtypes are stored as unsigned integers.
_STORED = {(2, 4): "float", (2, 8): "double"}
# Types of CUDA C++ that differ from C, and their CUDA headers.
_CUDA = {
    "bool": ("bool", ""),
    "float8_e4m3fn": ("__nv_fp8_e4m3", "cuda_fp8.h"),
    "float8_e5m2": ("__nv_fp8_e5m2", "cuda_fp8.h"),
    "float16": ("__half", "cuda_fp16.h"),
    "bfloat16": ("__nv_bfloat16", "cuda_bf16.h"),
    "complex64": ("float2", ""),
    "complex128": ("double2", ""),
}
# By DLPack's codes, for dtypes with arithmetic. Elements of other dtypes are only moved.
_KINDS = {0: "int", 1: "uint", 2: "float", 4: "float", 5: "complex", 6: "bool"}
_KINDS |= {10: "float", 12: "float"}
# The Python type of a scalar, and the member of `cuplug_scalar` that holds it.
_SCALARS: dict[str, tuple[type, str]] = {
    "bool": (bool, "i"),
    "int": (int, "i"),
    "uint": (int, "u"),
    "float": (float, "f"),
    "complex": (complex, "c"),
    "storage": (float, "f"),
}


class Dtype:
    """A dtype of the core.

    Attributes
    ----------
    name : str
        The name in signatures: "float32".
    id : int
        The number in <cuplug/plugin.h>: `code` << 24 | bits << 16 | lanes.
    code : int
        DLPack's type code.
    n_bytes : int
        The size of an element.
    n_packed : int
        The number of numbers in an element: 2 in a packed pair.
    kind : str
        "bool", "int", "uint", "float" or "complex"; "storage" if elements are only moved.
    stored, computed : str
        The C type of an element in memory, and the type that expressions compute with.
    cuda, cuda_header : str
        The type that a kernel's pointers point to, and CUDA's header that declares it.
    scalar : type
        The Python type that holds any scalar of the dtype.
    member : str
        The member of `cuplug_scalar` that holds a scalar.
    """

    def __init__(self, name: str, id: int) -> None:
        self.name, self.id = name, id
        self.code, self.n_packed = id >> 24, id & 0xFFFF
        self.n_bytes = (id >> 16 & 0xFF) * self.n_packed // 8
        self.kind = _KINDS.get(self.code, "storage") if self.n_packed == 1 else "storage"
        is_own = self.kind in ("int", "uint", "complex")
        unsigned = f"uint{8 * self.n_bytes}_t"
        self.stored = _STORED.get((self.code, self.n_bytes), f"{name}_t" if is_own else unsigned)
        self.cuda, self.cuda_header = _CUDA.get(name, (self.stored, ""))
        self.computed = "bool" if name == "bool" else "float" if self.is_narrow else self.stored
        self.scalar, self.member = _SCALARS[self.kind]

    @property
    def is_narrow(self) -> bool:
        """True if it is a float that is computed as float32."""
        return self.kind == "float" and self.n_bytes < 4

    @property
    def is_half(self) -> bool:
        """True if it is a float of 16 bits."""
        return self.is_narrow and self.n_bytes == 2


# The order of the core's sets of dtypes.
DTYPES = {name: Dtype(name, id) for name, id in dtype_ids().items()}
BY_ID = {x.id: x for x in DTYPES.values()}
