"""Data, files, downloads, checkpoints, sweeps and training: round trips, what is left after an error, and refusals."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import queue
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import Door, covers, exempt, few, no_number, no_text, one, other_than, refusals, refused, some
from torch import Tensor

from minilab import (
    checkpoints,
    compiled,
    data,
    download,
    files,
    grids,
    precision,
    shortage,
    sweep,
    training,
)
from minilab.recipe import METHODS, Recipe
from minilab.records import record_of, save_record
from minilab.shapes import shapes

BYTES = st.binary(max_size=200)
SMALL = Recipe("simclr", encoder="micro", epochs=2, batch=4, dim=4, precision="float32")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    yield tmp_path_factory.mktemp("properties")


def left(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


# --- files


@covers(files.written_aside, files.check_writable, files.one_writer, files.held, files.naming)
@some
@given(BYTES, BYTES, st.sampled_from(["a", "b.json", "ü and space", "x.part"]))
def test_a_file_is_the_new_one_or_the_old_one(place: Path, old: bytes, new: bytes, name: str) -> None:
    path = place / "files" / name
    files.check_writable(path)
    with files.one_writer(path):
        with files.written_aside(path) as file:
            file.write(old)
        with pytest.raises(KeyError), files.written_aside(path) as file:
            file.write(new)
            raise KeyError("the disk is fine")
        assert path.read_bytes() == old
        with pytest.raises(OSError, match="at work"), files.one_writer(path):
            pass
    with files.held(path.with_name("lock"), "busy"), files.naming(path), files.written_aside(str(path)) as file:
        file.write(new)
    assert path.read_bytes() == new
    path.unlink()
    assert left(path.parent) == set()


# --- downloads


@covers(download.download, download.file_md5, download.one_at_a_time, download.set_aside)
@few
@given(st.binary(min_size=1, max_size=200), BYTES, st.binary(max_size=20))
def test_a_file_is_fetched_whole_or_not_at_all(place: Path, content: bytes, wrong: bytes, begun: bytes) -> None:
    folder = place / "download"
    folder.mkdir(exist_ok=True)
    source, target, spoilt = folder / "source", folder / "target", folder / "spoilt"
    source.write_bytes(content)
    spoilt.write_bytes(wrong)
    assert download.file_md5(source) == hashlib.md5(content, usedforsecurity=False).hexdigest()
    target.with_name("target.part").write_bytes(begun)  # of an earlier call
    arguments = len(content), download.file_md5(source), 5.0
    with download.one_at_a_time(folder / "lock"):
        mirrors = [f"file://{folder}/none", spoilt.as_uri(), source.as_uri()]
        download.download(target, mirrors, *arguments)
    assert target.read_bytes() == content and not target.with_name("target.part").exists()
    aside = [download.set_aside(target)]
    if wrong != content:
        with pytest.raises(OSError, match="no mirror gave target"):
            download.download(target, mirrors[:2], *arguments)
        assert not target.exists()
    target.write_bytes(wrong)
    aside.append(download.set_aside(target))
    assert [path.read_bytes() for path in aside] == [content, wrong]
    for path in folder.iterdir():
        path.unlink()


def packed(path: Path, members: dict[str, bytes]) -> None:
    with tarfile.open(path, "w") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))


@covers(download.unpack)
@few
@given(BYTES, BYTES, BYTES)
def test_an_archive_gives_the_expected_files_or_none(place: Path, first: bytes, second: bytes, other: bytes) -> None:
    archive, folder = place / "a.tar", place / "unpack" / "here"
    folder.parent.mkdir(exist_ok=True)
    packed(archive, {"here/one": first, "here/two": second, "../escaped": other, "here/three": other})
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in (("one", first), ("two", second))}
    download.unpack(archive, folder, digests)
    assert left(folder) == {"one", "two"} and (folder / "two").read_bytes() == second
    assert left(folder.parent) == {"here"} and not (place / "escaped").exists()
    with pytest.raises(ValueError, match="allowed"):
        download.unpack(archive, folder, {**digests, "two": hashlib.sha256(second + b"x").hexdigest()})
    with pytest.raises(ValueError, match="missing"):
        download.unpack(archive, folder, {"four": digests["one"]})
    assert left(folder.parent) == {"here"} and (folder / "one").read_bytes() == first
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()


# --- CIFAR-10


@covers(data.cifar10, data.data_root, data.Archive)
@few
@given(st.integers(1, 3), st.integers(0, 2**31), st.integers(0, 5), st.integers(-2, 2))
def test_records_become_images_and_a_spoilt_file_is_named(count: int, seed: int, spoilt: int, change: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        root = data.data_root(patch_root(patch))
        patch.setattr(data, "OFFICIAL", dataclasses.replace(data.OFFICIAL, file_size=count * data.RECORD))
        folder, dice = root / data.OFFICIAL.folder, np.random.default_rng(seed)
        folder.mkdir(exist_ok=True)
        records = dice.integers(0, 256, (6 * count, data.RECORD), np.uint8)
        records[:, 0] %= 10
        for number, name in enumerate(data.OFFICIAL.files):
            records[number * count : (number + 1) * count].tofile(folder / name)
        images = data.cifar10(root, download=False)
        assert images.name == "CIFAR-10 (unverified copy)"
        assert torch.equal(images.train, torch.from_numpy(records[: 5 * count, 1:]).view(-1, 3, 32, 32))
        assert images.test_labels.tolist() == records[5 * count :, 0].tolist()
        name = list(data.OFFICIAL.files)[spoilt]
        content = bytearray((folder / name).read_bytes())
        if change:  # too short or too long by a byte or two; at 0, a label that is none
            content = content[:change] if change < 0 else content + b"x" * change
        else:
            content[0] = 10
        (folder / name).write_bytes(content)
        refused(data.cifar10, root, download=False, named=name)


def patch_root(patch: pytest.MonkeyPatch) -> Path:
    root = Path(tempfile.mkdtemp(prefix="minilab-"))
    patch.setenv("MINILAB_DATA", str(root))
    assert data.data_root() == root
    return root


@covers(data.open_images, data.default, data.fetch)
def test_shapes_stand_in_where_nothing_can_be_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MINILAB_MIRRORS", f"file://{tmp_path}/none")
    monkeypatch.setattr(data, "OFFICIAL", dataclasses.replace(data.OFFICIAL, mirrors=()))
    monkeypatch.setattr(data, "shapes", lambda: shapes(2, 4, 4))
    monkeypatch.setitem(data.fetch.__kwdefaults__, "archive", data.OFFICIAL)
    with pytest.raises(OSError, match="no mirror gave"):
        data.fetch(tmp_path)
    assert data.default(tmp_path).name == data.open_images("auto", tmp_path).name == "Shapes (2 concepts)"
    assert capsys.readouterr().out.count("using Shapes") == 2
    with pytest.raises(FileNotFoundError, match="minilab data"):
        data.cifar10(tmp_path, download=False)


# --- training, checkpoints, sweeps


def timeless(history: list[dict[str, float]]) -> list[dict[str, float]]:
    return [{k: v for k, v in entry.items() if k not in ("seconds", "images_per_second")} for entry in history]


@covers(
    training.train, training.Run, training.Trainer, training.Trainer.run_epoch, training.Trainer.take_step,
    training.build_method, training.pick_device,
)  # fmt: skip
@few
@given(st.sampled_from(METHODS), st.integers(0, 2**31 - 1), st.integers(4, 9))
def test_a_run_repeats_with_its_seed_and_leaves_the_random_state(method: str, seed: int, count: int) -> None:
    recipe = dataclasses.replace(SMALL, method=method, epochs=1, seed=seed, queue=8)
    images = shapes(2, count, 4, size=8)
    first, second = training.build_method(recipe), training.build_method(recipe)
    assert all(map(torch.equal, first.state_dict().values(), second.state_dict().values()))
    before = torch.get_rng_state()
    with pytest.warns() if method == "moco" else pytest.MonkeyPatch.context():  # a queue longer than the images
        runs = [training.train(recipe, images, device="cpu", progress=False) for _ in range(2)]
    assert torch.equal(before, torch.get_rng_state())
    assert timeless(runs[0].history) == timeless(runs[1].history) and runs[0].curves == runs[1].curves
    assert len(runs[0].history) == 1 and runs[0].recipe == recipe
    assert str(training.pick_device("cpu")) == "cpu"


@pytest.fixture(scope="module")
def saved(place: Path) -> tuple[Path, Any, dict[str, Any]]:
    """A checkpoint, its images, and the state in it."""
    path, images = place / "run.pt", shapes(2, 8, 4, size=8)
    training.train(SMALL, images, device="cpu", checkpoint=path, progress=False)
    return path, images, checkpoints.load_checkpoint(path, SMALL, images.fingerprint)


def equal(first: Any, second: Any) -> bool:
    if isinstance(first, Tensor):
        return torch.equal(first, second)
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(equal(first[key], second[key]) for key in first)
    if isinstance(first, (list, tuple)):
        return len(first) == len(second) and all(map(equal, first, second))
    return bool(first == second)


@covers(checkpoints.save_checkpoint, checkpoints.load_checkpoint, checkpoints.refused, checkpoints.Hashed,
        checkpoints.Hashed.write)  # fmt: skip
@some
@given(place_in_file=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7), cut=st.booleans())
def test_a_checkpoint_comes_back_whole_and_one_wrong_bit_is_refused(
    saved: tuple[Path, Any, dict[str, Any]], place_in_file: float, bit: int, cut: bool
) -> None:
    path, images, state = saved
    again = path.with_name("again.pt")
    checkpoints.save_checkpoint(again, {name: value for name, value in state.items() if name != "format"})
    assert equal(checkpoints.load_checkpoint(again, SMALL, images.fingerprint), state)
    content = bytearray(again.read_bytes())
    where = int(place_in_file * len(content))
    if cut:
        content = content[:where]
    else:
        content[where] ^= 1 << bit
    again.write_bytes(content)
    with pytest.raises(ValueError, match=r"again\.pt"):
        checkpoints.load_checkpoint(again, SMALL, images.fingerprint)


@few
@given(st.sampled_from(["temperature", "seed", "epochs", "crop"]))
def test_a_checkpoint_of_another_recipe_or_other_images_is_refused(
    saved: tuple[Path, Any, dict[str, Any]], field: str
) -> None:
    path, images, _ = saved
    other = dataclasses.replace(SMALL, **{field: {"temperature": 0.2, "crop": 0.5}.get(field, 7)})
    with pytest.raises(ValueError, match=f"run.pt.*{field}"):
        checkpoints.load_checkpoint(path, other, images.fingerprint)
    with pytest.raises(ValueError, match=r"run.pt.*images"):
        checkpoints.load_checkpoint(path, SMALL, "0" * 16)


@covers(
    sweep.is_complete, sweep.pending, sweep.listing, sweep.locked, sweep.threads_of, sweep.Progress,
    sweep.Progress.finished, sweep.train_cell,
)  # fmt: skip
def test_what_is_recorded_is_not_pending(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = place / "records"
    cells = grids.grid("smoke").cells
    assert sweep.pending(["smoke"], folder) == cells == sweep.pending(["smoke", "smoke"], folder)
    with sweep.locked(folder), pytest.raises(OSError, match="another sweep"), sweep.locked(folder):
        pass
    cell = dataclasses.replace(cells[0], recipe=dataclasses.replace(cells[0].recipe, epochs=1), images=64)
    save_record(record_of(sweep.train_cell(cell, None)), folder / f"{cell.name}.json")
    assert sweep.is_complete(cell, folder)
    assert not sweep.is_complete(dataclasses.replace(cell, images=128), folder)
    (folder / f"{cell.name}.json").write_text("{")
    assert not sweep.is_complete(cell, folder) and sweep.pending(["smoke"], folder) == cells
    text = sweep.listing(folder)
    assert all(name in text for name in grids.GRIDS) and " 0 of 4" in text
    for workers in range(1, sweep.cores() + 1):
        assert 1 <= sweep.threads_of(workers) * workers <= sweep.cores()
    reports: Any = queue.Queue()
    with sweep.Progress(100, 2, reports) as progress:
        for report in (("a", 30, 0.5, False), ("b", 20, 0.0, True)):
            reports.put(report)
        progress.finished("a", None)
        progress.finished("b", "Traceback\nKeyError: x")
    assert progress.bar.total == 80 and progress.bar.n == 30 and progress.done == 2
    assert "b failed: KeyError: x" in capsys.readouterr().err


exempt(sweep.sweep, "starts processes that train; tests/test_sweep.py does it, and kills them")
exempt(sweep.sweep_on_ray, "needs a Ray cluster; tests/test_sweep.py starts a local one")
exempt(shortage.explained, "needs memory to run out; tests/faults has it do so")
exempt(shortage.is_out_of_memory, "a list of torch's messages; tests/faults raises the real one")
exempt(shortage.step_bytes, "counts a real network; tests/faults compares it with a step")
exempt(precision.Scaler, "torch's own scaler without the wait; tests/test_host_sync.py compares them")
exempt(compiled.Compiled, "compiles for seconds; tests/test_compiled.py compares it with the method itself")


# --- refusals

NO_ROOT = other_than(str, type(None))
SECONDS = no_number(0, 10**6, low_too=True)
NO_RECIPE = other_than(Recipe)
IMAGES = shapes(2, 8, 4, size=8)
test_refusals = refusals(
    Door(data.data_root, dict, {"root": NO_ROOT}),
    Door(data.cifar10, dict, {"root": NO_ROOT}),
    Door(data.open_images, dict, {"name": no_text(*data.SOURCES)}, {"name": "data"}),
    Door(data.default, dict, {"root": NO_ROOT, "patience": SECONDS}),
    Door(data.fetch, lambda: {"root": "/nowhere/at/all"},
         {"root": NO_ROOT, "patience": SECONDS, "mirrors": one("http://x", [1], (None,), ["a", b"b"]),
          "archive": other_than(data.Archive)}),
    Door(training.train, lambda: {"recipe": SMALL, "images": IMAGES, "progress": False},
         {"recipe": NO_RECIPE, "images": other_than()}),
    Door(training.Trainer, lambda: {"recipe": SMALL, "images": IMAGES, "device": torch.device("cpu"),
                                    "checkpoint": None},
         {"recipe": NO_RECIPE, "images": other_than()}),
    Door(sweep.pending, lambda: {"names": ["smoke"], "folder": Path("nowhere")},
         {"names": one(["x"], "smoke", [1], [None], [[]])}, {"names": "grid"}),
)  # fmt: skip
