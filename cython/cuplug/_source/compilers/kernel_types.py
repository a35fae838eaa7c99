# SPDX-License-Identifier: Apache-2.0
"""The C types of kernels' parameters, determined by the compiler.

The mangled names of C++ kernels contain their types, but the names of `extern "C"` kernels do not.
Text appended to the source therefore turns each parameter's type into a number, and all numbers of
a kernel into the type of a variable. The lowered name of this variable contains the numbers. In
each number: bits 0-3 are the kind, and 16-39 the size in bytes. For pointers, bits 4-7 are the kind
of the target, bit 8 whether it is const, 9-12 the logarithm of its alignment, and 40-63 its size.
"""

from __future__ import annotations

import re

from cuplug._engine.base.dtypes import DTYPES

OPAQUE, BOOL, INT, UINT, FLOAT, BFLOAT, POINTER, VOID, FLOAT8_E4M3, FLOAT8_E5M2 = range(10)
COMPLEX = 10  # in C; in CUDA it is a struct
# DLPack's codes of dtypes -> kinds.
KINDS = {0: INT, 1: UINT, 2: FLOAT, 4: BFLOAT, 6: BOOL, 10: FLOAT8_E4M3, 12: FLOAT8_E5M2}
_DTYPES = {
    x.name: (KINDS[x.code], x.n_bytes)
    for x in DTYPES.values()
    if x.kind not in ("complex", "storage")
}

# By their names in C and CUDA: (kind, size in bytes).
SCALARS = {
    "bool": (BOOL, 1),
    "char": (INT, 1),
    "signed char": (INT, 1),
    "unsigned char": (UINT, 1),
    "short": (INT, 2),
    "unsigned short": (UINT, 2),
    "int": (INT, 4),
    "unsigned int": (UINT, 4),
    "long": (INT, 8),
    "unsigned long": (UINT, 8),
    "long long": (INT, 8),
    "unsigned long long": (UINT, 8),
    "float": (FLOAT, 4),
    "double": (FLOAT, 8),
    **{x.cuda: _DTYPES[x.name] for x in DTYPES.values() if x.cuda_header},
    "void": (VOID, 0),
}
CLASSES = [name for name in SCALARS if name.startswith("__")]

# Each name ends with an underscore, since the user may have defined macros such as T or size.
PROBE = (
    "\n"
    + "".join(f"struct {name};\n" for name in CLASSES)
    + """namespace cuplug_jit {
typedef unsigned long long number_;
template <number_...> struct list_ {};
template <class T_> struct kind_ { static const number_ value_ = __is_enum(T_) ? 2 : 0; };
"""
    + "".join(
        f"template <> struct kind_<{name}> {{ static const number_ value_ = {kind}; }};\n"
        for name, (kind, _) in SCALARS.items()
    )
    + """template <class T_> struct kind_<T_ *> { static const number_ value_ = 6; };
template <class T_> struct kind_<const T_> : kind_<T_> {};
template <class T_> struct kind_<volatile T_> : kind_<T_> {};
template <class T_> struct kind_<const volatile T_> : kind_<T_> {};
template <class T_> __device__ constexpr number_ size_(decltype(sizeof(T_))) { return sizeof(T_); }
template <class T_> __device__ constexpr number_ size_(...) { return 0; }
__device__ constexpr number_ log2_(number_ n_) { return n_ < 2 ? 0 : 1 + log2_(n_ / 2); }
template <class T_> __device__ constexpr number_ align_(decltype(alignof(T_))) {
  return log2_(alignof(T_));
}
template <class T_> __device__ constexpr number_ align_(...) { return 0; }
template <class T_> struct is_const_ { static const number_ value_ = 0; };
template <class T_> struct is_const_<const T_> { static const number_ value_ = 1; };
template <class T_> struct code_ {
  static const number_ value_ = kind_<T_>::value_ | sizeof(T_) << 16;
};
template <class T_> struct code_<T_ *> {
  static const number_ value_ = 6 | kind_<T_>::value_ << 4 | is_const_<T_>::value_ << 8 |
                              align_<T_>(0) << 9 | 8 << 16 | size_<T_>(0) << 40;
};
template <class... P_> __device__ list_<code_<P_>::value_...> codes_(void (*)(P_...));
__device__ void codes_(...);
template <class List_> __device__ char layout_;
}
"""
)


def probe_of(name: str) -> str:
    """Return the name expression whose lowered name contains the parameters of kernel `name`."""
    return f"&cuplug_jit::layout_<decltype(cuplug_jit::codes_({name}))>"


def read_probe(lowered: str) -> tuple[int, ...] | None:
    """Return the numbers in a probe's lowered name; None if the name is not a kernel."""
    if "5list_" not in lowered:
        return None
    return tuple(int(number) for number in re.findall(r"Ly(\d+)E", lowered))


_COMMENT = r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"'
_KERNEL = (
    r"__global__(?:\s|\w|\((?:[^()]|\([^()]*\))*\))*?"
    r"\b(?P<name>(?!__)[A-Za-z_]\w*)\s*\((?P<parameters>[^;{}]*)\)\s*(?=[;{])"
)


def kernels_of(source: str) -> list[str]:
    """Return the names in a source that look like kernels, except templates."""
    text = re.sub(_COMMENT, lambda m: '""' if m[0].startswith('"') else " ", source, flags=re.S)
    text = re.sub(r"^[ \t]*#(?:[^\n\\]|\\.)*", "", text, flags=re.M | re.S)
    text = text.replace('extern "" {', ";")
    found = []
    for match in re.finditer(_KERNEL, text):
        start = 1 + max(text.rfind(mark, 0, match.start()) for mark in ";{}")
        if not re.search(r"\btemplate\b", text[start : match.start()]):
            found.append(match["name"])
    return list(dict.fromkeys(found))


_WORDS = {"half": "__half", "unsigned": "unsigned int", "signed": "int", "bool_": "bool"}
_SIZED = {f"{name}_t": value for name, value in _DTYPES.items() if "int" in name}
_SIZED |= {**_DTYPES, "size_t": (UINT, 8)}


def parse_signature(text: str) -> tuple[int, ...]:
    """Return the numbers of a declared signature, "const float *, int64, float".

    Types are written as in C, as in <stdint.h>, or as dtypes. Parameter names may follow.

    Raises
    ------
    ValueError
        An item is not a type.
    """
    parts = [part.strip() for part in text.split(",")] if text.strip() else []
    return tuple(_parse_type(part, text) for part in parts)


def _parse_type(text: str, whole: str) -> int:
    base, *stars = re.split(r"\*", re.sub(r"\b(__restrict__|restrict|volatile|struct)\b", "", text))
    words = base.split()
    is_const = "const" in words
    words = [word for word in words if word != "const"]
    found = _scalar(" ".join(words)) or (None if stars else _scalar(" ".join(words[:-1])))
    if found is None:
        raise ValueError(
            f"signature: got {text!r} in {whole!r}, expected a C type or a pointer to one"
        )
    kind, size = found
    if not stars:
        return kind | size << 16
    if len(stars) > 1:
        kind, size, is_const = POINTER, 8, False
    return pointer_to(kind, size, is_const)


def pointer_to(kind: int, size: int, is_const: bool) -> int:
    """Return the number of a pointer to scalars, whose alignment is their size."""
    alignment = max(size.bit_length() - 1, 0)
    return POINTER | kind << 4 | is_const << 8 | alignment << 9 | 8 << 16 | size << 40


def _scalar(name: str) -> tuple[int, int] | None:
    name = re.sub(r"\b(short|long) int\b", r"\1", name)
    return SCALARS.get(_WORDS.get(name, name)) or _SIZED.get(name)


def describe(number: int) -> str:
    """Return a type as written in C if known, else its size."""
    kind, size = number & 15, number >> 16 & 0xFFFFFF
    if kind == POINTER:
        const = "const " if number >> 8 & 1 else ""
        return f"{const}{_name(number >> 4 & 15, number >> 40)} *"
    return _name(kind, size)


def _name(kind: int, size: int) -> str:
    preferred = {(INT, 8): "long long", (UINT, 8): "unsigned long long", (INT, 1): "signed char"}
    preferred |= {(COMPLEX, 8): "float _Complex", (COMPLEX, 16): "double _Complex"}
    names = {value: name for name, value in reversed(SCALARS.items())} | preferred
    if kind == POINTER:
        return "void *"
    return names.get((kind, size)) or (f"struct of {size} bytes" if size else "struct")
