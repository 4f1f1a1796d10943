"""The quiz in a terminal: with a person, with a pipe, and with wrong words."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from minilab.cli import main
from minilab.textbook.cards import Card, Choice, Numeric, RedFlag, load_bank
from minilab.textbook.terminal import ask, verdict

CHOICES = (Choice("first", False, "not this"), Choice("second", True, "that is it"), Choice("third", False, "nor this"))
CARD = Card(
    id="topic-one",
    topic="topic",
    tier="solid",
    level="mid",
    chapter="solid/queue",
    question="How old is $K / N$?",
    context="epoch  loss\n    1  5.55",
    choices=CHOICES,
    sources=("key",),
    answer={"basics": "Say this.", "deep": "Say more."},
    rubric=("a point",),
    red_flags=(RedFlag("a flag", "a reason"),),
)
NUMBER = Card(
    id="topic-two",
    topic="topic",
    tier="basics",
    level="mid",
    chapter="solid/queue",
    question="How many?",
    choices=(),
    sources=("key",),
    answer={"basics": "Say this."},
    rubric=("a point",),
    red_flags=(RedFlag("a flag", "a reason"),),
    numeric=Numeric(1022, 2, "negatives", "2 x 512 - 2"),
)


def asked(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], lines: str, *words: str) -> str:
    monkeypatch.setattr(sys, "stdin", io.StringIO(lines))
    assert main(["cards", *words]) == 0
    return capsys.readouterr().out


def test_one_card_from_the_question_to_every_reason(capsys: pytest.CaptureFixture[str]) -> None:
    prompts = []

    def read(prompt: str) -> str:
        prompts.append((prompt, capsys.readouterr().out))
        return "b" if "letter" in prompt else ""

    ask([CARD], read)
    before, after = (shown for _, shown in prompts)
    assert "How old is K / N?" in before and "epoch  loss\n    1  5.55" in before
    assert "20 seconds, or two minutes" in before
    assert "Say this." not in before
    assert all(
        text in after for text in ("Say this.", "Say more.", "a point", "a flag. Why not: a reason", "b) second")
    )
    assert "that is it" not in after
    last = capsys.readouterr().out
    assert "Right." in last
    assert all(text in last for text in ("a) no: not this", "b) yes: that is it", "c) no: nor this"))


def test_a_wrong_letter_is_told_the_right_one(capsys: pytest.CaptureFixture[str]) -> None:
    ask([CARD], lambda prompt: "a" if "letter" in prompt else "")
    assert "It is b." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("1022", "Right: 1,022 negatives."),
        (" 1,024 ", "Right: 1,022 negatives."),
        ("1025", "Not quite: it is 1,022 negatives."),
        ("nan", "Not quite: it is 1,022 negatives."),
        ("", "It is 1,022 negatives."),
        ("many", "'many' is no number. It is 1,022 negatives."),
    ],
)
def test_a_number_is_right_within_its_tolerance(said: str, told: str) -> None:
    assert verdict(NUMBER, said) == told


def test_the_same_seed_asks_the_same(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    lines = "\n" * 40
    first, again, other = (
        asked(monkeypatch, capsys, lines, "quiz", "--seed", seed, "--count", "3") for seed in ("1", "1", "2")
    )
    assert first == again != other
    assert "3 of 3 asked." in first


def test_the_input_may_end_anywhere(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for lines in ("", "\n", "\n\n\n"):
        assert "The input has ended" in asked(monkeypatch, capsys, lines, "quiz", "--topic", "queue", "--seed", "0")


def test_ctrl_c_stops_it_cleanly(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    class Interrupted(io.StringIO):
        def readline(self, *_: object) -> str:
            raise KeyboardInterrupt

    monkeypatch.setattr(sys, "stdin", Interrupted())
    assert main(["cards", "quiz", "--topic", "queue"]) == 130
    assert capsys.readouterr().err == "\nminilab cards: stopped\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["quiz", "--topic", "queues"], "topic is 'queues'; allowed: accumulation, batch-norm"),
        (["list", "--tier", "easy"], "tier is 'easy'; allowed: basics, solid, deep"),
        (["quiz", "--count", "0"], "count is 0; allowed: 1 or more"),
        (["quiz", "--topic", "sharding", "--tier", "basics"], "has no card of the tier 'basics'; it has: deep"),
        (["deck", "--out", "."], ". is a folder; allowed: the name of a file"),
        (["json", "--out", "."], ". is a folder; allowed: the name of a file"),
    ],
)
def test_a_wrong_word_is_told(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cards", *words]) == 2
    assert message in capsys.readouterr().err


def test_the_list_names_each_card(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cards", "list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(load_bank())
    assert main(["cards", "list", "--topic", "queue", "--tier", "solid"]) == 0
    assert {line.split()[1] for line in capsys.readouterr().out.splitlines()} == {"solid"}


def test_the_files_are_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cards", "json", "--out", str(tmp_path / "bank.json")]) == 0
    assert main(["cards", "deck", "--out", str(tmp_path / "deck.apkg")]) == 0
    assert len(json.loads((tmp_path / "bank.json").read_text(encoding="utf-8"))["cards"]) == len(load_bank())
    assert f"{len(load_bank())} notes" in capsys.readouterr().out


def test_a_pipe_that_can_say_ascii_only(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "minilab.cli",
        "cards",
        "quiz",
        "--topic",
        "numbers",
        "--seed",
        "0",
        "--count",
        "1",
    ]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = subprocess.run(command, input="\n\n", capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert "1 of 1 asked." in done.stdout


def test_the_command_starts_without_the_bank() -> None:
    code = "import sys, minilab.cli; print(int('yaml' in sys.modules), int('minilab.textbook' in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "0"]
