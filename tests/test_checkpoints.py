"""Checkpoints of another recipe, of other images, or damaged are named, never half used."""

import hashlib
import pickle
import warnings

import pytest
import torch

from minilab.checkpoints import MARK, load_checkpoint, save_checkpoint
from minilab.data import shapes
from minilab.recipe import Recipe
from minilab.training import train


def recipe(**changes) -> Recipe:
    return Recipe(
        "moco", **{"encoder": "micro", "epochs": 1, "batch": 16, "queue": 40, "precision": "float32", **changes}
    )


@pytest.fixture(scope="module")
def images():
    return shapes(concepts=2, train=64, test=20)


@pytest.fixture(scope="module")
def checkpoint(images, tmp_path_factory):
    path = tmp_path_factory.mktemp("checkpoint") / "run.pt"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        train(recipe(), images, checkpoint=path, progress=False)
    return path


def test_it_holds_the_whole_state(checkpoint, images):
    state = load_checkpoint(checkpoint, recipe(), images.fingerprint)
    assert {"queue", "oldest", "filled", "key_encoder.0.layers.0.weight"} <= set(state["method"])
    assert state["step"] == 4 and len(state["history"]) == 1
    assert len(state["optimizer"]["state"]) > 0 and len(state["views_rng"]) > 0 and len(state["global_rng"]) > 0


@pytest.mark.parametrize("changes", [{"batch": 32}, {"momentum": 0.5}, {"seed": 1}, {"learning_rate": 0.1}])
def test_another_recipe_is_refused_by_field(checkpoint, images, changes):
    ((name, value),) = changes.items()
    there = getattr(recipe(), name)
    with pytest.raises(ValueError, match=f"another recipe: {name} is {there!r} there and {value!r} here"):
        train(recipe(**changes), images, checkpoint=checkpoint, progress=False)


def test_other_images_are_refused(checkpoint):
    other = shapes(concepts=2, train=64, test=20, seed=9)
    with pytest.raises(ValueError, match="is of other images: fingerprint"):
        train(recipe(), other, checkpoint=checkpoint, progress=False)


@pytest.mark.parametrize("keep", [0, 1, 100, 0.5, 0.99])
def test_a_truncated_checkpoint_is_refused_and_left_alone(checkpoint, images, tmp_path, keep):
    whole = checkpoint.read_bytes()
    cut = tmp_path / "cut.pt"
    cut.write_bytes(whole[: int(keep * len(whole)) if isinstance(keep, float) else keep])
    before = cut.read_bytes()
    with pytest.raises(ValueError, match="cut.pt is damaged or not a checkpoint; delete it to start anew"):
        train(recipe(), images, checkpoint=cut, progress=False)
    assert cut.read_bytes() == before


def test_other_files_are_refused(images, tmp_path):
    text = tmp_path / "notes.txt"
    text.write_text("not a checkpoint")
    with pytest.raises(ValueError, match="is damaged or not a checkpoint"):
        load_checkpoint(text, recipe(), images.fingerprint)
    other = tmp_path / "other.pt"
    save_checkpoint(other, {"weights": torch.zeros(3)})
    with pytest.raises(ValueError, match="is not one of this version"):
        load_checkpoint(other, recipe(), images.fingerprint)


class Harmful:
    """Unpickling this would create a file."""

    def __init__(self, path) -> None:
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def hashed(content: bytes) -> bytes:
    """`content` with the end that a checkpoint has."""
    return content + MARK + hashlib.sha256(content).digest()


@pytest.mark.fault
def test_a_checkpoint_cannot_run_code(images, tmp_path):
    trap = tmp_path / "trap"
    for name, write in (
        ("torch.pt", lambda value, path: save_checkpoint(path, value)),  # its own hash is right
        ("pickle.pt", lambda value, path: path.write_bytes(hashed(pickle.dumps(value)))),
    ):
        path = tmp_path / name
        write({"recipe": Harmful(trap)}, path)
        with pytest.raises(ValueError, match="is damaged or not a checkpoint"):
            load_checkpoint(path, recipe(), images.fingerprint)
        assert not trap.exists()


def test_a_missing_file_is_an_os_error(images, tmp_path):
    with pytest.raises(FileNotFoundError):
        load_checkpoint(tmp_path / "none.pt", recipe(), images.fingerprint)
