"""The practice page schedules as FSRS's reference package for Python does, and takes the clock as it comes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from conftest import serving, watch
from fsrs import Card, Rating, Scheduler
from playwright.sync_api import Browser, Page
from practice_site import DAY, NOON, SITE_SOURCES

pytestmark = pytest.mark.browser
# The page asks for whole days, with no steps of minutes and no fuzz; the reference is told the same.
REFERENCE = Scheduler(desired_retention=0.9, learning_steps=(), relearning_steps=(), enable_fuzzing=False)
REPLAY = """async (logs) => {
  const { replay } = await import("/practice/schedule.js");
  return logs.map((log) => log.map((_, end) => replay(log.slice(0, end + 1))));
}"""


@pytest.fixture(scope="module")
def page(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """An empty page beside the page's modules, where the clock is at UTC."""
    folder = tmp_path_factory.mktemp("schedule")
    for name in ("practice", "vendor"):
        (folder / name).symlink_to(SITE_SOURCES / name)
    (folder / "index.html").write_text("<!doctype html><html lang=en><title>t</title><link rel=icon href=data:,>")
    context = browser.new_context(timezone_id="UTC")
    visit = watch(context)
    with serving(Path(folder)) as url:
        visit.page.goto(f"{url}/index.html")
        yield visit.page
    visit.assert_clean()
    context.close()


def random_history(dice: random.Random) -> list[list[int]]:
    """Up to 12 reviews, [[ms, grade], …]: some on the same day, some early, some years late.

    The minute of the day never falls, so that the reference, which counts periods of 24 hours, and the page, which
    counts days that begin at four in the morning, count the same days.
    """
    time, log = NOON, []
    for _ in range(dice.randint(1, 12)):
        log.append([time, dice.choice([1, 2, 3, 3, 3, 4])])
        days = dice.choice([0, 0, 1, 1, 2, 3, dice.randint(4, 60), dice.randint(60, 2000)])
        time += days * DAY + dice.randint(1, 30) * 60_000
    return log


def reference(log: list[list[int]]) -> list[tuple[int, float, float]]:
    """(interval in days, stability, difficulty) after each review, from the reference package."""
    card, after = Card(), []
    for time, grade in log:
        moment = datetime.fromtimestamp(time / 1000, tz=timezone.utc)
        card, _ = REFERENCE.review_card(card, Rating(grade), moment)
        assert card.stability is not None
        assert card.difficulty is not None
        after.append(((card.due - moment) // timedelta(days=1), card.stability, card.difficulty))
    return after


def test_two_hundred_random_histories_agree_with_the_reference(page: Page) -> None:
    dice = random.Random(0)
    logs = [random_history(dice) for _ in range(200)]
    found = page.evaluate(REPLAY, logs)
    expected = [reference(log) for log in logs]
    assert [[memory["interval"] for memory in log] for log in found] == [
        [days for days, _, _ in log] for log in expected
    ]
    for memories, states in zip(found, expected, strict=True):
        for memory, (_, stability, difficulty) in zip(memories, states, strict=True):
            # ts-fsrs rounds to eight decimals at each step; the reference does not.
            assert memory["stability"] == pytest.approx(stability, rel=1e-5)
            assert memory["difficulty"] == pytest.approx(difficulty, abs=1e-6)
    intervals = {days for log in expected for days, _, _ in log}
    assert len(intervals) > 100, "the histories reach many intervals"


def ask(page: Page, expression: str, *arguments: Any) -> Any:
    return page.evaluate(
        f"async (a) => {{ const s = await import('/practice/schedule.js'); return {expression}; }}", list(arguments)
    )


def test_a_day_begins_at_four_in_the_morning(page: Page) -> None:
    midnight = NOON + DAY // 2
    day = ask(page, "s.dayOf(a[0])", NOON)
    assert ask(page, "s.dayOf(a[0])", midnight + 3 * 3_600_000) == day
    assert ask(page, "s.dayOf(a[0])", midnight + 5 * 3_600_000) == day + 1


def test_a_card_is_due_on_its_day_whatever_the_hour(page: Page) -> None:
    log = [[NOON, 3]]
    days = ask(page, "s.replay(a[0]).interval", log)
    eight = NOON - 4 * 3_600_000
    assert not ask(page, "s.isDue(s.replay(a[0]), a[1])", log, eight + (days - 1) * DAY)
    assert ask(page, "s.isDue(s.replay(a[0]), a[1])", log, eight + days * DAY)


def test_a_review_dated_in_the_future_does_not_hide_the_card(page: Page) -> None:
    log = [[NOON, 3], [NOON + 400 * DAY, 3]]  # the clock was a year ahead and has been set back
    assert ask(page, "s.isDue(s.replay(a[0]), a[1])", log, NOON + 5 * DAY)
    after = ask(page, "s.replay(a[0])", [*log, [NOON + 5 * DAY, 3]])
    assert after["due"] - ask(page, "s.dayOf(a[0])", NOON + 5 * DAY) == after["interval"] >= 1
    assert not ask(page, "s.isDue(s.replay(a[0]), a[1])", [*log, [NOON + 5 * DAY, 3]], NOON + 5 * DAY)


def test_the_forecast_counts_each_card_once(page: Page) -> None:
    logs = [[[NOON, 3]], [[NOON, 1]], [[NOON - 90 * DAY, 1]], [[NOON, 4], [NOON, 4]]]
    counts = ask(page, "s.forecast([null, ...a[0].map(s.replay)], a[1], 30)", logs, NOON)
    expected = [0] * 30
    expected[0] = 1  # overdue
    for log in (logs[0], logs[1], logs[3]):
        expected[reference(log)[-1][0]] += 1
    assert counts == expected
