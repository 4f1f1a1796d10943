"""The JSON that the practice page reads."""

from __future__ import annotations

import ast
import json
from dataclasses import replace
from pathlib import Path

import pytest

from minilab.textbook.bank import as_json, chapter_title, sources_of
from minilab.textbook.cards import Card, Choice, Numeric, RedFlag, bank_json, load_bank
from minilab.textbook.sources import imported_files
from minilab.textbook.works import Work

ROOT = Path(__file__).resolve().parents[2]

CHOICES = (Choice("a", True, "yes"), Choice("b", False, "no"), Choice("c", False, "no"))
CARD = Card(
    id="topic-one",
    topic="topic",
    tier="deep",
    level="staff",
    chapter="deep/accumulation",
    question="Is <b> $K + 1$?",
    choices=CHOICES,
    sources=("chen2020simclr, table B.1", "record:momentum"),
    answer={"basics": "Say this."},
    rubric=("one",),
    red_flags=(RedFlag("never", "because"),),
)
KEYS = {"id", "topic", "tier", "level", "question", "context", "answer", "rubric", "red_flags", "analogy"}
KEYS |= {"follow_ups", "choices", "numeric", "sources", "chapter", "chapter_title", "records"}


def test_one_card_in_full() -> None:
    (card,) = json.loads(as_json({CARD.id: CARD}))["cards"]
    assert set(card) == KEYS
    assert card["question"] == "Is <b> $K + 1$?"  # plain: the page escapes
    assert card["answer"] == {"basics": "Say this."}
    assert card["choices"][0] == {"text": "a", "right": True, "why": "yes"}
    assert card["red_flags"] == [{"text": "never", "why": "because"}]
    assert (card["context"], card["analogy"], card["numeric"]) == (None, None, None)
    assert (card["follow_ups"], card["records"]) == ([], [])
    assert card["chapter_title"] == "Gradient accumulation"
    assert card["sources"] == [
        {"text": "Chen et al., 2020, SimCLR, table B.1", "url": "https://arxiv.org/abs/2002.05709"},
        {"text": "recorded runs: momentum", "url": None},
    ]


def test_a_number_and_a_log() -> None:
    card = replace(CARD, choices=(), numeric=Numeric(62, 0, "negatives", "2 x 32 - 2"), context="a\n  b", analogy="c")
    (read,) = json.loads(as_json({card.id: card}))["cards"]
    assert read["numeric"] == {"value": 62, "tolerance": 0, "unit": "negatives", "why": "2 x 32 - 2"}
    assert (read["choices"], read["context"], read["analogy"]) == ([], "a\n  b", "c")


def test_the_whole_bank_twice_is_the_same_text() -> None:
    text = bank_json()
    assert text == bank_json()
    bank = json.loads(text)
    assert bank["version"] == 1
    assert [card["id"] for card in bank["cards"]] == list(load_bank())
    urls = {source["url"] for card in bank["cards"] for source in card["sources"]} - {None}
    assert urls and all(url.startswith("https://") for url in urls)


def test_a_source_that_is_unknown_or_has_no_safe_address() -> None:
    works = {"a2020": Work("A, 2020", "On A", "javascript:alert(1)"), "b2020": Work("B, 2020", "On B", "")}
    card = replace(CARD, sources=("a2020, section 2", "b2020"))
    assert sources_of(card, works) == [{"text": "A, 2020, section 2", "url": None}, {"text": "B, 2020", "url": None}]
    with pytest.raises(ValueError, match="card topic-one: source 'c2020' is not in the references"):
        sources_of(replace(CARD, sources=("c2020, section 1",)), works)


def test_a_chapter_that_is_not_installed_is_named_by_its_file(tmp_path: Path) -> None:
    assert chapter_title("deep/low-pass", tmp_path) == "Low pass"
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "low-pass.md").write_text("---\na: b\n---\n\n# A filter, not a brake\n")
    assert chapter_title("deep/low-pass", tmp_path) == "A filter, not a brake"


def test_a_chapter_with_a_quiz_is_not_stale_when_the_practice_page_changes() -> None:
    files = {path.name for path in imported_files(ROOT, [ast.parse("from minilab.textbook import quiz")])}
    assert {"cards.py", "quiz.py", "maths.py"} <= files
    assert not files & {"bank.py", "works.py", "anki.py", "terminal.py"}
