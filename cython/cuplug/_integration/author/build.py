# SPDX-License-Identifier: Apache-2.0
"""Builds a plugin's library from its source: `cuplug.build` and `cuplug build`."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from cuplug._engine.base import environment, flags
from cuplug._engine.base.flags import Architecture
from cuplug._engine.base.public import public
from cuplug._engine.base.validate import absolute, as_str_tuple
from cuplug._integration.author.fatbin import in_order
from cuplug._integration.author.sources import (
    CUDA_SUFFIX,
    BuildError,
    Source,
    find_source,
    find_tables,
)
from cuplug.errors import CompileError

if TYPE_CHECKING:
    import subprocess

    from cuplug._integration.author.check import Finding

# If no GPU is available: code for 8.x and 9.0, and PTX for newer ones. `make` has the same list.
USUAL_ARCHITECTURES = (80, 90)
# GCC only: static variables of templates are not shared by all plugins of a process.
NO_UNIQUE = "-fno-gnu-unique"
ALL_ARCHITECTURES = (75, 80, 86, 89, 90, 100, 120)
PATH = re.compile(r"(?<![^=,:])(-[ILB]|-isystem|-iquote|-idirafter)?(?!\$ORIGIN)[^=,:]*/[^=,:]*")


@dataclass
class Built:
    """A library, and the results of its build."""

    path: str
    architectures: tuple[Architecture, ...]  # empty: only host entries
    log: str  # compiler warnings
    findings: list[Finding] = field(default_factory=list)


@public
def build(
    path: str | os.PathLike[str],
    output: str | os.PathLike[str] | None = None,
    arch: str = "native",
    options: Sequence[str] = (),
) -> str:
    """Compile a plugin.

    Parameters
    ----------
    path : str or os.PathLike
        A .cu, .c or .cpp file, or a folder with several.
    output : str or os.PathLike, optional
        The library, or the folder for it; the default is lib<name>.so next to the source.
    arch : str
        GPU architectures: "native", "all", or numbers as in "80,90". Code for "90a" runs only on
        9.0, code for "100f" only on its family. Without nvcc, only the host entries are built.
    options : sequence of str
        More options for the compilers.

    Returns
    -------
    str
        The path of the library. An earlier one is replaced in one step, and only if `cuplug check`
        finds no error.

    Raises
    ------
    BuildError
        If the plugin cannot be built, with the messages of the compiler.

    Examples
    --------
    >>> path = cuplug.build("half.c", "plugins/")  # doctest: +SKIP
    """
    import warnings

    given = as_str_tuple("build", "options", options)
    built = build_library(find_source(path), output, arch, given)
    if built.log:
        warnings.warn(built.log, stacklevel=2)
    return built.path


def build_library(
    source: Source,
    output: str | os.PathLike[str] | None = None,
    arch: str = "native",
    options: Sequence[str] = (),
) -> Built:
    """Compile and check a plugin; other arguments and errors as for `build`."""
    from cuplug._source.compilers import temporary
    from cuplug._source.compilers.toolkit import find_nvcc

    given = as_str_tuple("build", "options", options)
    library = library_path(source, output)
    _refuse_other_name(source, library)
    nvcc = find_nvcc() if source.has_cuda else None
    architectures = choose_architectures(arch, nvcc) if nvcc else ()
    folder = os.path.dirname(library)
    temporary.sweep(folder)
    with contextlib.ExitStack() as stack:
        try:
            directory = stack.enter_context(temporary.folder(folder))
        except OSError as error:
            message = f"build: output: {folder}: no library can be put there: {error.strerror}"
            raise BuildError(message) from None
        fresh = os.path.join(directory, os.path.basename(library))
        log = _compile(source, nvcc, architectures, given, fresh)
        findings = _check(source, fresh, folder)
        # the file is rejected if others can write it
        os.chmod(fresh, os.stat(fresh).st_mode & ~0o022)
        os.replace(fresh, library)
    return Built(library, architectures, log, findings)


def library_path(source: Source, output: str | os.PathLike[str] | None = None) -> str:
    """Return the path of the library of a source."""
    if output is None:
        return source.output
    path = absolute("build", output, "output")
    name = os.path.basename(source.output)
    library = os.path.join(path, name) if os.path.isdir(path) else path
    if not os.path.isdir(os.path.dirname(library)):
        raise BuildError(f"build: output: there is no folder {os.path.dirname(library)}")
    return library


def choose_architectures(arch: str, nvcc: str) -> tuple[Architecture, ...]:
    """Return the requested architectures, 90 for 9.0 or "90a", in ascending order."""
    if arch == "native":
        from cuplug._engine.cuda.devices import devices

        capabilities = {gpu.compute_capability for gpu in devices()}
        if not capabilities:
            return USUAL_ARCHITECTURES
        known = _known_architectures(nvcc)
        return tuple(sorted({x if x in known else known[-1] for x in capabilities}))
    if arch == "all":
        known = _known_architectures(nvcc)
        return tuple(x for x in ALL_ARCHITECTURES if x in known)
    parts = arch.split(",")
    if not all(re.fullmatch("[0-9]{1,4}[af]?", part) for part in parts):
        raise BuildError(
            f'build: arch: got "{arch}", expected "native", "all" or numbers as in "80,90" or "90a"'
        )
    return tuple(in_order({int(part) if part.isdigit() else part for part in parts}))


def _known_architectures(nvcc: str) -> list[int]:
    """Return the architectures that nvcc compiles for, in ascending order."""
    return sorted(map(int, re.findall(r"compute_(\d+)", _output_of([nvcc, "--list-gpu-arch"]))))


def _compile(
    source: Source,
    nvcc: str | None,
    architectures: tuple[Architecture, ...],
    options: tuple[str, ...],
    library: str,
) -> str:
    """Run the compilers; return their warnings."""
    if not nvcc:
        _refuse_without_host_part(source)
    files = list(_files_to_compile(source, nvcc))
    cxx = any(not file.endswith(".c") for file in files)
    linker = flags.nvcc_linker(nvcc) if nvcc else flags.linker(cxx)
    noted = next((x for x in files if nvcc and x.endswith(CUDA_SUFFIX)), files[0])
    objects, log = [], ""
    for number, file in enumerate(files):
        compiler = _compiler(file, nvcc, architectures, options)
        if file == noted:
            compiler += ["-include", _write_note(library, source, [*compiler[1:], *options])]
        if len(files) == 1:  # one step is faster than two
            link = linker[linker.index("-shared") :]
            return _output_of([*compiler, *link, file, *options, "-o", library], library)
        objects.append(f"{library}.{number}.o")
        log += _output_of([*compiler, *options, "-c", file, "-o", objects[-1]], objects[-1])
    try:
        return log + _output_of([*linker, *objects, *options, "-o", library], library)
    except BuildError:
        _refuse_several_tables(source)
        raise


def _write_note(library: str, source: Source, words: list[str]) -> str:
    """Write the header with the note of the build; return its path."""
    own = f"-I{flags.get_include()}"
    listed = " ".join(PATH.sub(r"\1...", word) for word in words if word != own)
    facts = [f"flags={' '.join(listed.split())}", *_commit_of(source)]
    text = "".join(f"\\{byte:03o}" for byte in "\0".join(facts).encode())
    note = Path(flags.get_cmake_path(), "cuplug-build.h.in").read_text(encoding="utf-8")
    path = Path(f"{library}.h")
    path.write_text(note.replace("@facts@", text), encoding="utf-8")
    return str(path)


def _commit_of(source: Source) -> list[str]:
    """Return the commit of a source, and whether it was modified, if git has it."""
    commit = _git(source, "rev-parse", "HEAD")
    if not commit or not _git(source, "ls-files", "--", *source.files):
        return []
    changes = _git(source, "status", "--porcelain", "--untracked-files=no")
    new = _git(source, "ls-files", "--others", "--", *source.files)
    return [f"commit={commit}", *(["modified"] if changes or new else [])]


def _git(source: Source, *arguments: str) -> str:
    import subprocess

    options = ("--no-optional-locks", "-c", "core.fsmonitor=false", "-C", source.directory)
    try:
        done = subprocess.run(
            ["git", *options, *arguments],
            capture_output=True,
            env=environment.for_programs({}),
            check=False,
        )
    except OSError:
        return ""
    return done.stdout.decode(errors="replace").strip()


def _files_to_compile(source: Source, nvcc: str | None) -> Iterator[str]:
    """Yield the files to compile; without nvcc, not the kernels of a plugin with host files."""
    has_others = any(not file.endswith(CUDA_SUFFIX) for file in source.files)
    for file in source.files:
        if nvcc or not has_others or not file.endswith(CUDA_SUFFIX):
            yield file


def _refuse_without_host_part(source: Source) -> None:
    """Replace a C++ compiler's errors about CUDA code by one message."""
    for file in _files_to_compile(source, None):
        if not file.endswith(CUDA_SUFFIX):
            continue
        with open(file, errors="replace") as stream:
            text = stream.read()
        if "__CUDACC__" not in text and "CUPLUG_HOST_ONLY" not in text:
            raise BuildError(
                f"build: {file}: there is no nvcc, and the file has no part for a C++ compiler: "
                "install the CUDA toolkit, or put what is CUDA between #ifdef __CUDACC__ and "
                "#endif, as `cuplug new` does"
            )


def _refuse_other_name(source: Source, library: str) -> None:
    """Reject a file with another name before the compilers run.

    `cuplug check` would reject it later.
    """
    tables = find_tables(source.files)
    names = [name for found in tables.values() for name in found]
    file = os.path.basename(library)
    if names and file not in [f"lib{name}.so" for name in names]:
        _refuse_several_tables(source)
        where = os.path.basename(next(iter(tables)))
        raise BuildError(
            f"build: got {file} for the plugin {names[0]} of {where}, expected the name "
            f"lib{names[0]}.so"
        )


def _refuse_several_tables(source: Source) -> None:
    """Explain the linker's message about a symbol with two definitions."""
    tables = [os.path.basename(file) for file in find_tables(source.files)]
    if len(tables) > 1:
        raise BuildError(
            f"build: {source.name}: got a table in each of {', '.join(tables)}, expected one"
        )


def _compiler(
    file: str,
    nvcc: str | None,
    architectures: tuple[Architecture, ...],
    options: tuple[str, ...],
) -> list[str]:
    if nvcc and file.endswith(CUDA_SUFFIX):
        command = flags.nvcc_compiler(nvcc, architectures)
        has_clang = _names_clang((*options, environment.variable("NVCC_CCBIN")))
        return command if has_clang else [*command, "-Xcompiler", NO_UNIQUE]
    cxx = not file.endswith(".c")
    command = flags.compiler(architectures, cxx)
    return [*command, NO_UNIQUE] if cxx and not _names_clang(command) else command


def _names_clang(words: Sequence[str]) -> bool:
    return any("clang" in os.path.basename(word) for word in words)


def _output_of(command: list[str], made: str | None = None) -> str:
    """Run a command, with its temporary files in a private folder; return its output.

    A command that does not write the file `made` has failed: if SIGCHLD is ignored, its status is
    lost.
    """
    import shlex

    from cuplug._source.compilers.processes import working_directory

    try:
        with working_directory() as directory:
            done = _run(command, directory)
    except CompileError as error:
        raise BuildError(f"build: {error}") from None
    if done.returncode or (made and not os.path.isfile(made)):
        said = done.stdout.rstrip()
        raise BuildError(f"build: {command[0]} says\n{said}\nto\n{shlex.join(command)}")
    return done.stdout


def _run(command: list[str], directory: str) -> subprocess.CompletedProcess[str]:
    import subprocess

    try:
        return subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment.for_programs({"TMPDIR": directory}),
            text=True,
            errors="replace",
        )
    except OSError as error:
        if error.errno is None:  # a signal handler raised it
            raise
        advice = "install a compiler, or set CC, CXX or CUDACXX"
        raise BuildError(f"build: {command[0]}: {error.strerror}: {advice}") from None


def _check(source: Source, library: str, folder: str) -> list[Finding]:
    """Check a library; return warnings, raise errors."""
    from cuplug._integration.author import check

    found = check.check_file(library, folder)
    findings = [finding for finding in found if finding.level != check.OK]
    errors = [finding for finding in findings if finding.level == check.ERROR]
    if errors:
        lines = [f"{finding.text}\n-> {finding.advice}" for finding in errors]
        raise BuildError("\n".join([f"build: {source.name}: it compiles, but", *lines]))
    return findings
