# SPDX-License-Identifier: Apache-2.0
"""The build contract of a plugin file, checked without running it: `cuplug check FILE.so`."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import replace

from cuplug._engine.adoption.description import description_path_of
from cuplug._engine.base.flags import architectures_flag, number_of
from cuplug._engine.discovery.fields import check_owner, parameter_docs
from cuplug._engine.discovery.table import read_functions, read_rows, read_table
from cuplug._engine.lookup.adopted_libraries import describe
from cuplug._engine.lookup.tvm_modules import describe_file
from cuplug._engine.modules.files import is_module
from cuplug._engine.signature.evaluate import broken_by_defaults
from cuplug._engine.signature.parallel_dims import invalid_along, invalid_independent
from cuplug._engine.signature.signature import SignatureError, parse
from cuplug._integration.author import elf, fatbin, linkage
from cuplug._integration.author.differentiable import wrong_gradients
from cuplug._integration.author.fatbin import dotted
from cuplug._integration.author.finding import ERROR, OK, Finding, Rule, Subject
from cuplug._integration.author.finding import error as _error
from cuplug._integration.author.finding import some as _some
from cuplug._integration.author.finding import warning as _warning
from cuplug.errors import NotFoundError, PluginError

TABLE = "cuplug_symbols"
MAY_EXPORT = {TABLE, "cuplug_any_kernel"}  # the latter is in <cuplug/kernels.h>
# From the attribute target_clones: the function's type becomes STT_GNU_IFUNC, and an additional
# function selects the copy for the CPU.
FUNCTION_TYPES = (elf.STT_FUNC, elf.STT_GNU_IFUNC)
RESOLVER = ".resolver"

# A plain subset of PEP 440: release, pre-, post- and development parts, local label.
VERSION = re.compile(
    r"\d+(\.\d+)*((a|b|rc)\d+)?(\.post\d+)?(\.dev\d+)?(\+[A-Za-z0-9]+(\.[A-Za-z0-9]+)*)?"
)


def check_file(path: str, folder: str = "") -> list[Finding]:
    """Check one file against the build contract.

    Parameters
    ----------
    path : str
        A shared library, which is read and not run.
    folder : str
        The folder where it will be installed, which $ORIGIN represents. The default is its own
        folder.

    Returns
    -------
    list of Finding
        One or more for each rule, in the order of the rules.
    """
    try:
        library = elf.read_library(path, origin=folder)
    except OSError as error:
        text = f"{path}: {error.strerror}"
        return [Finding(ERROR, "file", text, "give the path of a shared library")]
    except elf.ElfError as error:
        return [Finding(ERROR, "file", f"{path}: {error}", "give the path of a shared library")]
    table = read_table(path)
    if table.state == "no plugin" and (
        os.path.lexists(description_path_of(path)) or is_module(path)
    ):
        return [_check_description(path)]
    if not table.rows:
        table = replace(table, rows=read_rows(library.note))
    subject = Subject(path, table, library)
    findings = []
    for name, fine, rule in RULES:
        if rule in NEED_TABLE and not (table.rows and table.name):
            continue
        found = list(rule(subject))
        for finding in found:
            finding.rule = name
        findings += found or [Finding(OK, name, fine)]
    return findings


def _check_description(path: str) -> Finding:
    """Check an adopted library, or a tvm-ffi module, against the description next to it."""
    judge = describe_file if is_module(path) else describe
    record = judge(os.path.abspath(path), "")
    names, beside = ", ".join(record.operators), os.path.basename(description_path_of(path))
    if record.state == "ok" and not record.signatures:
        return Finding(OK, "description", f"a tvm-ffi module without a description: {names}")
    if record.state == "ok":
        return Finding(OK, "description", f"{beside} describes {names}")
    return Finding(ERROR, "description", record.reason, f"correct {beside}")


def _check_table(subject: Subject) -> Iterator[Finding]:
    if subject.elf_file.note_is_covered is False:
        yield _error(
            "no PT_NOTE program header covers the symbol table, which is in section "
            f"{elf.NOTE_SECTION}",
            "some tool rewrote the file (patchelf before 0.18 does this): build it again, or use "
            "a newer patchelf",
        )
    elif not subject.table.rows and subject.elf_file.note_is_covered is None:
        yield _error(
            "there is no symbol table",
            'declare its operators and CUPLUG_PLUGIN(name, "version"); at file scope',
        )
    elif subject.table.state != "ok" and not (
        _has_bad_signature(subject) or subject.elf_file.has_executable_stack
    ):
        is_trusted = _is_trusted(subject.path)
        advice = "compile it again, with the flags of `cuplug --cflags`"
        yield _error(subject.table.reason, advice if is_trusted else "let nobody else write there")


def _has_bad_signature(subject: Subject) -> bool:
    return any(_signature_error(row.signature) for row in subject.table.rows)


def _signature_error(text: str) -> str | None:
    """Return the error in a signature, with a caret below its position; None if it is correct."""
    try:
        parse(text)
    except SignatureError as error:
        return str(error)
    return None


def _check_signatures(subject: Subject) -> Iterator[Finding]:
    for number, row in enumerate(subject.table.rows):
        error = _signature_error(row.signature)
        if error:
            yield _error(f"overload {number}: {error}", "see `cuplug help signatures`")
            continue
        for condition in broken_by_defaults(parse(row.signature)):
            yield _error(
                f"overload {number}: the defaults do not satisfy {condition}\n  {row.signature}",
                "calls that omit them would be rejected: set other defaults, or none",
            )
        for name in invalid_independent(parse(row.signature), row.properties):
            yield _error(
                f"overload {number}: independent: got {name}, expected a dimension that each "
                f"output has once, and no input twice\n  {row.signature}",
                "remove it from CUPLUG_INDEPENDENT",
            )
        if invalid_along(parse(row.signature), row.properties):
            yield _error(
                f"overload {number}: along: got {row.properties['along']}, expected an int "
                f"parameter, and arrays with one group of dimensions\n  {row.signature}",
                "remove CUPLUG_ALONG",
            )


def _check_name(subject: Subject) -> Iterator[Finding]:
    wanted = f"lib{subject.table.name}.so"
    seen = os.path.basename(subject.path)
    if seen != wanted:
        yield _error(
            f"got the file name {seen}, expected {wanted} for the plugin {subject.table.name}",
            f"rename the file to {wanted}: in a plugin directory other names are rejected",
        )


def _check_version(subject: Subject) -> Iterator[Finding]:
    if not VERSION.fullmatch(subject.table.version):
        yield _warning(
            f'the version is "{subject.table.version}"',
            'write it as Python packages do: "1.2.0", "1.2.0rc1", "1.2.0+cu13"',
        )


def _check_docs(subject: Subject) -> Iterator[Finding]:
    for number, row in enumerate(subject.table.rows):
        if not row.doc.strip():
            yield _warning(
                f"overload {number} ({row.operator}) has no doc line",
                "describe in one line what the operator computes",
            )
        if _signature_error(row.signature):
            continue
        signature = parse(row.signature)
        names = {x.name for x in (*signature.parameters, *signature.outputs)}
        for name in sorted(parameter_docs([row.properties]).keys() - names):
            yield _warning(
                f"overload {number}: got the documentation of {name}, expected a parameter or an "
                "output",
                f"rename it in CUPLUG_DOC({name}, ...)",
            )


def _check_gradients(subject: Subject) -> Iterator[Finding]:
    for text, advice in wrong_gradients(subject.table):
        yield _error(text, advice)


def _entries(subject: Subject) -> dict[str, str]:
    """Return entry symbol -> operator."""
    entries = {}
    for row in subject.table.rows:
        for symbol in (row.cuda_entry, row.host_entry):
            if symbol:
                entries[symbol] = row.operator
    return entries


def _check_entries(subject: Subject) -> Iterator[Finding]:
    exports = subject.elf_file.exports
    for row in subject.table.rows:
        if not row.cuda_entry and not row.host_entry:
            yield _error(f"{row.operator} names no entry", "give it a CUDA or a host entry")
    for symbol, operator in _entries(subject).items():
        if symbol not in exports:
            yield _error(
                f"{operator} names the entry {symbol}, which the file does not export",
                f"define it with CUPLUG_ENTRY: CUPLUG_ENTRY int {symbol}(const cuplug_call *call)",
            )
        elif exports[symbol] not in FUNCTION_TYPES:
            yield _error(
                f"the entry {symbol} of {operator} is no function ({exports[symbol]})",
                "name a function of type cuplug_entry",
            )
    for symbol, does in read_functions(subject.elf_file.note).items():
        if exports.get(symbol) not in FUNCTION_TYPES:
            last = "void **state" if does == "makes a state" else "void *handle"
            yield _error(
                f"the table names {symbol}, which {does}, but the file exports no such function",
                f"define it: CUPLUG_ENTRY int {symbol}(const cuplug_call *call, {last})",
            )


def _check_exports(subject: Subject) -> Iterator[Finding]:
    if TABLE not in subject.elf_file.exports:
        yield _error(
            f"the table {TABLE} is not exported",
            "let no version script or strip option hide it",
        )
    others = subject.elf_file.exports.keys() - _entries(subject).keys() - MAY_EXPORT
    others -= read_functions(subject.elf_file.note).keys()
    own = (name for name in others if not linkage.is_standard_cxx(name))
    extra = sorted(name for name in own if not name.endswith(RESOLVER))
    if extra:
        yield _warning(
            f"{len(extra)} more symbols are exported: {_some(extra)}",
            "compile with -fvisibility=hidden -fvisibility-inlines-hidden; link static archives "
            "with -Wl,--exclude-libs,ALL",
        )


def _check_architectures(subject: Subject) -> Iterator[Finding]:
    named = {number_of(x) // 10 for x in subject.table.architectures}
    has_cuda = any(row.cuda_entry for row in subject.table.rows)
    has_kernels = subject.elf_file.fatbins != []  # others only call NVIDIA's libraries
    if has_cuda and has_kernels and not named:
        yield _error(
            "it has CUDA entries, but the table names no architectures",
            "compile the table with nvcc, or with -DCUPLUG_ARCHITECTURES=750,900",
        )
    if subject.elf_file.fatbins is None:
        yield _warning("the section headers were removed", "keep them: strip is enough")
        return
    try:
        code = fatbin.read_library(subject.elf_file)
    except ValueError as error:
        yield _error(str(error), "build the file again")
        return
    yield from _compare_architectures(named, code)


def _compare_architectures(named: set[int], code: fatbin.Code) -> Iterator[Finding]:
    compiled = fatbin.in_order(code.machine_code | code.ptx)
    there = {number_of(x) for x in compiled}
    for architecture in sorted(named - there):
        yield _error(
            f"the table names architecture {dotted(architecture)}, the file has no code for it",
            "compile the table and the kernels with the same architectures",
        )
    for architecture in sorted(there - named):
        yield _warning(
            f"there is code for architecture {dotted(architecture)}, the table does not name it",
            f"pass --arch {','.join(map(str, compiled))} to cuplug build, or compile a table in C "
            f"with {architectures_flag(compiled)}",
        )
    if there and not any(isinstance(x, int) for x in code.ptx):
        newest = max(there)
        yield _warning(
            "its PTX is for one architecture or family alone, so GPUs to come cannot run it"
            if code.ptx
            else "there is no PTX, so GPUs to come cannot run it",
            f"add -gencode arch=compute_{newest},code=compute_{newest}",
        )


def _is_trusted(path: str) -> bool:
    """Return whether CUPLUG_TRUSTED_OWNERS contains the owner, or allows files of any owner."""
    try:
        check_owner(path)
    except (NotFoundError, PluginError):
        return False
    return True


def _check_permissions(subject: Subject) -> Iterator[Finding]:
    status = os.stat(subject.path)
    if status.st_mode & stat.S_IWOTH:
        yield _error("anyone may write the file", f"chmod o-w {subject.path}")
    elif status.st_mode & stat.S_IWGRP:
        yield _warning(f"group {status.st_gid} may write the file", f"chmod g-w {subject.path}")
    if status.st_uid not in (0, os.geteuid()) and not _is_trusted(subject.path):
        yield _error(
            f"the file belongs to user {status.st_uid}, neither to you nor to root",
            f"chown it: sudo chown {os.geteuid()} {subject.path}",
        )


RULES: list[tuple[str, str, Rule]] = [
    ("table", "the symbol table is there and can be read", _check_table),
    ("signatures", "all signatures parse", _check_signatures),
    ("name", "the file has the name of its plugin", _check_name),
    ("version", "the version is well formed", _check_version),
    ("docs", "every operator has a doc line", _check_docs),
    ("gradients", "operators and their gradients fit", _check_gradients),
    ("entries", "every entry is an exported function", _check_entries),
    ("exports", "it exports its table and its entries, nothing else", _check_exports),
    ("architectures", "the table names the architectures of the code", _check_architectures),
    ("undefined", "all libraries and symbols that it needs are found", linkage.check_undefined),
    ("versions", "the libraries that are installed are new enough", linkage.check_versions),
    ("needed", "it needs only libraries that every machine has", linkage.check_needed),
    ("rpath", "it searches only directories next to it", linkage.check_rpath),
    ("unique", "it shares no symbols with other plugins", linkage.check_unique),
    ("tls", "thread-local variables can be loaded at any time", linkage.check_tls),
    ("relocations", "its code is position-independent", linkage.check_text_relocations),
    ("stack", "its stack is not executable", linkage.check_stack),
    ("rounding", "loading it does not change how threads compute", linkage.check_rounding),
    ("permissions", "only its owner may write it", _check_permissions),
]
NEED_TABLE = {
    _check_signatures,
    _check_name,
    _check_version,
    _check_docs,
    _check_gradients,
    _check_entries,
    _check_exports,
    _check_architectures,
}
