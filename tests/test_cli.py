"""The command, as a user runs it: what it writes, and what it says of bad input."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from minilab import cli
from minilab.recipe import Recipe
from minilab.records import load_record

QUICK = ["--data", "shapes", "--images", "64", "--epochs", "1", "--batch", "16", "--encoder", "micro", "--queue", "20"]


@pytest.fixture(autouse=True)
def small_shapes(monkeypatch, tmp_path):
    """Shapes of a few hundred images, and a folder of its own to write in."""
    from minilab import data

    monkeypatch.setattr(
        cli,
        "open_images",
        lambda name: data.shapes(concepts=4, train=200, test=40) if name == "shapes" else data.open_images(name),
    )
    monkeypatch.chdir(tmp_path)


def refused(capsys, *arguments: str) -> str:
    """The message of a command that must end with exit code 2 and no traceback."""
    assert cli.main(list(arguments)) == 2
    error = capsys.readouterr().err
    assert "Traceback" not in error
    return error


@pytest.mark.parametrize("method", ["simclr", "moco"])
def test_train_writes_a_record_and_a_picture_and_show_draws_it(method, capsys):
    assert cli.main(["train", method, *QUICK, "--seed", "3", "--out", "run.json"]) == 0
    out = capsys.readouterr().out
    assert "epoch   loss  chance    kNN" in out and "record: run.json" in out and f"picture: {method}.png" in out
    record = load_record("run.json")
    assert record.recipe.method == method and record.recipe.seed == 3 and record.data["images"] == 64
    assert Path(f"{method}.png").read_bytes().startswith(b"\x89PNG")
    assert cli.main(["show", "run.json"]) == 0
    assert f"{record.last('knn'):6.3f}" in capsys.readouterr().out
    assert Path("run.png").read_bytes().startswith(b"\x89PNG")


def test_the_batch_is_smaller_on_shapes_unless_it_is_given():
    quick = [word for word in QUICK if word not in ("--batch", "16")]
    assert cli.main(["train", "simclr", *quick, "--out", "run.json"]) == 0
    assert load_record("run.json").recipe.batch == cli.SHAPES_BATCH
    assert cli.main(["train", "simclr", *QUICK, "--out", "run.json"]) == 0
    assert load_record("run.json").recipe.batch == 16


def test_shards_compares_gathers_in_real_processes(capsys):
    assert cli.main(["shards", "--data", "shapes", "--processes", "2", "--images", "8", "--epochs", "1"]) == 0
    out = capsys.readouterr().out
    assert "one process                              14" in out and "no gather: a loss per device              6" in out


@pytest.mark.parametrize("given, named", [(("--processes", "3"), "world is 3"), (("--images", "2"), "images is 2")])
def test_shards_that_are_not_equal_are_refused_before_anything_is_trained(capsys, given, named):
    assert named in refused(capsys, "shards", "--data", "shapes", *given)


def test_every_field_of_a_recipe_is_an_option():
    options = cli._parser().parse_args(["train", "moco", "--momentum", "0.5", "--learning-rate", "0.3", "--symmetric"])
    assert options.momentum == 0.5 and options.learning_rate == 0.3 and options.symmetric is True
    defaults = Recipe("moco").to_dict()
    assert all(hasattr(options, name) for name in defaults)
    untouched = set(defaults) - {"momentum", "learning_rate", "symmetric", "batch"}
    assert options.batch is None  # which depends on the images
    assert all(getattr(options, name) == defaults[name] for name in untouched)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--batch", "1"], "batch is 1; allowed: a whole number from 2"),
        (["--queue", "0"], "queue is 0; allowed: a whole number from 1"),
        (["--momentum", "1.2"], "momentum is 1.2; allowed: a number from 0 to 1"),
        (["--momentum", "nan"], "momentum is nan; allowed: a number from 0 to 1"),
        (["--temperature", "0"], "temperature is 0.0; allowed: a number from 1e-06 to 100"),
        (["--images", "201"], "201"),
        (["--images", "0"], "0"),
        (["--data", "imagenet"], "imagenet"),
        (["--batch", "65"], "batch is 65; allowed: at most the number of images, 64"),
        (["--out", "/proc/run.json"], "/proc/run.json cannot be written"),
        (["--picture", "/proc/run.png"], "/proc/run.png cannot be written"),
    ],
)
def test_bad_input_is_named(arguments, message, capsys, tmp_path):
    assert message in refused(capsys, "train", "moco", *QUICK, *arguments)
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_method_lists_what_there_is(capsys):
    assert "method is 'byol'; allowed: simclr, moco" in refused(capsys, "train", "byol", *QUICK)


@pytest.mark.parametrize("arguments", [["train", "moco", "--batch", "many"], ["train"], ["fly"], []])
def test_unreadable_arguments_exit_with_2(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        cli.main(arguments)
    assert caught.value.code == 2 and "usage: minilab" in capsys.readouterr().err


def test_a_checkpoint_of_another_recipe_is_named(capsys):
    assert cli.main(["train", "moco", *QUICK, "--checkpoint", "run.pt"]) == 0
    capsys.readouterr()
    assert "another recipe: momentum is 0.99 there and 0.5 here" in refused(
        capsys, "train", "moco", *QUICK, "--momentum", "0.5", "--checkpoint", "run.pt"
    )
    Path("run.pt").write_bytes(Path("run.pt").read_bytes()[:1000])
    assert "run.pt is damaged or not a checkpoint" in refused(capsys, "train", "moco", *QUICK, "--checkpoint", "run.pt")


def test_show_names_a_missing_or_bad_record(capsys):
    assert "none.json" in refused(capsys, "show", "none.json")
    Path("bad.json").write_text("{}")
    assert "record bad.json: recipe is None" in refused(capsys, "show", "bad.json")


def test_bench_writes_fractions_of_the_limit(capsys, monkeypatch):
    from minilab import bench

    monkeypatch.setattr(bench, "ROUNDS", 3)
    monkeypatch.setattr(bench, "BATCHES", (16,))
    monkeypatch.setattr(bench, "_in_a_process", lambda work, *arguments: work(*arguments))
    monkeypatch.setattr(bench, "KNN", {"bank": 500, "queries": 100})
    assert cli.main(["bench", "--encoder", "micro", "--batch", "16", "--precision", "float32", "--json", "b.json"]) == 0
    figures = json.loads(Path("b.json").read_text())
    assert {"simclr", "moco", "queue_step_ratio", "peak_megabytes", "knn", "views_per_second"} == set(figures)
    assert set(figures["queue_step_ratio"]) == {"4096", "16384", "65536"}
    for row in (figures["simclr"], figures["moco"]):
        assert row["images_per_second"] > 0
        assert row["fraction_of_limit"] == pytest.approx(row["images_per_second"] / row["limit_images_per_second"])
        assert row["milliseconds"]["views"] < row["milliseconds"]["step"]
    assert "images/s" in capsys.readouterr().out


def test_bench_refuses_what_a_recipe_refuses(capsys):
    assert "encoder is 'vit'; allowed: micro" in refused(capsys, "bench", "--encoder", "vit")


def test_the_module_is_the_command(tmp_path):
    """In a process of its own: the exit code, the message, and no traceback."""
    done = subprocess.run(
        [sys.executable, "-m", "minilab", "train", "moco", "--batch", "1"],
        capture_output=True,
        text=True,
        env=os.environ,
    )
    assert done.returncode == 2
    assert done.stderr.strip() == "minilab train: batch is 1; allowed: a whole number from 2 to 1000000"


def test_data_fetches_or_measures(capsys, monkeypatch, tmp_path):
    from minilab import shapes

    monkeypatch.setattr(cli, "fetch", lambda root: tmp_path / "there")
    assert cli.main(["data"]) == 0
    assert f"CIFAR-10 is in {tmp_path / 'there'}" in capsys.readouterr().out
    monkeypatch.setattr(shapes, "measure", lambda: {"pixel_knn": 0.25, "supervised": 0.97})
    assert cli.main(["data", "--measure"]) == 0
    assert capsys.readouterr().out.split() == ["pixel_knn", "0.250", "supervised", "0.970"]
