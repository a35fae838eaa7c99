# SPDX-License-Identifier: Apache-2.0
"""The house rules: names, lengths, license lines; adding an operator edits no list."""

import re
import subprocess
from pathlib import Path

import pytest
from places import ROOT

CODE = {".c", ".h", ".hpp", ".cpp", ".cu", ".cuh", ".py", ".pyx", ".pxd", ".pyi"}
SCRIPTS = {".sh", ".mk"}
LICENSE = "SPDX-License-Identifier: Apache-2.0"
BANNED = {"utils", "util", "common", "misc", "helpers", "helper"}


def sources() -> list[Path]:
    """Return the source files that git tracks or would add."""
    command = ["git", "ls-files", "-co", "--exclude-standard"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    paths = [ROOT / line for line in done.stdout.splitlines()]
    return [path for path in paths if path.suffix in CODE | SCRIPTS and path.is_file()]


def faults(path: Path) -> list[str]:
    """Return the errors of a source file: its name, length, license line or whitespace."""
    lines = path.read_text().splitlines()
    is_generated = "golden" in path.parts
    is_code = path.suffix in CODE and not is_generated
    found = {
        "has a name that says nothing": path.stem in BANNED,
        "has 400 lines or more": not is_generated and len(lines) >= 400,
        "has no license line": bool(lines) and not any(LICENSE in line for line in lines[:4]),
        "has trailing whitespace": any(line != line.rstrip() for line in lines),
        "has lines over 100 columns": is_code and any(len(line) > 100 for line in lines),
    }
    return [f"{path.relative_to(ROOT)} {fault}" for fault, is_true in found.items() if is_true]


def test_sources_are_short_licensed_and_well_named():
    files = sources()
    assert len(files) > 100
    assert [fault for path in files for fault in faults(path)] == []


# Maximum lines of C in each folder, which docs/architecture.md explains.
MOST_LINES = {"core": 17_320, "runtime": 3_940, "include": 5_410}


@pytest.mark.parametrize("folder", MOST_LINES)
def test_the_core_stays_small(folder):
    files = [path for path in sources() if path.relative_to(ROOT).parts[0] == folder]
    n_lines = sum(len(path.read_text().splitlines()) for path in files)
    assert 0.9 * MOST_LINES[folder] < n_lines <= MOST_LINES[folder]
    text = (ROOT / "docs" / "architecture.md").read_text()
    assert f"`{folder}/` {MOST_LINES[folder]:,}" in text


def test_nothing_but_sources_lies_among_sources():
    """Such as files that `patch` creates."""
    files = [
        path for x in ("core", "runtime", "include", "plugins") for path in (ROOT / x).rglob("*")
    ]
    assert [x for x in files if x.suffix in {".orig", ".rej", ".bak"}] == []


def test_folders_are_read_at_a_glance():
    """Rooms may have many tests, and docs many pages."""
    apart = {"tests", "docs"}
    folders = {path.parent for path in sources() if path.relative_to(ROOT).parts[0] not in apart}
    sizes = {folder: sum(path.is_file() for path in folder.iterdir()) for folder in folders}
    assert {folder.name: n for folder, n in sizes.items() if n > 25} == {}


def test_no_operator_is_named_where_things_are_built():
    operators = {path.name for path in (ROOT / "plugins").iterdir() if path.is_dir()}
    assert operators
    names = ["Makefile", "pyproject.toml", "MANIFEST.in"]
    for path in [*(ROOT / name for name in names), *ROOT.glob("build_backend/*.*")]:
        lines = [line for line in path.read_text().splitlines() if "## Run" not in line]
        assert not set(re.findall(r"\w+", "\n".join(lines))) & operators, path.name


def test_nothing_shadows_the_cython_package():
    assert not (ROOT / "cython" / "__init__.py").exists()


def test_cimports_name_modules():
    """Cython lists no dependency for `from cuplug.base cimport core`: C would become stale."""
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


@pytest.mark.parametrize("name", ["host", "describe", "devices"])
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
