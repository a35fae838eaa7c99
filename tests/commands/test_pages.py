# SPDX-License-Identifier: Apache-2.0
"""The documents offline: `cuplug help`."""

import re

import pytest
from click.testing import CliRunner
from cuplug._integration.commands.cli import main
from places import ROOT

DOCUMENTS = sorted(path.stem for path in (ROOT / "docs").glob("*.md"))


def shown(*topic):
    """Return the output of the command, which must succeed."""
    done = CliRunner().invoke(main, ["help", *topic])
    assert done.exit_code == 0, done.output
    return done.output


def test_each_document_is_a_topic():
    listed = re.findall(r"^([\w-]+)  ", shown(), re.M)
    assert listed == DOCUMENTS


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_is_shown_whole_without_its_marks(name):
    seen = shown(name)
    lines = (ROOT / "docs" / f"{name}.md").read_text().splitlines()
    assert seen.splitlines()[0] == lines[0]
    assert seen.splitlines()[-1] == [line for line in lines if line != ":::"][-1]
    assert not re.search("^:::|<!--", seen, re.M)
    assert seen.count("\nSee also:\n\n- ") == lines.count(":::{seealso}")


@pytest.mark.parametrize(
    "topic", ["A second stream", "a-second-stream", "docs/authors.md#a-second-stream"]
)
def test_a_part_is_found_by_its_heading(topic):
    page, _, first, *rest = shown(topic).splitlines()
    assert (page, first) == ("(authors)", "## A second stream")
    assert not any(line.startswith("## ") for line in rest)


def test_a_command():
    assert re.match(r"Usage: \S+ build \[OPTIONS\] SOURCE", shown("build"))


def test_what_is_no_topic():
    done = CliRunner().invoke(main, ["help", "signaturs"])
    wanted = "cuplug: help: signaturs: no page, heading or command of that name; did you mean signa"
    assert (done.exit_code, done.output.startswith(wanted)) == (1, True)


def test_advice_names_topics_that_are_there():
    texts = [path.read_text() for path in (ROOT / "cython").rglob("*.py")]
    named = {topic for text in texts for topic in re.findall(r"`cuplug help ([a-z]+)`", text)}
    assert {"signatures", "gradients"} <= named
    assert all(shown(topic) for topic in named)
