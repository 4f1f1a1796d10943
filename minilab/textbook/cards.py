"""The question bank: one YAML file per topic in ``book/cards``, read and checked here.

A file is a list of cards::

    - id: negatives-chance          # the file's name first; lower case, digits and hyphens; unique in the bank
      tier: basics                  # basics, solid or deep: how far into the subject
      level: junior                 # junior, mid, senior or staff: who is asked this
      question: What is …?
      context: |                    # optional: a log, code or a small table; its line breaks are kept
        epoch  loss …
      answer:                       # what to say aloud: one length or more
        basics: …                   # 20 seconds: 40 to 55 words
        solid: …                    # 50 seconds: 110 to 135 words
        deep: …                     # two minutes: at most 300 words
      rubric: [four to six points, each of which was said or was not]
      red_flags:                    # what should not be said, and why it is wrong
        - {text: …, why: …}
      analogy: …                    # optional
      follow_ups: [negatives-count] # optional: ids of the cards that an interviewer asks next
      choices:                      # three to five, exactly one of them right; optional if numeric is given
        - {text: …, right: true, why: …}
      numeric: {value: 6.24, tolerance: 0.02, unit: nats, why: …}   # optional; the tolerance is absolute
      sources: ["oord2018cpc, equation 4", "record:momentum"]   # a key of references.bib and the place, or a grid
      chapter: basics/negatives     # where the answer is explained and measured
      records: [momentum]           # optional: grids of recorded runs

Formulas stand between dollar signs. Every fault is a ``ValueError`` that names the file, the line, the field and
what is allowed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from minilab.checks import shown
from minilab.textbook.card_fields import Place, check_fields, lines, number, one_of, read_list, text, texts

TIERS = ("basics", "solid", "deep")
LEVELS = ("junior", "mid", "senior", "staff")
CHOICES = (3, 5)
RUBRIC = (4, 6)
ID = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
CHAPTER = re.compile(r"(basics|solid|deep|lookup)/[a-z0-9-]{1,60}")
NEEDED = ("id", "tier", "level", "question", "answer", "rubric", "red_flags", "sources", "chapter")
OPTIONAL = ("context", "analogy", "follow_ups", "choices", "numeric", "records")
CHOICE_FIELDS = ("text", "right", "why")
FLAG_FIELDS = ("text", "why")
NUMERIC_FIELDS = ("value", "tolerance", "unit", "why")


@dataclass(frozen=True)
class Choice:
    """One option: its text, whether it is the right one, and why or why not."""

    text: str
    right: bool
    why: str


@dataclass(frozen=True)
class RedFlag:
    """Something that should not be said, and why it is wrong."""

    text: str
    why: str


@dataclass(frozen=True)
class Numeric:
    """A number to answer with: right if it is within ``tolerance`` (absolute) of ``value``, in ``unit``."""

    value: float
    tolerance: float
    unit: str
    why: str


@dataclass(frozen=True)
class Card:
    """One question, the answers to say aloud by length, and what tells a good answer from a poor one."""

    id: str
    tier: str
    question: str
    choices: tuple[Choice, ...]
    sources: tuple[str, ...]
    answer: dict[str, str]
    rubric: tuple[str, ...]
    red_flags: tuple[RedFlag, ...]
    topic: str = ""
    level: str = ""
    chapter: str = ""
    context: str | None = None
    analogy: str | None = None
    follow_ups: tuple[str, ...] = ()
    numeric: Numeric | None = None
    records: tuple[str, ...] = ()


def card_files(folder: Path | None = None) -> list[Path]:
    """The card files: of ``folder``, else of the checkout, else of the installed package."""
    if folder is None:
        here = Path(__file__).resolve()
        checkout, installed = here.parents[2] / "book" / "cards", here.parent / "cards_data"
        folder = checkout if checkout.is_dir() else installed  # setup.py says how they get there
    return sorted(folder.glob("*.yml"))


def load_bank(folder: Path | None = None) -> dict[str, Card]:
    """Every card by its id. An id that two cards share, or a follow-up that is no card, is a ``ValueError``."""
    bank: dict[str, Card] = {}
    placed: list[tuple[Card, Place]] = []
    for path in card_files(folder):
        for card, place in _read(path):
            if card.id in bank:
                raise ValueError(f"{path}: field 'id': {card.id!r} is used twice in the bank; choose another")
            bank[card.id] = card
            placed.append((card, place))
    for card, place in placed:
        for name in card.follow_ups:
            if name not in bank or name == card.id:
                raise place.fault("follow_ups", f"{name!r} is not the id of another card")
    return bank


def load_file(path: Path) -> list[Card]:
    """The cards of one file, in its order; ``ValueError`` with file, line and field if wrong."""
    return [card for card, _ in _read(path)]


def bank_json(folder: Path | None = None) -> str:
    """The whole bank as JSON for the practice page: see ``minilab.textbook.bank``. Needs a checkout of the book."""
    bank = import_module("minilab.textbook.bank")  # not an import statement: a chapter with a quiz does not rest on it
    return str(bank.as_json(load_bank(folder)))


def _read(path: Path) -> list[tuple[Card, Place]]:
    """The cards of one file, each with its place."""
    read: dict[str, tuple[Card, Place]] = {}
    for value, place in read_list(path):
        card = _card(value, place)
        if card.id in read:
            raise place.fault("id", f"{card.id!r} is used twice in this file; choose another")
        read[card.id] = (card, place)
    return list(read.values())


def _card(value: Any, place: Place) -> Card:
    """One checked card."""
    check_fields(value, place, {*NEEDED, *OPTIONAL}, NEEDED)
    identifier = text(value, "id", place)
    if not ID.fullmatch(identifier):
        raise place.fault("id", f"{shown(identifier)} is not allowed; lower-case letters, digits, single hyphens are")
    if "choices" not in value and "numeric" not in value:
        raise place.fault("choices", "is missing, and there is no numeric either; give one of them")
    return Card(
        id=identifier,
        topic=place.path.stem,
        tier=one_of(value, "tier", place, TIERS),
        level=one_of(value, "level", place, LEVELS),
        question=text(value, "question", place),
        context=lines(value, "context", place) if "context" in value else None,
        answer=_answer(value, place),
        rubric=_rubric(value, place),
        red_flags=_red_flags(value["red_flags"], place),
        analogy=text(value, "analogy", place) if "analogy" in value else None,
        follow_ups=texts(value, "follow_ups", place) if "follow_ups" in value else (),
        choices=_choices(value["choices"], place) if "choices" in value else (),
        numeric=_numeric(value["numeric"], place.field("numeric")) if "numeric" in value else None,
        sources=texts(value, "sources", place),
        records=texts(value, "records", place) if "records" in value else (),
        chapter=_chapter(value, place),
    )


def _answer(value: dict[str, Any], place: Place) -> dict[str, str]:
    found, spot = value["answer"], place.field("answer")
    if not isinstance(found, dict) or not found:
        raise place.fault("answer", f"must hold one of {', '.join(TIERS)}, got {shown(found)}")
    check_fields(found, spot, set(TIERS), ())
    return {tier: text(found, tier, spot) for tier in found}


def _chapter(value: dict[str, Any], place: Place) -> str:
    found = text(value, "chapter", place)
    if not CHAPTER.fullmatch(found):  # it becomes part of an address and of a file's name
        raise place.fault("chapter", f"{shown(found)} is not allowed; use a tier, a slash and a name: deep/sharding")
    return found


def _rubric(value: dict[str, Any], place: Place) -> tuple[str, ...]:
    points = texts(value, "rubric", place)
    if not RUBRIC[0] <= len(points) <= RUBRIC[1]:
        raise place.fault("rubric", f"needs {RUBRIC[0]} to {RUBRIC[1]} points, got {len(points)}")
    return points


def _red_flags(value: Any, place: Place) -> tuple[RedFlag, ...]:
    if not isinstance(value, list) or not value:
        raise place.fault("red_flags", f"needs a list of one or more, each with text and why, got {shown(value)}")
    flags = []
    for flag, spot in zip(value, place.field("red_flags").items(), strict=True):
        check_fields(flag, spot, set(FLAG_FIELDS), FLAG_FIELDS)
        flags.append(RedFlag(text(flag, "text", spot), text(flag, "why", spot)))
    return tuple(flags)


def _choices(value: Any, place: Place) -> tuple[Choice, ...]:
    fewest, most = CHOICES
    if not isinstance(value, list) or not fewest <= len(value) <= most:
        found = len(value) if isinstance(value, list) else shown(value)
        raise place.fault("choices", f"needs a list of {fewest} to {most} choices, got {found}")
    choices = []
    for option, spot in zip(value, place.field("choices").items(), strict=True):
        check_fields(option, spot, set(CHOICE_FIELDS), CHOICE_FIELDS)
        if not isinstance(option["right"], bool):
            raise spot.fault("right", f"must be true or false, got {shown(option['right'])}")
        choices.append(Choice(text(option, "text", spot), option["right"], text(option, "why", spot)))
    right = sum(choice.right for choice in choices)
    if right != 1:
        raise place.fault("choices", f"exactly one choice must be right, got {right}")
    if len({choice.text for choice in choices}) < len(choices):
        raise place.fault("choices", "two choices have the same text; make each its own")
    return tuple(choices)


def _numeric(value: Any, place: Place) -> Numeric:
    check_fields(value, place, set(NUMERIC_FIELDS), NUMERIC_FIELDS)
    tolerance = number(value, "tolerance", place)
    if tolerance < 0:
        raise place.fault("tolerance", f"must be 0 or more, got {tolerance!r}")
    return Numeric(number(value, "value", place), tolerance, text(value, "unit", place), text(value, "why", place))
