"""Find a Chromium that starts, or install one: ``python tests/site/browser.py``.

Looked for in this order: $CHROMIUM, chromium or Chrome on PATH, Playwright's own. If there is
none, Debian's is installed where this is root with apt-get, and Playwright's own elsewhere.
If none can be had, the command fails: no browser test is ever skipped.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
MAC = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"
NONE_FOUND = """\
The tests of the site need a Chromium, and none could be found or installed.
Install chromium or Google Chrome so that it is on PATH, or name one in the variable CHROMIUM,
then run again. What was tried:"""


def find() -> str | None:
    """The path of a browser that starts, or None."""
    candidates = [os.environ.get("CHROMIUM"), *map(shutil.which, NAMES), MAC]
    known = next((path for path in candidates if path and _starts(path)), None)
    return known or _playwrights_own()


def find_or_install() -> str:
    """The path of a browser that starts; ``SystemExit`` with what was tried if there is none."""
    tried = []
    found = find()
    for command in _installs():
        if found:
            return found
        print("No browser yet:", " ".join(command), flush=True)
        done = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        tried.append(f"$ {' '.join(command)}\n{done.stdout[-600:]}")
        found = find()
    if found:
        return found
    raise SystemExit("\n".join([NONE_FOUND, *tried]))


def _installs() -> list[list[str]]:
    """The commands that may bring a browser, in the order to try them."""
    own = [sys.executable, "-m", "playwright", "install", "chromium"]
    if sys.platform == "linux" and os.geteuid() == 0 and shutil.which("apt-get"):
        return [["apt-get", "update"], ["apt-get", "install", "-y", "--no-install-recommends", "chromium"], own]
    return [own]


def _starts(path: str) -> bool:
    """Whether the program at ``path`` runs; Ubuntu's chromium, for one, may only be a signpost."""
    try:
        done = subprocess.run([path, "--version"], capture_output=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _playwrights_own() -> str | None:
    """Where Playwright keeps its own Chromium, if it is installed."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    return path if os.path.exists(path) else None


if __name__ == "__main__":
    print("Browser:", find_or_install())
