# SPDX-License-Identifier: Apache-2.0
"""An element-wise expression with its parameters, as code for the host and for CUDA."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Sequence
from functools import cache
from typing import NamedTuple

from cuplug._engine.array.promotion import not_computed
from cuplug._engine.base import flags
from cuplug._engine.base.dtypes import DTYPES, Dtype
from cuplug._engine.signature import signature as signatures
from cuplug._engine.signature.signature import Parameter, Signature
from cuplug._engine.signature.variant import Variant

# bytes of all blocks of a loop, and maximum of elements: CUPLUG_GRAIN
_BLOCK_BYTES, _MOST = 32768, 8192
_TEMPLATES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "templates")


_KEYWORDS = """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl
    const constexpr continue decltype default delete do double dynamic_cast else enum explicit
    export extern false float for friend goto if inline int long mutable namespace new noexcept
    not not_eq nullptr operator or or_eq private protected public register reinterpret_cast
    restrict return short signed sizeof static static_assert static_cast struct switch template
    this thread_local throw true try typedef typeid typename typeof union unsigned using virtual
    void volatile wchar_t while xor xor_eq
"""  # of C and of C++
KEYWORDS = frozenset(_KEYWORDS.split())
_MAY_TAKE_LONG = re.compile(r"\b(for|while|goto)\b|#\s*include")


def nonblocking(*texts: str | None) -> bool:
    """Return True if the code of these texts takes microseconds for a few elements."""
    return not any(_MAY_TAKE_LONG.search(text or "") for text in texts)


class Name(NamedTuple):
    """A name in an expression: an array's element, or a scalar."""

    name: str
    variable: str  # the type variable, or the dtype
    # "array", "inout", "output"; "raw": an array that the code indexes; "scalar", "size" or "list"
    kind: str


class Names(NamedTuple):
    """The names in a signature: arrays in the order of a call, outputs last, and scalars."""

    operator: str
    arrays: tuple[Name, ...]
    scalars: tuple[Name, ...]  # including lists, followed by the sizes that the expression uses

    @property
    def outputs(self) -> list[Name]:
        """The written arrays."""
        return [x for x in self.arrays if x.kind in ("inout", "output")]

    @property
    def looped(self) -> list[tuple[int, Name]]:
        """The arrays that a loop iterates over, with their numbers."""
        return [(k, x) for k, x in enumerate(self.arrays) if x.kind != "raw"]

    @property
    def words(self) -> list[str]:
        """The signature's names, and its type variables."""
        every = (*self.arrays, *self.scalars)
        variables = [x.variable for x in every if x.variable not in DTYPES]
        return list(dict.fromkeys([x.name for x in every] + variables))

    def dtypes(self, variant: Variant) -> dict[str, Dtype]:
        """Return the dtype of each type variable, and of each parameter without one."""
        own = {x.variable: DTYPES[x.variable] for x in self.scalars if x.variable in DTYPES}
        pairs = zip(self.arrays, variant.types, strict=True)
        own |= {x.variable: DTYPES[dtype] for x, dtype in pairs}
        for x in self.arrays:
            if own[x.variable].kind == "storage" and x.kind != "raw":
                raise not_computed(f"{self.operator}: {x.name}", own[x.variable].name)
        return own


def read_names(
    text: str, unnamed: str, ignored: tuple[str, ...] = (), takes_raw: bool = False
) -> Names:
    """Read a signature except for some names. Its arrays are T[...] or, with `takes_raw`, raw."""
    parsed = signatures.parse(text)
    arrays: list[Name] = []
    scalars: list[Name] = []
    for x in (*parsed.parameters, *parsed.outputs):
        name = x.name or unnamed
        if name in ignored:
            continue
        if x.type_variable < 0 or x.kind in ("arrays", "dtype"):
            kinds = {"arrays": "a list of arrays", "dtype": "a dtype", "handle": f"handle[{x.tag}]"}
            seen = kinds.get(x.kind, "a string")
            raise ValueError(f"{parsed.name}: {name}: got {seen}, expected an array or a number")
        if x.is_on_host:
            raise ValueError(
                f"{parsed.name}: {name}: got an array of the host, expected one that kernels can "
                "read; write it without host"
            )
        variable, dtypes = parsed.variables[x.type_variable]
        kind = _kind_of(parsed, x, takes_raw)
        found = Name(name, variable or dtypes[0], kind)
        (arrays if x.is_array else scalars).append(found)
    names = Names(parsed.name, tuple(arrays), tuple(scalars))
    for word in names.words:
        if word in KEYWORDS or (word.startswith("cuplug_") and word != unnamed):
            kind = "a keyword of C or C++" if word in KEYWORDS else "a name of cuplug's own"
            raise ValueError(f"{parsed.name}: {word}: got {kind}, expected another name")
    return names


def _kind_of(parsed: Signature, x: Parameter, takes_raw: bool) -> str:
    """Return the kind of a name.

    If the signature has no T[...], outputs of one shape have elements. Inputs with other dimensions
    are raw.
    """
    if not x.is_array or (_is_looped(x) and not x.has_default):
        return x.kind
    kinds = [kind for kind, _ in x.dims]
    if takes_raw and not x.has_default and "loop" not in kinds and "unknown" not in kinds:
        if x.kind == "array":
            return "raw"
        is_alone = not any(_is_looped(y) for y in parsed.arrays)
        shapes = {parsed.shape(y) for y in parsed.outputs}
        if x.kind == "output" and is_alone and len(shapes) == 1:
            return x.kind
    variable, dtypes = parsed.variables[x.type_variable]
    dtype, default = variable or dtypes[0], " = None" if x.has_default else ""
    others = ", an input of other dimensions, or outputs of one shape" if takes_raw else ""
    raise ValueError(
        f"{parsed.name}: {x.name or 'out'}: got {dtype}[{parsed.shape(x)}]{default}, "
        f"expected {dtype}[...]{others}"
    )


def _is_looped(x: Parameter) -> bool:
    return [kind for kind, _ in x.dims] == ["loop"]


@cache
def template(name: str) -> str:
    """Return the text of a template, or of a public header such as "cuplug/half.h"."""
    folder = flags.get_include() if name.startswith("cuplug/") else _TEMPLATES
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        return file.read()


OWN_FUNCTIONS = {  # in code for the host
    "host/functions.h": r"\b(?:erf|exp|tanh)\b",
    "host/circular.h": r"\b(?:cos|sin|tan)\b",
}
CUDA = ("cuda/code.cuh", "cuplug/packs.cuh", "cuplug/walk.cuh")
FUNCTIONS = {  # in CUDA code, by their uses: each takes milliseconds to compile
    ("cuda/functions.cuh",): r"\b(?:erf|hypot|sin)\b",
    ("integers.h", "cuda/integers.cuh"): r"\b(?:max|min|pow|cuplug_u?int\d+_of)\b",
}
COMPLEX = ("cuda/complex.cuh", "cuda/complex_functions.cuh")  # in CUDA code with complex numbers
HOST = (
    *("cuplug/half.h", "host/code.h", "host/halves.h"),
    *("host/divisions.h", "host/strided_blocks.h", "integers.h"),
)


def prelude(variant: Variant, code: str, host: Sequence[str] = HOST) -> str:
    """Return the code that precedes all code for a device type. For GPUs it opens a namespace."""
    texts = [template("cuplug/loop.h")]
    own = [name for name, used in OWN_FUNCTIONS.items() if re.search(used, code)]
    texts += [template(name) for name in (*_powers(code), *host, *own) if variant.on_host]
    if not variant.on_host:
        texts += [_cuda(name) for name in CUDA] + ["namespace cuplug {"]
    return "\n".join(texts)


@cache
def _cuda(name: str) -> str:
    """Return a template of CUDA code without includes of our own files, which must precede it.

    This compiles faster: see `is_self_contained`.
    """
    return re.sub(r"^#include <cuplug/.*\n", "", template(name), flags=re.M)


def _powers(code: str) -> list[str]:
    """Return the templates for powers of the dtypes in C text."""
    if not re.search(r"\bpow\b", code):
        return []
    own = [
        f"host/powers_{kind}.h" for kind in ("float", "double") if re.search(rf"\b{kind}\b", code)
    ]
    return ["host/powers.h", *own]


def may_divide(text: str) -> bool:
    """Return whether C text may divide integers, shift them or raise them to a power."""
    return re.search(r"[/%#]|<<|>>|\bpow\b", text) is not None


@cache
def _vector_functions() -> re.Pattern[str]:
    names = re.findall(r"^CUPLUG_VECTOR_\w+\((\w+)\)", template("host/code.h"), re.M)
    return re.compile(rf"\b({'|'.join(names)})f?\b")


def vector_functions(text: str) -> list[str]:
    """Return the functions in C text for which the C library may have vector versions.

    Each occurs as often as in the text, `expf` as "exp".
    """
    return _vector_functions().findall(text)


def types(names: Names, variant: Variant, code: str) -> str:
    """Return definitions of dtypes, type variables as types, and then the code."""
    dtypes = names.dtypes(variant)
    has_float8 = any(x.is_narrow and x.n_bytes == 1 for x in dtypes.values())
    own = [f"#undef {word}" for word in names.words]  # defined by system headers and compilers
    own += [f"typedef {t.computed} {v};" for v, t in dtypes.items() if v not in DTYPES]
    code = "\n".join([*own, code])
    lines = [template("float8.h")] if has_float8 else []
    if re.search(r"\bcuplug_(?:narrow|round)ed\(", code):
        lines += [template("cuplug/half.h")] * variant.on_host + [template("narrowing.h")]
    if "cuplug_row_divisor" in code:
        lines.append(template("quotients.h"))
    if not variant.on_host:
        is_complex = re.search(r"\bcomplex", code) is not None
        needed = [*(COMPLEX if is_complex else ())]
        for headers, used in FUNCTIONS.items():
            needed += headers if is_complex or re.search(used, code) else ()
        lines += [template(name) for name in needed]
    return "\n".join([*lines, code])


def numbers(names: Names, variant: Variant) -> str:
    """Return a struct of the scalars, `cuplug_numbers`, and the function that fills it."""
    dtypes = names.dtypes(variant)
    members, reads = ["char cuplug_none;"], ["x.cuplug_none = 0;"]
    for k, x in enumerate(names.scalars):
        if x.kind == "list":
            continue
        dtype = dtypes[x.variable]
        members.append(f"{dtype.computed} {x.name};")
        place = f"from[{k}].{dtype.member}"
        place = narrowed(place) if dtype.is_narrow else place
        value = f"complex({place}[0], {place}[1])" if dtype.kind == "complex" else place
        reads.append(f"x.{x.name} = {value};")
    return f"""typedef struct cuplug_numbers {{ {" ".join(members)} }} cuplug_numbers;
__device__ inline cuplug_numbers cuplug_read(const cuplug_scalar *from) {{
  cuplug_numbers x;
  {" ".join(reads)}
  return x;
}}"""


def unpacked(names: Names, variant: Variant) -> str:
    """Return declarations of the scalars in `cuplug_given`, a parameter, under their own names."""
    dtypes = names.dtypes(variant)
    given = [
        f"const {dtypes[x.variable].computed} {x.name} = cuplug_given.{x.name};"
        for x in names.scalars
        if x.kind != "list"
    ]
    return " ".join(given)


def load(dtype: Dtype, text: str) -> str:
    """Return an expression that converts a stored value to a computed one."""
    if dtype.name == "bool":
        return f"({text} != 0)"
    return f"cuplug_{dtype.name}_load({text})" if dtype.is_narrow else text


def store(dtype: Dtype, text: str) -> str:
    """Return an expression that converts a computed value to a stored one."""
    if dtype.is_narrow:
        return f"cuplug_{dtype.name}_store({text})"
    as_bool = "(bool)" if dtype.name == "bool" else ""
    return f"({dtype.stored}){as_bool}({text})"


def block_elements(n_blocks: int, widest: int) -> int:
    """Return the number of elements, of `widest` bytes, in each block of a loop on the host.

    The blocks fit the closest caches.
    """
    return min(1 << (_BLOCK_BYTES // n_blocks // widest).bit_length() - 1, _MOST)


def quoted(text: str, name: str, close: str = "") -> str:
    """Return a user's text with the name and line numbers for error messages."""
    return f'\n#line 1 "{name}"\n{text}\n{close}\n#line 1 "generated code"\n'


def returned(dtype: Dtype, text: str, name: str, to: str, on_host: bool) -> str:
    """Return statements that convert the value of a user's text to a computed value.

    `name` is the name of the text in error messages. `to` receives the value: "return", "y =".
    """
    if dtype.kind not in ("int", "uint") and not dtype.is_narrow:
        return f"{to} (" + quoted(text, name, ");")
    convert, value = f"cuplug_{dtype.name}_of", "cuplug_computed"
    if dtype.is_narrow:
        convert = "cuplug_narrowed"
    elif on_host:
        known = ", ".join(f"{x}: {convert}_{x}" for x in ("float", "double"))
        convert = f"_Generic({value}, {known}, default: {convert}_integer)"
    auto = "__auto_type" if on_host else "auto"
    return f"const {auto} {value} = (" + quoted(text, name, ");") + f"{to} {convert}({value});"


def narrowed(text: str) -> str:
    """Return an expression that converts a number to float, before it is rounded to fewer bits."""
    return f"cuplug_narrowed({text})"


_DOUBLE = re.compile(
    r"(?<![\w.])(?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][+-]?\d+)?(?![\w.])|\bdouble\b"
)


def is_wide(text: str, dtypes: Iterable[Dtype]) -> bool:
    """Return whether values in C text may have more bits than float, given their dtypes."""
    is_long = any(x.n_bytes >= 4 and x.name not in ("float32", "complex64") for x in dtypes)
    return is_long or _DOUBLE.search(text) is not None


def preamble(text: str, names: Names, variant: Variant) -> str:
    """Return a preamble, with its includes outside of the namespace of CUDA code."""
    name, lines = f"{names.operator} preamble", text.split("\n")
    for k, line in enumerate(lines):
        if re.match(r"\s*#\s*include\b", line) and not variant.on_host:
            lines[k] = f'}}\n{line}\nnamespace cuplug {{\n#line {k + 2} "{name}"'
    return quoted("\n".join(lines), name)


# Words that are not names of values: members, calls and casts, strings, comments, numbers.
_NO_VALUE = re.compile(
    r"""(?:\.|->)\s*[A-Za-z_]\w*|[A-Za-z_]\w*\s*\(|\(\s*[A-Za-z_]\w*[\s*]*\)|"(?:\\.|[^"])*"|"""
    r"""'(?:\\.|[^'])*'|//[^\n]*|/\*.*?\*/|(?<!\w)\d(?:[eEpP][+-]|[\w.])*""",
    re.S,
)
# Constants, types and names that begin with an underscore may be known to compilers.
_OF_COMPILERS = re.compile(
    r"[A-Z][A-Z0-9_]*|_\w*|\w+_t|cuplug_\w*|u?int\d*|"
    r"half2?|(?:float|double)\d|(?:grid|block)Dim|\w+Idx|warpSize"
)


def unknown_name(text: str, known: Collection[str]) -> str | None:
    """Return the first undefined word in the C text of a value.

    Texts that declare variables or contain directives are left to compilers.
    """
    if re.search(r"[{#]|::|\w\s+\**\w+\s*=[^=]", text):
        return None
    words = re.findall(r"[A-Za-z_]\w*", _NO_VALUE.sub(" ", text))
    return next(
        (
            x
            for x in words
            if x not in known and x not in KEYWORDS and not _OF_COMPILERS.fullmatch(x)
        ),
        None,
    )


def uses(text: str, name: str) -> bool:
    """Return whether a word occurs in C text."""
    return re.search(rf"\b{name}\b", text) is not None
