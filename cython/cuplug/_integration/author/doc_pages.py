# SPDX-License-Identifier: Apache-2.0
"""The documents in the package: pages, and their sections by heading."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from cuplug._engine.base.flags import PACKAGE

__all__ = ["Page", "anchor_of", "find_text", "read_pages"]

FOLDER = os.path.join(PACKAGE, "docs")
FENCED = re.compile(r"^```.*?^```$", re.M | re.S)
HEADING = re.compile(r"^(#+) (.+)$", re.M)
UNSEEN = re.compile(r"^<!--.*?-->\n|^<picture>.*?</picture>\n|^:::[^\n]*\n", re.M | re.S)


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
        """Return its sections by anchor, each with its subsections."""
        masked = FENCED.sub(lambda block: " " * len(block[0]), self.text)
        found = [(len(m[1]), m[2], m.start()) for m in HEADING.finditer(masked)]
        parts = {}
        for k, (depth, title, begin) in enumerate(found[1:], 1):
            end = next((at for d, _, at in found[k + 1 :] if d <= depth), len(self.text))
            parts[anchor_of(title)] = self.text[begin:end].rstrip() + "\n"
        return parts


def find_text(pages: list[Page], topic: str) -> str:
    """Return the page with a name, or the first section with that heading; "" if none exists.

    Topics have the form "loading", "security" or "loading#security".
    """
    wanted = anchor_of(topic.removeprefix("docs/").replace(".md", ""))
    name, _, part = wanted.partition("#")
    for page in pages:
        if page.name == wanted:
            return page.text
    for page in pages:
        sections = page.sections()
        if page.name == (name if part else page.name) and (part or wanted) in sections:
            return f"({page.name})\n\n{sections[part or wanted]}"
    return ""


def read_pages() -> list[Page]:
    """Return all pages, by their names."""
    pages = []
    for file in sorted(os.listdir(FOLDER)):
        with open(os.path.join(FOLDER, file), encoding="utf-8") as stream:
            text = stream.read().replace(":::{seealso}", "See also:\n")
        pages.append(Page(file.removesuffix(".md"), UNSEEN.sub("", text)))
    return pages


def anchor_of(title: str) -> str:
    """Return the anchor of a heading, as GitHub creates it."""
    return re.sub(r"[^\w\- #]", "", title.lower()).replace(" ", "-")
