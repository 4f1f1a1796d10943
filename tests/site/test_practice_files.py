"""Export, import and reset on the practice page: nothing is lost, and a bad file changes nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from conftest import Visit
from playwright.sync_api import Browser, Page
from practice_site import (
    DAY,
    HOSTILE,
    NOON,
    PAST,
    answer_card,
    changed,
    export,
    history,
    practice,
    press,
    put,
    ready,
    reset_everything,
    reviews,
    stored,
)

pytestmark = pytest.mark.browser
Open = Callable[..., Visit]


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Open]:
    """A function that opens the page with what `practice` takes."""
    with ExitStack() as stack:
        yield lambda **options: stack.enter_context(practice(browser, tmp_path, **options))


def bring(page: Page, text: str | bytes) -> str:
    """Import a file with this content; what the page says of it."""
    press(page, "Progress")
    page.evaluate("document.querySelector('.p-outcome').textContent = ''")
    content = text.encode() if isinstance(text, str) else text
    page.locator("#p-import").set_input_files({"name": "a.json", "mimeType": "application/json", "buffer": content})
    page.wait_for_function("document.querySelector('.p-outcome').textContent !== ''")
    return page.locator(".p-outcome").inner_text()


def test_export_reset_import_gives_the_same_state(opened: Open) -> None:
    page = opened(init_script=put(PAST)).page
    press(page, "Start the drill")
    answer_card(page)
    before = reviews(page)
    text = export(page)
    shown = page.locator(".p-host").inner_text()
    assert json.loads(text) == stored(page)
    reset_everything(page)
    assert reviews(page) == {}
    assert "0 of 8 cards answered" in page.locator(".p-count").inner_text()
    assert bring(page, text) == "Imported: 5 answers added."
    assert reviews(page) == before
    page.reload()
    ready(page)
    assert reviews(page) == before
    assert page.locator(".p-host").inner_text() == shown
    assert bring(page, text) == "Imported: all its answers were here already."


def test_an_import_adds_and_never_takes_away(opened: Open) -> None:
    page = opened(init_script=put(PAST)).page
    other = history(queue_what=[(-9, 3), (-5, 3)], log_read=[(-3, 2)])
    assert bring(page, other) == "Imported: 2 answers added."
    days = {name: [((time - NOON) / DAY, grade) for time, grade in log] for name, log in reviews(page).items()}
    assert days == {
        "queue-what": [(-9, 3), (-5, 3), (-2, 1)],
        "queue-age": [(-90, 3)],
        "momentum-why": [(-1, 3)],
        "log-read": [(-3, 2)],
    }


BAD_FILES = {
    "not JSON": ("{", "it is not JSON"),
    "another file": ('{"a": 1}', "it is not progress that this page exported"),
    "a list": ("[]", "it is not progress"),
    "newer": (changed(version=2), "newer version of this page (2; this page knows 1)"),
    "older": (changed(version=0), "its version 0 was never in use"),
    "no version": (changed(version="1"), "does not say its version"),
    "more fields": (changed(extra=HOSTILE), "it holds the unknown field “extra”"),
    "hostile field": (changed(**{HOSTILE: 1}), "it holds the unknown field"),
    "hostile card": (changed(reviews={HOSTILE: [[NOON, 3]]}), "is not the name of a card"),
    "prototype": (PAST.replace('"queue-what"', '"__proto__"'), "“__proto__” is not the name of a card"),
    "no list": (changed(reviews={"a": {}}), "the reviews of “a” are not a list"),
    "empty list": (changed(reviews={"a": []}), "the reviews of “a” are not a list"),
    "grade": (changed(reviews={"a": [[NOON, 5]]}), "hold a grade other than 1 to 4"),
    "time": (changed(reviews={"a": [[1e30, 3]]}), "hold a time that cannot be"),
    "half a review": (changed(reviews={"a": [[NOON]]}), "something other than a time and a grade"),
    "too many": (changed(reviews={"a": [[NOON, 3]] * 5001}), "are more than 5000"),
    "too big": (" " * 2_000_001, "it is larger than 2 MB"),
    "not text": (b"\xff\xfe\x00", "it is not JSON"),
}


def test_a_bad_file_changes_nothing_and_says_why(opened: Open) -> None:
    page = opened(init_script=put(PAST)).page
    for name, (text, why) in BAD_FILES.items():
        said = bring(page, text)
        assert said.startswith("Nothing was changed. The file cannot be imported:"), name
        assert why in said, name
        assert stored(page) == json.loads(PAST), name


def test_a_chapter_can_be_reset_alone(opened: Open) -> None:
    page = opened(init_script=put(PAST)).page
    press(page, "Progress")
    page.get_by_label("Chapter", exact=True).select_option("solid/queue")
    press(page, "Reset this chapter")
    assert "Forget 3 answers of “The queue”?" in page.locator("dialog").inner_text()
    press(page, "Keep it")
    assert len(reviews(page)) == 3
    press(page, "Reset this chapter")
    press(page, "Forget them")
    assert list(reviews(page)) == ["momentum-why"]
    assert page.locator(".p-outcome").inner_text() == "Forgotten: 3 answers of “The queue”."
    press(page, "Reset this chapter")
    assert "There is no history" in page.locator(".p-outcome").inner_text()
