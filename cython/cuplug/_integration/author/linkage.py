# SPDX-License-Identifier: Apache-2.0
"""Rules of `cuplug check` about how a plugin was linked, and what it needs to be loaded."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from cuplug._integration.author import elf
from cuplug._integration.author.constructors import change_rounding
from cuplug._integration.author.finding import Finding, Subject, error, some, warning

# What every machine with Python, or with a GPU, has.
USUAL_LIBRARIES = re.compile(
    r"(libc|libm|libdl|librt|libpthread|libstdc\+\+|libgcc_s|libgomp|libcudart|ld-linux[\w-]*)"
    r"\.so(\.\d+)*"
)


# Mangled names of the C++ standard library: of std and __gnu_cxx, with what stands before them for
# guards, vtables, type information, local variables and const members. They have default visibility
# whatever the options are. All plugins share the library's own code and data anyway.
STANDARD_CXX = re.compile(r"_Z(GV|T[VTIS])?Z?N?[rVKRO]*(S[tabsiod]|9__gnu_cxx|10__cxxabiv1)")


def is_standard_cxx(name: str) -> bool:
    """Say whether a symbol is of the C++ standard library, whose headers put it into plugins."""
    return STANDARD_CXX.match(name) is not None


def check_unique(subject: Subject) -> Iterator[Finding]:
    """A static variable of such a symbol has the value that another plugin, or version, gave it."""
    own = [name for name in subject.elf_file.unique if not is_standard_cxx(name)]
    if own:
        yield error(
            f"symbols of unique binding, one copy for all plugins: {some(own)}",
            "compile with -fno-gnu-unique, or with -fvisibility=hidden -fvisibility-inlines-hidden",
        )


def check_undefined(subject: Subject) -> Iterator[Finding]:
    libraries, symbols = elf.resolve(subject.elf_file)
    own = [part for part in subject.elf_file.rpath if elf.is_relative_to_origin(part)]
    if libraries and own:  # a wheel is built where the libraries of others are not yet
        yield warning(
            f"needed libraries that are not found: {some(libraries)}",
            f"put them into {':'.join(own)}, seen from {subject.elf_file.origin}, or install them",
        )
    elif libraries:
        yield error(
            f"needed libraries that are not found: {some(libraries)}",
            "install them, or link them statically",
        )
    if symbols and not libraries:
        yield error(
            f"undefined symbols that no needed library has: {some(symbols)}",
            "link the library or object that has them; -Wl,-z,defs makes the linker find this",
        )


def check_versions(subject: Subject) -> Iterator[Finding]:
    for version, path, user in elf.missing_versions(subject.elf_file):
        yield error(
            f"{path} has no {version}, which {os.path.basename(user)} needs",
            "build it on the oldest system that it is for, or install a newer library",
        )


def check_needed(subject: Subject) -> Iterator[Finding]:
    own = [part for part in subject.elf_file.rpath if elf.is_relative_to_origin(part)]
    beside = elf.expanded(own, subject.elf_file.origin)
    rare = [
        name
        for name in subject.elf_file.needed
        if not (USUAL_LIBRARIES.fullmatch(name) or elf.find_library(name, beside))
    ]
    if rare:
        yield warning(
            f"it needs {some(rare)}",
            "it will not load where these are missing: link them statically where you can",
        )


def check_rpath(subject: Subject) -> Iterator[Finding]:
    rpath = subject.elf_file.rpath
    others = [part for part in rpath if not elf.is_relative_to_origin(part)]
    if others:
        yield error(
            f"it searches for libraries in {':'.join(others) or 'the current directory'} "
            "(RPATH or RUNPATH)",
            "link without -rpath, or with one that begins with $ORIGIN, the folder of the file",
        )


def check_tls(subject: Subject) -> Iterator[Finding]:
    if subject.elf_file.flags & elf.DF_STATIC_TLS:
        yield error(
            "thread-local variables use the static TLS model, whose room is small",
            "compile without -ftls-model=initial-exec and link with -fPIC objects only",
        )


def check_text_relocations(subject: Subject) -> Iterator[Finding]:
    if subject.elf_file.has_text_relocations:
        yield error("its code has text relocations", "compile every object with -fPIC")


def check_stack(subject: Subject) -> Iterator[Finding]:
    if subject.elf_file.has_executable_stack:
        yield error(
            "it asks for an executable stack",
            "link with -z noexecstack, and avoid nested functions whose address is taken",
        )


def check_rounding(subject: Subject) -> Iterator[Finding]:
    own = [library.path for library in elf.linked(subject.elf_file, whole=False)[0]]
    rare = [path for path in own if not USUAL_LIBRARIES.fullmatch(os.path.basename(path))]
    changing = [path for path in (subject.path, *rare) if change_rounding(path)]
    if changing:
        yield warning(
            "constructors change how the thread that loads it rounds or flushes subnormal numbers: "
            f"{some(changing)}",
            "link without -ffast-math, -Ofast and -funsafe-math-optimizations, which add "
            "crtfastm.o: cuplug undoes it, others that load the library do not",
        )
