# SPDX-License-Identifier: Apache-2.0
"""The documents: marked examples work as printed, and all link targets exist.

A mark is a comment before a fenced block. With `<!-- tested -->`, a console block runs its lines
after `$` and compares their output; the pycon blocks of a document are one doctest. `tested: file
NAME` writes the block to a file; `tested: copy of PATH` also does, and requires that it equals a
file of the repository. `tested: needs nvcc` skips the block if nvcc is missing. pkg-config, a gpu
and LIBRARIES may also be required, one or several: `needs gpu and torch`.
"""

from __future__ import annotations

import doctest
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from places import ROOT
from processes import environment

DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
PROGRAMS = ("nvcc", "pkg-config")
LIBRARIES = ("dask", "distributed", "jax", "numba", "pandas", "ray", "sklearn", "torch", "xarray")
LIBRARIES += ("tvm_ffi",)
BLOCK = re.compile(
    r"^<!-- tested(?:: )?(?P<how>[^\n]*?) -->\n```(?P<language>\w*)\n(?P<text>.*?)^```$",
    re.M | re.S,
)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\((?P<target>[^)\s]+)\)")
FENCED = re.compile(r"^```.*?^```$", re.M | re.S)
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
LIMIT_S = 120


@dataclass
class Block:
    """One fenced block that is tested."""

    document: Path
    line: int
    language: str
    how: str
    text: str

    @property
    def needs(self) -> str:
        """The requirements of the block; "" for none."""
        return self.how.removeprefix("needs ") if self.how.startswith("needs ") else ""


def read_blocks(document: Path) -> list[Block]:
    """Return the tested blocks of a document."""
    text = document.read_text()
    return [
        Block(document, text.count("\n", 0, m.start("text")), *m.group("language", "how", "text"))
        for m in BLOCK.finditer(text)
    ]


def sessions() -> Iterator[object]:
    """Give each document a session for the blocks without needs, and one for each need."""
    for document in DOCUMENTS:
        for need in sorted({block.needs for block in read_blocks(document)}):
            # Code for nvcc in documents is also in other tests.
            names = {"gpu": pytest.mark.gpu, "nvcc": pytest.mark.slow}
            marks = [mark for name, mark in names.items() if name in need.split()]
            yield pytest.param(document, need, marks=marks, id=f"{document.name}-{need or 'all'}")


def is_met(need: str, there: str) -> bool:
    """Return whether all requirements of a block are available."""
    return set(need.split()) <= set(there.split()) | {"and"}


def skip_without(need: str) -> None:
    """Skip the running test if a requirement is missing."""
    for name in need.split(" and "):
        if name in PROGRAMS and not shutil.which(name):
            pytest.skip(f"needs {name} on PATH")
        if name in LIBRARIES and not importlib.util.find_spec(name):
            pytest.skip(f"needs {name}")


class Shell:
    """A session in a separate directory, where `python` and `cuplug` are the tested ones."""

    def __init__(self, directory: Path) -> None:
        tools = directory / "tools"
        self.directory = directory / "work"
        self.state = directory / "environment"
        tools.mkdir()
        self.directory.mkdir(mode=0o755)
        for name, command in (("python", ""), ("cuplug", " -m cuplug")):
            tool = tools / name
            tool.write_text(f'#!/bin/sh\nexec "{sys.executable}"{command} "$@"\n')
            tool.chmod(0o755)
        self.environment = environment()
        self.environment.pop("LD_LIBRARY_CUPLUG_PATH", None)
        self.environment["CI"] = "true"  # where Hypothesis sets no deadlines
        self.environment["PATH"] = f"{tools}:{self.environment['PATH']}"
        self.environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)

    def run(self, command: str) -> tuple[int, str]:
        """Run one command and keep variables that it exports."""
        script = f'{command}\nstatus=$?; env -0 > "{self.state}"; exit $status'
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=self.directory,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LIMIT_S,
        )
        variables = self.state.read_text().split("\0")[:-1]
        self.environment = dict(variable.split("=", 1) for variable in variables)
        return done.returncode, done.stdout


def split_commands(text: str) -> list[tuple[str, str]]:
    """Split a console block into commands and their outputs."""
    parts = re.split(r"^\$ ", text, flags=re.M)
    assert not parts[0].strip(), "a console block begins with a command"
    pattern = re.compile(r"((?:[^\n]*\\\n)*[^\n]*\n)(.*)", re.S)
    return [pattern.fullmatch(part).groups() for part in parts[1:]]


def run_console(shell: Shell, block: Block) -> None:
    """Run the commands of a block and compare their output."""
    for command, wanted in split_commands(block.text):
        status, seen = shell.run(command)
        place = f"{block.document.name}:{block.line}: {command}"
        fine = doctest.OutputChecker().check_output(wanted, seen, OPTIONS)
        assert fine, f"{place}wanted:\n{wanted}\nseen:\n{seen}"
        assert status == 0 or wanted, f"{place}ended with status {status}"


def write_file(shell: Shell, block: Block) -> None:
    """Write a block to a file of the session."""
    kind, _, name = block.how.rpartition(" ")
    assert kind in ("file", "copy of"), f"{block.document.name}:{block.line}: {block.how}"
    if kind == "copy of":
        assert block.text == (ROOT / name).read_text(), f"{block.document.name} differs from {name}"
    (shell.directory / Path(name).name).write_text(block.text)


def run_doctest(shell: Shell, document: Path, blocks: list[Block]) -> None:
    """Run blocks as one doctest, with their line numbers in the document."""
    lines: list[str] = []
    for block in blocks:
        lines += [""] * (block.line - len(lines)) + block.text.splitlines()
    (shell.directory / document.name).write_text("\n".join(lines) + "\n")
    options = "-o ELLIPSIS -o NORMALIZE_WHITESPACE"
    status, seen = shell.run(f"python -m doctest {options} {document.name}")
    assert status == 0, seen


@pytest.mark.parametrize(("document", "need"), list(sessions()))
def test_document_works_as_printed(document: Path, need: str, tmp_path: Path) -> None:
    skip_without(need)
    tmp_path.chmod(0o755)
    shell = Shell(tmp_path)
    blocks = [block for block in read_blocks(document) if is_met(block.needs, need)]
    for block in blocks:
        if block.language == "console":
            run_console(shell, block)
        elif block.language != "pycon":
            write_file(shell, block)
    run_doctest(shell, document, [block for block in blocks if block.language == "pycon"])


def anchors(document: Path) -> set[str]:
    """Return the anchors of a document's headings, as on GitHub."""
    headings = re.findall(r"^#+ (.+)$", FENCED.sub("", document.read_text()), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def links(document: Path) -> list[str]:
    """Return the targets of a document's links."""
    return [m["target"] for m in LINK.finditer(FENCED.sub("", document.read_text()))]


def leads_somewhere(document: Path, target: str) -> bool:
    """Return whether the file and the heading that a link names exist."""
    path, _, anchor = target.partition("#")
    file = (document.parent / path).resolve() if path else document
    return file.exists() and (not anchor or anchor in anchors(file))


def test_links_lead_somewhere() -> None:
    targets = [(document, target) for document in DOCUMENTS for target in links(document)]
    inside = [pair for pair in targets if not pair[1].startswith("https://")]
    assert len(inside) > 100
    assert [pair for pair in inside if not leads_somewhere(*pair)] == []


def test_the_readme_leads_to_every_document() -> None:
    targets = {(ROOT / target).resolve() for target in links(ROOT / "README.md")}
    assert set(DOCUMENTS) - targets == {ROOT / "README.md"}


def test_marks_are_understood() -> None:
    for document in DOCUMENTS:
        marks = re.findall(r"^<!-- tested", document.read_text(), re.M)
        assert len(read_blocks(document)) == len(marks), document.name
        needs = {name for block in read_blocks(document) for name in block.needs.split(" and ")}
        assert needs <= {"", "gpu", *PROGRAMS, *LIBRARIES}, document.name
