"""Give every page of the built site a Content-Security-Policy: ``python book/site/policy.py _build/html``.

Run by ``make book`` after everything else. GitHub Pages lets nobody set headers, so the policy is a
<meta> before the first script of each page. It says: nothing from another site, and no script but
files of this site and the few that the theme writes into its pages, each named by its hash. The
hashes are computed here from the page itself. Source: Content Security Policy Level 3, W3C.

What is allowed beyond 'self', and what needs it:

- style-src 'unsafe-inline': MathJax and the widgets write style sheets while the page runs, and
  Pygments, pandas and matplotlib write style attributes. Their text has no hash known beforehand.
- img-src data: the theme's style sheets hold their small icons so.
- On pages with widgets, script-src blob: because anywidget imports a widget's script from a blob,
  and img-src blob: because the Image widget shows its bytes from one.

Nothing needs 'unsafe-eval': see the change to embed-amd.js in vendor.py. frame-ancestors, sandbox
and report-uri are missing because browsers ignore them in a <meta>.
"""

from __future__ import annotations

import base64
import hashlib
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

# The theme's buttons carry a handler in an attribute, which only 'unsafe-hashes' would allow.
# js/fa-config.js listens for these names instead.
PRESSES = {"toggleFullScreen()": "fullscreen", "window.print()": "print"}
WIDGETS = 'type="application/vnd.jupyter.widget-state+json"'
RUNS = ("", "module", "text/javascript", "application/javascript", "importmap")  # other types are data
# <head> and the charset, which must stand in the first 1024 bytes; a page that only redirects has neither.
TOP = re.compile(r"<head>\s*(<meta charset=[^>]*>)?")
OURS = re.compile(r'<meta http-equiv="Content-Security-Policy" content="[^"]*" />\n?')


class Inline(HTMLParser):
    """What a page holds inline: the text of its scripts, and the handlers that no hash can allow."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.scripts: list[str] = []
        self.handlers: list[str] = []
        self._inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note handlers, and whether the text of a script follows."""
        values = {name: (value or "").strip() for name, value in attrs}
        self.handlers += [f"{n}={v}" for n, v in values.items() if n.startswith("on") or v.startswith("javascript:")]
        self._inside = tag == "script" and "src" not in values and values.get("type", "").lower() in RUNS
        if self._inside:
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        """A script ends."""
        self._inside = False

    def handle_data(self, data: str) -> None:
        """A piece of a script's text, or of the page."""
        if self._inside:
            self.scripts[-1] += data


def policy(scripts: list[str], widgets: bool) -> str:
    """The policy of a page.

    Args:
        scripts: the text of each of its inline scripts, as the browser reads it.
        widgets: whether the page holds widgets.
    """
    digests = (hashlib.sha256(text.encode()).digest() for text in scripts)
    hashes = [f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests]
    blob = ["blob:"] if widgets else []
    directives = {
        "default-src": ["'none'"],
        "script-src": ["'self'", *dict.fromkeys(hashes), *blob],
        "style-src": ["'self'", "'unsafe-inline'"],
        "img-src": ["'self'", "data:", *blob],
        "font-src": ["'self'"],
        "connect-src": ["'self'"],  # the cards of the practice page, and the extracts of the search
        "form-action": ["'self'"],  # the search
        "base-uri": ["'none'"],
        "object-src": ["'none'"],
    }
    return "; ".join(f"{name} {' '.join(values)}" for name, values in directives.items())


def with_policy(page: str) -> str:
    """The page with its policy, in place of any that it had, and with no handler in an attribute.

    Raises:
        ValueError: if it holds a handler that is not in PRESSES.
    """
    page = OURS.sub("", page)
    for handler, name in PRESSES.items():
        page = page.replace(f' onclick="{handler}"', f' data-press="{name}"')
    inline = Inline()
    inline.feed(page)
    inline.close()
    if inline.handlers:
        raise ValueError(f"handlers={inline.handlers}: the policy forbids them; allowed are {list(PRESSES)}")
    place = TOP.search(page)
    at = place.end() if place else 0
    value = policy(inline.scripts, WIDGETS in page)
    return f'{page[:at]}<meta http-equiv="Content-Security-Policy" content="{value}" />\n{page[at:]}'


def main(site: Path) -> None:
    """Rewrite every page under a folder."""
    for template in (site / "_static").glob("*webpack-macros.html"):
        template.unlink()  # no page: Sphinx copies it with the theme's scripts
    pages = sorted(site.rglob("*.html"))
    if not pages:
        raise SystemExit(f"{site} holds no page: run make book, which builds them.")
    for path in pages:
        try:
            text = with_policy(path.read_bytes().decode())
        except ValueError as error:
            raise SystemExit(f"{path}: {error}") from error
        path.write_bytes(text.encode())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
