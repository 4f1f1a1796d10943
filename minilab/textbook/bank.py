"""The question bank for the practice page, as JSON: sources and chapters are made readable here.

The JSON is ``{"version": 1, "cards": [...]}``. A card has the fields of its file (see ``cards.py``), all of them: what
is not given is null, or an empty list. Its ``sources`` are ``{"text", "url"}``, with null for no address, and
``chapter_title`` is the title of its chapter. Texts are plain, with formulas between dollar signs: who shows them
escapes them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from minilab.textbook.cards import Card
from minilab.textbook.claims import book_file
from minilab.textbook.works import Work, load_works

VERSION = 1
RECORD = "record:"


def as_json(bank: dict[str, Card]) -> str:
    """The cards as JSON, in the bank's order; the same bank gives the same text.

    Raises ``ValueError`` naming the card if a source is not in the book's references.
    """
    chapters, works = book_file("chapters"), load_works(book_file("references.bib"))
    cards = [card_fields(card, works, chapters) for card in bank.values()]
    return json.dumps({"version": VERSION, "cards": cards}, ensure_ascii=False, indent=1)


def card_fields(card: Card, works: dict[str, Work], chapters: Path) -> dict[str, Any]:
    """The fields of one card for the practice page."""
    made = {"sources": sources_of(card, works), "chapter_title": chapter_title(card.chapter, chapters)}
    return {**asdict(card, dict_factory=_lists), **made}


def _lists(fields: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """The fields of a card or of a part of it; tuples become lists, as JSON will have them."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in fields}


def sources_of(card: Card, works: dict[str, Work]) -> list[dict[str, str | None]]:
    """Each source of a card as a readable text, and its address or None; ``ValueError`` if it is unknown."""
    found = []
    for source in card.sources:
        key, _, place = source.partition(", ")
        if source.startswith(RECORD):
            found.append({"text": f"recorded runs: {source.removeprefix(RECORD)}", "url": None})
        elif key in works:
            found.append({"text": _readable(works[key], place), "url": _address(works[key])})
        else:
            raise ValueError(
                f"card {card.id}: source {key!r} is not in the references; allowed: its keys, or record:GRID"
            )
    return found


def _readable(work: Work, place: str) -> str:
    """A work and a place in it: "Chen et al., 2020, SimCLR, table B.1"."""
    return ", ".join(part for part in (work.name, work.short, place) if part)


def _address(work: Work) -> str | None:
    return work.url if work.url.startswith("https://") else None


def chapter_title(chapter: str, chapters: Path) -> str:
    """The first heading of a chapter's source; its name in words where the sources are not installed."""
    path = chapters / f"{chapter}.md"
    if not path.is_file():
        return chapter.rpartition("/")[2].replace("-", " ").capitalize()
    titles = [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("# ")]
    if not titles:
        raise ValueError(f"{path} has no title; allowed: a chapter with a line that starts with '# '")
    return titles[0].removeprefix("# ").strip()
