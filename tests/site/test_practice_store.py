"""The history on the practice page: kept whole over reloads, tabs, bad files, a full storage and a changed bank."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from conftest import Visit
from playwright.sync_api import Browser, Page
from practice_site import (
    BANK,
    DAY,
    HOSTILE,
    KEY,
    NOON,
    answer_card,
    card,
    history,
    practice,
    press,
    put,
    question,
    ready,
    reviews,
    second_tab,
    stored,
    write_bank,
)

pytestmark = pytest.mark.browser
Open = Callable[..., Visit]
PAST = history(queue_what=[(-9, 3), (-2, 1)], queue_age=[(-90, 3)], momentum_why=[(-1, 3)])
FORBIDDEN = (
    "Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('no', 'SecurityError'); } })"
)
FULL = """{ const real = Storage.prototype.setItem; window.full = true;
Storage.prototype.setItem = function (key, text) {
  if (window.full && this === localStorage) throw new DOMException("full", "QuotaExceededError");
  real.call(this, key, text);
}; }"""


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Open]:
    """A function that opens the page with what `practice` takes."""
    with ExitStack() as stack:
        yield lambda **options: stack.enter_context(practice(browser, tmp_path, **options))


def export(page: Page) -> str:
    """The text of the file that the button gives."""
    press(page, "Progress")
    with page.expect_download() as download:
        press(page, "Export")
    assert download.value.suggested_filename.startswith("contrastive-practice-20")
    return Path(download.value.path()).read_text(encoding="utf-8")


def bring(page: Page, text: str | bytes) -> str:
    """Import a file with this content; what the page says of it."""
    press(page, "Progress")
    page.evaluate("document.querySelector('.p-outcome').textContent = ''")
    content = text.encode() if isinstance(text, str) else text
    page.locator("#p-import").set_input_files({"name": "a.json", "mimeType": "application/json", "buffer": content})
    page.wait_for_function("document.querySelector('.p-outcome').textContent !== ''")
    return page.locator(".p-outcome").inner_text()


def reset_everything(page: Page) -> None:
    press(page, "Progress")
    press(page, "Reset everything")
    press(page, "Forget them")


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


def changed(**fields: Any) -> str:
    return json.dumps(json.loads(PAST) | fields)


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


def test_two_tabs_lose_nothing(opened: Open) -> None:
    visit = opened()
    one, other = visit.page, second_tab(visit).page
    for page in (one, other):
        press(page, "Start the drill")
    first = question(one)
    assert first == question(other)
    answer_card(one)
    answer_card(other, points=0)  # the same card, a second later
    answer_card(one)
    answer_card(other)
    assert [grade for _, grade in reviews(one)["queue-what"]] == [3, 1]
    assert sum(map(len, reviews(one).values())) == 4
    press(one, "Progress")
    assert "answered at least once" in one.locator(".p-count").inner_text()
    answer_card(other)
    one.wait_for_function("document.querySelector('.p-count').textContent.startsWith('3 of')")
    reset_everything(one)
    answer_card(other)
    assert sum(map(len, reviews(one).values())) == 1, "what was forgotten in one tab does not come back from the other"
    other.close()


def test_what_another_tab_wrote_unheard_is_read_before_a_write(opened: Open) -> None:
    page = opened(init_script=put(PAST)).page
    more = json.loads(PAST)
    more["reviews"] |= json.loads(history(log_read=[(-3, 2)]))["reviews"]
    page.evaluate("([key, text]) => localStorage.setItem(key, text)", [KEY, json.dumps(more)])  # no event comes of this
    press(page, "Start the drill")
    answer_card(page)
    assert reviews(page)["log-read"] == more["reviews"]["log-read"]
    assert sum(map(len, reviews(page).values())) == 6


def test_a_write_of_another_tab_that_came_last_is_mended(opened: Open) -> None:
    visit = opened(init_script=put(PAST))
    page, other = visit.page, second_tab(visit).page
    press(page, "Start the drill")
    answer_card(page)
    mine = {name: log for name, log in reviews(page).items() if log != json.loads(PAST)["reviews"].get(name)}
    assert len(mine) == 1
    merged = json.loads(PAST)
    merged["reviews"] |= json.loads(history(log_read=[(-3, 2)]))["reviews"]
    other.evaluate(
        "([key, text]) => localStorage.setItem(key, text)", [KEY, json.dumps(merged)]
    )  # read before we wrote
    page.wait_for_function(f"localStorage.getItem('{KEY}').includes('{next(iter(mine))}')")
    page.wait_for_timeout(300)
    assert reviews(page) == merged["reviews"] | mine
    other.close()


def test_a_spoilt_store_is_set_aside_and_said(opened: Open) -> None:
    page = opened(init_script=put('{"format": "contrastive-minilab-practice", "version": 1')).page
    said = page.locator(".p-trouble").inner_text()
    assert "could not be read: it is not JSON" in said
    aside = page.evaluate("Object.keys(localStorage).filter((key) => key.includes('set-aside'))")
    assert len(aside) == 1
    assert aside[0] in said
    assert page.evaluate("(key) => localStorage.getItem(key)", aside[0]).startswith('{"format"')
    press(page, "Start the drill")
    answer_card(page)
    assert len(reviews(page)) == 1
    page.reload()
    ready(page)
    assert len(reviews(page)) == 1
    assert page.locator(".p-trouble").inner_text() == ""


def test_a_store_spoilt_during_the_visit_costs_nothing(opened: Open) -> None:
    page = opened(init_script=put(PAST)).page
    page.evaluate(f"localStorage.setItem('{KEY}', 'oops')")
    press(page, "Start the drill")
    answer_card(page)
    assert sum(map(len, reviews(page).values())) == 5
    assert "set aside" in page.locator(".p-trouble").inner_text()


def test_a_newer_store_is_left_as_it_is(opened: Open) -> None:
    page = opened(init_script=put(changed(version=2))).page
    assert "newer version" in page.locator(".p-trouble").inner_text()
    press(page, "Start the drill")
    answer_card(page)
    assert stored(page) == json.loads(changed(version=2))


@pytest.mark.parametrize("script", [FORBIDDEN, FORBIDDEN + ";" + FORBIDDEN.replace("localStorage", "sessionStorage")])
def test_a_forbidden_storage_is_said_and_the_page_works(opened: Open, script: str) -> None:
    page = opened(init_script=script).page
    assert "does not let the page store anything" in page.locator(".p-trouble").inner_text()
    press(page, "Start the drill")
    answer_card(page)
    answer_card(page)
    assert len(json.loads(export(page))["reviews"]) == 2
    assert "2 of 8 cards answered" in page.locator(".p-count").inner_text()


def test_a_full_storage_is_said_and_made_good_later(opened: Open) -> None:
    page = opened(init_script=put(PAST) + FULL).page
    assert page.locator(".p-trouble").inner_text() == ""
    press(page, "Start the drill")
    answer_card(page)
    answer_card(page)
    assert "storage is full" in page.locator(".p-trouble").inner_text()
    assert stored(page) == json.loads(PAST), "what was stored is whole"
    assert sum(map(len, json.loads(export(page))["reviews"].values())) == 6
    page.evaluate("window.full = false")
    press(page, "Drill")
    answer_card(page)
    assert page.locator(".p-trouble").inner_text() == ""
    assert sum(map(len, reviews(page).values())) == 7


@pytest.mark.parametrize("now", [NOON - 400 * DAY, 0, NOON + 40_000 * DAY])
def test_a_changed_clock_breaks_nothing(opened: Open, now: int) -> None:
    page = opened(init_script=put(PAST)).page
    page.clock.set_fixed_time(now / 1000)
    page.reload()
    ready(page)
    press(page, "Start the drill")
    for _ in range(3):
        answer_card(page)
    assert sum(map(len, reviews(page).values())) == 7
    press(page, "Progress")
    page.clock.set_fixed_time(NOON / 1000)
    page.reload()
    ready(page)
    assert page.locator(".p-trouble").inner_text() == ""
    press(page, "Drill")
    assert page.locator("#p-question").is_visible()
    answer_card(page)
    assert sum(map(len, reviews(page).values())) == 8


def test_a_changed_bank_keeps_the_history_of_the_rest(opened: Open, tmp_path: Path) -> None:
    page = opened(init_script=put(PAST)).page
    press(page, "Start the drill")
    press(page, "Show the answer")
    for box in page.locator(".p-marks input").all():
        box.check()
    assert question(page).startswith("How old is")
    reworded = [
        card("queue-what", question="Say what the queue holds.", rubric=["one point"], red_flags=[], topic="memory"),
        *[each for each in BANK[2:] if each["id"] != "momentum-why"],
        card("brand-new"),
    ]
    write_bank(tmp_path, reworded)
    page.reload()
    ready(page)
    assert question(page) == "Say what the queue holds.", (
        "the card on the screen has left the bank; the next one is due"
    )
    answer_card(page)
    assert sum(map(len, reviews(page).values())) == 5
    press(page, "Progress")
    said = page.locator(".p-count").inner_text()
    assert "1 of 7 cards answered" in said
    assert "2 cards of your history are no longer in the book" in said
    assert {name: len(log) for name, log in json.loads(export(page))["reviews"].items()} == {
        "queue-what": 3,
        "queue-age": 1,
        "momentum-why": 1,
    }


def test_a_spoilt_place_begins_afresh(opened: Open) -> None:
    place = json.dumps({"mode": "mock", "mock": {"talk": {"id": "queue-what"}}, "drill": {"sitting": 7}})
    page = opened(init_script=f"sessionStorage.setItem('{KEY}.place', {json.dumps(place)})").page
    assert page.get_by_role("button", name="Start the drill").is_visible()
    press(page, "Mock interview")
    assert page.get_by_role("button", name="Start the interview").is_visible()


def test_nothing_is_sent_anywhere(opened: Open) -> None:
    visit = opened(cards=BANK[:1])
    asked: list[str] = []
    visit.page.on("request", lambda request: asked.append(f"{request.method} {request.url}"))
    press(visit.page, "Start the drill")
    answer_card(visit.page)
    export(visit.page)
    assert [url for url in asked if not url.split()[1].startswith("blob:")] == []
