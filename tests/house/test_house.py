# SPDX-License-Identifier: Apache-2.0
"""The house stays tidy: names, lengths, licence lines; adding an operator edits no list."""

import re
import subprocess
from pathlib import Path

import pytest
from places import ROOT

CODE = {".c", ".h", ".hpp", ".cpp", ".cu", ".cuh", ".py", ".pyx", ".pxd", ".pyi"}
SCRIPTS = {".sh", ".mk"}
BANNED = {"utils", "util", "common", "misc", "helpers", "helper"}


def sources() -> list[Path]:
    """Return the source files that git knows or would take."""
    command = ["git", "ls-files", "-co", "--exclude-standard"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    paths = [ROOT / line for line in done.stdout.splitlines()]
    return [path for path in paths if path.suffix in CODE | SCRIPTS and path.is_file()]


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(ROOT)))
def test_source_is_short_licensed_and_well_named(path):
    lines = path.read_text().splitlines()
    assert path.stem not in BANNED
    is_generated = "golden" in path.parts
    assert is_generated or len(lines) < 400
    assert not lines or any("SPDX-License-Identifier: Apache-2.0" in line for line in lines[:4])
    assert [line for line in lines if line != line.rstrip()] == []
    if path.suffix in CODE and not is_generated:
        assert [line for line in lines if len(line) > 100] == []


@pytest.mark.parametrize(
    "name",
    [
        *("Makefile", "pyproject.toml", "MANIFEST.in"),
        *sorted(f"build_backend/{path.name}" for path in ROOT.glob("build_backend/*")),
    ],
)
def test_no_operator_is_named_where_things_are_built(name):
    operators = {path.name for path in (ROOT / "plugins").iterdir() if path.is_dir()}
    assert operators
    lines = [line for line in (ROOT / name).read_text().splitlines() if "## Run" not in line]
    assert not set(re.findall(r"\w+", "\n".join(lines))) & operators


def test_nothing_shadows_the_cython_package():
    assert not (ROOT / "cython" / "__init__.py").exists()


def test_cimports_name_modules():
    """Of `from cuplug.base cimport core` Cython lists no dependency: C would not be made anew."""
    files = [*(ROOT / "cython").rglob("*.pyx"), *(ROOT / "cython").rglob("*.pxd")]
    assert files
    rooms = re.compile(r"^\s*from cuplug(\.\w+)? cimport ", re.M)
    assert [x.name for x in files if rooms.search(x.read_text())] == []


def test_places_that_contributing_names_are_there():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    table = text.partition("## Where a change goes")[2].partition("## House rules")[0]
    names = [name for name in re.findall(r"`([^`]+)`", table) if "<" not in name]
    assert len(names) > 40
    assert [name for name in names if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("name", ["host", "describe", "devices", "listing"])
def test_each_function_of_the_host_api_says_from_which_threads_it_may_be_called(name):
    """In its own paragraph, or in a sentence for all functions, or for those below it."""
    head, *paragraphs = (ROOT / f"include/cuplug/{name}.h").read_text().split("\n\n")
    is_said = "All functions are [thread-safe]" in head
    untold = []
    for paragraph in paragraphs:
        is_said = is_said or paragraph.startswith("/* The functions below")
        declares = re.search(r"^CUPLUG_API", paragraph, re.M)
        if declares and not is_said and "[thread-safe]" not in paragraph:
            untold.append(paragraph)
    assert untold == []
