# SPDX-License-Identifier: Apache-2.0
"""C declarations, as cffi reads them: functions, their types, and which pointers are const."""

from __future__ import annotations

import re
import sys
from functools import cache
from typing import Any, NamedTuple

from cuplug._engine.base.dtypes import DTYPES
from cuplug.errors import PluginError

# Types that prototypes may use without declaring them.
KNOWN_TYPES = """
typedef struct CUstream_st *cudaStream_t;
typedef cudaStream_t CUstream;
typedef int cudaError_t;
"""
MAX_BYTES = 1 << 16  # of declarations; parsing larger ones takes seconds
MAX_NESTED = 100  # nested brackets, which cffi's parser handles by recursion
CONST = 1  # the qualifiers that cffi stores of a pointer's target

# Letters are numbers here, whose signedness the compiler chooses.
LETTERS = {"char", "wchar_t", "char16_t", "char32_t"}
COMPLEX = {
    "complex64": ("float _Complex", "_cffi_float_complex_t"),
    "complex128": ("double _Complex", "_cffi_double_complex_t"),
}

PARTS = {"complex64": "float32", "complex128": "float64"}


class Function(NamedTuple):
    """One declared function."""

    ffi: Any
    type: Any  # cffi's, without const
    const: tuple[bool, ...]  # of each parameter: a pointer to memory that must not be written


class Prototypes:
    """The functions that some C text declares."""

    def __init__(self, prototypes: str) -> None:
        """Parse a text; cffi's parser raises exceptions of many kinds for errors."""
        try:
            import cffi
        except ImportError:
            raise PluginError("adopt: requires the package cffi: pip install cffi") from None
        _check_depth(prototypes)
        ffi: Any = cffi.FFI()
        self.ffi = ffi
        self.ffi.cdef(KNOWN_TYPES)
        try:
            self.ffi.cdef(prototypes, override=True)
        except RecursionError:
            raise ValueError("prototypes: the declarations are nested too deep") from None
        except Exception as error:
            text = str(error) or type(error).__name__
            raise ValueError(f"prototypes: {text}") from None
        # Its public interface only shows functions of an opened library, without const.
        self.constants: dict[str, int] = dict(ffi._parser._int_constants)  # of enums, and #define
        self._declared: dict[str, Any] = ffi._parser._declarations

    def function(self, name: str, operator: str) -> Function:
        """Return a function.

        Raises
        ------
        ValueError
            No function of that name is declared.
        """
        if f"function {name}" not in self._declared:
            found = [x.split()[0] for x in self._declared if x.split()[1:] == [name]]
            known = [x.split()[1] for x in self._declared if x.startswith("function ")]
            seen = " ".join([*found[:1], repr(name)])
            wanted = f": {', '.join(known)}" if known else ""
            raise ValueError(
                f"{operator}: function: got {seen}, expected a function that the prototypes "
                f"declare{wanted}"
            )
        declared, _ = self._declared[f"function {name}"]
        try:
            with self.ffi._lock:
                made = self.ffi._get_cached_btype(declared)
        except Exception as error:
            raise ValueError(f"{operator}: function: {name!r}: {error}") from None
        const = tuple(bool(getattr(x, "quals", 0) & CONST) for x in declared.args)
        return Function(self.ffi, getattr(made, "item", made), const)


@cache
def read_prototypes(prototypes: str) -> Prototypes:
    """Return the functions that some C text declares, parsed once."""
    return Prototypes(prototypes)


def _check_depth(text: str) -> None:
    if len(text) > MAX_BYTES:
        raise ValueError(f"prototypes: got {len(text)} characters, expected at most {MAX_BYTES}")
    depth = 0
    for bracket in re.findall(r"[][(){}]", text):
        depth += 1 if bracket in "([{" else -1
        if depth > MAX_NESTED:
            raise ValueError(
                f"prototypes: got more than {MAX_NESTED} nested brackets, expected fewer"
            )


def is_element(ffi: Any, item: Any, dtype: str) -> bool:
    """Return whether a pointer to `item` may point to elements of a dtype."""
    if item.kind == "void":
        return True
    if item.kind in ("array", "struct"):
        part = PARTS.get(dtype, dtype)
        return bool(_parts(item)) and all(is_element(ffi, x, part) for x in _parts(item))
    if item.kind not in ("primitive", "enum"):
        return False
    if dtype in COMPLEX or is_complex(item):
        return item.cname in COMPLEX.get(dtype, ())
    wanted = ffi.typeof(DTYPES[dtype].stored) if not dtype.startswith("float8") else None
    return bool(
        wanted is not None
        and ffi.sizeof(item) == ffi.sizeof(wanted)
        and is_float(item) == is_float(wanted)
        and (
            dtype == "bool"
            or item.cname in LETTERS
            or is_signed(ffi, item) == is_signed(ffi, wanted)
        )
    )


def _parts(item: Any) -> list[Any]:
    """Return the types that an array or a structure consists of; none for an opaque one."""
    return [item.item] if item.kind == "array" else members(item)


def members(kind: Any) -> list[Any]:
    """Return the types of a structure's members; none for an opaque one."""
    return [field.type for _, field in kind.fields or ()]


def fits(pointer: Any, wanted: Any) -> bool:
    """Return whether one pointer may be passed for another: of the same name, or to void."""
    return wanted is not None and (
        pointer.cname == wanted.cname or "void *" in (pointer.cname, wanted.cname)
    )


def is_complex(kind: Any) -> bool:
    """Return whether a type is complex."""
    return "omplex" in kind.cname


def is_float(kind: Any) -> bool:
    """Return whether a type is a floating-point type."""
    return kind.cname in ("float", "double", "long double")


def is_integer(kind: Any) -> bool:
    """Return whether a type holds an integer: a number, a letter, or one of an enum."""
    is_number = kind.kind == "primitive" and not is_float(kind) and not is_complex(kind)
    return is_number or kind.kind == "enum"


def is_signed(ffi: Any, kind: Any) -> bool:
    """Return whether a type has negative numbers."""
    if kind.cname == "char":
        return _chars_are_signed()
    if kind.cname in LETTERS:
        return kind.cname == "wchar_t" and _chars_are_signed()
    return is_float(kind) or int(ffi.cast(kind, -1)) < 0


def _chars_are_signed() -> bool:
    """Return whether the C ABI's char is signed, and wchar_t with it: on x86, not on Arm."""
    import platform

    return sys.platform == "darwin" or platform.machine() not in ("aarch64", "ppc64le", "riscv64")
