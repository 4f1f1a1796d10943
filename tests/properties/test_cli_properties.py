"""The command line on random arguments: it works, or exit code 2 names an option; nothing is left half-written."""

from __future__ import annotations

import argparse
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure
from strategies import covers, many, some

import minilab.bench
import minilab.pitfalls.sharding
import minilab.shapes
import minilab.sweep
import minilab.training
from minilab import cli
from minilab.data import Images, open_images, shapes
from minilab.recipe import Recipe
from minilab.records.store import MEASURED
from minilab.textbook import terminal
from minilab.training import Run, build_method

IMAGES = shapes(concepts=2, train=64, test=20)
BAD = [
    "", " ", "0", "-1", "1", "2", "64", "1e400", "-inf", "nan", "NaN", "9" * 400, "0.1", "0x10", "é", "ﷺ\u202e",
    "a\nb", "a" * 300, "../..", ".", "/", "/dev/null/x", "folder", "folder/", "there.json", "spoilt.json", "run.json",
    "\ud800", "no/such/folder/file", "-", "--", "[]", "None", "true", "<script>", "%s", "$HOME", "\x1b[2J",
]  # fmt: skip
GOOD = [
    "cpu", "shapes", "simclr", "moco", "dcl", "tiny", "micro", "sgd", "lars", "batch", "group", "gradcache", "naive",
    "float32", "bfloat16", "smoke", "momentum", "all", "basics", "solid", "deep", "queue", "negatives", "new.json", "8",
    "16", "0.5",
]  # fmt: skip
WORD = st.text(max_size=8).filter(lambda text: "/" not in text and text != "..")  # it may name a file: of this folder


def commands(parser: argparse.ArgumentParser, so_far: tuple[str, ...] = ()) -> dict[tuple[str, ...], list[Any]]:
    """Every command, with the actions of its parser: whatever is added to the command line is tried here too."""
    nested = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not nested:
        return {so_far: [action for action in parser._actions if action.dest != "help"]}
    return {
        words: actions
        for action in nested
        for name, below in action.choices.items()
        for words, actions in commands(below, (*so_far, name)).items()
    }


COMMANDS = commands(cli._parser())


@st.composite
def arguments(draw: st.DrawFn) -> list[str]:
    """A command with any of its options and values for them, good and bad."""
    words = draw(st.sampled_from(list(COMMANDS)))
    value = st.one_of(st.sampled_from(GOOD), st.sampled_from(GOOD), st.sampled_from(BAD), WORD)
    given_ = list(words)
    for action in COMMANDS[words]:
        takes = action.nargs not in (0, "*")
        if not action.option_strings:
            likely = [*cli.METHODS, *(["run.json"] if action.dest == "record" else [])]
            given_ += draw(st.lists(st.sampled_from(likely) | value, min_size=takes, max_size=1 if takes else 2))
        elif draw(st.integers(0, 5)) == 0 or action.required:
            flag = draw(st.sampled_from(action.option_strings))
            given_ += [f"{flag}={draw(value)}"] if takes and draw(st.integers(0, 9)) else [flag]
    return given_ + draw(st.lists(st.sampled_from(["--no-such", "-x", "extra"]), max_size=1)) * draw(st.booleans())


def history(epochs: int) -> list[dict[str, float]]:
    return [dict.fromkeys(MEASURED, 0.5) | {"epoch": n + 1} for n in range(epochs)]


def train(recipe: Recipe, images: Images, *, device: Any = None, checkpoint: Any = None, **_: Any) -> Run:
    """In training's place: it checks what training checks at its door, and learns nothing."""
    minilab.training.pick_device(device)
    minilab.training.check_fit(recipe, images)
    run = Run(recipe, images, build_method(Recipe(recipe.method, encoder="micro", dim=8)), "float32")
    run.history.extend(history(1))
    points = "AAAA" * 10  # 30 bytes: 15 points of the 20 test images
    run.curves.append({"points": points + "AAAAAAAAAAAAAA=="})
    return run


@pytest.fixture(scope="module", autouse=True)
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder to write in, and stand-ins for what takes long or fetches."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("cli")
        patch.chdir(folder)
        patch.setattr(cli, "open_images", lambda name: IMAGES if name == "auto" else _named(name))
        patch.setattr(cli, "fetch", lambda root: Path(root or "cache"))
        patch.setattr(minilab.training, "train", train)
        patch.setattr("minilab.pictures.picture_of_run", lambda *_: Figure(figsize=(0.1, 0.1)))
        patch.setattr("minilab.pictures.picture_of_history", lambda *_: Figure(figsize=(0.1, 0.1)))
        patch.setattr(minilab.shapes, "measure", lambda: {"random": 0.1})
        figures = {"a": 1.0}
        patch.setattr(
            minilab.bench, "bench", lambda encoder, batch, precision: _bench(encoder, batch, precision) or figures
        )
        patch.setattr(minilab.bench, "table", lambda figures: "a table")
        patch.setattr(minilab.pitfalls.sharding, "compare", lambda *_: {})
        patch.setattr(minilab.pitfalls.sharding, "table", lambda steps: "a table")
        patch.setattr(minilab.sweep, "sweep", lambda cells, folder, workers: minilab.sweep.threads_of(workers) and {})
        patch.setattr(minilab.sweep, "sweep_on_ray", lambda *_: {})
        yield folder


def _named(name: str) -> Images:
    return IMAGES if name == "shapes" else open_images(name) if name != "cifar10" else IMAGES


def _bench(encoder: str, batch: int, precision: str) -> None:
    for method in cli.METHODS:
        Recipe(method, encoder, batch=batch, precision=precision)


RECORD = {
    "recipe": {"method": "moco"}, "data": {"name": "x", "images": 5, "test_images": 5, "fingerprint": "f"}, "seed": 0,
    "versions": {}, "device": "cpu", "precision": "float32", "history": history(2), "labels": [0],
    "curves": [{"points": "AAA="}] * 2,
}  # fmt: skip


def clean(folder: Path) -> None:
    """The files that are there at the start: a record, a spoilt one, and a folder with a file."""
    os.chdir(folder)
    (folder / "folder").mkdir(exist_ok=True)
    (folder / "run.json").write_text(json.dumps(RECORD))
    (folder / "spoilt.json").write_text('{"recipe": ')
    (folder / "there.json").write_text("{}")


def call(words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> tuple[int, str, str]:
    """Exit code, and what it wrote to its two streams."""
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n" * 3))
    capsys.readouterr()
    try:
        code = cli.main(words)
    except SystemExit as end:  # argparse ends so; a sweep that failed ends with a text
        assert isinstance(end.code, int), end.code
        code = end.code
    out, err = capsys.readouterr()
    return code, out, err


@covers(cli.main)
@settings(many, max_examples=160)
@given(words=arguments())
def test_any_arguments_work_or_are_refused_by_name(
    words: list[str], stage: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clean(stage)
    before = torch.random.get_rng_state()
    code, _, err = call(words, capsys, monkeypatch)
    assert code in (0, 2), (words, err)
    assert "Traceback" not in err and torch.equal(before, torch.random.get_rng_state())
    if code == 2:
        assert err.strip(), words
        names = {word.split("=")[0].lstrip("-").replace("-", "_") for word in words if word.strip("-")}
        values = {word.split("=", 1)[-1] for word in words} - {""}
        told = err.replace("-", "_")
        needed = "required" in err or "expected one argument" in err or "grid" in err
        assert needed or any(name in told for name in names - {"train"}) or any(v in err for v in values), (words, err)
    for path in stage.rglob("*"):
        assert not path.name.endswith(".part") and not path.name.endswith(".lock"), f"{words} left {path}"
        if path.suffix == ".json" and path.is_file() and path.name not in ("spoilt.json",) and code == 0:
            json.loads(path.read_bytes())


@some
@given(value=st.sampled_from(BAD) | WORD, data=st.data())
def test_one_bad_value_is_named_with_its_option(
    value: str, data: Any, stage: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing else is wrong, so the message must be about this one: every option of a number or a choice."""
    clean(stage)
    actions = [action for action in COMMANDS["train",] if action.option_strings and action.nargs != 0]
    action = data.draw(st.sampled_from([a for a in actions if a.type is not Path and a.dest not in ("device", "data")]))
    flag = action.option_strings[0]
    code, _, err = call(["train", "moco", "--batch", "8", "--queue", "16", f"{flag}={value}"], capsys, monkeypatch)
    assert code in (0, 2)
    if code == 2:
        assert flag in err or action.dest in err or "images" in err, (flag, value, err)


@pytest.mark.parametrize(
    "words",
    [
        ["train", "moco", "--temperature", "nan"], ["cards", "deck", "--out", "--"], ["--no-such"],
    ],
)  # fmt: skip
def test_a_real_process_says_the_same(words: list[str], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "minilab", *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "Traceback" not in done.stderr and done.stderr.startswith(("minilab", "usage"))
    assert list(tmp_path.iterdir()) == []


@covers(terminal.write_json, terminal.list_cards)
def test_what_is_written_is_whole(
    stage: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clean(stage)
    assert call(["cards", "json", "--out", "bank.json"], capsys, monkeypatch)[0] == 0
    cards = json.loads((stage / "bank.json").read_text())["cards"]
    _, out, _ = call(["cards", "list"], capsys, monkeypatch)
    assert [line.split()[0] for line in out.splitlines()] == [card["id"] for card in cards]
