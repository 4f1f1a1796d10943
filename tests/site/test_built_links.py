"""Every link between the pages of the built site leads to a page and a place that exist."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest

SITE = Path(__file__).resolve().parents[2] / "_build" / "html"


class _Page(HTMLParser):
    """The links and the ids of one page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.ids: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.ids.add(value)
            elif value and (tag, name) in {("a", "href"), ("img", "src"), ("link", "href"), ("script", "src")}:
                self.links.add(value)


def test_no_link_is_broken() -> None:
    if not (SITE / "index.html").is_file():
        pytest.fail("The site is not built: run `make book`, or `make test`, which does.")
    files = [path for path in SITE.rglob("*.html") if "_static" not in path.parts]
    pages = {path.resolve(): _Page(path.read_text(encoding="utf-8")) for path in files}
    broken = []
    for path, page in pages.items():
        for link in page.links:
            address, place = urldefrag(link)
            if "://" in address or link.startswith(("mailto:", "data:")):
                continue
            target = (path.parent / unquote(address.partition("?")[0])).resolve() if address else path
            if not target.is_file():
                broken.append(f"{path.relative_to(SITE)}: {link}")
            elif place and target in pages and unquote(place) not in pages[target].ids:
                broken.append(f"{path.relative_to(SITE)}: {link} (no such place)")
    assert not broken


def test_pages_ask_nothing_of_other_sites() -> None:
    """No script, style or picture with an outside address; links to read elsewhere are fine."""
    for path in SITE.rglob("*.html"):
        page = path.read_text(encoding="utf-8")
        for mark in ('src="http', "src='http", 'src="//', 'rel="stylesheet" href="http', "@import url(http"):
            assert mark not in page, f"{path.relative_to(SITE)} holds {mark}"
