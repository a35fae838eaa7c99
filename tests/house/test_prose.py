# SPDX-License-Identifier: Apache-2.0
"""The words of documents, docstrings of public modules, comments of headers, and messages.

Each wording has a limit of matches per 10,000 words, which leaves room for legitimate uses.
"""

import re
import subprocess
from pathlib import Path

import pytest
from places import ROOT

WORDINGS = {  # name: (pattern, limit, what to write instead)
    "alone": (r"\balone\b", 1, "only; on its own"),
    "beside": (r"\bbeside\b", 1, "next to; compared with"),
    "those of": (r"\b(?:those|that) of\b", 6, "the name of the thing"),
    "lies, stands": (r"\b(?:lies?|stands?|stood)\b", 1, "is; is stored; represents"),
    "what": (r"\bwhat (?:is|it|they|are|was|has|have|an?|the|no|can|one|each|you)\b", 4, "a noun"),
    "too": (r",? too(?=[.;:,)]|\s*$)", 1, "also, before the verb"),
    "is no": (
        r"(?<!there )\b(?:is|are|was|were) (?:no(?! (?:longer|more|one))|(?-i:none))\b",
        3,
        "not",
    ),
    "where": (r"\bwhere (?:there|one|none|it|they|that|all|nobody|you) ", 3, "if; when"),
    "says": (r"\b(?:says?|said|tells?|told|asks?|asked|wants?|wanted|knows?)\b", 12, "reports"),
    "behind": (r"\b(?:behind|anew|for ever|likewise|whoever|nobody|somebody)\b", 2, "after; again"),
    "come to": (r"\b(?:come|comes|came) to\b|\bput in order\b|\bheld against\b", 1, "total; sort"),
    "as many": (r"\bas many\b|\bsome \d|\ba half\b", 2, "the same number of; about 50"),
    "least": (r"(?<!at )\b(?:least|greatest)\b", 3, "minimum, maximum; smallest, largest"),
}
CHAINS = {";": (r"[^.]*;[^.;]*;[^.]*\.|[^.:]*:\s[^.:]*:\s[^.]*\.", 8, "two sentences")}
LONG = 30  # words of a sentence
MOST_LONG = 3  # percent
# Passive forms in messages: "x: got 3, expected 4" has one order.
OLD_MESSAGE = re.compile(r'"[^"\n]*\b(?:(?:is|are) (?:expected|wanted)|seen .*, wanted)\b[^"\n]*"')
PUBLIC = ("*.py", "array_api/**/*.py*", "random/*.py*", "_engine/lookup/*.py*")
NO_PROSE = re.compile(
    r"^( *)(```+|:::+).*?^ *\2\s*$|<!--.*?-->|<picture>.*?</picture>", re.S | re.M
)


def plain(text: str) -> str:
    """Return text in one line, without code, links' targets and markup."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(text.split()))
    return re.sub(r"``?[^`]+``?|SPDX\S+ \S+|<[^>]+>|https?://\S+|[*_#>|]+", " ", text)


def documents() -> dict[Path, list[str]]:
    """Return the paragraphs of each document."""
    pages = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
    texts = {page: NO_PROSE.sub("", page.read_text()) for page in pages}
    block = re.compile(r"\n\s*\n|\n(?=\s*[-|] )")
    return {page: [plain(x) for x in block.split(text)] for page, text in texts.items()}


def interfaces() -> dict[Path, list[str]]:
    """Return the docstrings of public modules, and the comments of headers."""
    package, headers = ROOT / "cython" / "cuplug", ROOT / "include" / "cuplug"
    modules = {path for pattern in PUBLIC for path in package.glob(pattern)}
    found = {path: re.findall(r'"""(.*?)"""', path.read_text(), re.S) for path in sorted(modules)}
    for path in sorted(headers.iterdir()):
        comments = re.findall(r"/\*+(.*?)\*/", path.read_text(), re.S)
        found[path] = [re.sub(r"(?m)^\s*\*", "", comment) for comment in comments]
    return {path: [plain(x.split(">>>")[0]) for x in parts] for path, parts in found.items()}


def complaints(
    texts: dict[Path, list[str]], wordings: dict[str, tuple[str, int, str]]
) -> list[str]:
    """Return the wordings whose limits are exceeded, each with its places."""
    n_words = sum(len(part.split()) for parts in texts.values() for part in parts)
    found = []
    for name, (pattern, limit, instead) in wordings.items():
        places = [
            f"  {path.relative_to(ROOT)}: {part[max(m.start() - 50, 0) : m.end() + 50]}"
            for path, parts in texts.items()
            for part in parts
            for m in re.finditer(pattern, part, re.I)
        ]
        if len(places) * 10_000 > limit * n_words:
            rate = len(places) * 10_000 / n_words
            found += [f'"{name}": {rate:.1f} of at most {limit}; write: {instead}', *places]
    return found


@pytest.mark.parametrize(
    ("read", "wordings"),
    [(documents, WORDINGS | CHAINS), (interfaces, WORDINGS)],
    ids=["documents", "interfaces"],
)
def test_the_words_are_plain(read, wordings):
    texts = read()
    assert sum(len(parts) for parts in texts.values()) > 500
    if found := complaints(texts, wordings):
        pytest.fail("\n".join(found))


def test_sentences_are_short():
    parts = [(path.name, part) for path, parts in documents().items() for part in parts]
    sentences = [
        (page, x) for page, part in parts for x in re.split(r"(?<=[.!?:])\s+(?=[A-Z`])", part)
    ]
    long = [f"{page}: {x}" for page, x in sentences if len(x.split()) > LONG]
    if len(long) * 100 > MOST_LONG * len(sentences):
        pytest.fail("\n".join(long))


def test_messages_have_one_grammar():
    """What was got comes first: it is short, and a remedy follows the expectation."""
    folders = ("core", "runtime", "cython", "plugins")
    command = ["git", "ls-files", "-co", "--exclude-standard", *folders]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    texts = {name: (ROOT / name).read_text() for name in done.stdout.split()}
    found = {name: OLD_MESSAGE.findall(text) for name, text in texts.items()}
    assert {name: old for name, old in found.items() if old} == {}
