"""Compiled networks compute what they did, in training only, and leave no trace in a checkpoint."""

import shutil
import sys
import warnings

import pytest
import torch

from minilab import compiled, encoder
from minilab.cli import main
from minilab.compiled import Compiled
from minilab.data import shapes
from minilab.recipe import Recipe
from minilab.training import Trainer, train

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def narrow(monkeypatch):
    """An encoder as narrow as can be."""
    monkeypatch.setitem(encoder.ENCODERS, "micro", ((1, 1, 1, 1), (8, 8, 8, 8), 2))
    yield
    torch.compiler.reset()


def trainer_of(method, backend=None, **changes):
    values = {"encoder": "micro", "batch": 16, "queue": 40, "precision": "float32", "dim": 8, **changes}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer = Trainer(Recipe(method, **values), shapes(concepts=2, train=48, test=8), CPU, checkpoint=None)
    trainer.run.method.train()
    if backend is not None:
        trainer.compiled = Compiled(trainer.run.method, backend)
    return trainer


def two_steps(trainer):
    order = trainer._order(0)
    losses = [float(trainer.take_step(order[step])) for step in (0, 1)]
    return losses, trainer.run.method.state_dict()


def assert_follows(method, backend, **changes):
    plain, state = two_steps(trainer_of(method, **changes))
    losses, compiled_state = two_steps(trainer_of(method, backend, **changes))
    assert losses == pytest.approx(plain, rel=1e-4)
    assert list(compiled_state) == list(state)
    for name, values in state.items():
        assert torch.allclose(compiled_state[name].double(), values.double(), rtol=1e-3, atol=1e-4), name


@pytest.mark.parametrize(
    ("method", "changes"), [("simclr", {}), ("simclr", {"chunk": 8}), ("moco", {}), ("moco", {"bn_groups": 2})]
)
def test_traced_steps_follow_the_plain_ones(method, changes):
    """All of torch.compile but the generated code."""
    assert_follows(method, "aot_eager", **changes)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(
    shutil.which("g++") is None or sys.platform == "win32", reason="the CPU's code is compiled with g++, not here"
)
def test_compiled_steps_follow_the_plain_ones():
    assert_follows("simclr", "inductor")


def test_networks_are_compiled_within_only():
    trainer = trainer_of("moco", "eager")
    assert len(trainer.compiled.networks) == 3  # encoder, head and key encoder
    with trainer.compiled:
        assert all("forward" in vars(network) for network in trainer.compiled.networks)
    assert not any("forward" in vars(network) for network in trainer.compiled.networks)
    with pytest.raises(KeyError), trainer.compiled:
        raise KeyError
    assert not any("forward" in vars(network) for network in trainer.compiled.networks)


def test_train_compiles_when_asked_and_a_checkpoint_is_the_same(tmp_path, monkeypatch):
    asked = []

    class Spy(Compiled):
        def __init__(self, method):
            asked.append(type(method).__name__)
            super().__init__(method, "aot_eager")

    monkeypatch.setattr("minilab.training.Compiled", Spy)
    recipe = Recipe("simclr", "micro", epochs=1, batch=16, precision="float32", dim=8, warmup_epochs=0)
    images = shapes(concepts=2, train=48, test=8)
    plain = train(recipe, images, device=CPU, progress=False, checkpoint=tmp_path / "plain.pt")
    assert asked == []
    run = train(recipe, images, device=CPU, progress=False, checkpoint=tmp_path / "compiled.pt", compile=True)
    assert asked == ["SimCLR"]
    assert run.history[0]["loss"] == pytest.approx(plain.history[0]["loss"], rel=1e-4)
    keys = [list(torch.load(tmp_path / f"{name}.pt", weights_only=True)["method"]) for name in ("plain", "compiled")]
    assert keys[0] == keys[1]
    resumed = train(recipe, images, device=CPU, progress=False, checkpoint=tmp_path / "compiled.pt")  # without
    assert resumed.history == run.history


def test_several_processes_are_refused(monkeypatch):
    monkeypatch.setattr(compiled, "world_size", lambda: 2)
    with pytest.raises(ValueError, match="compile is True; allowed in 2 processes: False"):
        Compiled(torch.nn.Identity())


@pytest.mark.parametrize(("device", "compiles"), [("cpu", False), ("cuda", True)])
def test_the_command_compiles_on_a_gpu_only(monkeypatch, capsys, tmp_path, device, compiles):
    asked = []

    def train(recipe, images, *, compile, **others):
        asked.append(compile)
        raise KeyboardInterrupt

    monkeypatch.setattr("minilab.training.train", train)
    monkeypatch.setattr("minilab.cli.open_images", lambda name: shapes(concepts=2, train=48, test=8))
    picture = str(tmp_path / "picture.png")
    command = ["train", "simclr", "--images", "48", "--device", device, "--picture", picture]
    assert main([*command, "--compile"]) == 130 and main(command) == 130
    assert asked == [compiles, False]
    assert ("--compile does nothing on the CPU" in capsys.readouterr().err) == (not compiles)
