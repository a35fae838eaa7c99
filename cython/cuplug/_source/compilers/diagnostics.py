# SPDX-License-Identifier: Apache-2.0
"""The messages of a compiler, with the lines of the source that they name."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from cuplug._source.compilers.nvrtc import NAMES, STANDARD_C, STANDARD_CPP, Compiler

if TYPE_CHECKING:
    from cuplug._source.compilers.nvcc import Compiler as NvccCompiler
    from cuplug.errors import CompileError

N_AROUND = 2  # context lines before and after
N_ERRORS = 3  # errors shown in full
_PLACE = re.compile(
    r"^(?P<file>[^\n]*?)\((?P<line>\d+)\): (?P<level>error|catastrophic error)(?: #\S+)?: "
    r"(?P<text>[^\n]*)\n(?:(?P<code>[^\n]*)\n(?P<caret>[ ]*\^))?",
    re.M,
)
# A name in `names`, or one whose parameter types are requested. nvcc reports it in an initializer.
_NAMED = re.compile(
    r"(?:#pragma nv_mangled_name |= \(void \*\)\()&?"
    r"(?:cuplug_jit::.*\bcodes_\((.*)\)\)>|(.*?))(?:\);)?$"
)
# consequences of other errors in the same line
_CAUSE = re.compile(r'identifier "[^"]*" is undefined')
_MISSING = re.compile(r'cannot open source file "([^"]+)"|could not open source file "([^"]+)"')
_STANDARD = re.compile(r"[a-z_]+|(?:ctype|errno|inttypes|signal|stdarg|time|unistd)\.h")
_CUDA = ("cooperative_groups", "cu", "mma", "nv/", "thrust")


def explain(
    error: CompileError,
    source: str,
    name: str,
    names: Sequence[str],
    headers: Mapping[str, str],
    compiler: Compiler | NvccCompiler,
) -> str:
    """Return the message for a rejected source: each error with its numbered lines."""
    every = list(_PLACE.finditer(error.log))
    found = _causes_first([m for m in every if m["file"] != NAMES])
    wrong = _of_names([m for m in every if m["file"] == NAMES], names, source)
    shown = [f"{name}: names: {each}" for each in wrong]
    if not found and not shown:
        return str(error)
    texts = {name: source, **headers}
    shown = [*(_show(m, texts) for m in found[:N_ERRORS]), *shown][:N_ERRORS]
    if len(found) > N_ERRORS:
        shown.append(f"and {len(found) - N_ERRORS} more; the exception's `log` has them all")
    advice = _advice(error.log, compiler) if isinstance(compiler, Compiler) else ""
    return "\n".join([*shown, *([advice] if advice else [])])


def _causes_first(found: list[re.Match[str]]) -> list[re.Match[str]]:
    """Return the errors by lines, in the compiler's order, causes first."""
    lines = list(dict.fromkeys((m["file"], m["line"]) for m in found))
    places = {line: k for k, line in enumerate(lines)}
    return sorted(found, key=lambda m: (places[m["file"], m["line"]], not _CAUSE.match(m["text"])))


def _of_names(found: list[re.Match[str]], names: Sequence[str], source: str) -> list[str]:
    """Return the first error of each requested name."""
    said: dict[str, str] = {}
    for m in found:
        place = _NAMED.search(m["code"] or "")
        name = (place[1] or place[2]).strip().removeprefix("&") if place else ""
        said.setdefault(name, m["text"])
    plain = [(each, each.strip().removeprefix("&")) for each in names]
    return [f"{each}: {said[x]}{_near(x, source)}" for each, x in plain if x in said]


def _near(name: str, source: str) -> str:
    """Return the end of a message: words of the source that resemble an unknown name."""
    import difflib

    known = set(re.findall(r"[A-Za-z_]\w*", source))
    unknown = [word for word in re.findall(r"[A-Za-z_]\w*", name) if word not in known]
    near = [x for word in unknown for x in difflib.get_close_matches(word, known, 1, 0.7)]
    return f": did you mean {' or '.join(near)}?" if near else ""


def _show(found: re.Match[str], texts: Mapping[str, str]) -> str:
    number, caret = int(found["line"]), found["caret"]
    head = f"{found['file']}: line {number}: {found['text']}"
    lines = texts.get(found["file"], "").splitlines()
    if not 0 < number <= len(lines):
        return head
    shown = [head]
    width = len(str(min(number + N_AROUND, len(lines))))
    for k in range(max(1, number - N_AROUND), min(number + N_AROUND, len(lines)) + 1):
        shown.append(f"{'>' if k == number else ' '} {k:{width}} | {lines[k - 1].expandtabs()}")
        if k == number and caret:
            shown.append(f"  {'':{width}} | {' ' * _column(lines[k - 1], found)}^")
    return "\n".join(shown)


def _column(line: str, found: re.Match[str]) -> int:
    """Return the column of the caret: the compiler shows the line after two blanks."""
    at = len(found["caret"]) - 1
    shown = found["code"]
    offset = shown.find(line.strip()[:40])
    indent = len(line.expandtabs()) - len(line.expandtabs().lstrip())
    return at - 2 if offset < 0 else max(0, at - offset + indent)


def _advice(log: str, compiler: Compiler) -> str:
    missing = _MISSING.search(log)
    if not missing:
        return ""
    header = missing[1] or missing[2]
    if _STANDARD.fullmatch(header):
        entries = [each for folder in (STANDARD_C, STANDARD_CPP) for each in os.scandir(folder)]
        names = sorted(each.name for each in entries if each.is_file())
        there = ", ".join(f"<{name}>" for name in names if name.isalpha())
        return f"<{header}>: of the C++ standard library kernels have {there} and the like"
    if not header.startswith(_CUDA):
        return ""
    if compiler.include[-1] != STANDARD_CPP:
        return f"<{header}> is not in {', '.join(compiler.include)}, CUDA's headers here"
    return (
        f"<{header}>: CUDA's headers were not found beside {compiler.path} or in "
        "$CUDA_HOME/include; install the CUDA toolkit or the Python packages "
        "nvidia-cuda-runtime and nvidia-cuda-cccl"
    )
