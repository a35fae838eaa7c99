# SPDX-License-Identifier: Apache-2.0
"""The site in a browser, for readers with screen readers or only the keyboard."""

import shutil

import pytest
from places import ROOT

SITE = ROOT / "build" / "site"
# One of each kind: text with code, tables, generated entries, pictures, the search, an index.
PAGES = ("index", "tutorial", "callers", "reference/c", "benchmarks", "search", "genindex")
STANDARDS = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")
WIDE, NARROW = (1280, 900), (375, 800)
FOCUSED = """() => {
  const { activeElement: element } = document, { x, right } = element.getBoundingClientRect();
  const opacity = getComputedStyle(element).opacity;
  return [element.className, x >= 0 && right <= innerWidth && opacity > 0];
}"""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="make site-test installs it")
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None or not SITE.is_dir():
        pytest.skip("needs Chromium, and the site that `make site` makes")
    with (
        playwright.sync_playwright() as run,
        run.chromium.launch(executable_path=chromium, args=["--no-sandbox"]) as started,
    ):
        yield started


def visit(browser, page: str, size: tuple[int, int], scheme: str = "light"):
    width, height = size
    tab = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
    tab.goto((SITE / f"{page}.html").as_uri(), wait_until="load")
    return tab


@pytest.mark.parametrize(("size", "scheme"), [(WIDE, "light"), (NARROW, "dark")])
@pytest.mark.parametrize("page", PAGES)
def test_pages_keep_to_the_rules_of_accessibility(page, size, scheme, browser):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    with visit(browser, page, size, scheme) as tab:
        found = axe.run(tab, options={"runOnly": {"type": "tag", "values": STANDARDS}})
    violations = found.response["violations"]
    assert [(rule["id"], rule["nodes"][0]["html"]) for rule in violations] == []


@pytest.mark.parametrize("symptom", ["gpu not found", "GLIBC", "no CUDA entry", "undefined symbol"])
def test_the_search_finds_symptoms_by_keyboard(symptom, browser):
    with visit(browser, "index", WIDE) as tab:
        tab.keyboard.press("/")
        tab.keyboard.type(symptom)
        tab.keyboard.press("Enter")
        tab.wait_for_selector("ul.search li")
        first = tab.locator("ul.search li > a").first.inner_text()
    assert first.startswith("Troubleshooting")


@pytest.mark.parametrize("size", [WIDE, NARROW])
def test_what_the_keyboard_reaches_is_seen(size, browser):
    with visit(browser, "tutorial", size) as tab:
        tab.add_style_tag(content="* { transition: none !important; }")
        reached = []
        for _ in range(120):
            tab.keyboard.press("Tab")
            reached.append(tab.evaluate(FOCUSED))
        kinds = " ".join(kind for kind, _ in reached)
        for kind in ("skip-to-content", "sidebar-search", "reference", "copybtn"):
            assert kind in kinds
    unseen = [kind for kind, is_seen in reached if not is_seen]
    assert unseen == []
