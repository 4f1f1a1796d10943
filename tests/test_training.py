"""The loop: it learns, it repeats, it resumes to the same numbers, and it says what is wrong."""

import math
import os
import signal
import subprocess
import sys
import time
import warnings

import pytest
import torch

from minilab import training
from minilab.data import shapes
from minilab.moco import MoCo
from minilab.recipe import Recipe
from minilab.training import Trainer, build_method, train

CLOCKS = ("seconds", "images_per_second")


@pytest.fixture(scope="module")
def images():
    return shapes(concepts=4, train=200, test=60, seed=3)


def recipe(method: str = "moco", **changes) -> Recipe:
    values = {
        "encoder": "micro",
        "epochs": 3,
        "batch": 32,
        "queue": 70,
        "precision": "float32",
        "warmup_epochs": 0.5,
        **changes,
    }
    return Recipe(method, **values)


def quietly(*arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return train(*arguments, progress=False, **options)


def without_clocks(history):
    return [{name: value for name, value in entry.items() if name not in CLOCKS} for entry in history]


def assert_same(first, second) -> None:
    assert without_clocks(first.history) == without_clocks(second.history)
    assert first.curves == second.curves and len(first.curves) == len(first.history)
    a, b = first.method.state_dict(), second.method.state_dict()
    assert a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


@pytest.mark.parametrize("method", ["simclr", "moco"])
def test_a_run_has_a_whole_history(images, method):
    run = quietly(recipe(method), images)
    assert [entry["epoch"] for entry in run.history] == [1, 2, 3]
    for entry in run.history:
        assert entry["loss_reference"] == pytest.approx(math.log(63 if method == "simclr" else 71))
        assert 0 < entry["loss"] < 10 and 0 <= entry["knn"] <= 1 and entry["images_per_second"] > 0
    assert run.history[-1]["knn_bank"] == 200 and run.history[-1]["knn_test"] == 60
    assert ("queue_filled" in run.history[0]) == (method == "moco")


def test_training_learns(images):
    """Few steps on few images: the loss falls below its first epoch's and far below chance."""
    run = quietly(recipe("simclr", epochs=8), images)
    assert run.history[-1]["loss"] < min(run.history[0]["loss"], run.history[0]["loss_reference"]) - 0.15


@pytest.mark.parametrize("method", ["simclr", "moco"])
def test_one_seed_gives_one_run(images, method):
    first, second = quietly(recipe(method), images), quietly(recipe(method), images)
    assert_same(first, second)
    other = quietly(recipe(method, seed=1), images)
    assert other.history[-1]["loss"] != first.history[-1]["loss"]


def test_the_caller_keeps_its_random_state(images):
    torch.manual_seed(5)
    state = torch.get_rng_state()
    quietly(recipe(epochs=1), images)
    assert torch.equal(torch.get_rng_state(), state)


def test_the_learning_rate_ends_at_zero_and_peaks_after_the_warm_up(images, monkeypatch):
    rates = []
    step = Trainer.take_step

    def spy(self, chosen):
        loss = step(self, chosen)
        rates.append(self.optimizer.param_groups[0]["lr"])
        return loss

    monkeypatch.setattr(Trainer, "take_step", spy)
    quietly(recipe("simclr", warmup_epochs=1), images)  # 6 steps an epoch
    peak = recipe("simclr").peak_learning_rate
    assert rates[0] == 0 and rates[6] == peak and max(rates) == peak and rates[-1] < 0.03 * peak
    assert len(rates) == 18


@pytest.mark.parametrize(
    "changes", [{}, {"bn_groups": 4}, {"optimizer": "lars"}, {"symmetric": True}, {"method": "simclr"}]
)
def test_resuming_gives_the_same_numbers(images, tmp_path, monkeypatch, changes):
    """Stopped in the middle of an epoch, with the queue half filled; bit for bit."""
    wanted = recipe(**changes)
    whole = quietly(wanted, images)
    monkeypatch.setattr(training, "LOOK", 2)
    monkeypatch.setattr(training, "SAVE", -1.0)  # save at every look
    path = tmp_path / "run.pt"
    step = Trainer.take_step

    def stop(self, chosen):
        if self.step == 10:
            raise KeyboardInterrupt
        return step(self, chosen)

    monkeypatch.setattr(Trainer, "take_step", stop)
    with pytest.raises(KeyboardInterrupt):
        quietly(wanted, images, checkpoint=path)
    monkeypatch.setattr(Trainer, "take_step", step)
    saved = torch.load(path, weights_only=True)
    assert saved["step"] == 10 and len(saved["history"]) == 1
    assert_same(quietly(wanted, images, checkpoint=path), whole)
    assert_same(quietly(wanted, images, checkpoint=path), whole)  # a finished run is read, not run again


@pytest.mark.fault
def test_kill_minus_nine_and_resume_gives_the_same_numbers(images, tmp_path):
    """A real process, killed at a moment of its own."""
    path = tmp_path / "run.pt"
    script = (
        "import sys, torch; from minilab import training; from minilab.data import shapes\n"
        "torch.set_num_threads(int(sys.argv[2])); training.LOOK = 1; training.SAVE = -1.0\n"
        "recipe = training.Recipe('moco', encoder='micro', epochs=3, batch=32, queue=70, precision='float32',"
        " warmup_epochs=0.5)\n"
        "images = shapes(concepts=4, train=200, test=60, seed=3)\n"
        "training.train(recipe, images, checkpoint=sys.argv[1], progress=False)"
    )
    threads = str(torch.get_num_threads())
    for wait in (0.0, 0.15, 0.3):
        process = subprocess.Popen([sys.executable, "-W", "ignore", "-c", script, str(path), threads])
        deadline = time.monotonic() + 60
        while not path.exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(wait)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert path.exists()
    assert_same(quietly(recipe(), images, checkpoint=path), quietly(recipe(), images))
    leftovers = [p.name for p in tmp_path.iterdir() if p != path and not p.name.endswith(".part")]
    assert leftovers == []


@pytest.mark.fault
def test_a_loss_that_is_not_finite_stops_with_step_and_recipe(images, tmp_path, monkeypatch):
    monkeypatch.setattr(training, "LOOK", 4)
    step = Trainer.take_step

    def poison(self, chosen):
        if self.step == 8:
            with torch.no_grad():
                next(self.run.method.parameters()).fill_(float("nan"))
        return step(self, chosen)

    monkeypatch.setattr(Trainer, "take_step", poison)
    path = tmp_path / "run.pt"
    with pytest.raises(FloatingPointError, match=r"not finite at step 8 of Recipe\(method='moco'.*batch=32"):
        quietly(recipe(), images, checkpoint=path)
    saved = torch.load(path, weights_only=True)
    assert saved["step"] == 6 and all(bool(v.isfinite().all()) for v in saved["method"].values())


def test_a_batch_larger_than_the_images_is_refused(images):
    with pytest.raises(ValueError, match="batch is 256; allowed: at most the number of images, 200"):
        quietly(recipe(batch=256), images)


def test_a_queue_that_meets_its_own_images_is_warned_of(images):
    with pytest.warns(
        UserWarning, match="queue is 170 and there are 200 images: each query meets old keys of its own image"
    ):
        train(recipe(epochs=1, queue=170), images, progress=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        train(recipe(epochs=1, queue=168), images, progress=False)


def test_on_epoch_sees_every_epoch(images):
    seen = []
    quietly(recipe(), images, on_epoch=lambda run: seen.append((len(run.history), run.encoder)))
    assert [count for count, _ in seen] == [1, 2, 3] and len({id(encoder) for _, encoder in seen}) == 1


def test_progress_shows_chance_and_the_filling_queue(images, capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        train(recipe(epochs=2, queue=5000), images)
    shown = capsys.readouterr().err
    assert "(chance 8.52)" in shown and "queue_filled=" in shown and "kNN=" in shown


@pytest.mark.parametrize("method", ["simclr", "moco"])
def test_gray_images_and_bfloat16_train(method):
    images = shapes(concepts=2, train=96, test=20)
    from minilab.data import Images

    gray = Images(
        "gray", images.train[:, :1], images.train_labels, images.test[:, :1], images.test_labels, images.classes
    )
    run = quietly(recipe(method, epochs=1, precision="bfloat16"), gray)
    assert run.precision == "bfloat16"
    if isinstance(run.method, MoCo):
        assert run.method.queue.dtype == torch.float32


def test_build_method_repeats_and_leaves_the_random_state():
    state = torch.get_rng_state()
    a, b = build_method(recipe(seed=4)), build_method(recipe(seed=4))
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(x, y) for x, y in zip(a.state_dict().values(), b.state_dict().values(), strict=True))
