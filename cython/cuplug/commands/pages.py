# SPDX-License-Identifier: Apache-2.0
"""The documents as they come with the package: `cuplug help`."""

from __future__ import annotations

import difflib
import os
import re
import sys
from dataclasses import dataclass

import click

from cuplug.base.flags import PACKAGE
from cuplug.errors import NotFoundError

FOLDER = os.path.join(PACKAGE, "docs")
FENCED = re.compile(r"^```.*?^```$", re.M | re.S)
HEADING = re.compile(r"^(#+) (.+)$", re.M)
UNSEEN = re.compile(r"^<!--.*?-->\n|^<picture>.*?</picture>\n", re.M | re.S)


@dataclass
class Page:
    """One document."""

    name: str
    text: str

    @property
    def title(self) -> str:
        """Return its first heading."""
        return self.text.partition("\n")[0].removeprefix("# ")

    def sections(self) -> dict[str, str]:
        """Return its parts by their anchors, each with the parts below it."""
        masked = FENCED.sub(lambda block: " " * len(block[0]), self.text)
        found = [(len(m[1]), m[2], m.start()) for m in HEADING.finditer(masked)]
        parts = {}
        for k, (depth, title, begin) in enumerate(found[1:], 1):
            end = next((at for d, _, at in found[k + 1 :] if d <= depth), len(self.text))
            parts[_anchor(title)] = self.text[begin:end].rstrip() + "\n"
        return parts


def show_topics() -> None:
    """List the pages."""
    from cuplug.commands.output import print_lines, print_table

    print_table(("topic", ""), [(page.name, page.title) for page in _pages()])
    what = "a page, a part of one by its heading, or a command's options"
    print_lines(["", f"`cuplug help TOPIC` shows {what}."])


def show_topic(topic: str, group: click.Group, context: click.Context) -> None:
    """Show a page, a part of one, or what a command takes.

    Raises
    ------
    NotFoundError
        There is nothing of that name.
    """
    pages = {page.name: page for page in _pages()}
    wanted = _anchor(topic.removeprefix("docs/").replace(".md", ""))
    page, _, part = wanted.partition("#")
    commands = group.commands
    if page in commands:
        with click.Context(commands[page], parent=context, info_name=page) as inner:
            click.echo(commands[page].get_help(inner))
        return
    texts = [pages[wanted].text] if wanted in pages else []
    for name in [page] if part and page in pages else pages:
        found = pages[name].sections()
        texts += [f"({name})\n\n{found[x]}" for x in (part or wanted,) if not texts and x in found]
    if not texts:
        known = [*pages, *commands, *(x for p in pages.values() for x in p.sections())]
        near = difflib.get_close_matches(wanted, known, 3)
        advice = f"; did you mean {' or '.join(near)}?" if near else ""
        raise NotFoundError(f"help: {topic}: no page, heading or command of that name{advice}")
    _show("\n".join(texts))


def _pages() -> list[Page]:
    pages = []
    for file in sorted(os.listdir(FOLDER)):
        with open(os.path.join(FOLDER, file), encoding="utf-8") as stream:
            pages.append(Page(file.removesuffix(".md"), UNSEEN.sub("", stream.read())))
    return pages


def _anchor(title: str) -> str:
    return re.sub(r"[^\w\- #]", "", title.lower()).replace(" ", "-")


def _show(text: str) -> None:
    """Lay it out on a screen, page by page; a pipe gets the text."""
    if not sys.stdout.isatty():
        click.echo(text, nl=False)
        return
    from rich.console import Console
    from rich.markdown import Markdown

    console = Console()
    with console.pager(styles=True):
        console.print(Markdown(text))
