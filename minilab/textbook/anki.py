r"""The question bank as an Anki deck: one note a card, tagged by tier, level and topic.

A note keeps its identity (its GUID comes from the card's id) when a card is reworded or the deck is built again, so an
import updates it and keeps the reader's history. Formulas stand between \( and \), which Anki renders by itself.
"""

from __future__ import annotations

import sqlite3
import tempfile
from html import escape
from pathlib import Path
from typing import Any

from minilab.files import check_writable, written_aside
from minilab.textbook.bank import chapter_title, sources_of
from minilab.textbook.cards import Card, load_bank
from minilab.textbook.claims import book_file
from minilab.textbook.maths import mathjax
from minilab.textbook.works import Work, load_works

NAME = "Contrastive learning"
DECK, MODEL = 1_607_392_351, 1_607_392_352  # Anki knows a deck and a note type by these: never change them
FIELDS = ("Question", "Context", "Answer", "Rubric", "Red flags", "Choices", "Sources", "Chapter", "Id")
SPOKEN = {"basics": "20 seconds", "solid": "50 seconds", "deep": "two minutes"}
FRONT = "<div class=question>{{Question}}</div>{{Context}}"
BACK = (
    "{{FrontSide}}<hr id=answer>{{Answer}}<h3>Did you say</h3>{{Rubric}}<h3>Red flags</h3>{{Red flags}}"
    "{{#Choices}}<h3>Options</h3>{{Choices}}{{/Choices}}<p class=sources>{{Chapter}}. {{Sources}}</p>"
)
STYLE = """
.card{font-family:system-ui,sans-serif;font-size:18px;line-height:1.45;text-align:left;max-width:42em;margin:auto}
.question{font-weight:600}
pre{overflow-x:auto;font-size:14px;padding:.6em;border:1px solid currentColor}
h3{font-size:16px;margin:1.1em 0 .3em}
.sources{font-size:14px}
"""


def write_deck(path: Path, bank: dict[str, Card] | None = None) -> int:
    """Write the deck of ``bank``, else of the book, as an .apkg file; returns the number of its notes.

    Raises ``ValueError`` if genanki is not installed, or ``path`` cannot be written; ``OSError`` on a full disk.
    """
    genanki = _genanki()
    check_writable(path)
    cards = load_bank() if bank is None else bank
    deck = genanki.Deck(DECK, NAME)
    model = genanki.Model(
        MODEL,
        NAME,
        fields=[{"name": name} for name in FIELDS],
        templates=[{"name": "Say it aloud", "qfmt": FRONT, "afmt": BACK}],
        css=STYLE,
    )
    works = load_works(book_file("references.bib"))
    for card in cards.values():
        fields, guid = list(note_fields(card, works).values()), genanki.guid_for(NAME, card.id)
        deck.add_note(genanki.Note(model=model, fields=fields, guid=guid, tags=tags(card)))
    with written_aside(path) as file:
        try:
            genanki.Package(deck).write_to_file(file)
        except sqlite3.Error as error:  # genanki's database, in the folder for temporary files
            raise OSError(f"{path} cannot be written: {error} in {tempfile.gettempdir()}; is a disk full?") from error
    return len(cards)


def _genanki() -> Any:
    try:
        import genanki  # type: ignore[import-untyped]
    except ModuleNotFoundError as error:
        raise ValueError("the deck needs the package genanki; `pip install genanki==0.13.1` adds it") from error
    return genanki


def tags(card: Card) -> list[str]:
    """A card's tags; Anki shows what is before :: as a folder."""
    return [f"tier::{card.tier}", f"level::{card.level}", f"topic::{card.topic}"]


def note_fields(card: Card, works: dict[str, Work]) -> dict[str, str]:
    """The HTML of each field of a card's note, all text escaped; ``works`` are the book's references."""
    answers = [f"<p><b>In {SPOKEN[tier]}:</b> {mathjax(words)}</p>" for tier, words in card.answer.items()]
    flags = [f"{mathjax(flag.text)}: <i>{mathjax(flag.why)}</i>" for flag in card.red_flags]
    texts = (
        mathjax(card.question),
        f"<pre>{escape(card.context, quote=False)}</pre>" if card.context else "",
        "".join(answers) + _number(card),
        _list([mathjax(point) for point in card.rubric]),
        _list(flags),
        _options(card),
        "; ".join(mathjax(source["text"] or "") for source in sources_of(card, works)),
        mathjax(chapter_title(card.chapter, book_file("chapters"))),
        card.id,
    )
    return dict(zip(FIELDS, texts, strict=True))


def _number(card: Card) -> str:
    """The number to answer with, where a card asks for one."""
    if card.numeric is None:
        return ""
    return f"<p><b>{card.numeric.value:,g} {mathjax(card.numeric.unit)}</b>: {mathjax(card.numeric.why)}</p>"


def _options(card: Card) -> str:
    marks = {True: "✓", False: "✗"}
    return _list(
        [f"{marks[option.right]} {mathjax(option.text)} <i>{mathjax(option.why)}</i>" for option in card.choices]
    )


def _list(items: list[str]) -> str:
    return f"<ul>{''.join(f'<li>{item}</li>' for item in items)}</ul>" if items else ""
