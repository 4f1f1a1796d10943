"""Each chapter's spoken answer is short enough to be said against its clock, and has a rubric to check it by."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

CHAPTERS = Path(__file__).resolve().parents[2] / "book" / "chapters"
SPOKEN = [path for tier in ("basics", "solid", "deep") for path in sorted((CHAPTERS / tier).glob("*.md"))]
WORDS = {"basics": (40, 55), "solid": (110, 135), "deep": (1, 300)}  # fewest and most at each tier

ANSWER = re.compile(r'<details class="answer">\n<summary>An answer in [^\n]*</summary>\n(.*?)\n</details>', re.DOTALL)
RUBRIC = "You have said it if you named"
FORMULA = re.compile(r"\$[^$]+\$")

every_answer = pytest.mark.parametrize("path", SPOKEN, ids=lambda path: f"{path.parent.name}/{path.stem}")


def spoken_answer(text: str) -> tuple[str, list[str]]:
    """The words to say and the points of the rubric; `ValueError` if a chapter has not one answer, or no rubric."""
    answers = ANSWER.findall(text)
    if len(answers) != 1:
        raise ValueError(f"{len(answers)} folded answers to say; allowed: one")
    words, rubric, points = answers[0].partition(RUBRIC)
    if not rubric:
        raise ValueError(f"no line {RUBRIC!r} in the answer")
    return words, re.findall(r"^- (.+)$", points, flags=re.MULTILINE)


def count_words(text: str) -> int:
    """Words as they are said: a formula is one, and so is each number or sign that stands alone."""
    return len(FORMULA.sub("formula", text).split())


def test_there_are_answers_at_every_tier() -> None:
    assert {path.parent.name for path in SPOKEN} == set(WORDS)


@every_answer
def test_the_answer_has_as_many_words_as_its_clock_allows(path: Path) -> None:
    words, _ = spoken_answer(path.read_text(encoding="utf-8"))
    fewest, most = WORDS[path.parent.name]
    assert fewest <= count_words(words) <= most


@every_answer
def test_the_rubric_has_three_to_six_points(path: Path) -> None:
    _, points = spoken_answer(path.read_text(encoding="utf-8"))
    assert 3 <= len(points) <= 6


def test_a_formula_is_one_word() -> None:
    assert count_words("with $N$ images, $2N - 2$ negatives") == 5
    assert count_words("about $1/(1-m)$ steps, 32 MiB") == 5


GOOD = (
    f'<details class="answer">\n<summary>An answer in 20 seconds</summary>\n\nSay it.\n\n{RUBRIC}\n\n- it\n\n</details>'
)


def test_words_and_points_are_told_apart() -> None:
    words, points = spoken_answer(GOOD)
    assert (words.split(), points) == (["Say", "it."], ["it"])


@pytest.mark.parametrize("text", ["", GOOD.replace("An answer", "Solution"), GOOD.replace(RUBRIC, "Or"), GOOD + GOOD])
def test_a_chapter_without_one_answer_and_its_rubric_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="folded answers|no line"):
        spoken_answer(text)
