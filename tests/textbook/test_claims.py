"""The claims file is read strictly, each check supports its verdict, and stops when what it rests on changes."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from minilab.records import Record
from minilab.spectra.repulsion import Union
from minilab.textbook import claim_sums
from minilab.textbook.claims import Claim, load_claims
from minilab.textbook.findings import CHECKS, runs

ROOT = Path(__file__).resolve().parents[2]
CLAIMS = load_claims()
GOOD = """\
- id: S17
  claim: The one follows from the other.
  verdict: wrong
  tier: solid
  methods: [simclr, moco]
  why: It does not.
  effect: [entropy-ceiling]
  support: ["tests/a/test_b.py::test_c"]
  sources: ["key, section 2"]
  chapter: deep/directions
"""


def test_a_good_claim_is_read(tmp_path: Path) -> None:
    path = tmp_path / "claims.yml"
    path.write_text(GOOD)
    assert load_claims(path) == [
        Claim(
            "S17", "The one follows from the other.", "wrong", "solid", ("simclr", "moco"), "It does not.",
            "deep/directions", ("entropy-ceiling",), ("tests/a/test_b.py::test_c",), ("key, section 2",), "",
        )
    ]  # fmt: skip
    assert load_claims(path)[0].source == "framework"


@pytest.mark.parametrize(
    ("old", "new", "line", "field", "message"),
    [
        ("id: S17", "id: T17", 1, "id", "S or Q, a number"),
        ("id: S17", "id: S170", 1, "id", "S or Q, a number"),
        ("The one follows from the other.", "' '", 2, "claim", "non-empty text"),
        ("verdict: wrong", "verdict: false", 3, "verdict", "use one of right, partly, imprecise"),
        ("verdict: wrong", "verdict: untestable", 1, "testable", "needs what would make it testable"),
        ("verdict: wrong", "verdict: untestable\n  testable: ''", 4, "testable", "non-empty text"),
        ("tier: solid", "tier: easy", 4, "tier", "use one of basics, solid, deep"),
        ("  tier: solid\n", "", 1, "tier", "is missing"),
        ("[simclr, moco]", "[simclr, byol]", 5, "methods", "'byol' is not allowed; use one or more of simclr"),
        ("[simclr, moco]", "simclr", 5, "methods", "list of one or more texts"),
        ("why: It does not.", "why: [no]", 6, "why", "non-empty text"),
        ("entropy-ceiling", "entropy-floor", 7, "effect", "no check is called 'entropy-floor'; there are accumulation"),
        ("tests/a/test_b.py::test_c", "test_c", 8, "support", "'test_c' is no test"),
        ("[\"key, section 2\"]", "[]", 9, "sources", "one or more texts"),
        ("deep/directions", "directions", 10, "chapter", "such as deep/sharding"),
        ("chapter:", "chapters:", 10, "chapters", "is unknown"),
        ("tier: solid", "tier: solid\n  tier: deep", 4, "tier", "is given twice"),
    ],
)  # fmt: skip
def test_a_bad_field_is_named(tmp_path: Path, old: str, new: str, line: int, field: str, message: str) -> None:
    assert old in GOOD
    path = tmp_path / "claims.yml"
    path.write_text(GOOD.replace(old, new, 1))
    with pytest.raises(ValueError, match=rf"^{re.escape(str(path))}:{line}: field '{field}': .*{message}"):
        load_claims(path)


def test_a_verdict_that_stands_on_nothing_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "claims.yml"
    path.write_text("".join(line for line in GOOD.splitlines(True) if not re.search("effect|support|sources", line)))
    with pytest.raises(ValueError, match=r":1: field 'effect': .*stand on"):
        load_claims(path)


def test_an_id_is_used_once(tmp_path: Path) -> None:
    path = tmp_path / "claims.yml"
    path.write_text(GOOD + GOOD)
    with pytest.raises(ValueError, match=r":11: field 'id': 'S17' is used twice"):
        load_claims(path)


def test_every_claim_of_both_documents_has_its_row_in_order() -> None:
    framework = [f"S{n}" for n in range(1, 53)]
    framework[3:4] = ["S4a", "S4b", "S4c"]
    assert [claim.id for claim in CLAIMS] == [*framework, *(f"Q{n}" for n in range(1, 39))]


def test_every_check_stands_behind_a_claim() -> None:
    assert {name for claim in CLAIMS for name in claim.effect} == set(CHECKS)


@pytest.mark.parametrize("name", sorted({name for claim in CLAIMS for name in claim.support}))
def test_the_tests_named_are_there(name: str) -> None:
    path, _, function = name.partition("::")
    assert re.search(rf"^def {function}\(", (ROOT / path).read_text(encoding="utf-8"), flags=re.MULTILINE)


@pytest.mark.parametrize("name", sorted(CHECKS))
def test_what_was_measured_supports_the_verdict(name: str) -> None:
    finding = CHECKS[name](runs)
    assert finding.supported, f"{[claim.id for claim in CLAIMS if name in claim.effect]}: {finding.text}"
    assert re.search(r"\d", finding.text)


# ---- What each check rests on, changed so that it must stop supporting the verdict -------------------------------


Doctor = Callable[[Record], Record]


def last(where: Callable[[Any], bool], **values: float) -> Doctor:
    """Other figures in the last epoch of the runs whose recipe is `where`."""

    def doctor(record: Record) -> Record:
        history = [*record.history[:-1], {**record.history[-1], **values}]
        return replace(record, history=history) if where(record.recipe) else record

    return doctor


def consistency(where: Callable[[Any], bool], value: float) -> Doctor:
    """Keys of every age with the same cosine to today's."""

    def doctor(record: Record) -> Record:
        curves = [{**curve, "consistency": [value for _ in curve["age"]]} for curve in record.curves]
        return replace(record, curves=curves) if where(record.recipe) else record

    return doctor


def fresh_keys(record: Record) -> Record:
    return replace(record, history=[{**entry, "key_cosine": 1.0} for entry in record.history])


def every(recipe: Any) -> bool:
    return True


RECORDS: dict[str, Doctor] = {
    "batch-flat": last(lambda r: r.method == "simclr" and r.batch == 32, knn=0.3),
    "batch-flat-moco": last(lambda r: r.method == "moco" and r.batch == 32, knn=0.3),
    "batch-no-collapse": last(lambda r: r.batch == 16, embedding_cosine=0.9),
    "batch-beyond-count": last(lambda r: r.batch == 1024, knn=0.47),
    "queue-flat": last(lambda r: r.queue == 65_536, knn=0.6),
    "momentum-order": last(lambda r: r.momentum == 0.0, knn=0.5),
    "momentum-zero": last(every, loss=8.5),
    "drift-by-momentum": consistency(lambda r: r.momentum == 0.999, 0.5),
    "keys-turn": consistency(every, 0.5),
    "lag-beats-age": fresh_keys,
    "temperature-beats-batch": last(lambda r: r.temperature != 0.1, knn=0.5),
    "accumulation-level": last(lambda r: r.accumulation == "naive", knn=0.3),
    "narrow-corpus": last(lambda r: r.queue == 16_384, knn=0.9),
    "oracle-gain": last(lambda r: r.method == "oracle", knn=0.1),
    "shuffle-loss": last(lambda r: r.shuffle, loss=5.0),
    "stop-gradient": last(lambda r: r.method == "simsiam-no-stop", embedding_cosine=0.1),
    "dcl-level": last(lambda r: r.method == "dcl", knn=0.6),
    "phases-edge": last(every, knn=0.4),
    "phases-fast-fails": last(every, knn=0.4),
    "phases-no-minimum": last(lambda r: r.queue == 64, knn=0.2),
    "phases-old-fails": last(every, knn=0.4),
    "phases-product": last(every, knn=0.4),
}
SUMS: dict[str, tuple[str, Any]] = {
    "chance-loss": ("nt_xent", lambda z, temperature: torch.tensor(1.0)),
    "entropy-ceiling": ("entropy", lambda share: torch.tensor(float(len(share)))),
    "entropy-temperature": ("shares", lambda z, temperature: torch.full((len(z), len(z)), 1 / len(z))),
    "rank-bounds": ("rank", lambda rows: 1),
    "rank-over-steps": ("rank", lambda rows: 1),
    "effective-below-rank": ("effective_rank", lambda rows: 127.0),
    "ranks-add-up-to-d": ("union", lambda batch, queue: Union(14, 18, 20)),
    "gram-and-covariance": ("spectrum", lambda rows: torch.ones(128)),
    "escape-rate": ("measured_rate", lambda *arguments, **named: 0.1),
    "escape-doubles": ("simclr_rate", lambda variance, temperature, negatives: negatives),
    "moco-escapes": ("moco_rate", lambda variance, temperature, negatives, leak: -leak),
    "tether": ("coupled_rates", lambda growth, stiffness, leak: (complex(growth - leak), 0j)),
    "mean-against-median": ("noisy_growth", lambda **named: (0.5, 0.1)),
    "average-lags": ("lag_of_average", lambda momentum: 0.0),
    "horizon": ("gap_closed", lambda momentum, steps: 0.0),
    "coverage-is-linear": ("effective_samples", lambda count, correlation: math.log(count)),
    "queue-formulas": ("math", SimpleNamespace(exp=lambda power: -power)),
    "runaway-threshold": ("runaway_rate", lambda leak, age, drive: 0.1),
    "memory-of-a-queue": ("device_bytes", lambda budget, method: {"queue": 10**9, "activations": 10**9}),
    "memory-of-a-batch": ("largest_batch", lambda budget, method: 100),
    "chunks-are-exact": ("freeze_batch_norm", lambda method: None),
    "speaking-time": ("WORDS_A_MINUTE", 60),
}


def test_every_check_can_fail() -> None:
    assert set(RECORDS) | set(SUMS) == set(CHECKS)


@pytest.mark.parametrize("name", sorted(RECORDS))
def test_other_records_stop_supporting(name: str) -> None:
    found = CHECKS[name](lambda grid: [RECORDS[name](record) for record in runs(grid)])
    assert not found.supported, found.text


@pytest.mark.parametrize("name", sorted(SUMS))
def test_another_result_stops_supporting(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(claim_sums, *SUMS[name])
    found = CHECKS[name](runs)
    assert not found.supported, found.text


@pytest.mark.parametrize("name", [name for name in RECORDS if name.startswith("phases")])
def test_a_grid_that_is_not_recorded_yet_supports_nothing_and_says_so(name: str) -> None:
    found = CHECKS[name](lambda grid: [])
    assert not found.supported
    assert "not recorded yet; 0 of 40 runs recorded" in found.text


def test_reading_a_grid_that_is_unknown_is_an_error() -> None:
    with pytest.raises(ValueError, match="grid is 'no-such'"):
        runs("no-such")
    assert runs("smoke") == ()
