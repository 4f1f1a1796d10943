"""A run whose numbers stop being finite, and one for which memory is too small: both say so and keep what there was."""

import os
import subprocess
import sys
from dataclasses import replace

import pytest
import torch
import writers

from minilab import cli, training
from minilab.checkpoints import load_checkpoint
from minilab.memory import activation_bytes
from minilab.recipe import Recipe
from minilab.shortage import explained, is_out_of_memory, step_bytes
from minilab.training import Trainer, build_method

pytestmark = pytest.mark.fault

FAR = [word if word != "2" else "3" for word in writers.TRAIN]  # three epochs of four steps
STEP = Trainer.take_step


def saved_numbers(path, epochs=3):
    """Step and values of a checkpoint, all of which must be finite."""
    state = load_checkpoint(path, replace(writers.RECIPE, epochs=epochs), writers.images().fingerprint)
    assert all(bool(value.isfinite().all()) for value in state["method"].values())
    return state["step"]


def poisoned(step, value, what):
    """`Trainer.take_step` that spoils the loss, or only the weights after it, at one step."""

    def take_step(self, chosen):
        if what == "loss" and self.step == step:
            with torch.no_grad():
                next(self.run.method.parameters()).fill_(value)
        loss = STEP(self, chosen)
        if what == "weights" and self.step == step + 1:
            with torch.no_grad():
                next(self.run.method.parameters())[0, 0, 0, 0] = value
        return loss

    return take_step


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("step", [5, 7, 8, 11])
@pytest.mark.parametrize("what", ["loss", "weights"])
def test_a_run_stops_at_the_step_and_keeps_a_finite_checkpoint(what, step, value, tmp_path, monkeypatch, capsys):
    """Also where the last step of an epoch spoils the weights, whose own loss was still right."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cli, "open_images", lambda name: writers.images())
    monkeypatch.setattr(training, "LOOK", 2)
    monkeypatch.setattr(training, "SAVE", -1.0)  # save at every look
    monkeypatch.setattr(Trainer, "take_step", poisoned(step, value, what))
    assert cli.main([*FAR, "--checkpoint", "run.pt", "--out", "run.json"]) == 2
    error = capsys.readouterr().err
    assert "Recipe(method='simclr'" in error and "batch=16" in error and "Traceback" not in error
    told = f"the loss is not finite at step {step} of"
    if what == "weights":  # told at once if they would be saved, else by the loss of the next step
        saves = step % 2 == 1
        told = (
            f"the weights are not finite after step {step} of" if saves else told.replace(f"p {step}", f"p {step + 1}")
        )
    assert told in error
    assert saved_numbers(tmp_path / "run.pt") == step - step % 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.pt"]


SMALL = """
import os, resource, sys
sys.path.insert(0, {here!r})
import torch
import writers
from minilab import cli, data
torch.set_num_threads(1)
pixels = torch.zeros(16_384, 3, 32, 32, dtype=torch.uint8)
labels = torch.zeros(16_384, dtype=torch.int64)
large = data.Images("large", pixels, labels, pixels[:20], labels[:20], ("one",))
cli.open_images = lambda name: large
used = int(open("/proc/self/statm").read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
resource.setrlimit(resource.RLIMIT_AS, (used + 600_000_000, resource.RLIM_INFINITY))
sys.exit(cli.main(["train", *sys.argv[1:], "--images", "16384", "--precision", "float32", "--out", "run.json"]))
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="limits memory as Linux does")
def test_a_process_whose_memory_is_too_small_says_what_it_needed(tmp_path):
    """Really: the system refuses what goes 600 MB beyond what torch itself takes."""
    script = SMALL.format(here=os.path.dirname(os.path.abspath(__file__)))

    def run(*arguments):
        command = [sys.executable, "-W", "ignore", "-c", script, *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=200, check=False)

    done = run("simclr", "--encoder", "small", "--batch", "16384")
    assert done.returncode == 2 and "Traceback" not in done.stderr, done.stderr
    assert "out of memory: batch is 16384 and chunk is None, for which a step takes about" in done.stderr
    needed = int(done.stderr.split("takes about ")[1].split(" bytes")[0].replace(",", ""))
    assert needed > 600_000_000
    assert "allowed: what fits, so a smaller batch or a chunk" in done.stderr
    assert not (tmp_path / "run.json").exists() and writers.parts(tmp_path) == []


@pytest.mark.parametrize(
    "method, changes, ways",
    [
        ("simclr", {}, "a smaller batch or a chunk, the images that are in memory at once"),
        ("simclr", {"chunk": 8}, "a smaller batch or a smaller chunk"),
        ("simclr", {"bn_groups": 2}, "a smaller batch"),
        ("moco", {"queue": 32}, "a smaller batch or a chunk, the images that are in memory at once or a shorter queue"),
        ("simsiam", {}, "a smaller batch"),
    ],
)
@pytest.mark.parametrize(
    "error",
    [
        torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB."),
        RuntimeError("[enforce fail at alloc_cpu.cpp:127] DefaultCPUAllocator: can't allocate memory"),
        RuntimeError("std::bad_alloc"),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
        MemoryError(),
    ],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.filterwarnings("ignore")
def test_each_way_of_running_out_is_told_in_the_same_words(error, method, changes, ways, tmp_path, monkeypatch):
    """In the middle of a run: what was saved before is kept."""
    recipe = Recipe(method, encoder="micro", epochs=2, batch=16, precision="float32", **changes)

    def take_step(self, chosen):
        if self.step == 5:
            raise error
        return STEP(self, chosen)

    monkeypatch.setattr(Trainer, "take_step", take_step)
    path = tmp_path / "run.pt"
    kinds = step_bytes(recipe, writers.images(), build_method)
    words = f"batch is 16 and chunk is {recipe.chunk}, for which a step takes about {sum(kinds.values()):,} bytes"
    with pytest.raises(MemoryError) as caught:
        training.train(recipe, writers.images(), checkpoint=path, progress=False)
    assert words in str(caught.value) and str(caught.value).endswith(f"allowed: what fits, so {ways}")
    assert torch.load(path, weights_only=True)["step"] == 4
    assert [file.name for file in tmp_path.iterdir()] == ["run.pt"]


@pytest.mark.parametrize(
    "changes",
    [
        {"method": "simclr"},
        {"method": "moco"},
        {"method": "moco", "symmetric": True},
        {"method": "simclr", "bn_groups": 4},
        {"method": "simclr", "precision": "bfloat16"},
    ],
)
def test_the_bytes_are_those_that_a_batch_of_that_size_keeps(changes):
    recipe = Recipe(**{"encoder": "micro", "batch": 48, "queue": 40, "precision": "float32", **changes})
    method = build_method(recipe).train()
    with torch.autocast("cpu", torch.bfloat16, enabled=recipe.precision == "bfloat16"):
        counted = activation_bytes(method, torch.rand(96, 3, 32, 32))
    kinds = step_bytes(recipe, writers.images(), build_method)
    assert kinds["activations"] == pytest.approx(counted, rel=1e-6)
    assert kinds["queue"] == (4 * 40 * 128 if recipe.method == "moco" else 0)


def test_a_chunk_takes_the_activations_of_its_images_and_the_logits_of_all():
    whole = Recipe("simclr", encoder="micro", batch=64, precision="float32")
    images = writers.images()
    kept = {chunk: step_bytes(replace(whole, chunk=chunk), images, build_method) for chunk in (None, 16)}
    alone = step_bytes(replace(whole, batch=16), images, build_method)
    logits = kept[16]["activations"] - alone["activations"]
    assert kept[None]["activations"] > 3 * alone["activations"]
    assert logits == pytest.approx(128**2 * 4 * 2, rel=0.7) and logits > 0
    naive = step_bytes(replace(whole, chunk=16, accumulation="naive"), images, build_method)
    assert naive["activations"] == alone["activations"]


def test_other_errors_stay_what_they_are():
    for error in (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), ValueError("out of memory")):
        assert not is_out_of_memory(error)
        with pytest.raises(type(error)) as caught, explained(writers.RECIPE, writers.images(), build_method):
            raise error
        assert caught.value is error


def test_a_command_that_trains_nothing_says_it_too(monkeypatch, capsys):
    def large(*_):
        return torch.empty(10**15)

    monkeypatch.setattr("minilab.bench.bench", large)
    assert cli.main(["bench"]) == 2
    assert "can't allocate memory" in capsys.readouterr().err


def test_the_tensors_of_a_run_that_ran_out_are_let_go():
    """In a notebook the error is kept, and with it all that its frames hold: a smaller batch would not fit either."""
    import weakref

    seen = []

    class Large:
        """Stands for what a step holds."""

    def step() -> None:
        held = Large()
        seen.append(weakref.ref(held))
        raise torch.cuda.OutOfMemoryError("CUDA out of memory.")

    with pytest.raises(MemoryError), explained(writers.RECIPE, writers.images(), build_method):
        step()
    assert seen[0]() is None
