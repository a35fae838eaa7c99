# SPDX-License-Identifier: Apache-2.0
"""The pictures and quoted figures equal the committed table, and the table equals its data."""

import json
import re
import sys
from pathlib import Path

import pytest
from places import ROOT

sys.path.append(str(ROOT / "benchmarks"))

import pictures
from instructions import read_profile
from instructions import render as render_instructions
from quotes import QUOTES, Quote, render_quotes, write_quotes
from storage import write_data
from table import render

REPORT = json.loads(pictures.TABLE.read_text())
TABLES = sorted((ROOT / "benchmarks" / "results").glob("*.json"))
SHOWN = re.compile(r"!\[[^]]+\]\(([^)]*pictures/[\w-]+\.svg)\)")
PROFILE = """\
desc: Trigger: Client Request: three calls
ob=(1) /lib/x86_64-linux-gnu/libc.so.6
fn=(1) memcpy
10 100
ob=(2) /build/python/cuplug/lib/libcuplug.so.1
fn=(2) cuplug_run
+1 20
cob=(1)
cfn=(3) malloc
calls=1 10
* 5000
cfn=(4) pthread_mutex_lock
calls=2 10
* 5000
-2 3
ob=(1)
12 1
"""


def shown() -> set[Path]:
    """Return the pictures that the documents show."""
    documents = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    found = ((d.parent / path) for d in documents for path in SHOWN.findall(d.read_text()))
    return {path.resolve() for path in found}


@pytest.mark.parametrize("path", sorted(pictures.PICTURES.glob("*.svg")), ids=lambda p: p.name)
def test_a_committed_picture_is_of_the_committed_table_and_shown(path):
    wanted = pictures.stamp(pictures.TABLE)
    assert wanted in path.read_text(), "make pictures"
    assert path in shown()


@pytest.mark.slow
def test_what_can_be_drawn_is_drawn_and_twice_alike(tmp_path):
    pytest.importorskip("matplotlib")
    drawn = pictures.draw(pictures.TABLE, tmp_path / "one")
    again = pictures.draw(pictures.TABLE, tmp_path / "two")
    assert drawn
    assert [path.read_bytes() for path in drawn] == [path.read_bytes() for path in again]
    committed = {path.name for path in pictures.PICTURES.glob("*.svg")}
    assert {path.name for path in drawn} == committed, "make pictures"


@pytest.mark.parametrize("path", sorted(pictures.PICTURES.glob("*.svg")), ids=lambda p: p.name)
def test_a_picture_has_a_dark_color_for_each_light_one(path):
    style, drawn = path.read_text().split("</style>", 1)
    used = set(re.findall(r"((?:fill|stroke): #\w{6})", drawn))
    assert len(used) > 3
    assert used == set(re.findall(r'\[style\*="([^"]*)"\]', style))


def test_a_table_without_the_rows_gives_no_picture(tmp_path):
    pytest.importorskip("matplotlib")
    empty = tmp_path / "empty.json"
    empty.write_text(json.dumps({"machine": REPORT["machine"], "benchmarks": {}}))
    (tmp_path / "calls.svg").write_text("of an older table")
    drawn = {path.stem for path in pictures.draw(empty, tmp_path)}
    assert drawn == {"whole"}  # which is not from a table
    assert not (tmp_path / "calls.svg").exists()


@pytest.mark.parametrize("document", ["README.md", "docs/index.md"])
def test_documents_quote_the_committed_table(document):
    assert render_quotes(REPORT) in (ROOT / document).read_text(), "make pictures"
    assert all(quote.cells(REPORT) for quote in QUOTES)


def test_quotes_are_written_between_the_marks(tmp_path):
    document = tmp_path / "page.md"
    document.write_text("before\n<!-- measured -->\nold\n<!-- end -->\nafter\n")
    write_quotes(document, REPORT)
    wanted = f"before\n<!-- measured -->\n\n{render_quotes(REPORT)}<!-- end -->\nafter\n"
    assert document.read_text() == wanted


def test_a_quote_leaves_out_what_was_not_measured():
    results = {"ours": {"median": 2.0}, "theirs": {"median": 3.0}}
    comparison = {"title": "work, small", "unit": "us", "results": results}
    report = {"benchmarks": {"calls": {"comparisons": [comparison]}}}
    quote = Quote("work", "calls", "work", "ours", {"them": "theirs", "others": "absent"})
    assert quote.cells(report) == ["work", "2.00 us", "them 3.00 us"]
    assert Quote("work", "calls", "other work", "ours", {}).cells(report) is None


@pytest.mark.parametrize("data", TABLES, ids=lambda path: path.name)
def test_each_table_is_its_data(data):
    draw = render_instructions if data.name.startswith("instructions") else render
    assert data.with_suffix(".md").read_text() == draw(json.loads(data.read_text()))


@pytest.mark.parametrize("data", TABLES, ids=lambda path: path.name)
def test_data_has_a_line_for_each_result(data, tmp_path):
    assert write_data(tmp_path / "data", json.loads(data.read_text()))
    assert (tmp_path / "data").read_text() == data.read_text()


def test_a_profile_counts_what_each_object_costs_itself():
    case, counts = read_profile(PROFILE)
    assert case == "three calls"
    assert {name: n for name, n in counts.items() if n} == {
        "C library": 101,
        "core": 23,
        "heap allocations": 1,
        "locks of the core": 2,
    }
