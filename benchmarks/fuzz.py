"""Spoilt files for the four readers: question cards, recorded runs, claims, and the practice page's progress.

Each input must be read rightly or refused with a named error, within two seconds, with no code of it run and nothing
half changed. What is read is held against an independent reading and then used as the book uses it. Prints a table;
exits with 1 on a fault and shows the input. `tests/properties/test_readers_fuzz.py` and
`tests/site/test_practice_fuzz.py` try a few hundred.

Measured on 2026-12-01: 12,000 inputs, seed 0, no fault.

    python benchmarks/fuzz.py --inputs 12000 --seed 0
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import yaml

from minilab.records import load_record, save_record
from minilab.textbook import anki, bank, claims_page, terminal
from minilab.textbook.cards import Card, load_bank
from minilab.textbook.claims import Claim, load_claims
from minilab.textbook.explorer import contents
from minilab.textbook.quiz import _question
from minilab.textbook.works import Work, load_works

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(Path(__file__).parent))
import fuzz_progress  # noqa: E402 - it lies beside this file, which a test loads by its path
import mutations  # noqa: E402

LIMIT = 2.0  # seconds for one input
SHOWN = 1500  # characters of an input that shows a fault
RECORD = ROOT / "minilab" / "records" / "runs" / "moco-queue256-seed0.json"
WORKS = load_works(ROOT / "book" / "references.bib")


class Slow(BaseException):
    """One input took longer than it may; no `except Exception` of a reader hides it."""


@dataclass
class Reader:
    """One reader: its file's name, valid trees, how one is written and spoilt, and what reads and checks a file."""

    file: str
    seeds: list[Any]
    write: Callable[[Any], str]
    spoil: Callable[[random.Random, Any], bytes]
    check: Callable[[Path], None]


@dataclass
class Outcome:
    """What came of the inputs of one reader."""

    accepted: int = 0
    refused: int = 0
    slowest: float = 0.0  # seconds
    faults: list[str] = field(default_factory=list)


def cards(path: Path) -> None:
    """Read a folder that holds this one file of cards, and make of them what the book makes."""
    found = load_bank(path.parent)
    plain = _plain(path)
    assert [card.id for card in found.values()] == [row["id"].strip() for row in plain]
    for card, row in zip(found.values(), plain, strict=True):
        assert card.question == " ".join(row["question"].split()) and card.tier == row["tier"]
        assert [c.right for c in card.choices] == [c["right"] for c in row.get("choices", [])]
        assert list(card.rubric) == [" ".join(point.split()) for point in row["rubric"]]
        _use(card)


def _use(card: Card) -> None:
    html = _question(1, card, "q") + "".join(anki.note_fields(card, _Any(WORKS)).values())
    assert "<script" not in html and "<img" not in html
    for answer in ("", "1", "é", "1e400"):
        if card.numeric is not None:
            terminal.verdict(card, answer).encode()
    fields = bank.card_fields(card, _Any(WORKS), ROOT / "book" / "chapters")
    json.dumps(fields, allow_nan=False, ensure_ascii=False).encode()


class _Any(dict[str, Work]):
    """The references, where every key is one: what a source may be called is not the reader's to know."""

    def __contains__(self, key: object) -> bool:
        return True

    def __missing__(self, key: str) -> Work:
        return Work(key, key, "", "")


def records(path: Path) -> None:
    """Read a record, hold it against plain JSON, write it and read it again, and give it to the explorer."""
    record = load_record(path)
    plain = json.loads(path.read_bytes())
    assert record.history == plain["history"] and record.curves == plain["curves"]
    assert record.recipe.to_dict() == {**record.recipe.to_dict(), **plain["recipe"]}
    assert record.data == plain["data"] and record.labels == plain["labels"]
    again = path.with_suffix(".again")
    save_record(record, again)
    assert load_record(again) == record
    for entry in record.history:
        assert f"{entry['epoch']:5d} {entry['knn']:6.3f} {entry['images_per_second']:9,.0f}"
    other = load_record(RECORD)
    if record.recipe.method in ("simclr", "moco") and record.labels == other.labels:
        shown = contents([record, other], "seed", "x") if record.recipe.seed != other.recipe.seed else {}
        json.dumps(shown, allow_nan=False).encode()


def claims(path: Path) -> None:
    """Read a file of claims, hold it against plain YAML, and draw each on the page."""
    found: list[Claim] = load_claims(path)
    plain = _plain(path)
    assert [claim.id for claim in found] == [row["id"].strip() for row in plain]
    assert [claim.verdict for claim in found] == [row["verdict"] for row in plain]
    assert [claim.claim for claim in found] == [" ".join(row["claim"].split()) for row in plain]
    for claim in found:
        html = claims_page._claim(claim, _Any(WORKS), dict.fromkeys(claim.effect, "1"))
        html.encode()
        assert "<script" not in html and "<img" not in html


def _plain(path: Path) -> Any:
    """A YAML file as another reader has it."""
    return yaml.load(path.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def readers() -> dict[str, Reader]:
    """The readers that run here; that of progress runs in a browser."""
    book, as_yaml = ROOT / "book", mutations.as_yaml
    decks = [_plain(book / "cards" / name)[:2] for name in ("negatives.yml", "numbers.yml", "stories.yml")]
    for card in (card for deck in decks for card in deck):
        card.pop("follow_ups", None)  # they name cards that are not in the file
    said = _plain(book / "claims.yml")
    short = json.loads(RECORD.read_text(encoding="utf-8"))
    short["history"], short["curves"] = short["history"][:2], short["curves"][:2]
    return {
        "cards": Reader("topic.yml", decks, as_yaml, mutations.yaml_text, cards),
        "claims": Reader("claims.yml", [said[:3], said[20:23]], as_yaml, mutations.yaml_text, claims),
        "records": Reader("run.json", [short], json.dumps, mutations.json_text, records),
    }


def inputs(reader: Reader, count: int, seed: int) -> Iterator[bytes]:
    """Files: first the valid ones, then spoilt ones, a fifth of them by their bytes; the same seed gives the same."""
    dice = random.Random(seed)
    whole = [reader.write(tree).encode() for tree in reader.seeds][:count]
    yield from whole
    for number in range(count - len(whole)):
        if number % 5:
            yield reader.spoil(dice, dice.choice(reader.seeds))
        else:
            yield mutations.raw(dice, dice.choice(whole))


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raise `Slow` in this thread once `seconds` have passed."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise Slow(f"took longer than {seconds:g} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def fuzz(reader: Reader, count: int, seed: int, folder: Path) -> Outcome:
    """Write each input to `folder` and read it; any error but a `ValueError` that names the file is a fault."""
    outcome, path = Outcome(), folder / reader.file
    for data in inputs(reader, count, seed):
        path.write_bytes(data)
        began = time.perf_counter()
        try:
            with at_most(LIMIT):
                reader.check(path)
            outcome.accepted += 1
        except ValueError as error:
            outcome.refused += 1
            if str(path) not in str(error):
                outcome.faults.append(_told(f"not named: {error!r}", data))
        except (Exception, Slow) as error:
            outcome.faults.append(_told(repr(error), data))
        outcome.slowest = max(outcome.slowest, time.perf_counter() - began)
        if path.read_bytes() != data or Path("ran").exists():
            outcome.faults.append(_told("the file was changed, or its code was run", data))
    return outcome


def fuzz_in_browser(page: Any, count: int, seed: int) -> Outcome:
    """The same for the progress of the practice page, on a page that lies beside its modules."""
    files = fuzz_progress.texts(count, seed)
    outcome = Outcome()
    for start in range(0, count, 500):
        found = fuzz_progress.try_all(page, files[start : start + 500], LIMIT)
        outcome.accepted += found["accepted"]
        outcome.refused += found["refused"]
        outcome.slowest = max(outcome.slowest, found["slowest"] / 1000)
        outcome.faults += [_told(what, files[start + number]) for number, what in found["faults"]]
    return outcome


def _told(what: str, data: bytes) -> str:
    shown = repr(data)
    return f"{what[:SHOWN]}\n{shown if len(shown) < SHOWN else shown[: SHOWN - 40] + f'... {len(data)} bytes'}"


def main(arguments: list[str] | None = None) -> int:
    """The command; 1 if there is a fault."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--inputs", type=int, default=12_000, help="in all (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    each = options.inputs // 4
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # what an input might run would leave its mark here
        outcomes = {name: fuzz(reader, each, options.seed, Path(folder)) for name, reader in readers().items()}
        os.chdir(ROOT)
    with fuzz_progress.blank_page() as page:
        outcomes["progress"] = fuzz_in_browser(page, each, options.seed)
    for name, outcome in outcomes.items():
        kinds = {fault[:40]: fault for fault in outcome.faults}  # one of each, or nearly so
        for fault in list(kinds.values())[:10]:
            print(f"\n{name}: {fault}")
    print(f"{'reader':10s}{'inputs':>8s}{'read':>8s}{'refused':>9s}{'faults':>8s}{'slowest ms':>12s}")
    for name, o in outcomes.items():
        tried = o.accepted + o.refused
        print(f"{name:10s}{tried:8,}{o.accepted:8,}{o.refused:9,}{len(o.faults):8,}{1000 * o.slowest:12.1f}")
    return 1 if any(outcome.faults for outcome in outcomes.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
