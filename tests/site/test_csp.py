"""Every page of the site keeps its Content-Security-Policy, works under it, and is protected by it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, SITE, Visit, until, watch
from playwright.sync_api import Browser, Page, Route

TOOL = ROOT / "book" / "site" / "policy.py"
META = re.compile(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)" />')
PAGES = sorted(path.relative_to(SITE).as_posix() for path in SITE.rglob("*.html"))
# Kept in the page itself, because a page that is left takes what Python has not asked for with it.
LISTEN = """
window.violations = [];
document.addEventListener('securitypolicyviolation', event => window.violations.push(
  `${event.effectiveDirective} ${event.blockedURI} ${event.sourceFile || ''}:${event.lineNumber}`));
"""
HEAD = '<!DOCTYPE html><html><head>\n<meta charset="utf-8" />'


def directives(page: str) -> dict[str, list[str]]:
    """{directive: its values} of the policy of a page's HTML, which must have exactly one."""
    (value,) = META.findall(page)
    return {part.split()[0]: part.split()[1:] for part in value.split("; ")}


def treated(folder: Path, page: str) -> str:
    """What the tool makes of a page."""
    (folder / "page.html").write_text(page, encoding="utf-8")
    done = subprocess.run([sys.executable, TOOL, folder], capture_output=True, text=True, check=False)
    if done.returncode:
        raise ValueError(done.stderr)
    return (folder / "page.html").read_text(encoding="utf-8")


def test_a_script_in_the_page_is_named_by_its_hash(tmp_path: Path) -> None:
    code = '\n  alert("ü & <b>");\n'
    data = '<script type="application/json">{"on": "data"}</script>'
    page = treated(tmp_path, f'{HEAD}<script>{code}</script><script src="a.js"></script>{data}</head></html>')
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    assert directives(page)["script-src"] == ["'self'", f"'sha256-{digest}'"]
    assert page.index("<meta charset") < page.index("Content-Security-Policy") < page.index("<script")


def test_twice_is_the_same_as_once(tmp_path: Path) -> None:
    once = treated(tmp_path, f"{HEAD}<script>1</script></head><body>text</body></html>")
    assert treated(tmp_path, once) == once


def test_a_known_handler_becomes_a_name_and_another_is_refused(tmp_path: Path) -> None:
    known = treated(tmp_path, f'{HEAD}</head><button onclick="window.print()">p</button></html>')
    assert '<button data-press="print">p</button>' in known
    for bad in ('<img onerror="f()">', '<a href=" javascript:f()">a</a>'):
        with pytest.raises(ValueError, match=r"page\.html: handlers=.*the policy forbids them"):
            treated(tmp_path, f"{HEAD}</head>{bad}</html>")


def test_an_empty_folder_is_said(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, TOOL, tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "holds no page" in done.stderr


@pytest.mark.browser
def test_no_page_allows_more_than_it_needs() -> None:
    assert len(PAGES) > 20, "the site is not built: run make book"
    for name in PAGES:
        page = (SITE / name).read_text(encoding="utf-8")
        found = directives(page)
        blob = ["blob:"] if "widget-state+json" in page else []
        hashes = [value for value in found["script-src"] if re.fullmatch(r"'sha256-[\w+/]{43}='", value)]
        assert found == {
            "default-src": ["'none'"],
            "script-src": ["'self'", *hashes, *blob],
            "style-src": ["'self'", "'unsafe-inline'"],
            "img-src": ["'self'", "data:", *blob],
            "font-src": ["'self'"],
            "connect-src": ["'self'"],
            "form-action": ["'self'"],
            "base-uri": ["'none'"],
            "object-src": ["'none'"],
        }, name
        before = page[: page.index("Content-Security-Policy")]
        assert not re.search(r"<(script|style|link)", before), f"{name}: something is loaded before the policy"
        assert len(before) < 1024 or "charset" in before[:1024], name


@pytest.fixture(scope="module")
def guarded(browser: Browser) -> Iterator[Callable[[], Visit]]:
    """A function that opens an empty page which will note what its policy forbids."""
    context = browser.new_context(accept_downloads=True)
    context.add_init_script(LISTEN)
    yield lambda: watch(context)
    context.close()


def violations(page: Page) -> list[str]:
    return page.evaluate("window.violations")


@pytest.mark.browser
@pytest.mark.parametrize("name", PAGES)
def test_the_page_does_nothing_that_its_policy_forbids(guarded: Callable[[], Visit], address: str, name: str) -> None:
    visit = guarded()
    page = visit.page
    page.goto(f"{address}/{name}")
    if name == "index.html":  # sends the reader on
        page.wait_for_url("**/book/index.html")
    until(page, "!!(window.MathJax && MathJax.startup && MathJax.startup.promise)")
    page.evaluate("async () => { await MathJax.startup.promise; await document.fonts.ready; }")
    widgets = page.locator("script[type='application/vnd.jupyter.widget-view+json']").count()
    if widgets:
        until(page, f"document.querySelectorAll('.widget-subarea > *').length >= {widgets}")
        page.wait_for_load_state("networkidle")
    assert violations(page) == []
    visit.assert_clean()
    page.close()


@pytest.mark.browser
def test_the_search_shows_extracts(guarded: Callable[[], Visit], address: str) -> None:
    visit = guarded()
    visit.page.goto(f"{address}/search.html?q=queue")
    visit.page.locator("#search-results .context").first.wait_for()
    assert violations(visit.page) == []
    visit.assert_clean()


@pytest.mark.browser
def test_the_buttons_of_the_header_still_work(guarded: Callable[[], Visit], address: str) -> None:
    visit = guarded()
    page = visit.page
    page.goto(f"{address}/book/index.html")
    page.evaluate("window.print = () => { window.printed = true; }")
    page.evaluate("document.querySelector('[data-press=print]').click()")
    assert page.evaluate("window.printed") is True
    page.locator("[data-press=fullscreen]").first.click()
    until(page, "document.fullscreenElement !== null")
    assert violations(page) == []
    visit.assert_clean()


@pytest.mark.browser
def test_the_practice_page_works(guarded: Callable[[], Visit], address: str) -> None:
    """Its module, its bank of cards, a drilled card, and the download of what is stored."""
    visit = guarded()
    page = visit.page
    page.goto(f"{address}/book/practice.html")
    page.get_by_role("button", name="Start the drill").click()
    page.get_by_role("button", name="Show the answer").click()
    page.locator(".p-grade.p-main").click()
    page.get_by_role("button", name="Progress").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Export").click()
    assert len(json.loads(Path(download.value.path()).read_text())["reviews"]) == 1
    assert violations(page) == []
    visit.assert_clean()


# What an injection might put on a page, and the directive that stops it.
ATTACKS = {
    "script-src-elem inline": "<script>window.ran = 'script'</script>",
    "script-src-attr inline": "<img src=../_static/favicon.svg onload=\"window.ran = 'handler'\">",
    "script-src-elem data": "<script src=\"data:text/javascript,window.ran='data'\"></script>",
    "script-src-elem https://evil.example/a.js": '<script src="https://evil.example/a.js"></script>',
    "style-src-elem https://evil.example/a.css": '<link rel="stylesheet" href="https://evil.example/a.css">',
    "img-src https://evil.example/a.png": '<img src="https://evil.example/a.png">',
    "frame-src https://evil.example": '<iframe src="https://evil.example/"></iframe>',
    "object-src https://evil.example": '<object data="https://evil.example/a.swf"></object>',
    "base-uri https://evil.example/": '<base href="https://evil.example/">',
}
LATER = """() => new Promise(done => setTimeout(async () => {
  const outcome = {};
  try { outcome.eval = eval('1'); } catch (error) { outcome.eval = error.name; }
  try { outcome.fetch = (await fetch('https://evil.example/')).type; } catch (error) { outcome.fetch = error.name; }
  const link = document.createElement('a');
  link.href = 'javascript:window.ran = "link"';
  document.body.append(link);
  link.click();
  setTimeout(() => done(outcome), 100);
}))"""


def injecting(html: str) -> Callable[[Route], None]:
    """A route that answers with the page as it is, and this at the beginning of its body."""

    def answer(route: Route) -> None:
        response = route.fetch()
        body = re.sub(r"<body[^>]*>", lambda found: found.group() + html, response.text(), count=1)
        assert html in body
        route.fulfill(response=response, body=body)

    return answer


@pytest.mark.browser
def test_what_is_injected_is_blocked(guarded: Callable[[], Visit], address: str) -> None:
    visit = guarded()
    page = visit.page
    ended: dict[str, str | None] = {}
    page.on("requestfailed", lambda request: ended.update({request.url: request.failure}))
    page.route("**/practice.html", injecting("".join(ATTACKS.values())))
    page.goto(f"{address}/book/practice.html")
    outcome: dict[str, Any] = page.evaluate(LATER)
    assert outcome == {"eval": "EvalError", "fetch": "TypeError"}
    assert page.evaluate("window.ran") is None
    seen = [" ".join(violation.split()[:2]) for violation in violations(page)]
    for blocked in [*ATTACKS, "script-src eval", "connect-src https://evil.example/", "script-src-elem inline"]:
        assert blocked in seen, f"nothing blocked {blocked}; blocked were {seen}"
    assert {ended[url] for url in visit.outside} == {"csp"}, "a request ended by something else than the policy"
    page.close()


@pytest.mark.browser
def test_the_same_injection_runs_without_the_policy(guarded: Callable[[], Visit], address: str) -> None:
    """So the test above can fail: it is the policy, and nothing else, that stops the script."""

    def bare(route: Route) -> None:
        response = route.fetch()
        body = META.sub("", response.text()).replace("</head>", "<script>window.ran = 'script'</script></head>")
        route.fulfill(response=response, body=body)

    page = guarded().page
    page.route("**/practice.html", bare)
    page.goto(f"{address}/book/practice.html")
    assert page.evaluate("window.ran") == "script"
    page.close()
