"""A real browser on the built site, served on this machine, with every request looked at."""

from __future__ import annotations

import functools
import http.server
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from browser import find_or_install
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, sync_playwright

from minilab.textbook.execute import execute
from minilab.textbook.sources import find_chapters

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "_build" / "html"
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # No other address is looked up, so what a page asks of other sites fails, and is noted below.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]
WITHIN = re.compile(r"http://127\.0\.0\.1:|data:|blob:")


def pages_in_toc(toc: Any) -> list[str]:
    """Every page that a _toc.yml names, without suffix."""
    if isinstance(toc, list):
        return [page for part in toc for page in pages_in_toc(part)]
    if not isinstance(toc, dict):
        return []
    own = [toc[key] for key in ("root", "file") if key in toc]
    return own + [page for value in toc.values() for page in pages_in_toc(value)]


PAGES = pages_in_toc(yaml.safe_load((ROOT / "_toc.yml").read_text()))
EXECUTED = [page for page in PAGES if page.startswith("notebooks/")]
CHAPTERS = [page for page in EXECUTED if not page.startswith("notebooks/lookup/")]  # with a quiz and a clock


@dataclass
class Visit:
    """One page in the browser, with what went wrong on the way."""

    page: Page
    outside: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    console: list[str] = field(default_factory=list)

    def assert_clean(self) -> None:
        assert not self.outside, f"requests left the site: {self.outside}"
        assert not self.failed, f"the server refused: {self.failed}"
        assert not self.console, f"the console holds: {self.console}"


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Serve a folder on a free port of 127.0.0.1; gives the address."""
    handler = functools.partial(_Quiet, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@contextmanager
def book_of(name: str, source: str, root: Path) -> Iterator[str]:
    """Execute and serve a book of one page, with the configuration and scripts of the real one; gives its address."""
    shutil.copy(ROOT / "_config.yml", root)
    shutil.copytree(ROOT / "book" / "site", root / "book" / "site")
    shutil.copy(ROOT / "book" / "references.bib", root / "book")
    (root / "_toc.yml").write_text(f"format: jb-book\nroot: notebooks/basics/{name}\n")
    place = root / "book" / "chapters" / "basics" / f"{name}.md"
    place.parent.mkdir(parents=True)
    place.write_text(source)
    execute(*find_chapters(root))
    command = [str(Path(sys.executable).with_name("jupyter-book")), "build", str(root), "-n", "-W", "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    with serving(root / "_build" / "html") as url:
        yield f"{url}/notebooks/basics/{name}.html"


@contextmanager
def script_alone(browser: Browser, folder: Path, *files: Path) -> Iterator[Page]:
    """An empty page at a phone's width beside copies of `files`, its style sheets in use; it must end clean."""
    for file in files:
        shutil.copy(file, folder)
    styles = "".join(f"<link rel=stylesheet href={file.name}>" for file in files if file.suffix == ".css")
    (folder / "index.html").write_text(
        f"<!doctype html><html lang=en><title>t</title><link rel=icon href=data:,>{styles}"
    )
    context = browser.new_context(viewport={"width": 390, "height": 800})
    visit = watch(context)
    with serving(folder) as url:
        visit.page.goto(f"{url}/index.html")
        yield visit.page
    visit.assert_clean()
    context.close()


def watch(context: BrowserContext) -> Visit:
    """A new page whose requests, refusals, errors and warnings are noted."""
    visit = Visit(context.new_page())
    visit.page.on("request", lambda r: None if WITHIN.match(r.url) else visit.outside.append(r.url))
    visit.page.on("response", lambda r: visit.failed.append(f"{r.status} {r.url}") if r.status >= 400 else None)
    visit.page.on("pageerror", lambda error: visit.console.append(f"page error: {error}"))
    visit.page.on("console", lambda message: visit.console.extend(_complaint(message)))
    return visit


def _complaint(message: ConsoleMessage) -> list[str]:
    """A console message as a complaint, if it is one."""
    return [f"{message.type}: {message.text}"] if message.type in ("error", "warning") else []


def until(page: Page, condition: str, seconds: float = 30) -> None:
    """Wait until an expression is true; asked from here, since the policy of the site's pages forbids
    `wait_for_function`, which evaluates a text within the page.
    """
    end = time.monotonic() + seconds
    while page.evaluate(condition) is not True:
        assert time.monotonic() < end, f"not true within {seconds} s: {condition}"
        page.wait_for_timeout(50)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    program = find_or_install()
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=program, args=QUIET)
        yield running
        running.close()


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    """The address of the built site."""
    if not (SITE / "index.html").is_file():
        pytest.fail("The site is not built: run `make book`, or `make test`, which does.")
    with serving(SITE) as url:
        yield url


@pytest.fixture(scope="session")
def contexts(browser: Browser) -> Iterator[dict[str, BrowserContext]]:
    """The contexts opened so far; pages of the same kind share one, and so its cache."""
    opened: dict[str, BrowserContext] = {}
    yield opened
    for context in opened.values():
        context.close()


@pytest.fixture
def open_page(browser: Browser, contexts: dict[str, BrowserContext], address: str) -> Iterator[Callable[..., Visit]]:
    """A function that opens a page of the site and waits until it is drawn."""
    visits: list[Visit] = []

    def opened(name: str, width: int = 1280, theme: str = "light", clock: bool = False, **options: Any) -> Visit:
        options |= {"viewport": {"width": width, "height": 900}, "color_scheme": theme}
        kind = repr(sorted(options.items())) + str(clock)
        if kind not in contexts:
            contexts[kind] = browser.new_context(**options)
        visit = watch(contexts[kind])
        visits.append(visit)
        if clock:
            visit.page.clock.install()
        visit.page.goto(f"{address}/{name}.html", wait_until="load")
        if options.get("java_script_enabled", True):
            until(visit.page, "!!(window.MathJax && MathJax.startup && MathJax.startup.promise)")
            visit.page.evaluate("async () => { await MathJax.startup.promise; await document.fonts.ready; }")
        return visit

    yield opened
    for visit in visits:
        visit.page.close()
