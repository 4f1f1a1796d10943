"""The question bank: every card is sound, says what its sources and records say, and can be said in its time."""

from __future__ import annotations

import re
from collections import Counter
from math import log
from pathlib import Path

import pytest

from minilab.grids import GRIDS
from minilab.records import of_grid
from minilab.records.store import RUNS, Record, load_record
from minilab.textbook.cards import LEVELS, TIERS, Card, card_files, load_bank, load_file
from minilab.textbook.maths import FORMULA, SIGNS

ROOT = Path(__file__).resolve().parents[2]
WORDS = {
    "basics": (40, 55),
    "solid": (110, 135),
    "deep": (136, 300),
}  # 20 s, 50 s and two minutes at 150 words a minute
BANK = load_bank()
CARDS = list(BANK.values())

every_card = pytest.mark.parametrize("card", CARDS, ids=lambda card: card.id)


def spoken(text: str) -> int:
    """Words as they are said: a formula is one, and so is each number or sign that stands alone."""
    return len(FORMULA.sub("formula", text).split())


def texts(card: Card) -> list[str]:
    """Every text of a card in which a formula may stand."""
    parts = [card.question, *card.answer.values(), *card.rubric, card.analogy or ""]
    parts += [text for flag in card.red_flags for text in (flag.text, flag.why)]
    parts += [text for choice in card.choices for text in (choice.text, choice.why)]
    return [*parts, *([card.numeric.unit, card.numeric.why] if card.numeric else [])]


def test_bank_is_read_from_the_sources() -> None:
    assert card_files() == sorted((ROOT / "book" / "cards").glob("*.yml"))
    assert len(BANK) >= 60


def test_cards_of_a_file_start_with_its_name() -> None:
    for path in card_files():
        for card in load_file(path):
            assert card.id.startswith(f"{path.stem}-"), f"{path.name}: {card.id}"


def test_sources_are_in_the_references_or_the_records() -> None:
    keys = re.findall(r"^@\w+\{([^,]+),", (ROOT / "book" / "references.bib").read_text(), flags=re.MULTILINE)
    for card in BANK.values():
        for source in card.sources:
            kind, _, grid = source.partition(":")
            if kind == "record":
                assert grid in GRIDS, f"{card.id}: {source}"
            else:
                assert source.partition(",")[0] in keys, f"{card.id}: {source}"


def test_records_that_a_card_names_are_there() -> None:
    named = {name for card in CARDS for name in card.records}
    named |= {source.partition(":")[2] for card in CARDS for source in card.sources if source.startswith("record:")}
    assert named
    for name in named:
        assert of_grid(name)


@every_card
def test_an_answer_can_be_said_in_its_time(card: Card) -> None:
    for tier, words in card.answer.items():
        fewest, most = WORDS[tier]
        assert fewest <= spoken(words) <= most, f"{tier}: {spoken(words)} words"


def test_chapters_exist() -> None:
    for card in CARDS:
        path = ROOT / "book" / "chapters" / f"{card.chapter}.md"
        assert path.is_file(), f"{card.id}: {card.chapter}"


def test_every_tier_and_level_is_asked() -> None:
    assert {card.tier for card in CARDS} == set(TIERS)
    assert {card.level for card in CARDS} == set(LEVELS)
    assert {card.level for card in CARDS if card.topic == "interview"} == set(LEVELS)


def test_the_interview_card_has_every_length_and_its_red_flags() -> None:
    card = BANK["interview-call"]
    assert set(card.answer) == set(TIERS)
    assert len(card.red_flags) >= 5
    assert len(card.follow_ups) >= 3
    assert card.analogy


def test_an_interview_can_go_deep() -> None:
    """From the interview question a chain of follow-ups leads at least six cards further, never to one twice."""
    reached, edge, steps = {"interview-call"}, {"interview-call"}, 0
    while edge := {name for card in edge for name in BANK[card].follow_ups} - reached:
        reached, steps = reached | edge, steps + 1
    assert steps >= 6
    assert len(reached) >= 60
    assert all(card.follow_ups for card in CARDS)


def test_there_are_stories_to_debug_and_numbers_to_compute() -> None:
    stories = [card for card in CARDS if card.topic == "stories"]
    assert len(stories) >= 8
    assert all(card.context for card in stories)
    assert all(len(line) <= 76 for card in stories for line in (card.context or "").splitlines())
    assert sum(card.numeric is not None for card in CARDS) >= 8


def test_the_right_choice_does_not_give_itself_away() -> None:
    """Over the bank, the right choice is mostly not the longest, nor in one place."""
    asked = [card for card in CARDS if card.choices]
    places = Counter([choice.right for choice in card.choices].index(True) for card in asked)
    longest = [max(card.choices, key=lambda choice: len(choice.text)).right for card in asked]
    assert max(places.values()) <= len(asked) / 2
    assert sum(longest) <= len(asked) / 2


def test_choices_are_short() -> None:
    for card in BANK.values():
        for choice in card.choices:
            assert len(choice.text) <= 140, f"{card.id}: {choice.text}"
            assert len(choice.why) <= 320, f"{card.id}: {choice.why}"


@every_card
def test_formulas_stand_between_dollar_signs_and_a_terminal_can_show_them(card: Card) -> None:
    for text in texts(card):
        assert text.count("$") % 2 == 0 and "\\(" not in text, text
        for formula in FORMULA.findall(text):
            assert set(re.findall(r"\\([a-zA-Z]+)", formula)) <= set(SIGNS), text


NUMBERS = {
    "numbers-simclr-chance": log(2 * 256 - 1),
    "numbers-moco-chance": log(65_536 + 1),
    "numbers-negatives": 2 * 8 * 64 - 2,
    "numbers-queue-age": 65_536 / 1_024,
    "numbers-horizon": 1 / (1 - 0.996),
    "numbers-half-life": log(0.5) / log(0.99),
    "numbers-gap": 1 - 0.999**256,
    "numbers-queue-bytes": 65_536 * 256 * 4 / 2**20,
    "numbers-activations": 2 * 1_024 / 8 * 86e6 / 1e9,
    "numbers-similarities": (2 * 4_096) ** 2 * 4 / 1e6,
    "numbers-learning-rate": 0.075 * 256**0.5,
    "numbers-scaled-momentum": 0.999**4,
    "numbers-false-negatives": 4_096 / 10,
}


def test_every_number_is_what_its_formula_gives() -> None:
    assert {card.id for card in CARDS if card.numeric} == set(NUMBERS)
    for name, value in NUMBERS.items():
        numeric = BANK[name].numeric
        assert numeric is not None
        assert abs(numeric.value - value) <= max(numeric.tolerance, 1e-9), name


def run(name: str) -> Record:
    return load_record(RUNS / f"{name}.json")


def last(name: str) -> dict[str, float]:
    """The last epoch of a recorded run, kNN in percent."""
    entry = run(name).history[-1]
    return {**entry, "knn": 100 * entry["knn"]}


def rows(card: str) -> list[list[str]]:
    """The words of each line of a story's table."""
    return [line.split() for line in (BANK[card].context or "").splitlines()]


def test_the_story_of_the_old_queue_is_the_recorded_run() -> None:
    history = {entry["epoch"]: entry for entry in run("moco-momentum0.0-seed0").history}
    told = [row for row in rows("stories-old-queue") if row[0].isdigit()]
    assert len(told) == 5
    for epoch, *figures in told:
        entry = history[int(epoch)]
        shown = f"{entry['loss']:.2f} {entry['spread']:.2f} {entry['effective_rank']:.0f} {100 * entry['knn']:.1f}"
        assert figures == shown.split()
    assert f"{last('moco-seed0')['knn']:.1f} percent" in BANK["stories-old-queue"].answer["basics"]


def test_the_story_of_the_constant_is_the_recorded_runs() -> None:
    told = {row[1]: row[2:] for row in rows("stories-constant") if row[0] == "run"}
    for label, name in (("A", "simsiam-seed0"), ("B", "simsiam-no-stop-seed0")):
        end = last(name)
        shown = f"{end['loss']:.2f} {end['spread']:.2f} {end['effective_rank']:.0f} {end['knn']:.1f}"
        assert told[label] == shown.split()


@pytest.mark.parametrize(
    ("card", "runs"),
    [
        ("stories-accumulation-loss", ["simclr-seed0", "simclr-chunk32-naive-seed0"]),
        (
            "stories-temperature",
            [f"simclr{t}-seed0" for t in ("-temperature0.05", "", "-temperature0.2", "-temperature0.5")],
        ),
    ],
)
def test_the_losses_of_a_story_are_the_recorded_ones(card: str, runs: list[str]) -> None:
    told = [row[-2:] for row in rows(card)[1:]]
    assert told == [f"{last(name)['loss']:.2f} {last(name)['knn']:.1f}".split() for name in runs]


def test_the_story_of_the_gap_is_the_recorded_grid() -> None:
    told = rows("stories-gap")[1:]
    queues = {"256": "-queue256", "1024": "-queue1024", "4096": "", "16384": "-queue16384", "65536": "-queue65536"}
    assert [row[0] for row in told] == list(queues)
    for size, chance, loss, below, knn in told:
        end = last(f"moco{queues[size]}-seed0")
        assert (loss, knn) == (f"{end['loss']:.2f}", f"{end['knn']:.1f}")
        assert chance == f"{log(int(size) + 1):.2f}"
        assert below == f"{log(int(size) + 1) - end['loss']:.2f}"
