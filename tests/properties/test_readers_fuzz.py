"""A few hundred spoilt files for the readers of cards, claims and records, and each kind of fault that was found so."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from minilab.records import load_record, save_record
from minilab.textbook.cards import load_file
from minilab.textbook.claims import load_claims

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))
import fuzz  # noqa: E402
import mutations  # noqa: E402

READERS = fuzz.readers()


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("seed", [1, 2])
def test_spoilt_files_are_read_rightly_or_refused(
    name: str, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = fuzz.fuzz(READERS[name], 120, seed, tmp_path)
    assert outcome.faults == []
    assert outcome.accepted + outcome.refused == 120
    assert outcome.accepted >= len(READERS[name].seeds) and outcome.refused > 60


def test_a_fault_is_told(tmp_path: Path) -> None:
    """The instrument itself: an error without a name, another error, and a hang are all faults."""

    def check(path: Path) -> None:
        kind = len(path.read_bytes()) % 4
        if kind == 0:
            raise ValueError("something is wrong")
        if kind == 1:
            raise KeyError("x")
        while kind == 2:
            pass

    reader = fuzz.Reader("f", ["a", "aa", "aaa", "aaaa"], str, mutations.json_text, check)
    before, fuzz.LIMIT = fuzz.LIMIT, 0.05
    try:
        outcome = fuzz.fuzz(reader, 4, 0, tmp_path)
    finally:
        fuzz.LIMIT = before
    assert [fault.split("\n")[0][:12] for fault in outcome.faults] == ["KeyError('x'", "Slow('took l", "not named: V"]
    assert (outcome.accepted, outcome.refused) == (1, 1)


HIDDEN = {
    "bomb": (f"- id: {mutations.BOMB}", ":1: not valid YAML here: anchors and aliases are not allowed"),
    "circle": ("- a: b\n- &a [*a]", ":2: not valid YAML here: anchors and aliases"),
    "truth": ("- id: !!bool maybe", ":1: .* the tag 'tag:yaml.org,2002:bool' is not allowed"),
    "date by tag": ("- id: !!timestamp x", ":1: .* is not allowed; write the value without a tag"),
    "number by tag": ("- id: !!int ''", ":1: .* is not allowed; write the value without a tag"),
    "name by tag": ("- ? !!str {=: id}\n  : x", ":1: .* is not allowed; write the value without a tag"),
    "call": ("- id: !!python/object/apply:os.system [touch ran]", ":1: .* is not allowed"),
    "date": ("- id: 2001-99-99", "not valid YAML: month must be in 1..12"),
    "digits": ("- id: " + "1" * 5000, "not valid YAML: Exceeds the limit"),
    "no digits": ("- id: 0b_", "not valid YAML: invalid literal"),
    "deep": (f"- id: {'[' * 200}{']' * 200}", ":1: not valid YAML here: nested deeper than 20"),
    "very deep": (f"- id: {'[' * 30_000}", "not valid YAML: .*nest"),
    "dashes": ("- " * 1500, "not valid YAML.*nest"),
    "long": ("- [" + "x, " * 10_000 + "]", ":1: field '': must be a mapping .{,900}…$"),
}


@pytest.mark.parametrize("load", [load_file, load_claims])
@pytest.mark.parametrize("name", HIDDEN)
def test_yaml_that_hides_something_is_refused_at_once(tmp_path: Path, load: Callable[[Path], Any], name: str) -> None:
    text, message = HIDDEN[name]
    path = tmp_path / "topic.yml"
    path.write_text(text)
    with fuzz.at_most(10.0), pytest.raises(ValueError, match=f"(?s)^{path}.*{message}"):
        load(path)


def test_a_file_in_another_encoding_is_named(tmp_path: Path) -> None:
    path = tmp_path / "topic.yml"
    path.write_bytes("- id: é".encode("utf-16"))
    with pytest.raises(ValueError, match=f"^{path}: not valid YAML: 'utf-8' codec"):
        load_file(path)


BIG = {"value": 10**400, "tolerance": 1, "unit": "x", "why": "y"}


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("question", "a\x1b[2Jb", r"field 'question': must be a text without control characters, got '\\x1b'"),
        ("question", "HUGE", "field 'question': must be a non-empty text, got of type int, and too long"),
        ("rubric", ["1", "2", "3", "4\x00"], "field 'rubric': must be a text without control characters"),
        ("chapter", "../../../etc/passwd", "field 'chapter': '../../../etc/passwd' is not allowed; use a tier"),
        ("chapter", "deep/" + "a" * 100, "field 'chapter': .* is not allowed; use a tier"),
        ("numeric", BIG, "field 'value': must be a number, got 1000"),
    ],
)
def test_a_card_that_no_page_could_show_is_refused(tmp_path: Path, field: str, value: Any, message: str) -> None:
    deck = [{**READERS["cards"].seeds[0][0], field: value}]
    path = tmp_path / "topic.yml"
    path.write_text(mutations.as_yaml(deck).replace("HUGE", "0x" + "f" * 5000), encoding="utf-8")
    with pytest.raises(ValueError, match=rf"^{path}:\d+: {message}"):
        load_file(path)


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("history", 0, "loss"), 10**400, r"history\[0\].loss is 1000.*; allowed: a finite number"),
        (("history", 1, "epoch"), 1.5, r"history\[1\].epoch is 1.5; allowed: 2"),
        (("history", 1, "epoch"), 7, r"history\[1\].epoch is 7; allowed: 2"),
        (("labels", 0), 10**12, r"labels\[0\] is 1000000000000; allowed: a whole number, 0 or more and below"),
        (("data", "images"), -5, "data.images is -5; allowed: a whole number, 1 or more"),
        (("data", "name"), "a\ud800", r"data.name is 'a\\ud800'; allowed: a text without control characters"),
        (("device",), "\x1b[2J", "device is .*; allowed: a text without control characters"),
        (("versions", "torch"), [1], r"versions.torch is \[1\]; allowed: a text"),
        (("recipe", "temperature"), 10**400, "temperature|too large"),
    ],
)
def test_a_record_that_its_readers_could_not_use_is_refused(
    tmp_path: Path, place: tuple[Any, ...], value: Any, message: str
) -> None:
    values = json.loads(json.dumps(READERS["records"].seeds[0]))
    inside = values
    for name in place[:-1]:
        inside = inside[name]
    inside[place[-1]] = value
    path = tmp_path / "run.json"
    path.write_text(json.dumps(values))
    with pytest.raises(ValueError, match=f"^record {path}: .*({message})"):
        load_record(path)


def test_a_record_with_a_field_twice_or_nested_too_deeply_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text('{"seed": 0, "seed": 1}')
    with pytest.raises(ValueError, match=f"^record {path}: seed is given twice; allowed: once"):
        load_record(path)
    path.write_text("[" * 100_000)
    with pytest.raises(ValueError, match=f"^record {path}: lists or objects are nested too deeply"):
        load_record(path)


def test_a_record_that_could_not_be_read_again_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text(json.dumps(READERS["records"].seeds[0]))
    record = load_record(path)
    before = path.read_bytes()
    record.history[0]["loss"] = float("nan")
    with pytest.raises(ValueError, match=r"history\[0\].loss is nan; allowed: a finite number"):
        save_record(record, path)
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]
