"""The drill on the practice page: the order of cards, the marks, the clock, the questions to answer by choice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from conftest import Visit
from playwright.sync_api import Browser
from practice_site import (
    BANK,
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
)

pytestmark = pytest.mark.browser
Open = Callable[..., Visit]


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Open]:
    """A function that opens the page with what `practice` takes."""
    with ExitStack() as stack:
        yield lambda **options: stack.enter_context(practice(browser, tmp_path, **options))


def test_a_full_drill(opened: Open) -> None:
    page = opened(cards=BANK[:4]).page
    assert "0 due, 4 new" in page.locator(".p-count").inner_text()
    press(page, "Start the drill")
    asked = []
    while page.locator("#p-question").count():
        asked.append(question(page))
        answer_card(page, points=0 if asked.count(asked[0]) == len(asked) == 1 else 3)
    assert len(asked) == 5, "the missed card comes again, at the end of the sitting"
    assert asked[0] == asked[-1] == "What is queue-what?"
    assert page.locator(".p-count").inner_text() == "5 answers, of which 4 good."
    assert page.locator(".p-list li").count() == 1, "the missed card is named"
    log = reviews(page)
    assert {name: [grade for _, grade in reviews] for name, reviews in log.items()} == {
        "queue-what": [1, 3],
        "queue-age": [3],
        "queue-size": [3],
        "queue-drift": [3],
    }
    assert all(NOON <= time < NOON + 10 for reviews in log.values() for time, _ in reviews)
    press(page, "Back to the drill")
    assert "Nothing is due" in page.locator(".p-count").inner_text()


def test_due_cards_come_before_new_ones_and_filters_hold(opened: Open) -> None:
    past = history(queue_size=[(-40, 3)], queue_age=[(-90, 3)], momentum_why=[(0, 3)])
    page = opened(init_script=put(past)).page
    assert "2 due, 5 new" in page.locator(".p-count").inner_text()
    page.get_by_label("Topic").select_option("debugging")
    assert "0 due, 2 new" in page.locator(".p-count").inner_text()
    page.get_by_label("Topic").select_option("")
    page.get_by_label("Tier").select_option("solid")
    assert "2 due, 1 new" in page.locator(".p-count").inner_text()
    press(page, "Start the drill")
    order = []
    for _ in range(3):
        order.append(question(page))
        answer_card(page)
    assert [text[:10] for text in order] == ["How old is", "What is qu", "What is wr"], "longest overdue first"


def test_the_tally_proposes_and_the_reader_decides(opened: Open) -> None:
    page = opened(cards=BANK[:1]).page
    press(page, "Start the drill")
    press(page, "Show the answer")
    assert page.locator("#p-answer").evaluate("e => e === document.activeElement")
    points, flags = page.locator(".p-marks:not(.p-flags) input"), page.locator(".p-flags input")
    proposed = page.locator(".p-grade.p-main strong")
    for ticked, grade in ((0, "Again"), (1, "Again"), (2, "Good"), (3, "Good")):
        if ticked:
            points.nth(ticked - 1).check()
        assert proposed.inner_text() == grade
    flags.first.check()
    assert proposed.inner_text() == "Again", "a red flag outweighs the points"
    assert "1 red flag" in page.locator("[role=status].p-unseen").inner_text(), "it is said aloud"
    assert page.get_by_text("Nothing is.").is_visible(), "why the flag is wrong"
    links = page.locator(".p-read a").evaluate_all(
        "links => links.map(a => new URL(a.href).pathname + new URL(a.href).hash)"
    )
    assert links == [f"/notebooks/solid/queue.html#{part}" for part in ("the-mechanism", "the-experiment", "the-trap")]
    assert page.locator(".p-grade").count() == 2
    page.get_by_text("What the buttons mean").click()
    page.get_by_label("Show Hard and Easy too").check()
    assert [text.split()[0] for text in page.locator(".p-grade").all_inner_texts()] == ["Again", "Hard", "Good", "Easy"]
    page.locator(".p-grade:has-text('Hard')").click()
    assert reviews(page) == {"queue-what": [[NOON, 2]]}


def test_a_choice_is_answered_with_a_word_on_every_option(opened: Open) -> None:
    page = opened(cards=BANK[:1]).page
    press(page, "Start the drill")
    page.get_by_text("Cannot speak now?").click()
    press(page, "Check")
    assert page.locator(".p-verdict").inner_text() == "Choose one first."
    assert page.locator(".p-item .p-why").first.is_hidden()
    page.get_by_label("The last keys").check()
    press(page, "Check")
    assert page.locator(".p-verdict").inner_text().startswith("✓ Right.")
    assert page.locator(".p-item .p-why").evaluate_all("all => all.map(e => e.checkVisibility())") == [True] * 3
    press(page, "Show the answer")
    assert page.locator(".p-grade.p-main strong").inner_text() == "Good"
    page.locator(".p-marks:not(.p-flags) input").first.check()
    assert page.locator(".p-grade.p-main strong").inner_text() == "Again", "with points ticked, the points count"


@pytest.mark.parametrize(
    "text, right",
    [("16", True), ("16,4", True), ("15.5", True), (" 16.51", False), ("1e1", False), ("nonsense", False)],
)
def test_a_number_is_right_within_its_tolerance(opened: Open, text: str, right: bool) -> None:
    page = opened(cards=[card("one", choices=[], numeric=BANK[1]["numeric"])]).page
    press(page, "Start the drill")
    page.get_by_text("Check yourself with a number").click()
    page.get_by_label("Your number, in steps").fill(text)
    page.keyboard.press("Enter")
    assert page.locator(".p-verdict").inner_text() == f"{'✓ Right:' if right else '✗ Not quite:'} 16 steps."
    assert page.get_by_text("4096 / 256.").is_visible()


def test_numbers_are_read_as_people_write_them(opened: Open) -> None:
    page = opened().page
    written = ["65,536", "65 536", "65536.0", "0,5", "−3", "6.5e4", "", "1,2,3", "12,34"]
    found = page.evaluate(
        "async (texts) => { const { toNumber } = await import('/_static/practice/bank.js');"
        "return texts.map((text) => String(toNumber(text))); }",
        written,
    )
    assert found == ["65536", "65536", "65536", "0.5", "-3", "65000", "NaN", "NaN", "12.34"]


def test_the_clock_is_soft(opened: Open) -> None:
    page = opened(cards=[BANK[1]]).page
    press(page, "Start the drill")
    page.clock.install(time=NOON / 1000)
    assert page.locator(".clock-face").inner_text() == "0 s of about 50 s"
    page.get_by_label("20 s").check()
    press(page, "Start the clock")
    page.clock.run_for(12_000)
    assert page.locator(".clock-face").inner_text() == "12 s of about 20 s"
    press(page, "Pause")
    page.clock.run_for(60_000)
    assert page.locator(".clock-face").inner_text() == "12 s of about 20 s"
    press(page, "Go on")
    page.clock.run_for(30_000)
    assert page.locator(".clock-face").inner_text() == "42 s of about 20 s"
    assert "20 s have passed" in page.locator("[role=status].p-unseen").inner_text()
    press(page, "Show the answer")
    assert page.locator("#p-answer").inner_text() == "An answer in 20 s"
    assert page.get_by_text("The same in 50 s").is_visible()


def test_a_reload_in_the_middle_loses_nothing(opened: Open) -> None:
    page = opened().page
    press(page, "Start the drill")
    answer_card(page)
    before = question(page)
    press(page, "Show the answer")
    page.locator(".p-flags input").first.check()
    page.reload()
    ready(page)
    assert question(page) == before
    assert page.locator(".p-flags input").first.is_checked()
    assert page.locator("#p-answer").is_visible()
    assert page.get_by_text("1 answered").is_visible()
    assert len(reviews(page)) == 1
