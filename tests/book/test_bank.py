"""The question bank: every card is sound, and names works that are in the references."""

from __future__ import annotations

import re
from pathlib import Path

from minilab.textbook.cards import card_files, load_bank, load_file

ROOT = Path(__file__).resolve().parents[2]


def test_bank_is_read_from_the_sources() -> None:
    assert card_files() == sorted((ROOT / "book" / "cards").glob("*.yml"))
    assert len(load_bank()) >= 3


def test_cards_of_a_file_start_with_its_name() -> None:
    for path in card_files():
        for card in load_file(path):
            assert card.id.startswith(f"{path.stem}-"), f"{path.name}: {card.id}"


def test_sources_are_in_the_references() -> None:
    keys = re.findall(r"^@\w+\{([^,]+),", (ROOT / "book" / "references.bib").read_text(), flags=re.MULTILINE)
    for card in load_bank().values():
        for source in card.sources:
            assert source.partition(",")[0] in keys, f"{card.id}: {source}"


def test_the_right_choice_does_not_give_itself_away() -> None:
    """Over the bank, the right choice is neither always in one place nor always the longest."""
    bank = load_bank().values()
    places = {[choice.right for choice in card.choices].index(True) for card in bank}
    longest = [max(card.choices, key=lambda choice: len(choice.text)).right for card in bank]
    assert len(places) > 1
    assert not all(longest)


def test_choices_are_short() -> None:
    for card in load_bank().values():
        for choice in card.choices:
            assert len(choice.text) <= 140, f"{card.id}: {choice.text}"
            assert len(choice.why) <= 320, f"{card.id}: {choice.why}"
