# SPDX-License-Identifier: Apache-2.0
"""Tables: aligned cells, on a screen or not."""

import io
import sys

import pytest
from cuplug._integration.commands import output


@pytest.fixture
def screen(monkeypatch):
    """Make the standard output a screen."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("NO_COLOR", "1")


ROWS = [("a", "", "long cell"), ("日本", "b", "")]
DRAWN = ["x     second  third", "a             long cell", "日本  b"]


def test_a_table_in_a_pipe(capsys):
    output.print_table(("x", "second", "third"), iter(ROWS))
    assert capsys.readouterr().out.splitlines() == DRAWN


def test_a_table_on_a_screen(capsys, screen):
    output.print_table(("x", "second", "third"), ROWS)
    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == DRAWN


class Screen(io.StringIO):
    def isatty(self):
        return True


def test_a_narrow_screen_splits_no_word(monkeypatch):
    """The longest column wraps between words, and the last one has its own line."""
    screen = Screen()
    for name, value in (("COLUMNS", "80"), ("TERM", "dumb"), ("NO_COLOR", "1")):
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stdout", screen)
    names = [f"operator_{k}_backward" for k in range(12)]
    rows = [(x, ", ".join(names), "cpu", f"/opt/{'long/' * 20}lib{x}.so") for x in ("ab", "cd")]
    output.print_table(("plugin", "operators", "device_types", "file"), [*rows, ("e", "", "", "")])
    lines = screen.getvalue().splitlines()
    assert max(len(line) for line in lines if "/opt/" not in line) <= 80
    assert [line.strip() for line in lines if "/opt/" in line] == [row[-1] for row in rows]
    column = slice(lines[0].index("operators"), lines[0].index("device_types"))
    words = " ".join(line[column] for line in lines[2:] if "/opt/" not in line).split()
    assert words == [*rows[0][1].split(), *rows[1][1].split()]
    assert lines[-1] == "e"


def test_a_long_table_on_a_screen(capsys, screen):
    rows = [(str(k), "name", "/a/path") for k in range(20_000)]
    output.print_table(("x", "second", "third"), rows)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 20_001
    assert lines[-1] == "19999  name    /a/path"


def test_a_line_break_in_a_cell_breaks_no_line(capsys):
    output.print_table(("reason",), [("two\nlines",)])
    assert capsys.readouterr().out == "reason\ntwo lines\n"


def test_an_empty_table(capsys):
    output.print_table(("only", "headings"), [])
    assert capsys.readouterr().out == "only  headings\n"
