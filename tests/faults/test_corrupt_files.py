"""Damaged files: cut short, one bit wrong, empty, or another thing altogether. Each is named, or read whole."""

import dataclasses
import hashlib
import json
import random
from pathlib import Path

import pytest
import torch
import writers

from minilab import cli, data
from minilab.checkpoints import load_checkpoint, save_checkpoint
from minilab.records import load_record, save_record
from minilab.textbook.cards import load_file
from minilab.textbook.claims import load_claims

pytestmark = pytest.mark.fault

ROOT = Path(__file__).resolve().parents[2]
OTHERS = {"text": b"not what it should be", "list": b"[1, 2]", "number": b"3", "zip": b"PK\x05\x06" + bytes(18)}


def cut(content: bytes, count: int) -> list[bytes]:
    """`count` beginnings of `content`, the empty one and all but one byte among them."""
    return [content[: len(content) * number // count] for number in range(count)] + [content[:-1]]


def flipped(content: bytes, count: int, seed: int = 0) -> list[bytes]:
    """`content` with one bit wrong, at `count` places drawn from `seed`."""
    dice = random.Random(seed)
    found = []
    for _ in range(count):
        spoilt = bytearray(content)
        spoilt[dice.randrange(len(spoilt))] ^= 1 << dice.randrange(8)
        found.append(bytes(spoilt))
    return found


def load_own_checkpoint(path):
    return load_checkpoint(path, writers.RECIPE, writers.images().fingerprint)


def test_no_damage_to_a_checkpoint_goes_unseen(tmp_path, record_property):
    path, whole = tmp_path / "run.pt", writers._first_epoch()
    spoilt = [*cut(whole, 20), *flipped(whole, 300), whole + b"\0", *OTHERS.values()]
    for content in spoilt:
        path.write_bytes(content)
        with pytest.raises(ValueError, match="run.pt is damaged or not a checkpoint; delete it to start anew"):
            load_own_checkpoint(path)
        assert path.read_bytes() == content
    path.write_bytes(whole)
    assert load_own_checkpoint(path)["step"] == writers.STEPS
    record_property("inputs", len(spoilt))


WRONG = [
    *((name, None) for name in ("recipe", "step", "history", "losses", "method", "optimizer", "views_rng", "data")),
    *(("step", step) for step in (-1, 0, 3, 8, 9, 10**9)),
    *(("losses", losses) for losses in (torch.zeros(()), torch.zeros(0), torch.zeros(5), torch.zeros(4, 4))),
    *(("history", history) for history in ([], [{}, {}])),
    *((name, {}) for name in ("method", "optimizer", "probe", "recipe")),
    *((name, torch.zeros(3)) for name in ("views_rng", "global_rng")),
    ("method", {"encoder.layers.0.weight": torch.zeros(1)}),
]


def test_a_checkpoint_with_a_wrong_field_is_named_and_left_alone(tmp_path, monkeypatch, capsys, record_property):
    path = writers.prepare(tmp_path, monkeypatch)["checkpoint"]
    whole = torch.load(path, weights_only=True)
    del whole["format"]
    for name, value in WRONG:
        save_checkpoint(path, {**whole, name: value})
        spoilt = path.read_bytes()
        assert writers.WRITERS["checkpoint"].run(path) == 2, (name, value)
        error = capsys.readouterr().err
        assert f"checkpoint {path} is " in error and "Traceback" not in error, (name, value)
        assert path.read_bytes() == spoilt
    record_property("inputs", len(WRONG))


def refused_or_read(load, path: Path, spoilt: list[bytes]) -> int:
    """Read each of `spoilt`; returns how many were refused, each with an error that names the file."""
    refused = 0
    for content in spoilt:
        path.write_bytes(content)
        try:
            load(path)
        except ValueError as error:
            assert str(path) in str(error)
            refused += 1
        assert path.read_bytes() == content
    return refused


def test_a_damaged_record_is_named_or_still_a_record(tmp_path, record_property):
    whole = writers._record()

    def load(path):
        record = load_record(path)
        save_record(record, tmp_path / "again.json")  # so what was read is a whole record
        assert load_record(tmp_path / "again.json") == record

    short = cut(whole.rstrip(), 40)
    assert refused_or_read(load, tmp_path / "run.json", short) == len(short)
    others = [*OTHERS.values(), json.dumps({"recipe": 3}).encode()]
    assert refused_or_read(load, tmp_path / "run.json", others) == len(others)
    spoilt = flipped(whole, 300)
    assert refused_or_read(load, tmp_path / "run.json", spoilt) > 100
    record_property("inputs", len(short) + len(others) + len(spoilt))


def first_rows(path: Path, count: int) -> bytes:
    """The first `count` items of a YAML list of the book."""
    text = path.read_text(encoding="utf-8")
    items = ("\n" + text).split("\n- ")
    return ("- " + "\n- ".join(items[1 : count + 1]) + "\n").encode()


@pytest.mark.parametrize(
    "name, load, source", [("cards", load_file, "cards/negatives.yml"), ("claims", load_claims, "claims.yml")]
)
def test_a_damaged_file_of_cards_or_claims_is_named_or_still_one(name, load, source, tmp_path, record_property):
    whole, path = first_rows(ROOT / "book" / source, 2), tmp_path / Path(source).name
    path.write_bytes(whole)
    assert len(load(path)) == 2
    spoilt = [*cut(whole, 20), *flipped(whole, 150)]
    assert refused_or_read(load, path, spoilt) > 20
    others = [OTHERS["text"], OTHERS["list"], OTHERS["number"], OTHERS["zip"], b"{}", b"\xff\xfe"]
    assert refused_or_read(load, path, others) == len(others)
    record_property("inputs", len(spoilt) + len(others))


def test_a_damaged_data_file_is_named_or_said_to_be_unverified(tmp_path, monkeypatch, record_property):
    """One wrong bit in the pixels cannot be told from a picture, but then it is not called CIFAR-10."""
    dice = random.Random(0)
    good = {name: b"".join(bytes([k]) + dice.randbytes(3072) for k in range(4)) for name in data.OFFICIAL.files}
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in good.items()}
    archive = dataclasses.replace(data.OFFICIAL, files=digests, file_size=4 * data.RECORD)
    monkeypatch.setattr(data, "OFFICIAL", archive)
    folder = tmp_path / archive.folder
    folder.mkdir()
    for name, content in good.items():
        (folder / name).write_bytes(content)
    assert data.cifar10(tmp_path, download=False).name == "CIFAR-10"
    path = folder / "data_batch_3.bin"
    short = [*cut(good[path.name], 20), good[path.name] + b"\0", *OTHERS.values()]

    def load(path):
        assert data.cifar10(tmp_path, download=False).name == "CIFAR-10 (unverified copy)"

    assert refused_or_read(load, path, short) == len(short)
    labels = [
        good[path.name][: 2 * data.RECORD] + bytes([k]) + good[path.name][2 * data.RECORD + 1 :] for k in (10, 255)
    ]
    assert refused_or_read(load, path, labels) == 2
    spoilt = flipped(good[path.name], 60)
    refused_or_read(load, path, spoilt)
    record_property("inputs", len(short) + 2 + len(spoilt))


@pytest.mark.parametrize("content", [b"", b"{}", b"\x00" * 100, b'{"recipe": 3}'])
def test_the_command_names_a_damaged_record(content, tmp_path, capsys):
    path = tmp_path / "run.json"
    path.write_bytes(content)
    assert cli.main(["show", str(path)]) == 2
    error = capsys.readouterr().err
    assert f"record {path}: " in error and "Traceback" not in error
    assert list(tmp_path.iterdir()) == [path]
