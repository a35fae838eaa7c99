# SPDX-License-Identifier: Apache-2.0
"""Each attack of tests/hostile once; and the page that describes them."""

import json
import re
import subprocess
import sys

import pytest
from places import ROOT
from processes import environment

RUN = ROOT / "tests" / "hostile" / "run.py"
PAGE = ROOT / "docs" / "reliability.md"


def attacks() -> list[str]:
    """Return the names of all attacks."""
    files = sorted((ROOT / "tests" / "hostile").glob("*.py"))
    return [x for file in files for x in re.findall(r"^@attack\ndef (\w+)", file.read_text(), re.M)]


@pytest.mark.slow
@pytest.mark.parametrize("name", attacks())
def test_nothing_dies_or_lies(name, tmp_path):
    counts = tmp_path / "counts"
    command = [sys.executable, RUN, "--only", name, "--seed", "1", "--output", counts]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    count = json.loads(counts.read_text())[name]
    assert count["tried"] > 0
    assert [count[what] for what in ("deaths", "hangs", "wrong")] == [0, 0, 0]


def test_the_page_lists_each_attack():
    listed = re.findall(r"^\| `(\w+)` \|", PAGE.read_text(), re.M)
    assert sorted(listed) == sorted(attacks())
