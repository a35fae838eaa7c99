# SPDX-License-Identifier: Apache-2.0
"""How `make site` makes the site of these pages: Sphinx, MyST and Furo."""

import os
import re
from pathlib import Path

import cuplug
from cuplug import array_api

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent

project = "cuplug"
release = version = cuplug.__version__
copyright = "the cuplug authors"
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
    "hawkmoth",
]
exclude_patterns = ["pictures", "_templates"]

html_theme = "furo"
html_title = f"cuplug {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_search_scorer = str(HERE / "scorer.js")
templates_path = ["_templates"]
html_copy_source = False
html_last_updated_fmt = None
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"

myst_heading_anchors = 4
myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist"]
suppress_warnings = ["myst.strikethrough"]

default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints = "none"
napoleon_use_ivar = True
napoleon_use_rtype = False
napoleon_preprocess_types = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

HEADERS = ROOT / "build" / "site-headers"  # with the comments of members where hawkmoth reads them
hawkmoth_root = str(HEADERS)
hawkmoth_clang_c = ["-std=c11", f"-I{ROOT / 'include'}"]
hawkmoth_clang_cpp = ["-std=c++17", f"-I{ROOT / 'include'}"]
MEMBER = re.compile(r"^( +)([^/\n]+[;,]) +/\*( .*?\*/)$", re.M | re.S)

HEADERS.mkdir(parents=True, exist_ok=True)
for header in (ROOT / "include" / "cuplug").iterdir():
    text = MEMBER.sub(
        lambda x: f"{x[1]}/** {' '.join(x[3].split())}\n{x[1]}{x[2]}", header.read_text()
    )
    (HEADERS / header.name).write_text(text)

# Pages that are files elsewhere in the repository.
RESULTS = "benchmarks/results"
BORROWED = {
    "reference/changes": "CHANGELOG.md",
    "reference/contributing": "CONTRIBUTING.md",
    "reference/instructions": f"{RESULTS}/instructions-x86-64.md",
    "reference/measured": f"{RESULTS}/nvidia-h100-80gb-hbm3-16-cores.md",
    "reference/measured-model": f"{RESULTS}/model-nvidia-h200-16-cores.md",
    "reference/measured-on-an-h200": f"{RESULTS}/nvidia-h200-16-cores.md",
    "reference/measured-on-several-gpus": (
        f"{RESULTS}/several-gpus-2-x-nvidia-h100-80gb-hbm3-32-cores.md"
    ),
    "reference/measured-without-a-gpu": f"{RESULTS}/amd-epyc-2-cores.md",
}
PAGE_OF = {ROOT / file: page for page, file in BORROWED.items()}
LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]*)\]\((?P<path>[^)#:\s]+)(?P<anchor>#[^)\s]*)?\)")
PICTURE = re.compile(r"!\[(?P<alt>[^\]]+)\]\((?P<path>[^)]*pictures/[\w-]+\.svg)\)")
SCHEME = "@media (prefers-color-scheme: dark)"
SCHEMES = {"light": "@media not all", "dark": "@media all"}
PICTURES = ROOT / "build" / "site-pictures"
FUNCTIONS = re.compile(r"<!-- functions of ([\w. ]+) -->")
EMPTY_HEADING = re.compile(r"<th( [^>]*)><p></p></th>")
TOGETHER = re.compile(r"^:(?:ivar|vartype) [^:]*(?=:)")
NO_SEARCH = "---\nnosearch: true\n---\n\n"  # of pages with tables of figures
THEMED = "```{{image}} {path}\n:alt: {alt}\n:class: only-{theme}\n```\n"


def link(found: re.Match[str], folder: Path, page: Path) -> str:
    """Return a link of a text in `folder` as it is on `page`; to a folder, its words."""
    file = (folder / found["path"]).resolve()
    if not file.exists():
        return "\\" + found[0]
    if file.is_dir():
        return found["text"]
    target = HERE / f"{PAGE_OF[file]}.md" if file in PAGE_OF else file
    return f"[{found['text']}]({os.path.relpath(target, page)}{found['anchor'] or ''})"


def show(found: re.Match[str], folder: Path, page: Path) -> str:
    """Return a picture once in each scheme, as the reader may choose another than the system's."""
    file, blocks = folder / found["path"], []
    PICTURES.mkdir(parents=True, exist_ok=True)
    for theme, query in SCHEMES.items():
        drawn = PICTURES / f"{file.stem}-{theme}.svg"
        drawn.write_text(file.read_text().replace(SCHEME, query))
        path = os.path.relpath(drawn, page)
        blocks.append(THEMED.format(path=path, alt=found["alt"], theme=theme))
    return "".join(["````{container} picture\n", *blocks, "````\n"])


def list_functions(found: re.Match[str]) -> str:
    """Return the entries of modules of `cuplug.array_api`: autodoc finds no members of it."""
    names = " ".join(array_api._MODULES[module] for module in found[1].split()).split()
    lines = []
    for name in sorted(names):
        x = getattr(array_api, name)
        kind = "class" if isinstance(x, type) else "function" if callable(x) else "data"
        lines.append(f".. auto{kind}:: cuplug.array_api.{name}")
        lines += ["   :no-value:"] if kind == "data" else []
    return "\n".join(["```{eval-rst}", *lines, "```"])


def read_page(app: object, name: str, source: list[str]) -> None:
    """Take what GitHub would show as this site shows it."""
    page = (HERE / name).parent
    file = ROOT / BORROWED[name] if name in BORROWED else HERE / f"{name}.md"
    text = PICTURE.sub(lambda found: show(found, file.parent, page), file.read_text())
    text = FUNCTIONS.sub(list_functions, text)
    text = LINK.sub(lambda found: link(found, file.parent, page), text)
    source[0] = f"{NO_SEARCH}{text}" if RESULTS in BORROWED.get(name, "") else text


def read_comment(app: object, lines: list[str], transform: object, options: object) -> None:
    """Make reStructuredText of a comment in a header, which is plain text with `code` in it."""
    lines[-1] = re.sub(r"^\s+\*\s", "", lines[-1])
    text = "\n".join(lines)
    parts = text.split("`")
    parts[::2] = (re.sub(r"[*|]|_(?=\W|$)", r"\\\g<0>", part) for part in parts[::2])
    lines[:] = "`".join(parts).splitlines()


def read_docstring(app: object, *what: object) -> None:
    """Keep together the names of attributes that share a line: Sphinx ends a type at a space."""
    lines = what[-1]
    lines[:] = [TOGETHER.sub(lambda found: found[0].replace(", ", ",\u200b"), x) for x in lines]


def show_page(app: object, page: str, template: str, context: dict, doctree: object) -> None:
    """Make a heading of a column that says nothing a cell, which nobody reads out."""
    context["body"] = EMPTY_HEADING.sub(r"<td\1></td>", context.get("body", ""))


def setup(app: object) -> dict[str, object]:
    """Register what this site adds to Sphinx."""
    app.connect("source-read", read_page)
    app.connect("hawkmoth-process-docstring", read_comment)
    app.connect("autodoc-process-docstring", read_docstring, priority=900)  # after napoleon
    app.connect("html-page-context", show_page)
    return {"version": version, "parallel_read_safe": True}
