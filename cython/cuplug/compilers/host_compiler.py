# SPDX-License-Identifier: Apache-2.0
"""C source text -> the address of a function in this process, by the system's C compiler."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import shlex
import shutil
import tempfile
from functools import cache

from cuplug.compilers import cache as disk
from cuplug.errors import CompileError

# No flag that changes results: NaN, infinities and signed zeros count, and each operation rounds.
FLAGS = (
    *("-std=gnu11", "-O3", "-march=native", "-fPIC", "-w"),
    *("-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-fno-strict-aliasing"),
)
# For expressions: integers wrap, as on GPUs, and host_code.h is asked before a division of integers
# that would end the process.
EXPRESSION = ("-fwrapv", "-fsanitize=integer-divide-by-zero,signed-integer-overflow")
# What not every compiler takes, best first: complex arithmetic without calls; conditions that stay
# as they are, since loops with jumps between them become no vector instructions.
TRIED = (("-fcx-fortran-rules", "-fno-thread-jumps"), ("-fcx-fortran-rules",), ())

_loaded: dict[str, ctypes.CDLL] = {}  # never unloaded: operators hold addresses


def compile_host(
    source: str, symbol: str, names: dict[str, str], options: tuple[str, ...] = ()
) -> int:
    """Compile C and return the address of one of its functions.

    Parameters
    ----------
    source : str
        Its `#line` directives name the texts of `names`.
    symbol : str
    names : dict
        The user's texts by the names that error messages give them.
    options : tuple of str
        More options for the compiler.

    Raises
    ------
    CompileError
        The text is wrong: the message shows the user's lines. Or there is no C compiler.
    """
    compiler = find_compiler()
    path = shutil.which(compiler[0]) or compiler[0]
    about = os.stat(path)
    identity = f"{os.path.realpath(path)} {about.st_size} {about.st_mtime_ns} {_processor()}"
    key = disk.key("host code", source, " ".join([*compiler, *FLAGS, *options]), identity)
    if key not in _loaded:
        _loaded[key] = _load(key, compiler, options, source, names)
    address = ctypes.cast(getattr(_loaded[key], symbol), ctypes.c_void_p).value
    assert address is not None
    return address


def find_compiler() -> list[str]:
    """Return the command of the C compiler: $CC, cc, gcc or clang.

    Raises
    ------
    CompileError
        There is none.
    """
    chosen = shlex.split(os.environ.get("CC", ""))
    for command in [chosen] if chosen else [["cc"], ["gcc"], ["clang"]]:
        if shutil.which(command[0]):
            return command
    wanted = f"CC={shlex.join(chosen)}, which is not there" if chosen else "none of cc, gcc, clang"
    raise CompileError(
        f"no C compiler: seen {wanted}; install one or set CC, or call the operator with arrays "
        "on a GPU"
    )


@cache
def _processor() -> str:
    """Say what code for this very machine depends on."""
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8") as file:
        text = file.read(16384)
        return "".join(re.findall(r"^(?:model name|flags|Features)\s*:(.*)$", text, re.M)[:2])
    return os.uname().machine


def _load(
    key: str, compiler: list[str], options: tuple[str, ...], source: str, names: dict[str, str]
) -> ctypes.CDLL:
    if path := disk.get_path(key, "so"):
        with contextlib.suppress(OSError):
            return ctypes.CDLL(path)
    with tempfile.TemporaryDirectory(prefix="cuplug-") as directory:
        made = _compile(compiler, options, source, directory, names)
        with open(made, "rb") as file:
            stored = disk.put(key, "so", file.read())
        return ctypes.CDLL(stored or made)


def _compile(
    compiler: list[str],
    options: tuple[str, ...],
    source: str,
    directory: str,
    names: dict[str, str],
) -> str:
    import subprocess  # for what is not in the cache alone

    with open(os.path.join(directory, "source.c"), "w", encoding="utf-8") as file:
        file.write(source)
    for tried in TRIED:
        # Apart, since a linker that is told of -fsanitize adds its library.
        compile = [*compiler, *FLAGS, *options, *tried, "-c", "source.c", "-o", "code.o"]
        link = [*compiler, "-shared", "code.o", "-o", "code.so", "-lm"]
        for command in (compile, link):
            done = subprocess.run(
                command,
                cwd=directory,
                env={**os.environ, "LC_ALL": "C.UTF-8", "LANGUAGE": "C"},
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                check=False,
            )
            if done.returncode:
                break
        else:
            return os.path.join(directory, "code.so")
        if message := explain(done.stderr, names):
            raise CompileError(message, done.stderr)
    raise CompileError(f"{shlex.join(command)}: {done.stderr}", done.stderr)


_ERROR = re.compile(r"^(.+?):(\d+):(?:(\d+):)? (?:fatal )?error: (.*)$", re.M)
SHOWN = 90  # characters of a line


def explain(output: str, names: dict[str, str]) -> str:
    """Return the errors of a compiler with the user's lines that they speak of.

    Where they speak of none, the first error and where the texts begin.
    """
    plain = output.translate({0x2018: "'", 0x2019: "'"})  # of messages in UTF-8
    shown, first = [], ""
    for name, number, column, message in dict.fromkeys(_ERROR.findall(plain)):
        first = first or message
        if name in names:
            shown.append(_show(name, names[name], int(number), int(column or 0), message))
    if first and not shown:
        begins = [f"> {name}: {text.strip()[:SHOWN]}" for name, text in names.items() if text]
        shown = [f"{next(iter(names))}: {first}", *begins]
    return "\n".join(shown)


def _show(name: str, text: str, number: int, column: int, message: str) -> str:
    lines = text.expandtabs(1).split("\n")
    if number > len(lines):  # what closes the text
        number, column = len(lines), len(lines[-1].encode()) + 1
    line, quoted = lines[number - 1], re.search(r"'([^']+)'", message)
    at = len(line.encode()[: max(0, column - 1)].decode(errors="ignore"))
    if not column and quoted:  # compilers have no columns past some thousand
        at = max(0, line.find(quoted[1]))
    start = max(0, at - SHOWN // 2) if len(line) > SHOWN else 0
    head = f"{name}: line {number}: {message}\n> {number} | {line[start : start + SHOWN]}"
    return f"{head}\n  {' ' * len(str(number))} | {' ' * (at - start)}^"
