# SPDX-License-Identifier: Apache-2.0
"""The C types of a host function's parameters, determined by the compiler, as in kernel_types.py.

The debugging information of an object file describes the type of a variable that points to the
function. It resolves typedefs and macros, and does not depend on names.
"""

from __future__ import annotations

import os
from typing import Any

from cuplug._source.compilers import cache as disk
from cuplug._source.compilers import host_compiler, host_includes, key_lock, shipped
from cuplug._source.compilers.kernel_types import (
    BFLOAT,
    BOOL,
    COMPLEX,
    FLOAT,
    INT,
    OPAQUE,
    POINTER,
    UINT,
    VOID,
    pointer_to,
)
from cuplug._source.compilers.processes import working_directory

FLAGS = ("-std=gnu11", "-O0", "-gdwarf-4", "-fno-lto", "-w", "-fPIC")
_VARIABLE = "cuplug_asked"
_SAME = ("DW_TAG_typedef", "DW_TAG_volatile_type", "DW_TAG_restrict_type", "DW_TAG_atomic_type")
# By DW_ATE_*: boolean, complex_float, float, signed, signed_char, unsigned, unsigned_char, UTF.
_ENCODINGS = {2: BOOL, 3: COMPLEX, 4: FLOAT, 5: INT, 6: INT, 7: UINT, 8: UINT, 16: UINT}

_found: dict[str, tuple[int, ...]] = {}


def types_of(
    source: str, function: str, names: dict[str, str], options: tuple[str, ...] = ()
) -> tuple[int, ...]:
    """Return the type numbers of a function's result and parameters.

    Parameters
    ----------
    source : str
        C with the function. Its `#line` directives refer to the texts in `names`.
    function : str
    names : dict
        The user's texts, by the names that error messages use.
    options : tuple of str
        Additional compiler options.

    Raises
    ------
    CompileError
        The text has an error, or does not define the function. Or no C compiler exists.
    """
    source = f"{source}\n__typeof__(&{function}) {_VARIABLE};\n"
    asked = "host types", source, FLAGS, options
    request = host_compiler.request_of(asked)
    if (data := shipped.read(request, "types")) is not None:
        return tuple(map(int, data.split()))
    job = host_compiler.job_of(*asked)
    found = _stored(job)
    if found is None:
        with key_lock.held(job.key):
            found = _stored(job) or _compile(job, names)
    if request and host_includes.are_of_system(job.key):
        shipped.add(request, "types", _written(found))
    return found


def _stored(job: host_compiler.Job) -> tuple[int, ...] | None:
    key = host_includes.key_of(job.key)
    if key not in _found and (stored := disk.get(key, "types")) is not None:
        _found[key] = tuple(map(int, stored.split()))
    return _found.get(key)


def _compile(job: host_compiler.Job, names: dict[str, str]) -> tuple[int, ...]:
    with working_directory() as directory:
        codes = _read(host_compiler.compile_object(job, directory, names))
        key = host_includes.keep(job.key, directory)
    disk.put(key, "types", _written(codes))
    return _found.setdefault(key, codes)


def _written(codes: tuple[int, ...]) -> bytes:
    return " ".join(map(str, codes)).encode()


def _read(path: str) -> tuple[int, ...]:
    from elftools.elf.elffile import ELFFile  # only if the cache lacks the code

    with open(path, "rb") as file:
        for unit in ELFFile(file).get_dwarf_info().iter_CUs():
            for entry in unit.get_top_DIE().iter_children():
                if entry.tag == "DW_TAG_variable" and _text(entry, "name") == _VARIABLE:
                    function = _target(_target(entry))
                    given = [
                        x for x in function.iter_children() if x.tag == "DW_TAG_formal_parameter"
                    ]
                    return tuple(_code(_target(x)) for x in (function, *given))
    raise AssertionError(f"{os.path.basename(path)} does not tell of {_VARIABLE}")


def _text(entry: Any, name: str) -> str:
    found = entry.attributes.get(f"DW_AT_{name}")
    return found.value.decode() if found else ""


def _target(entry: Any) -> Any:
    """Return the entry's type; None for void."""
    return entry.get_DIE_from_attribute("DW_AT_type") if "DW_AT_type" in entry.attributes else None


def _plain(entry: Any) -> tuple[Any, bool]:
    """Return a type without typedefs and qualifiers, and whether it is const."""
    is_const = False
    while entry is not None and entry.tag in (*_SAME, "DW_TAG_const_type"):
        is_const = is_const or entry.tag == "DW_TAG_const_type"
        entry = _target(entry)
    return entry, is_const


def _scalar(entry: Any) -> tuple[int, int]:
    """Return the kind and the size of a type that is not a pointer."""
    if entry is None:
        return VOID, 0
    found = entry.attributes.get("DW_AT_byte_size")
    size = found.value if found else 0
    if entry.tag == "DW_TAG_enumeration_type":
        return INT, size
    if entry.tag != "DW_TAG_base_type":
        return (POINTER, 8) if entry.tag == "DW_TAG_pointer_type" else (OPAQUE, size)
    if _text(entry, "name") == "__bf16":
        return BFLOAT, size
    return _ENCODINGS.get(entry.attributes["DW_AT_encoding"].value, OPAQUE), size


def _code(entry: Any) -> int:
    plain, _ = _plain(entry)
    kind, size = _scalar(plain)
    if kind != POINTER:
        return kind | size << 16
    pointee, is_const = _plain(_target(plain))
    return pointer_to(*_scalar(pointee), is_const)
