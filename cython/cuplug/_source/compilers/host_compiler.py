# SPDX-License-Identifier: Apache-2.0
"""Compilation of C to a function in this process, by the system's C compiler."""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import re
import shlex
from functools import cache
from typing import NamedTuple

from cuplug._engine.base import environment
from cuplug._engine.base.flags import command_of
from cuplug._source.compilers import cache as disk
from cuplug._source.compilers import host_includes, key_lock, shipped
from cuplug._source.compilers.libraries import load_code
from cuplug._source.compilers.processes import run, working_directory
from cuplug.errors import CompileError, PluginError

# No flag changes results: NaN, infinities and signed zeros count, and each operation rounds.
FLAGS = (
    *("-std=gnu11", "-O3", "-march=native", "-fPIC"),
    *("-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-fno-strict-aliasing"),
)
CPLUSPLUS = ("-x", "c++", "-std=gnu++17")
# Newer compilers report these by default. Otherwise they appear when the code is linked.
_REFUSED = ("-Werror=implicit-function-declaration",)
# For expressions. Integers wrap, as on GPUs. templates/host/code.h handles divisions of integers
# that would end the process, and undefined shifts.
EXPRESSION = (
    *(("-mprefer-vector-width=512",) if platform.machine() == "x86_64" else ()),
    "-fwrapv",
    "-fsanitize=integer-divide-by-zero,signed-integer-overflow,shift-exponent",
)
# Flags that not every compiler supports, best first. Complex arithmetic makes no calls. Conditions
# are not jumps, since loops with jumps are not vectorized. Copies are loops, since calls to memcpy
# would keep the data out of registers. Inlining long functions does not speed up reductions, and
# compiling takes 1.5 times as long.
_GCC = ("-fno-thread-jumps", "-fno-tree-loop-distribute-patterns", "-finline-limit=150")
TRIED = (
    ("-fcx-fortran-rules", *_GCC),
    ("-fcx-fortran-rules",),
    (),
)
# For expressions with clang, before the other flags: glibc's vector functions.
# templates/host/code.h declares them for gcc.
_CLANG = tuple(("-fveclib=libmvec", *complex) for complex in (("-fcx-fortran-rules",), ()))

# Variables, in addition to the command, that change a compiler's result.
_VARIABLES = (
    *("CPATH", "C_INCLUDE_PATH", "COMPILER_PATH", "GCC_EXEC_PREFIX", "LIBRARY_PATH"),
    *("CCC_OVERRIDE_OPTIONS", "NIX_CFLAGS_COMPILE", "NIX_LDFLAGS"),
)
# Executables that are compilers and not wrappers.
_PLAIN = re.compile(r"(?:[\w.]+-)*(?:gcc|clang)(?:-[\d.]+)?")

# Words in system headers that a parser of standard C does not recognize.
STANDARD = (
    *("-U__GNUC__", "-D__attribute__(x)=", "-D__asm__(x)=", "-D__extension__=", "-D_Noreturn="),
    *("-D__restrict=", "-D__restrict__=", "-D__inline=", "-D__inline__=", "-D__const=const"),
    *("-D__builtin_va_list=int *", "-D_Float128=double", "-D__float128=double"),
)
LIBRARY_OPTIONS = (
    "-l",
    "-L",
    "-Wl,",
)  # linker options, after the code that needs the libraries

_loaded: dict[str, ctypes.CDLL] = {}  # never unloaded: operators hold addresses


Asked = tuple[str, str, tuple[str, ...], tuple[str, ...]]  # the arguments of job_of


class Job(NamedTuple):
    """One compilation: the compiler's command, its options, the text, and their key."""

    compiler: tuple[str, ...]
    options: tuple[str, ...]
    source: str
    identity: str
    key: str


def job_of(kind: str, source: str, flags: tuple[str, ...], options: tuple[str, ...]) -> Job:
    """Return a compilation whose cache entry has the type `kind`.

    Raises
    ------
    CompileError
        No C compiler exists.
    """
    compiler = tuple(find_compiler())
    asked = (*flags, *_REFUSED, *options)
    identity = _identity(compiler)
    key = disk.key(kind, source, shlex.join([*compiler, *asked]), identity)
    return Job(compiler, asked, source, identity, key)


def compile_host(
    source: str, symbol: str, names: dict[str, str], options: tuple[str, ...] = ()
) -> int:
    """Compile C and return the address of one of its functions.

    Parameters
    ----------
    source : str
        C. Its `#line` directives refer to the texts in `names`.
    symbol : str
    names : dict
        The user's texts, by the names that error messages use.
    options : tuple of str
        Additional compiler options.

    Raises
    ------
    CompileError
        The text has an error: the message shows the user's lines. Or no C compiler exists.
    """
    library = _library_of(("host code", source, FLAGS, options), names)
    address = ctypes.cast(getattr(library, symbol), ctypes.c_void_p).value
    assert address is not None
    return address


def compile_library(source: str, library: str, options: tuple[str, ...]) -> int:
    """Compile C or C++ that calls a library; return the handle of dlopen, which stays open.

    Parameters
    ----------
    source : str
        C++ if it declares `extern "C"` functions.
    library : str
        The library's path, or a linker option. It precedes `options`.
    options : tuple of str

    Raises
    ------
    CompileError
        The text has an error: the message shows its lines. Or no C compiler exists.
    """
    language, run_time = (CPLUSPLUS, ("-lstdc++",)) if 'extern "C"' in source else ((), ())
    if os.sep in library:
        library = f"-Wl,{library},-rpath,{os.path.dirname(library)}"
    asked = (*language, *options, "-Wl,--no-as-needed", library, *run_time)
    text = f'#line 1 "source"\n{source}'
    return _library_of(("library", text, FLAGS, asked), {"source": source})._handle


def preprocess(header: str, options: tuple[str, ...]) -> str:
    """Return the includes and declarations of a header, in standard C.

    Raises
    ------
    CompileError
        No C compiler exists.
    PluginError
        The compiler does not find the header.
    """
    with working_directory() as directory:
        place = os.path.join(directory, "header")
        with open(f"{place}.c", "w", encoding="utf-8") as file:
            file.write(f"#include <{header}>\n")
        asked = ["-E", "-w", *STANDARD, *options, "header.c", "-o", "header.i"]
        done = run([*find_compiler(), *asked], directory, made=f"{place}.i")
        if not done.succeeded:
            raise PluginError(f"{header}: the preprocessor reports\n{done.output.strip()}")
        with open(f"{place}.i", encoding="utf-8", errors="replace") as file:
            return file.read()


def request_of(asked: Asked) -> str:
    """Return the key of a compilation for shipped.py."""
    kind, source, flags, options = asked
    return shipped.request(kind, source, shlex.join((*flags, *options)), shipped.processor()[1])


def _library_of(asked: Asked, names: dict[str, str]) -> ctypes.CDLL:
    request = request_of(asked)
    if request in _loaded:
        return _loaded[request]
    if path := shipped.path_of(request, "so"):
        with contextlib.suppress(OSError):  # code shipped for another C library is compiled here
            return _loaded.setdefault(request, load_code(path))
    job = job_of(*asked)
    key = host_includes.key_of(job.key)
    if key not in _loaded:
        library, key = _stored(key) or _load(job, names)
        _loaded.setdefault(key, library)
    if request and host_includes.are_of_system(job.key):
        shipped.add(request, "so", disk.get(key, "so"))
    return _loaded[key]


def find_compiler() -> list[str]:
    """Return the command of the C compiler: $CC, cc, gcc or clang.

    Raises
    ------
    CompileError
        No compiler exists.
    """
    try:
        chosen = command_of("CC")
    except ValueError as error:
        raise CompileError(f"no C compiler: {error}") from None
    for command in [chosen] if chosen else [["cc"], ["gcc"], ["clang"]]:
        if _path_of(command[0]):
            return command
    named = f"CC={shlex.join(chosen)} does not exist" if chosen else "no cc, gcc or clang on PATH"
    raise CompileError(
        f"no C compiler: {named}; install one or set CC, or call the operator with arrays on a GPU"
    )


def _path_of(command: str) -> str | None:
    """Return the path of a command, as shutil.which does, which takes longer to import."""
    folders = [""] if os.path.dirname(command) else environment.path().split(os.pathsep)
    paths = (os.path.join(folder, command) for folder in folders)
    return next((x for x in paths if os.path.isfile(x) and os.access(x, os.X_OK)), None)


def _identity(compiler: tuple[str, ...]) -> str:
    """Return a description of the compiler, also if it is called by a wrapper (ccache, env)."""
    path = os.path.realpath(_path_of(compiler[0]) or compiler[0])
    variables = tuple(environment.variable(name) for name in _VARIABLES)
    seen = [path, *variables, *shipped.processor()]
    if _PLAIN.fullmatch(os.path.basename(path)) and _is_elf(path):
        return "\n".join([*seen, _about(path)])
    told = _told(compiler, (environment.path(), *variables), _about(path))
    files = sorted({file for file in re.findall(r'[^\s"=:]+', told) if file.startswith("/")})
    return "\n".join([*seen, told, *map(_about, filter(os.path.isfile, files))])


def _is_elf(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def _about(path: str) -> str:
    about = os.stat(path)
    return f"{path} {about.st_size} {about.st_mtime_ns}"


@cache
def _told(compiler: tuple[str, ...], variables: tuple[str, ...], about: str) -> str:
    """Return a compiler's description, with the files that it runs; cached for the process."""
    return run([*compiler, "-v", "-E", "-x", "c", "/dev/null"], "/").output


def _load(job: Job, names: dict[str, str]) -> tuple[ctypes.CDLL, str]:
    """Return a library and its key, compiled here or by another process."""
    with key_lock.held(job.key):
        return _stored(host_includes.key_of(job.key)) or _compile(job, names)


def _stored(key: str) -> tuple[ctypes.CDLL, str] | None:
    if path := disk.get_path(key, "so"):
        with contextlib.suppress(OSError):
            return load_code(path), key
    return None


def _compile(job: Job, names: dict[str, str]) -> tuple[ctypes.CDLL, str]:
    with working_directory() as directory:
        made = _compile_library(job, directory, names)
        try:
            library = load_code(made)
        except OSError as error:
            raise CompileError(f"{next(iter(names))}: its code does not load: {error}") from None
        key = host_includes.keep(job.key, directory)
        with open(made, "rb") as file:
            disk.put(key, "so", file.read())
    return library, key


def compile_object(
    job: Job, directory: str, names: dict[str, str], more: tuple[str, ...] = ()
) -> str:
    """Compile to an object file in a directory, with additional options; return its path.

    Raises
    ------
    CompileError
        The text has an error. Raises _NotTakenError for errors outside the text.
    """
    with open(os.path.join(directory, "source.c"), "w", encoding="utf-8") as file:
        file.write(job.source)
    listed = ["-MD", "-MF", host_includes.LIST]
    command = [*job.compiler, *job.options, *more, *listed, "-c", "source.c", "-o", "code.o"]
    return _make(command, directory, "code.o", names)


def _compile_library(job: Job, directory: str, names: dict[str, str]) -> str:
    """Compile to a shared library in a directory, with supported options; return its path."""
    libraries = [option for option in job.options if option.startswith(LIBRARY_OPTIONS)]
    for tried in (*_CLANG, *TRIED) if _is_clang_expression(job) else TRIED:
        # Compiling and linking are separate, since a linker called with -fsanitize adds its
        # library.
        link = [*job.compiler, "-shared", "-Wl,-z,defs", "code.o", "-o", "code.so"]
        link += [*libraries, "-lm"]
        try:
            compile_object(job, directory, names, tried)
            return _make(link, directory, "code.so", names)
        except _NotTakenError as error:
            failure = error
    raise CompileError(str(failure), failure.log)


def _is_clang_expression(job: Job) -> bool:
    """Return whether this is an expression that clang compiles."""
    return EXPRESSION[-1] in job.options and "clang" in job.identity


class _NotTakenError(CompileError):
    """The compiler does not work, or rejects its options. The text is not the cause."""


def _make(command: list[str], directory: str, made: str, names: dict[str, str]) -> str:
    path = os.path.join(directory, made)
    done = run(command, directory, made=path)
    if done.succeeded:
        return path
    if done.timed_out:
        raise CompileError(f"{next(iter(names))}: {done.output}", done.output)
    if message := explain(done.output, names):
        raise CompileError(message, done.output)
    seen = done.output.strip() or f"it returned {done.returncode} and wrote no {made}"
    raise _NotTakenError(f"{shlex.join(command)}: {seen[:SEEN]}", done.output)


_ERROR = r"(?m)^(.+?):(\d+):(?:(\d+):)? (?:fatal )?error: (.*?)(?: \[-W\S+\])?$"
_UNDEFINED = r"undefined (?:reference to|symbol:?) [`']?(\w+)"
SHOWN = 90  # characters of a line
SEEN = 2000  # characters of compiler output that refers to no source text


def explain(output: str, names: dict[str, str]) -> str:
    """Return the compiler's errors with the user's lines that they refer to.

    If they refer to none, return the first error and the start of the texts.
    """
    plain = output.translate({0x2018: "'", 0x2019: "'"})  # messages in UTF-8
    undefined = dict.fromkeys(re.findall(_UNDEFINED, plain))
    shown = [line for symbol in undefined for line in _show_use(symbol, names)]
    first = ""
    for name, number, column, message in dict.fromkeys(re.findall(_ERROR, plain)):
        first = first or message
        if name in names:
            shown.append(_show(name, names[name], int(number), int(column or 0), message))
    if first and not shown:
        begins = [f"> {name}: {text.strip()[:SHOWN]}" for name, text in names.items() if text]
        shown = [f"{next(iter(names))}: {first}", *begins]
    return "\n".join(shown)


def _show_use(symbol: str, names: dict[str, str]) -> list[str]:
    """Show the location of a function that the linker does not find."""
    message = f"undefined reference to '{symbol}'"
    for name, text in names.items():
        if found := re.search(rf"\b{re.escape(symbol)}\b", text):
            return [_show(name, text, text.count("\n", 0, found.start()) + 1, 0, message)]
    return []


def _show(name: str, text: str, number: int, column: int, message: str) -> str:
    lines = text.expandtabs(1).split("\n")
    if number > len(lines):  # the end of the text
        number, column = len(lines), len(lines[-1].encode()) + 1
    line, quoted = lines[number - 1], re.search(r"'([^']+)'", message)
    at = len(line.encode()[: max(0, column - 1)].decode(errors="ignore"))
    if not column and quoted:  # compilers report no columns above a few thousand
        at = max(0, line.find(quoted[1]))
    start = max(0, at - SHOWN // 2) if len(line) > SHOWN else 0
    head = f"{name}: line {number}: {message}\n> {number} | {line[start : start + SHOWN]}"
    return f"{head}\n  {' ' * len(str(number))} | {' ' * (at - start)}^"
