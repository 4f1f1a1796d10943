"""The question bank: one YAML file per topic in ``book/cards``, read and checked here.

A file is a list of cards::

    - id: negatives-chance          # lower case, digits and hyphens; unique in the bank
      tier: basics                  # basics, solid or deep
      question: What is …?
      answer:                       # optional: what to say aloud, by tier
        basics: …
        solid: …
      rubric: [a point that a good answer makes]        # optional
      red_flags: [something that should not be said]    # optional
      choices:                      # three to five, exactly one of them right
        - {text: …, right: true, why: …}
      sources: ["oord2018cpc, equation 4"]   # a key of book/references.bib, then the place

Every fault is a ``ValueError`` that names the file, the line, the field and what is allowed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

TIERS = ("basics", "solid", "deep")
FEWEST_CHOICES, MOST_CHOICES = 3, 5
ID = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
CARD_FIELDS = {"id", "tier", "question", "answer", "rubric", "red_flags", "choices", "sources"}
CARD_NEEDS = ("id", "tier", "question", "choices", "sources")
CHOICE_FIELDS = ("text", "right", "why")
ANSWER_TIERS = ("basics", "solid")


@dataclass(frozen=True)
class Choice:
    """One option: its text, whether it is the right one, and why or why not."""

    text: str
    right: bool
    why: str


@dataclass(frozen=True)
class Card:
    """One question with its options and, where given, the answer to say aloud."""

    id: str
    tier: str
    question: str
    choices: tuple[Choice, ...]
    sources: tuple[str, ...]
    answer: dict[str, str]
    rubric: tuple[str, ...]
    red_flags: tuple[str, ...]


def card_files(folder: Path | None = None) -> list[Path]:
    """The card files: of ``folder``, else of the checkout, else of the installed package."""
    if folder is None:
        here = Path(__file__).resolve()
        checkout, installed = here.parents[2] / "book" / "cards", here.parent / "cards_data"
        folder = checkout if checkout.is_dir() else installed  # setup.py says how they get there
    return sorted(folder.glob("*.yml"))


def load_bank(folder: Path | None = None) -> dict[str, Card]:
    """Every card by its id. An id that two cards share is a ``ValueError``."""
    bank: dict[str, Card] = {}
    for path in card_files(folder):
        for card in load_file(path):
            if card.id in bank:
                raise ValueError(f"{path}: field 'id': {card.id!r} is used twice in the bank; choose another")
            bank[card.id] = card
    return bank


def load_file(path: Path) -> list[Card]:
    """The cards of one file, in its order; ``ValueError`` with file, line and field if wrong."""
    text = path.read_text(encoding="utf-8")
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        values = yaml.safe_load(text)
    except yaml.YAMLError as fault:
        raise ValueError(f"{path}: not valid YAML: {fault}") from fault
    if not isinstance(root, yaml.SequenceNode) or not root.value:
        raise ValueError(f"{path}:1: the file must be a list of one or more cards")
    places = [_Place(path, node) for node in root.value]
    cards = [_card(value, place) for value, place in zip(values, places, strict=True)]
    ids = [card.id for card in cards]
    for position, (card, place) in enumerate(zip(cards, places, strict=True)):
        if card.id in ids[:position]:
            raise place.fault("id", f"{card.id!r} is used twice in this file; choose another")
    return cards


class _Place:
    """Where a value stands in its file, so that an error can name the line."""

    def __init__(self, path: Path, node: yaml.Node) -> None:
        self.path, self.node = path, node

    def fault(self, field: str, message: str) -> ValueError:
        node = self.field(field).node
        return ValueError(f"{self.path}:{node.start_mark.line + 1}: field {field!r}: {message}")

    def field(self, name: str) -> _Place:
        """The place of one field's value, or this place if there is no such field."""
        for key, value in self.fields():
            if key == name:
                return _Place(self.path, value)
        return self

    def fields(self) -> Iterator[tuple[Any, yaml.Node]]:
        if isinstance(self.node, yaml.MappingNode):
            for key, value in self.node.value:
                yield key.value, value

    def items(self) -> list[_Place]:
        assert isinstance(self.node, yaml.SequenceNode)
        return [_Place(self.path, node) for node in self.node.value]


def _card(value: Any, place: _Place) -> Card:
    """One checked card."""
    _check_fields(value, place, CARD_FIELDS, CARD_NEEDS)
    identifier = _text(value, "id", place)
    if not ID.fullmatch(identifier):
        raise place.fault("id", f"{identifier!r} is not allowed; use lower-case letters, digits and single hyphens")
    if value["tier"] not in TIERS:
        raise place.fault("tier", f"{value['tier']!r} is not allowed; use one of {', '.join(TIERS)}")
    return Card(
        id=identifier,
        tier=value["tier"],
        question=_text(value, "question", place),
        choices=_choices(value["choices"], place),
        sources=_texts(value, "sources", place),
        answer=_answer(value.get("answer"), place),
        rubric=_texts(value, "rubric", place) if "rubric" in value else (),
        red_flags=_texts(value, "red_flags", place) if "red_flags" in value else (),
    )


def _choices(value: Any, place: _Place) -> tuple[Choice, ...]:
    if not isinstance(value, list) or not FEWEST_CHOICES <= len(value) <= MOST_CHOICES:
        found = len(value) if isinstance(value, list) else repr(value)
        raise place.fault("choices", f"needs a list of {FEWEST_CHOICES} to {MOST_CHOICES} choices, got {found}")
    choices = []
    for option, spot in zip(value, place.field("choices").items(), strict=True):
        _check_fields(option, spot, set(CHOICE_FIELDS), CHOICE_FIELDS)
        if not isinstance(option["right"], bool):
            raise spot.fault("right", f"must be true or false, got {option['right']!r}")
        choices.append(Choice(_text(option, "text", spot), option["right"], _text(option, "why", spot)))
    right = sum(choice.right for choice in choices)
    if right != 1:
        raise place.fault("choices", f"exactly one choice must be right, got {right}")
    if len({choice.text for choice in choices}) < len(choices):
        raise place.fault("choices", "two choices have the same text; make each its own")
    return tuple(choices)


def _answer(value: Any, place: _Place) -> dict[str, str]:
    if value is None:
        return {}
    spot = place.field("answer")
    if not isinstance(value, dict):
        raise place.fault("answer", f"must hold one of {', '.join(ANSWER_TIERS)}, got {value!r}")
    _check_fields(value, spot, set(ANSWER_TIERS), ())
    return {tier: _text(value, tier, spot) for tier in value}


def _check_fields(value: Any, place: _Place, allowed: set[str], needed: tuple[str, ...]) -> None:
    """``value`` is a mapping with every field in ``needed``, none twice, none unknown."""
    if not isinstance(value, dict):
        raise place.fault("", f"must be a mapping with the fields {', '.join(sorted(allowed))}, got {value!r}")
    seen: set[Any] = set()
    for name, _ in place.fields():
        if name not in allowed:
            raise place.fault(str(name), f"is unknown; allowed are {', '.join(sorted(allowed))}")
        if name in seen:
            raise place.fault(str(name), "is given twice; keep one")
        seen.add(name)
    for name in needed:
        if name not in value:
            raise place.fault(name, "is missing")


def _text(value: dict[str, Any], name: str, place: _Place) -> str:
    """A field that must be a non-empty text, with its line breaks folded into spaces."""
    text = value[name]
    if not isinstance(text, str) or not text.strip():
        raise place.fault(name, f"must be a non-empty text, got {text!r}")
    return " ".join(text.split())


def _texts(value: dict[str, Any], name: str, place: _Place) -> tuple[str, ...]:
    """A field that must be a non-empty list of non-empty texts."""
    texts = value[name]
    if not isinstance(texts, list) or not texts:
        raise place.fault(name, f"must be a list of one or more texts, got {texts!r}")
    for text in texts:
        if not isinstance(text, str) or not text.strip():
            raise place.fault(name, f"must hold non-empty texts only, got {text!r}")
    return tuple(" ".join(text.split()) for text in texts)
