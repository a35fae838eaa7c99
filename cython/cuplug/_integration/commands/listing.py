# SPDX-License-Identifier: Apache-2.0
"""The plugins on the search path, for `cuplug list` and `lock`, as text, JSON or HTML."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from html import escape
from operator import itemgetter
from string import Template
from typing import Any

import cuplug
from cuplug._engine.cuda.devices import devices
from cuplug._engine.discovery.table import read_table
from cuplug._engine.lookup.records import PluginFile
from cuplug._integration.author import elf, fatbin, lock_file
from cuplug._integration.commands.machine import Machine, code_of, look_around
from cuplug._integration.commands.output import print_json, print_lines, print_table
from cuplug._source.kernels.function import Function, Image
from cuplug.errors import CudaError

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "templates", "list.html.in")
KERNEL_FACTS = ("kernel", "registers", "shared_bytes", "local_bytes", "block", "active_threads")


def show_plugins(everything: bool, as_json: bool) -> None:
    """Write the plugins; with `everything`, also libraries without a table."""
    records = [p for p in cuplug.plugins() if everything or p.state != "no plugin"]
    if as_json:
        print_json({"plugins": [_plugin_fields(record) for record in records]})
        return
    columns = ("plugin", "version", "operators", "device types", "architectures", "file")
    fine = [record for record in records if record.state == "ok"]
    if fine:
        print_table(columns, (_plugin_cells(record) for record in fine))
    else:
        print_lines(["No plugins: `cuplug path` shows where they are looked for."])
    others = [record for record in records if record.state != "ok"]
    if others:
        print_lines(["", "Not used:"])
        cells = ((record.state, record.path, record.reason) for record in others)
        print_table(("state", "file", "reason"), cells)
    refused = [record for record in cuplug.search_path() if record.state == "rejected"]
    if refused:
        print_lines(["", "Not searched:"])
        print_table(("directory", "reason"), ((record.path, record.reason) for record in refused))


def write_page(path: str) -> None:
    """Write an HTML file: plugins, operators and kernels, compared with this machine's GPUs."""
    machine = look_around()
    plugins = [x for x in machine.plugins if x.state != "no plugin"]
    operators = [row for x in plugins if x.state == "ok" for row in _operator_cells(x)]
    kernels = [
        [x.name, *(str(facts[key]) for key in KERNEL_FACTS)]
        for x in plugins
        if x.state == "ok"
        for facts in kernels_of(x.path)
    ]
    gpus = "; ".join(
        f"cuda:{x.index} {x.name}, compute capability {fatbin.dotted(x.compute_capability)}"
        for x in machine.devices
    )
    refused = [[x.path, x.reason] for x in machine.directories if x.state == "rejected"]
    words = {
        "version": cuplug.__version__,
        "machine": escape(gpus or f"No GPU: {machine.cuda_error or 'none is visible'}"),
        "problem": f"<p>{escape(machine.path_error)}</p>" if machine.path_error else "",
        "plugins": _html_table(
            ("Plugin", "Version", "State", "Devices", "Architectures", "File"),
            [_page_cells(x, machine) for x in plugins],
        ),
        "directories": _html_table(("Directory not searched", "Reason"), refused),
        "operators": _html_table(
            ("Operator", "Signature", "Description", "Devices", "Plugin"), operators
        ),
        "kernels": _html_table(("Plugin", *map(_heading, KERNEL_FACTS)), kernels)
        or "<p>Registers are read on a GPU, and no kernel was read here.</p>",
    }
    with open(PAGE, encoding="utf-8") as stream:
        text = Template(stream.read()).substitute(words)
    with open(path, "w", encoding="utf-8", errors="backslashreplace") as stream:
        stream.write(text)


def _heading(key: str) -> str:
    return key.replace("_", " ").capitalize()


def _page_cells(record: PluginFile, machine: Machine) -> list[str]:
    cells = _plugin_cells(record)
    state = f"{record.state}: {record.reason}" if record.reason else record.state
    code = code_of(record) if record.state == "ok" and "cuda" in record.device_types else None
    fits = [
        f"{code.kind_for(x.compute_capability)} for cuda:{x.index}"
        for x in machine.devices
        if code and record.kind == "plugin"
    ]
    return [*cells[:2], state, cells[3], "\n".join(filter(None, [cells[4], *fits])), record.path]


def _operator_cells(record: PluginFile) -> list[list[str]]:
    """Return cells for each overload. Libraries without a table have signatures but no texts."""
    rows = [
        (x.operator, x.signature, x.doc, ", ".join(x.device_types), record.name)
        for x in read_table(record.path).rows
    ]
    rows = rows or [
        (x.partition("(")[0], x, "", ", ".join(record.device_types), record.name)
        for x in record.signatures
    ]
    # sorting is stable: overloads keep their order
    return sorted(map(list, rows), key=itemgetter(0))


def _html_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table that keeps the line breaks of text; "" without rows."""
    heads = "".join(f'<th scope="col">{escape(x)}</th>' for x in columns)
    lines = [f"<tr>{''.join(f'<td>{escape(x)}</td>' for x in row)}</tr>" for row in rows]
    table = f"<table><thead><tr>{heads}</tr></thead><tbody>\n{chr(10).join(lines)}</tbody></table>"
    return f'<div class="table" tabindex="0">{table}</div>' if rows else ""


def show_lock(names: Sequence[str], path: str, key: str | None, as_json: bool) -> None:
    """Write the digests of the plugins of some operators, or of all, and sign them."""
    used = [p for p in cuplug.plugins() if p.state == "ok"]
    if names:
        paths = {cuplug.find(name).path for name in names}
        used = [p for p in used if p.path in paths]
    files = lock_file.write_lock(path, used, cuplug.__version__)
    signature = None if key is None else lock_file.sign(path, key)
    if as_json:
        print_json({"lock": path, "files": files, "signature": signature})
    else:
        print_lines([f"{path}: {len(used)} plugins, {len(files)} files with what they link"])
        print_lines([f"{signature}: signature of {path}"] * bool(signature))


def show_locked(path: str, signers: str | None, as_json: bool) -> bool:
    """Compare the plugins in use with a lock; return whether they are the same."""
    digests, signer = lock_file.read_lock(path, signers)
    compared = lock_file.compare(digests, [p for p in cuplug.plugins() if p.state == "ok"])
    ok = all(x.state == lock_file.SAME for x in compared)
    if as_json:
        files = [x.as_dict() for x in compared]
        print_json({"lock": path, "ok": ok, "signer": signer, "files": files})
    else:
        print_lines([f"{path}: signed by {signer}"] * bool(signer))
        print_table(("state", "file", "found"), ((x.state, x.file, x.path) for x in compared))
    return ok


def _plugin_fields(record: PluginFile) -> dict[str, Any]:
    return {
        "name": record.name,
        "version": record.version,
        "path": record.path,
        "state": record.state,
        "reason": record.reason,
        "origin": record.origin,
        "operators": list(record.operators),
        "device_types": list(record.device_types),
        "architectures": list(record.architectures),
        "abi": record.abi,
        "loaded": record.loaded,
        "kind": record.kind,
    }


def _plugin_cells(record: PluginFile) -> tuple[str, ...]:
    return (
        record.name,
        record.version or f"({record.kind})",
        ", ".join(record.operators),
        ", ".join(record.device_types),
        dotted(record.architectures),
        record.path,
    )


def dotted(architectures: Iterable[int | str]) -> str:
    """Return "9.0 10.0f" for the architectures of a table, 900 and "1000f"."""
    return " ".join(fatbin.dotted(re.sub(r"\d(?=\D?$)", "", str(x))) for x in architectures)


def kernels_of(path: str) -> list[dict[str, Any]]:
    """Return the attributes of a library's kernels on the first GPU; none without a GPU."""
    if not devices():
        return []
    found = []
    try:
        library = elf.read_library(path)
        sections = library.fatbins or library.relocatable_fatbins
        images = [Image(code, path) for code in fatbin.containers(sections)]
    except (elf.ElfError, OSError, ValueError):
        return []
    for image in images:
        try:
            found += [_facts(Function(image, x, x, None, 0)) for x in image.list_kernels()]
        except CudaError:  # code for other GPUs, or without kernels
            continue
    return found


def _facts(kernel: Function) -> dict[str, Any]:
    n_threads, _ = kernel.suggest_block()
    attributes = kernel.attributes()._asdict()
    most = kernel.max_active_blocks(n_threads) * n_threads
    return {"kernel": kernel.name, **attributes, "block": n_threads, "active_threads": most}
