"""The history on the practice page: kept over tabs, a spoilt or full storage, a changed clock, a changed bank."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from conftest import Visit
from playwright.sync_api import Browser
from practice_site import (
    BANK,
    DAY,
    KEY,
    NOON,
    PAST,
    answer_card,
    card,
    changed,
    export,
    history,
    practice,
    press,
    put,
    question,
    ready,
    reset_everything,
    reviews,
    second_tab,
    stored,
    write_bank,
)

pytestmark = pytest.mark.browser
Open = Callable[..., Visit]
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
