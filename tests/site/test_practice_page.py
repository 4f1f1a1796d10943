"""The practice page in use: a drill, a mock interview, by keyboard alone, read aloud, with hostile cards."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from conftest import Visit, serving, watch
from playwright.sync_api import Browser, Page
from practice_site import (
    BANK,
    HOSTILE,
    NOON,
    answer_card,
    card,
    history,
    lay_out,
    practice,
    press,
    put,
    question,
    ready,
    reviews,
)
from test_accessibility import grave_faults
from test_pages import FAINT_TEXT, RAW_MATHS, TWICE_USED_IDS

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


def interview(page: Page, start: str = "queue-what") -> None:
    press(page, "Mock interview")
    page.get_by_label("Begin with").select_option(start)
    press(page, "Start the interview")


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


def test_by_keyboard_alone(opened: Open) -> None:
    page = opened(cards=BANK[:1], viewport={"width": 1000, "height": 800}).page
    focused = "document.activeElement.textContent || document.activeElement.id"

    def reach(name: str) -> None:
        """Press Tab until the control with this name or id has the focus."""
        for _ in range(40):
            page.keyboard.press("Tab")
            if page.evaluate(focused).startswith(name):
                outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
                assert outline != "none", f"{name} has the focus and does not show it"
                return
        raise AssertionError(f"{name} is not reached by Tab")

    reach("Start the drill")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "p-question"
    reach("Cannot speak now?")
    page.keyboard.press("Enter")
    reach("p-choice-0")
    page.keyboard.press("ArrowDown")
    assert page.locator(".p-item .p-why").first.is_hidden(), "moving among the options gives nothing away"
    reach("Check")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.className") == "p-verdict"
    while not page.evaluate(focused).startswith("Show the answer"):
        page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "p-answer"
    for i in range(3):
        reach(f"p-points-{i}")
        page.keyboard.press("Space")
    reach("p-flags-0")
    reach("the mechanism")
    reach("Good")
    page.keyboard.press("Enter")
    assert reviews(page) == {"queue-what": [[NOON, 3]]}
    assert page.evaluate("document.activeElement.textContent") == "This sitting"


def test_hostile_text_is_shown_and_does_not_run(opened: Open) -> None:
    page = opened(cards=[BANK[5], card("leads", follow_ups=["hostile-one"])]).page
    press(page, "Start the drill")
    assert question(page) == f"Hostile {HOSTILE} question"
    page.locator("summary").first.click()
    page.locator("#p-choice-0").check()
    press(page, "Check")
    press(page, "Show the answer")
    assert page.locator(".p-back").inner_text().count("onerror") >= 5
    page.get_by_text("Sources").click()
    assert page.locator("a[href^=javascript]").count() == 0
    press(page, "Progress")
    press(page, "Mock interview")
    page.get_by_label("Begin with").select_option("leads")
    press(page, "Start the interview")
    press(page, "Show the answer")
    press(page, "Go deeper")
    press(page, "Show the answer")
    page.locator(".p-flags input").check()
    press(page, "That was")
    press(page, "See the report")
    assert page.locator("#practice-page img, #practice-page script").count() == 0


def states(page: Page) -> Iterator[str]:
    """Takes the page through its states, and names each."""
    yield "drill start"
    press(page, "Start the drill")
    page.locator("summary").first.click()
    yield "card"
    page.locator("#p-choice-1").check()
    press(page, "Check")
    press(page, "Show the answer")
    page.locator(".p-flags input").first.check()
    page.get_by_text("What the buttons mean").click()
    page.get_by_text("Sources").click()
    page.get_by_label("Show Hard").check()
    yield "revealed"
    press(page, "Stop for now")
    yield "dialog"
    page.get_by_role("button", name="Stop", exact=True).click()
    yield "summary"
    interview(page)
    yield "mock"
    press(page, "Show the answer")
    press(page, "Go deeper")
    page.evaluate("MathJax.startup.promise")
    assert page.evaluate(RAW_MATHS) == [], "the formulas of a new card are drawn"
    press(page, "I am stuck")
    page.locator(".p-flags input").first.check()
    yield "mock revealed"
    press(page, "I was stuck")
    yield "between chains"
    press(page, "See the report")
    yield "report"
    press(page, "Progress")
    press(page, "Reset everything")
    press(page, "Keep it")
    yield "progress"


@pytest.mark.slow
@pytest.mark.parametrize("width, theme", [(390, "light"), (390, "dark"), (1000, "light"), (1000, "dark")])
def test_every_state_is_whole_and_open_to_all(opened: Open, width: int, theme: str) -> None:
    options: dict[str, Any] = {
        "viewport": {"width": width, "height": 800},
        "color_scheme": theme,
        "reduced_motion": "reduce",
    }
    page = opened(theme=theme, init_script=put(history(queue_what=[(-9, 3)])), **options).page
    seen = []
    for state in states(page):
        seen.append(state)
        assert grave_faults(page) == [], state
        assert page.evaluate(TWICE_USED_IDS) == [], state
        assert page.evaluate("document.documentElement.scrollWidth") <= width, f"{state} scrolls sideways"
        if state != "dialog":  # what lies behind it is meant to be faint
            assert page.evaluate(FAINT_TEXT) == [], state
    assert len(seen) == 10


def test_reduced_motion_stills_the_page(opened: Open) -> None:
    page = opened(reduced_motion="reduce").page
    press(page, "Start the drill")
    moving = (
        "[...document.querySelectorAll('*')].filter(e => parseFloat(getComputedStyle(e).transitionDuration) > 0).length"
    )
    assert page.evaluate(moving) == 0


def test_without_cards_it_says_why(browser: Browser, tmp_path: Path) -> None:
    lay_out(tmp_path, BANK)
    (tmp_path / "_static" / "practice" / "bank.json").unlink()
    context = browser.new_context()
    visit = watch(context)
    with serving(tmp_path) as url:
        visit.page.goto(f"{url}/book/practice.html")
        visit.page.wait_for_selector("[role=alert]")
        assert "the server answered 404" in visit.page.locator("[role=alert]").inner_text()
    context.close()


def test_without_scripts_it_points_to_the_quizzes(browser: Browser, tmp_path: Path) -> None:
    lay_out(tmp_path, BANK)
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    with serving(tmp_path) as url:
        page.goto(f"{url}/book/practice.html")
        assert "needs JavaScript" in page.locator("#practice-page").inner_text()
    context.close()
