"""Spoilt progress, imported and found in the storage: added rightly or refused in words, and never half."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from conftest import serving, watch
from playwright.sync_api import Browser
from practice_site import SITE_SOURCES

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
import fuzz_progress

pytestmark = pytest.mark.browser


def test_spoilt_progress_is_added_rightly_or_refused_whole(browser: Browser, tmp_path: Path) -> None:
    """The first ones fill what may be filled: once, an import that did so made the next answer lose everything."""
    for name in ("practice", "vendor"):
        (tmp_path / name).symlink_to(SITE_SOURCES / name)
    (tmp_path / "index.html").write_text("<!doctype html><html lang=en><title>t</title><link rel=icon href=data:,>")
    context = browser.new_context()
    visit = watch(context)
    with serving(tmp_path) as url:
        visit.page.goto(f"{url}/index.html")
        files = fuzz_progress.texts(300, seed=3)
        found = fuzz_progress.try_all(visit.page, files, limit=20.0)  # another process may hold the core
    assert [(what, files[number][:300]) for number, what in found["faults"]] == []
    assert found["accepted"] + found["refused"] == 300
    assert found["accepted"] > 10 and found["refused"] > 150
    visit.assert_clean()
    context.close()
