"""The Anki deck, read back as Anki reads it: a zip with a database."""

from __future__ import annotations

import sqlite3
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from minilab.textbook.anki import FIELDS, note_fields, tags, write_deck
from minilab.textbook.cards import Card, Choice, Numeric, RedFlag, load_bank

CARD = Card(
    id="topic-one",
    topic="topic",
    tier="deep",
    level="staff",
    chapter="deep/accumulation",
    question="Is $a < b$ & <b>?",
    context="epoch  loss\n    1  <5>",
    choices=(Choice("x $\\tau$", True, "yes"), Choice("y", False, "no <i>"), Choice("z", False, "no")),
    sources=("record:momentum",),
    answer={"basics": "Say $K + 1$.", "solid": "Say more."},
    rubric=("one", "two"),
    red_flags=(RedFlag("never <script>", "for $x$"),),
    numeric=Numeric(6.24, 0.02, "nats", "log 511"),
)


def notes(path: Path, folder: Path) -> list[tuple[str, dict[str, str], set[str]]]:
    """GUID, fields and tags of each note of a deck, in its order."""
    with zipfile.ZipFile(path) as deck:
        database = deck.extract("collection.anki2", folder)
    connection = sqlite3.connect(database)
    rows = connection.execute("select guid, flds, tags from notes order by id").fetchall()
    cards = connection.execute("select count(*) from cards").fetchone()[0]
    connection.close()
    assert cards == len(rows)
    return [
        (guid, dict(zip(FIELDS, text.split("\x1f"), strict=True)), set(words.split())) for guid, text, words in rows
    ]


def test_the_deck_of_the_book_holds_every_card(tmp_path: Path) -> None:
    bank = load_bank()
    path = tmp_path / "deck.apkg"
    assert write_deck(path) == len(bank)
    read = notes(path, tmp_path)
    assert [fields["Id"] for _, fields, _ in read] == list(bank)
    assert len({guid for guid, _, _ in read}) == len(bank)
    for _, fields, words in read:
        card = bank[fields["Id"]]
        assert words == {f"tier::{card.tier}", f"level::{card.level}", f"topic::{card.topic}"} == set(tags(card))
        assert all(fields[name] for name in ("Question", "Answer", "Rubric", "Red flags", "Sources", "Chapter"))
        assert bool(fields["Choices"]) == bool(card.choices)
        assert bool(fields["Context"]) == bool(card.context)
        assert "$" not in "".join(fields.values())


def test_a_note_is_the_same_one_when_it_is_built_again_or_reworded(tmp_path: Path) -> None:
    write_deck(tmp_path / "first.apkg", {CARD.id: CARD})
    write_deck(tmp_path / "again.apkg", {CARD.id: CARD})
    reworded = replace(CARD, question="Other words?", tier="basics")
    write_deck(tmp_path / "reworded.apkg", {CARD.id: reworded, "topic-two": replace(CARD, id="topic-two")})
    first, again, later = (notes(tmp_path / f"{name}.apkg", tmp_path) for name in ("first", "again", "reworded"))
    assert first == again
    assert later[0][0] == first[0][0]
    assert later[0][1]["Question"] == "Other words?"
    assert later[1][0] != first[0][0]


def test_text_is_escaped_and_formulas_are_for_mathjax() -> None:
    fields = note_fields(CARD, {})
    assert fields["Question"] == r"Is \(a &lt; b\) &amp; &lt;b&gt;?"
    assert fields["Context"] == "<pre>epoch  loss\n    1  &lt;5&gt;</pre>"
    assert r"<b>In 20 seconds:</b> Say \(K + 1\)." in fields["Answer"]
    assert "6.24 nats" in fields["Answer"]
    assert fields["Red flags"] == r"<ul><li>never &lt;script&gt;: <i>for \(x\)</i></li></ul>"
    assert fields["Choices"].startswith(r"<ul><li>✓ x \(\tau\) <i>yes</i></li><li>✗ y <i>no &lt;i&gt;</i></li>")
    assert fields["Sources"] == "recorded runs: momentum"


def test_nothing_half_written_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "deck.apkg"
    path.write_text("the old one")

    def broken(*_: object) -> None:
        raise RuntimeError("in the middle")

    monkeypatch.setattr("genanki.Package.write_to_file", broken)
    with pytest.raises(RuntimeError, match="in the middle"):
        write_deck(path, {CARD.id: CARD})
    assert path.read_text() == "the old one"
    assert [file.name for file in tmp_path.iterdir()] == ["deck.apkg"]


def test_without_genanki_the_way_out_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "genanki", None)
    with pytest.raises(ValueError, match="pip install genanki"):
        write_deck(tmp_path / "deck.apkg", {CARD.id: CARD})
