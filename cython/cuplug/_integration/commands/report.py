# SPDX-License-Identifier: Apache-2.0
"""The output of `cuplug info`, `path`, `check`, `bind`, `stubs`, `cache` and `help`."""

from __future__ import annotations

import difflib
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console

import cuplug
from cuplug._engine.discovery.table import Row, read_build, read_table
from cuplug._engine.signature.signature import Parameter, Signature, parse
from cuplug._integration.author import bind, check, doc_pages
from cuplug._integration.author.elf import ElfError, read_library
from cuplug._integration.author.sources import libraries_at
from cuplug._integration.commands.listing import dotted, kernels_of
from cuplug._integration.commands.output import print_findings, print_json, print_lines, print_table
from cuplug._source.compilers import cache, shipped
from cuplug.errors import NotFoundError, PluginError

CACHE_KINDS = {"cubin": "code for GPUs", "so": "code for the CPU", "plugin": "plugins of clusters"}


def show_search_path(as_json: bool) -> None:
    """Write the directories that are searched."""
    records = cuplug.search_path()
    fields = ("path", "origin", "state", "reason")
    rows = [[getattr(record, field) for field in fields] for record in records]
    if as_json:
        print_json({"directories": [dict(zip(fields, row, strict=True)) for row in rows]})
    else:
        print_table(("directory", "origin", "state", "reason"), rows)


def show_operator(name: str, as_json: bool) -> None:
    """Write all properties of one operator."""
    operator = cuplug.find(name)
    table = read_table(operator.path)
    rows = [row for row in table.rows if row.operator == operator.name] or _adopted_rows(operator)
    loaded = any(p.loaded for p in cuplug.plugins() if p.path == operator.path)
    facts: dict[str, Any] = {
        "name": operator.name,
        "plugin": operator.plugin,
        "version": operator.version,
        "path": operator.path,
        "loaded": loaded,
        "architectures": list(table.architectures),
        "signatures": [_row_fields(row, parse(row.signature)) for row in rows],
        "build": _build_of(operator.path),
        "kernels": kernels_of(operator.path),
    }
    if as_json:
        print_json(facts)
        return
    print_lines(
        [
            f"{operator.name}, of plugin {operator.plugin} {operator.version or '(no version)'}",
            f"file:          {operator.path}",
            f"loaded:        {'yes' if loaded else 'no, at the first call'}",
            f"architectures: {dotted(table.architectures) or 'none'}",
        ]
    )
    build = facts["build"]
    modified = ", with modifications" if build.pop("modified", False) else ""
    print_lines(
        f"{key + ':':15}{value}{modified * (key == 'commit')}" for key, value in build.items()
    )
    for row in rows:
        _show_row(row, parse(row.signature))
    _show_kernels(facts["kernels"])


def _build_of(path: str) -> dict[str, str | bool]:
    """Return what `cuplug build` recorded in a library; {} if nothing."""
    try:
        return read_build(read_library(path).note)
    except (OSError, ElfError):
        return {}


def _show_kernels(kernels: list[dict[str, Any]]) -> None:
    """Write the resources of each kernel, its block size, and the threads of a multiprocessor."""
    keys = ("kernel", "registers", "shared_bytes", "local_bytes", "block", "active_threads")
    if kernels:
        print_lines(["", "kernels of the plugin on cuda:0:"])
        columns = [key.replace("_", " ") for key in keys]
        print_table(columns, [[str(facts[key]) for key in keys] for facts in kernels])


def _adopted_rows(operator: cuplug.Operator) -> list[Row]:
    """Return the table row of an operator whose library has no table.

    A function of a tvm-ffi module without a description has no signature.
    """
    if not isinstance(operator, cuplug.Operator):
        return []
    cuda, host = (operator.name if x in operator.device_types else "" for x in ("cuda", "cpu"))
    (signature,) = operator.signatures
    return [Row(cuda, host, signature, operator.doc, 0, {})]


def _row_fields(row: Row, signature: Signature) -> dict[str, Any]:
    return {
        "signature": row.signature,
        "doc": row.doc,
        "device_types": row.device_types,
        "properties": row.properties,
        "parameters": [_parameter_fields(row, signature, x) for x in signature.parameters],
        "outputs": [_parameter_fields(row, signature, x) for x in _outputs(signature)],
    }


def _outputs(signature: Signature) -> tuple[Parameter, ...]:
    return (signature.made,) if signature.made else signature.outputs


def _parameter_fields(row: Row, signature: Signature, x: Parameter) -> dict[str, Any]:
    return {
        "name": x.name,
        "kind": x.kind,
        "dtypes": list(signature.dtypes(x)),
        "shape": signature.shape(x),
        "choices": list(x.choices),
        "default": x.default_text if x.has_default else None,
        "doc": row.properties.get(f"doc.{x.name}") or "",
    } | ({"tag": x.tag} if x.tag else {})


def _show_row(row: Row, signature: Signature) -> None:
    told = {key: value for key, value in row.properties.items() if not key.startswith("doc.")}
    said = [key if value is None else f"{key} = {value}" for key, value in told.items()]
    lines = [row.signature, row.doc, f"runs on: {', '.join(row.device_types)}"]
    print_lines(["", *lines, *([f"properties: {', '.join(said)}"] if said else []), ""])
    cells = []
    for x in (*signature.parameters, *_outputs(signature)):
        shape = f"[{signature.shape(x)}]" if x.is_array else ""
        doc = row.properties.get(f"doc.{x.name}") or ""
        cells.append((x.name, x.kind, _type(signature, x), shape, x.default_text, doc))
    columns = ("parameter", "kind", "type", "shape", "default", "description")
    n = len(columns) if any(cell[-1] for cell in cells) else -1
    print_table(columns[:n], [cell[:n] for cell in cells])
    named = [(name, dtypes) for name, dtypes in signature.variables if name]
    print_lines([f"{name}: {', '.join(dtypes)}" for name, dtypes in named])


def _type(signature: Signature, x: Parameter) -> str:
    if x.kind in ("string", "choice"):
        return " | ".join(x.choices) or "str"
    if x.kind == "handle":
        return f"handle[{x.tag}]"
    if x.kind == "dtype":
        return x.kind
    name, dtypes = signature.variables[x.type_variable]
    return name or dtypes[0]


def show_checked(file: str, as_json: bool) -> bool:
    """Report the findings about a plugin, or the plugins in a folder; return whether all passed."""
    files = libraries_at(file) or [file]
    told = []
    for path in files:
        findings = check.check_file(path)
        ok = all(finding.level != check.ERROR for finding in findings)
        listed = [finding.as_dict() for finding in findings]
        told.append({"file": path, "ok": ok, "findings": listed})
        if not as_json:
            print_lines([f"{path}:"] if len(files) > 1 else [])
            print_findings((f.level, f.rule, f.text, f.advice) for f in findings)
    if as_json:
        print_json(_one_or_files(told))
    return all(x["ok"] for x in told)


def show_bound(
    file: str, directory: str, name: str | None, only: Sequence[str], as_json: bool
) -> None:
    """Write typed functions for a plugin, or for those in a folder, and report the files."""
    files = libraries_at(file) or [file]
    if name and len(files) > 1:
        raise PluginError(f"bind: --name: got {name} for {len(files)} plugins, expected one")
    written = [bind.write_module(path, directory, name, only) for path in files]
    if as_json:
        print_json(_one_or_files([asdict(x) for x in written]))
        return
    for x in written:
        print_lines([f"functions: {len(x.functions)}, in {x.pxd}"])


def show_stubs(files: Sequence[str], directory: str, name: str | None, as_json: bool) -> None:
    """Write the type stubs of a module, and report their operators."""
    libraries = [library for file in files for library in libraries_at(file) or [file]]
    written = bind.write_stubs(libraries, directory, name)
    if as_json:
        print_json(asdict(written))
    else:
        print_lines([f"operators: {', '.join(written.operators)}, in {written.pyi}"])


def _one_or_files(told: list[dict[str, Any]]) -> dict[str, Any]:
    return told[0] if len(told) == 1 else {"files": told}


def show_cache(what: str, as_json: bool) -> None:
    """Show the entries of the cache by kind, clear it, or print its directory."""
    directory, limit = cache.directory(), cache.limit()
    if what == "path":
        print_json({"directory": directory}) if as_json else print_lines([directory])
        return
    entries = cache.entries()
    if what == "clear":
        n_removed = cache.clear()
        text = f"{n_removed} file(s) removed from {directory}"
        print_json({"directory": directory, "removed": n_removed}) if as_json else print(text)
        return
    kinds = {kind: [e.n_bytes for e in entries if e.kind == kind] for kind in CACHE_KINDS}
    if as_json:
        counts = {kind: {"entries": len(n), "bytes": sum(n)} for kind, n in kinds.items()}
        print_json({"directory": directory, "limit_bytes": limit, "kinds": counts})
        return
    print_lines([f"{directory}: at most {_mib(limit)}, $CUPLUG_CACHE_BYTES changes that", ""])
    rows = [[CACHE_KINDS[kind], str(len(n)), _mib(sum(n))] for kind, n in kinds.items()]
    print_table(["what", "entries", "size"], rows)


def show_warm(folder: str, program: Sequence[str]) -> int:
    """Run a program that copies its compiled code to a folder; return its exit status."""
    os.makedirs(folder, exist_ok=True)
    environment = os.environ | {shipped.TARGET: os.path.abspath(folder)}
    status = subprocess.run(program, env=environment).returncode
    sizes = [file.stat().st_size for file in os.scandir(folder) if file.is_file()]
    print_lines([f"{folder}: {len(sizes)} file(s), {_mib(sum(sizes))}"])
    return status


def _mib(n_bytes: int) -> str:
    return f"{n_bytes / (1 << 20):.1f} MiB"


def show_topics() -> None:
    """List the documents."""
    print_table(("topic", ""), [(page.name, page.title) for page in doc_pages.read_pages()])
    what = "a page, a part of one by its heading, or a command's options"
    print_lines(["", f"`cuplug help TOPIC` shows {what}."])


def show_topic(topic: str, commands: Sequence[str]) -> None:
    """Show a page or a section, laid out for a screen.

    Raises
    ------
    NotFoundError
        No page or section has that name.
    """
    known = doc_pages.read_pages()
    text = doc_pages.find_text(known, topic)
    if not text:
        names = [*(page.name for page in known), *commands]
        names += [part for page in known for part in page.sections()]
        near = difflib.get_close_matches(doc_pages.anchor_of(topic), names, 3, cutoff=0.7)
        advice = f"; did you mean {' or '.join(near)}?" if near else ""
        raise NotFoundError(f"help: {topic}: no page, heading or command of that name{advice}")
    if not sys.stdout.isatty():
        sys.stdout.write(text)
        return
    from rich.markdown import Markdown

    screen = Console()
    with screen.pager(styles=True):
        screen.print(Markdown(text))
