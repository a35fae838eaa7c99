# SPDX-License-Identifier: Apache-2.0
"""Tables: cells below each other, whether they are drawn for a screen or not."""

import io
import sys

import pytest
from cuplug._integration.commands import output


@pytest.fixture
def screen(monkeypatch):
    """Have the standard output be a screen."""
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


def test_a_narrow_screen_hides_no_text(monkeypatch):
    """Paths that differ at their end are wrapped, not cut."""
    screen = Screen()
    for name, value in (("COLUMNS", "80"), ("TERM", "dumb"), ("NO_COLOR", "1")):
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stdout", screen)
    rows = [(name, "1.0", "cpu, cuda", f"/opt/{'long/' * 20}lib{name}.so") for name in ("ab", "cd")]
    output.print_table(("plugin", "version", "sides", "file"), rows)
    lines = screen.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    start = lines[0].index("file")
    text = "".join(line[start:].strip() for line in lines[1:])
    assert text == "".join(row[-1] for row in rows)


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
