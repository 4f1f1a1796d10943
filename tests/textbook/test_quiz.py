"""The quiz as HTML: whole, escaped, labelled, and telling right from wrong without colour."""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import pytest

from minilab.textbook import quiz as show_quiz
from minilab.textbook.cards import Card, Choice, Numeric, load_bank
from minilab.textbook.quiz import quiz_html

NASTY = Card(
    id="nasty-one",
    tier="basics",
    question='Is <b>a</b> < "b" & \\(K + 1\\)?',
    choices=(
        Choice("<script>x</script>", True, "since 1 < 2"),
        Choice("b & c", False, "no"),
        Choice("</fieldset>", False, "no"),
    ),
    sources=("key",),
    answer={},
    rubric=(),
    red_flags=(),
)


@pytest.fixture
def nasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        sys.modules["minilab.textbook.quiz"], "load_bank", lambda: {card.id: card for card in (NASTY, NUMBER, LOG)}
    )


NUMBER = Card(
    id="number-one",
    tier="basics",
    question="How many?",
    choices=(),
    sources=("key",),
    answer={},
    rubric=(),
    red_flags=(),
    numeric=Numeric(62, 0, "negatives", "2 x 32 - 2"),
)
LOG = replace(NASTY, id="log-one", question="What is $K + 1 < 5$?", context="epoch  loss\n<b>    5.55")


def parsed(html: str) -> ElementTree.Element:
    """The HTML read as XML, its only void element closed."""
    return ElementTree.fromstring(re.sub(r"(<input[^>]*)>", r"\1/>", html))


@pytest.mark.usefixtures("nasty")
def test_everything_is_escaped() -> None:
    root = parsed(quiz_html(NASTY.id))
    assert not list(root.iter("script"))
    assert not list(root.iter("b"))
    assert [label.text for label in root.iter("label")] == [choice.text for choice in NASTY.choices]
    legend = next(root.iter("legend"))
    assert legend.text == f"1. {NASTY.question}"


@pytest.mark.usefixtures("nasty")
def test_a_log_keeps_its_lines_and_a_formula_is_left_to_mathjax() -> None:
    root = parsed(quiz_html(LOG.id))
    assert [log.text for log in root.iter("pre")] == [LOG.context]
    assert next(root.iter("legend")).text == "1. What is \\(K + 1 < 5\\)?"
    assert not list(root.iter("b"))


@pytest.mark.usefixtures("nasty")
def test_a_card_that_asks_for_a_number_is_refused() -> None:
    with pytest.raises(ValueError, match="'number-one' asks for a number.*allowed: cards with choices"):
        quiz_html(NASTY.id, NUMBER.id)


def test_every_option_is_labelled_and_grouped() -> None:
    ids = list(load_bank())[:3]
    root = parsed(quiz_html(*ids))
    named = [node.get("id") for node in root.iter() if node.get("id")]
    assert len(named) == len(set(named))
    groups = list(root.iter("fieldset"))
    assert len(groups) == len(ids)
    for group in groups:
        options = list(group.iter("input"))
        assert len({option.get("name") for option in options}) == 1
        assert [label.get("for") for label in group.iter("label")] == [option.get("id") for option in options]
        words = [next(reason.iter("strong")).text for reason in group.iter("p")]
        assert words.count("✓ Right.") == 1
        assert set(words) == {"✓ Right.", "✗ Not quite."}
    names = [next(group.iter("input")).get("name") for group in groups]
    assert len(set(names)) == len(names)


def test_it_brings_its_style_and_needs_no_script() -> None:
    html = quiz_html(next(iter(load_bank())))
    assert "input:checked~.quiz-why{display:block}" in html
    assert "<script" not in html
    assert "onclick" not in html
    assert "http" not in html


def test_two_quizzes_on_a_page_share_no_id(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = []
    monkeypatch.setattr("IPython.display.display", shown.append)
    name = next(iter(load_bank()))
    show_quiz(name)
    show_quiz(name)
    first, second = ({node.get("id") for node in parsed(html.data).iter() if node.get("id")} for html in shown)
    assert first
    assert not first & second


@pytest.mark.parametrize(
    ("ids", "message"),
    [((), "one or more different card ids"), (("a", "a"), "different"), (("no-such",), "no card has the id 'no-such'")],
)
def test_a_wrong_call_is_told(ids: tuple[str, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        quiz_html(*ids)


def test_style_is_the_same_wherever_it_is_read() -> None:
    """The site's own sheet does not style the quiz again: Colab and the page look alike."""
    sheet = Path(__file__).resolve().parents[2] / "book" / "site" / "css" / "book.css"
    assert ".quiz" not in sheet.read_text(encoding="utf-8")
