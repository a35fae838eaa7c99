# SPDX-License-Identifier: Apache-2.0
"""The words of documents, docstrings, comments and messages.

Each wording has a limit of matches per 10,000 words, which leaves room for legitimate uses.
"""

import ast
import re
import subprocess
from pathlib import Path

import pytest
from places import ROOT

WORDINGS = {  # name: (pattern, limit, what to write instead)
    "alone": (r"\balone\b", 0.5, "only; on its own"),
    "beside": (r"\bbeside\b", 0.5, "next to; compared with"),
    "those of": (r"\b(?:those|that) of\b", 2, "the name of the thing"),
    "lies, stands": (r"\b(?:lies?|stands?|stood)\b", 0.8, "is; is stored; represents"),
    "what": (r"\bwhat (?:is|it|they|are|was|has|have|an?|the|no|can|one|each|you)\b", 2, "a noun"),
    "too": (r",? too(?=[.;:,)]|\s*$)", 1, "also, before the verb"),
    "is no": (
        r"(?<!there )\b(?:is|are|was|were) (?:no(?! (?:longer|more|one))|(?-i:none))\b",
        1,
        "not",
    ),
    "where": (r"\bwhere (?:there|one|none|it|they|that|all|nobody|you) ", 2.5, "if; when"),
    "says": (r"\b(?:says?|said|tells?|told|asks?|asked|wants?|wanted|knows?)\b", 2.5, "reports"),
    "behind": (
        r"\b(?:behind|anew|for ever|likewise|whoever|nobody|somebody)\b",
        1.5,
        "after; again",
    ),
    "come to": (
        r"\b(?:come|comes|came) to\b|\bput in order\b|\bheld against\b",
        0.5,
        "total; sort",
    ),
    "as many": (r"\bas many\b|\bsome \d|\ba half\b", 2, "the same number of; about 50"),
    "least": (r"(?<!at )\b(?:least|greatest)\b", 1, "minimum, maximum; smallest, largest"),
}
CHAINS = {";": (r"[^.]*;[^.;]*;[^.]*\.|[^.:]*:\s[^.:]*:\s[^.]*\.", 4, "two sentences")}
LONG = 30  # words of a sentence
MOST_LONG = 2.5  # percent
# Passive forms in messages: "x: got 3, expected 4" has one order.
OLD_MESSAGE = re.compile(r'"[^"\n]*\b(?:(?:is|are) (?:expected|wanted)|seen .*, wanted)\b[^"\n]*"')
PUBLIC = ("*.py", "array_api/**/*.py*", "random/*.py*", "_engine/lookup/*.py*")
FOLDERS = ("core", "runtime", "include", "cython", "plugins")
FOLDERS += ("build_backend", "benchmarks", "examples", "tests")
SUFFIXES = {".py", ".pyx", ".pxd", ".c", ".h", ".hpp", ".cpp", ".cu", ".cuh"}
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef)
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


def notes(path: Path) -> list[str]:
    """Return the docstrings and comments of a source file."""
    text = path.read_text()
    if path.suffix not in (".py", ".pyx", ".pxd"):
        found = re.findall(r"(?s)/\*+(.*?)\*/|//+ ([^\n]*)", text)
        return [plain(re.sub(r"(?m)^\s*\*", "", block or line)) for block, line in found]
    comments = re.findall(r"(?m)(?:^|  ) *# (.*(?:\n *# .*)*)", text)
    docstrings = re.findall(r'(?sm)^ *"""(.*?)"""', text)
    if path.suffix == ".py":  # where such a text may also be code
        nodes = (x for x in ast.walk(ast.parse(text)) if isinstance(x, DOCUMENTED))
        docstrings = [ast.get_docstring(x) or "" for x in nodes]
    return [plain(x.split(">>>")[0]) for x in docstrings + comments]


def tracked(*folders: str) -> list[Path]:
    """Return the files of folders that git tracks or would add."""
    command = ["git", "ls-files", "-co", "--exclude-standard", *folders]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / name for name in done.stdout.split() if (ROOT / name).exists()]


def interfaces() -> dict[Path, list[str]]:
    """Return the docstrings and comments of public modules and headers."""
    modules = [path for pattern in PUBLIC for path in (ROOT / "cython" / "cuplug").glob(pattern)]
    return {path: notes(path) for path in [*modules, *(ROOT / "include" / "cuplug").iterdir()]}


def sources() -> dict[Path, list[str]]:
    """Return the docstrings and comments of all sources."""
    return {path: notes(path) for path in tracked(*FOLDERS) if path.suffix in SUFFIXES}


def complaints(
    texts: dict[Path, list[str]], wordings: dict[str, tuple[str, float, str]]
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
    [(documents, WORDINGS | CHAINS), (interfaces, WORDINGS), (sources, WORDINGS)],
    ids=["documents", "interfaces", "sources"],
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
    """`got` comes first: its value is short, and a remedy follows the expectation."""
    files = tracked("core", "runtime", "cython", "plugins")
    found = {path: OLD_MESSAGE.findall(path.read_text()) for path in files}
    assert {path: old for path, old in found.items() if old} == {}
