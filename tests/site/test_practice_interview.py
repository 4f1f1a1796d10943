"""The mock interview and the progress on the practice page."""

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
    card,
    history,
    interview,
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


def test_a_mock_interview(opened: Open) -> None:
    page = opened().page
    interview(page)
    assert page.locator("details").count() == 0, "no options to choose from in an interview"
    for points, leave in ((3, "Go deeper"), (2, "Go deeper")):
        press(page, "Show the answer")
        for i in range(points):
            page.locator(".p-marks:not(.p-flags) input").nth(i).check()
        press(page, leave)
    assert question(page) == "What is queue-drift?"
    assert page.locator(".p-meta").inner_text().startswith("Follow-up, 2 steps deep")
    page.reload()
    ready(page)
    assert question(page) == "What is queue-drift?", "a reload goes on with the interview"
    press(page, "I am stuck")
    page.locator(".p-flags input").first.check()
    press(page, "Go deeper")
    assert question(page) == "What is queue-size?", "that branch has ended: back up, and down the next"
    press(page, "Show the answer")
    press(page, "That was the deepest question")
    press(page, "See the report")
    figures = page.locator(".p-figures div").all_inner_texts()
    assert [set(text.split("\n")) - {""} for text in figures][:4] == [
        {"5 of 12", "points made"},
        {"1", "red flag"},
        {"4", "questions"},
        {"2", "follow-ups deep"},
    ]
    text = page.locator(".p-host").inner_text()
    assert text.count("✓") == 5
    assert text.count("○") == 7
    assert "stuck" in text
    assert "Red flag: queue-drift is magic" in text
    assert page.get_by_role("link", name="the mechanism").count() == 1
    assert {name: [grade for _, grade in log] for name, log in reviews(page).items()} == {
        "queue-what": [3],
        "queue-age": [3],
        "queue-drift": [1],
        "queue-size": [1],
    }
    press(page, "Another interview")
    assert page.get_by_role("button", name="Start the interview").is_visible()


def test_the_interview_ends_after_ten_minutes(opened: Open) -> None:
    page = opened().page
    interview(page)
    page.clock.install(time=NOON / 1000)
    press(page, "Pause")
    press(page, "Go on")
    page.clock.run_for(601_000)
    press(page, "Show the answer")
    press(page, "Ten minutes are over")
    assert page.get_by_role("heading", name="Report").is_visible()
    assert "10:0" in page.locator(".p-figures").inner_text()


def test_being_stuck_ends_a_chain_and_ending_early_gives_a_report(opened: Open) -> None:
    cards = [*BANK, card("other", follow_ups=["momentum-why"])]
    page = opened(cards=cards).page
    interview(page)
    press(page, "I am stuck")
    assert page.locator(".p-after .p-main").inner_text() == "I was stuck: leave this chain"
    press(page, "I was stuck")
    assert page.get_by_role("heading", name="The interviewer moves on").is_visible()
    page.get_by_label("Begin with").select_option("other")
    press(page, "Another chain")
    assert question(page) == "What is other?"
    press(page, "End the interview")
    assert page.get_by_text("is not answered yet").is_visible()
    page.keyboard.press("Escape")
    assert question(page) == "What is other?"
    press(page, "End the interview")
    page.get_by_role("button", name="End", exact=True).click()
    assert page.get_by_role("heading", name="Report").is_visible()
    assert list(reviews(page)) == ["queue-what"]


def test_the_progress_counts(opened: Open) -> None:
    past = history(queue_what=[(-40, 4), (-30, 4)], queue_age=[(-90, 3), (-80, 1)], momentum_why=[(0, 3)])
    page = opened(init_script=put(past)).page
    press(page, "Progress")
    assert page.locator(".p-count").inner_text() == (
        "3 of 8 cards answered at least once. Of 2 repeated answers, 1 (50 %) were good."
    )
    tiers, chapters = (table.inner_text().split("\n") for table in page.locator(".p-table").all())
    assert [row.split("\t") for row in tiers[1:]] == [
        ["Basics", "3", "2", "0", "1"],
        ["Solid", "3", "1", "1", "0"],
        ["Deep", "2", "0", "0", "0"],
    ]
    assert [row.split("\t")[1:] for row in chapters[1:] if "queue" in row] == [["4", "2", "1", "1"]]
    assert "Today 1, in the next 7 days 2" in page.locator(".p-host").inner_text()
