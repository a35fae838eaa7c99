# SPDX-License-Identifier: Apache-2.0
"""The site has a place for everything: pages, public names, headers."""

import re

import cuplug
import pytest
from places import ROOT

DOCS = ROOT / "docs"
INDEX = (DOCS / "index.md").read_text()
PYTHON = (DOCS / "reference" / "python.md").read_text()
PAGES = sorted(str(path.relative_to(DOCS).with_suffix("")) for path in DOCS.rglob("*.md"))
# Parts of other headers, and headers that programs do not include directly.
INNER = {"entries.hpp", "signature.hpp", "loop.h", "packs.cuh", "walk.cuh", "walk.h"}


def listed() -> list[str]:
    """Return the pages in the tables of contents."""
    trees = re.findall(r"^```\{toctree\}\n(.*?)^```$", INDEX, re.M | re.S)
    return [line for tree in trees for line in tree.splitlines() if re.match(r"[a-z]", line)]


def test_each_page_stands_in_the_contents_once():
    assert sorted([*listed(), "index"]) == PAGES


@pytest.mark.parametrize("name", sorted({*cuplug.__all__} - {"array_api"}))
def test_each_public_name_has_its_entry(name):
    kind = "exception" if name.endswith("Error") else r"(function|class|module)"
    assert re.search(rf"^\.\. auto{kind}:: cuplug\.{name}$", PYTHON, re.M)


def test_each_module_of_the_array_api_has_its_entry():
    text = (DOCS / "reference" / "array-api.md").read_text()
    listed = " ".join(re.findall("<!-- functions of (.*) -->", text)).split()
    assert sorted(listed) == sorted(cuplug.array_api._MODULES)


def test_each_public_header_has_its_entry():
    text = (DOCS / "reference" / "c.md").read_text() + (DOCS / "reference" / "cpp.md").read_text()
    headers = {path.name for path in (ROOT / "include" / "cuplug").iterdir()}
    assert set(re.findall(r"(?:autodoc:: |<cuplug/)([\w.]+)", text)) == headers - INNER
