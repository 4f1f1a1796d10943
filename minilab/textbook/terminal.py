"""The question bank in a terminal: a quiz, a list, and the files for the practice page and for Anki."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from textwrap import fill
from typing import TextIO

from minilab.checks import shown
from minilab.files import check_writable, written_aside
from minilab.textbook.cards import TIERS, Card, bank_json, load_bank
from minilab.textbook.maths import plain

WIDTH = 88
SPOKEN = {"basics": "20 seconds", "solid": "50 seconds", "deep": "two minutes"}
LETTERS = "abcde"


def chosen(tier: str | None, topic: str | None) -> list[Card]:
    """The cards of a tier and a topic, or of all; ``ValueError`` naming what is allowed if there is no such one."""
    cards = list(load_bank().values())
    topics = sorted({card.topic for card in cards})
    for name, value, allowed in (("tier", tier, TIERS), ("topic", topic, topics)):
        if value is not None and value not in allowed:
            raise ValueError(f"{name} is {value!r}; allowed: {', '.join(allowed)}")
    found = [card for card in cards if tier in (None, card.tier) and topic in (None, card.topic)]
    if not found:
        there = sorted({card.tier for card in cards if card.topic == topic}, key=TIERS.index)
        raise ValueError(f"the topic {topic!r} has no card of the tier {tier!r}; it has: {', '.join(there)}")
    return found


def quiz(tier: str | None, topic: str | None, seed: int | None, count: int) -> None:
    """Ask ``count`` cards, or as many as there are, in an order drawn from ``seed``; ends where the input ends."""
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise ValueError(f"count is {shown(count)}; allowed: 1 or more")
    cards = chosen(tier, topic)
    asked = random.Random(seed).sample(cards, min(count, len(cards)))
    _can_say_anything(sys.stdout)
    try:
        ask(asked, _reader(sys.stdin))
    except EOFError:
        print("\n\nThe input has ended, and so has the quiz.")


def ask(cards: list[Card], read: Callable[[str], str]) -> None:
    """Ask these cards one after the other. ``read`` takes a prompt and returns a line; ``EOFError`` at the end."""
    for number, card in enumerate(cards, start=1):
        print(f"\n{number} of {len(cards)} · {card.topic} · {card.tier} · {card.level}\n")
        print(_wrapped(card.question))
        if card.context:
            print(f"\n{card.context}")
        print(f"\nSay it aloud: {', or '.join(SPOKEN[length] for length in card.answer)}.")
        _reveal(card, read)
        _options(card, read)
    print(f"\n{len(cards)} of {len(cards)} asked.")


def _reveal(card: Card, read: Callable[[str], str]) -> None:
    """Wait, for a number where the card asks for one; then the answers, the rubric and the red flags."""
    if card.numeric is None:
        read("Enter shows the answer. ")
    else:
        said = read(f"Your number, in {plain(card.numeric.unit)}? Enter shows the answer. ")
        print(f"\n{verdict(card, said)} {plain(card.numeric.why)}")
    for length, words in card.answer.items():
        print(f"\nIn {SPOKEN[length]}:\n{_wrapped(words)}")
    print("\nDid you say")
    print(_bullets(card.rubric))
    print("\nRed flags")
    print(_bullets(f"{flag.text}. Why not: {flag.why}" for flag in card.red_flags))


def verdict(card: Card, said: str) -> str:
    """What a number is worth, as a sentence; the right number if ``said`` is none."""
    asked = card.numeric
    if asked is None:
        raise ValueError(f"the card {card.id!r} asks for no number; allowed: cards with numeric")
    right = f"{asked.value:,g} {plain(asked.unit)}."
    try:
        number = float(said.replace(",", "").strip())
    except ValueError:
        return f"It is {right}" if not said.strip() else f"{said.strip()!r} is no number. It is {right}"
    return f"Right: {right}" if abs(number - asked.value) <= asked.tolerance else f"Not quite: it is {right}"


def _options(card: Card, read: Callable[[str], str]) -> None:
    """Ask which option is right, then say why each one is or is not."""
    if not card.choices:
        return
    print("\nAnd which of these?")
    for letter, option in zip(LETTERS, card.choices, strict=False):
        print(_wrapped(option.text, f"  {letter}) "))
    said = read(f"A letter from a to {LETTERS[len(card.choices) - 1]}, or Enter. ").strip().lower()
    right = next(letter for letter, option in zip(LETTERS, card.choices, strict=False) if option.right)
    print(f"\n{'Right.' if said == right else f'It is {right}.'}")
    for letter, option in zip(LETTERS, card.choices, strict=False):
        print(_wrapped(f"{'yes' if option.right else 'no'}: {option.why}", f"  {letter}) "))


def list_cards(tier: str | None, topic: str | None) -> None:
    """One line a card: its id, tier, level and question."""
    _can_say_anything(sys.stdout)
    for card in chosen(tier, topic):
        print(f"{card.id:32s} {card.tier:7s} {card.level:7s} {plain(card.question)}")


def write_json(path: Path) -> None:
    """Write the bank for the practice page; ``ValueError`` if ``path`` cannot be written."""
    check_writable(path)
    with written_aside(path) as file:
        file.write(bank_json().encode() + b"\n")


def _reader(stream: TextIO) -> Callable[[str], str]:
    """Prompts and reads lines, of a person or of a pipe."""

    def read(prompt: str) -> str:
        print(prompt, end="", flush=True)
        line = stream.readline()
        if not line:
            raise EOFError
        return line.rstrip("\n")

    return read


def _can_say_anything(stream: TextIO) -> None:
    """A terminal that lacks a sign shows a question mark instead of ending the quiz."""
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="replace")


def _wrapped(text: str, first: str = "") -> str:
    return fill(plain(text), WIDTH, initial_indent=first, subsequent_indent=" " * len(first))


def _bullets(items: Iterable[str]) -> str:
    return "\n".join(_wrapped(item, "  - ") for item in items)
