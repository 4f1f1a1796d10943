"""What the lab writes, each by its own function and by its command, for tests that break the writing."""

from __future__ import annotations

import contextlib
import io
import os
import resource
import signal
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from matplotlib.figure import Figure

from minilab import cli, data, files
from minilab.checkpoints import load_checkpoint, save_checkpoint
from minilab.recipe import Recipe
from minilab.records import load_record, save_record
from minilab.textbook import anki, execute, terminal
from minilab.textbook.cards import bank_json, load_bank
from minilab.textbook.sources import Chapter

RECIPE = Recipe("simclr", encoder="micro", epochs=2, batch=16, precision="float32")
TRAIN = ["train", "simclr", "--data", "shapes", "--images", "64", "--epochs", "2", "--batch", "16", "--encoder"]
TRAIN += ["micro", "--precision", "float32"]
STEPS = 4  # an epoch


@lru_cache
def images() -> data.Images:
    return data.shapes(concepts=2, train=64, test=20)


@dataclass(frozen=True)
class Writer:
    """`write(path)`: by its function, with content that is ready. `run(path)`: by its command; the exit code."""

    file: str
    write: Callable[[Path], Any]
    run: Callable[[Path], int]
    read: Callable[[Path], Any]


def write_checkpoint(path: Path) -> None:
    state = torch.load(path, weights_only=True)
    del state["format"]
    save_checkpoint(path, state)


def write_picture(path: Path) -> None:
    figure = Figure()
    figure.subplots().plot([1, 2, 3])
    cli._save_figure(figure, path)


def is_png(path: Path) -> None:
    content = path.read_bytes()
    assert content.startswith(b"\x89PNG") and content.endswith(b"IEND\xaeB`\x82")


def chapter(path: Path) -> Chapter:
    """A chapter whose notebook is `path`: (root)/notebooks/basics/first.ipynb."""
    found = Chapter(path.parents[2], "basics/first")
    assert found.notebook == path
    return found


def run_notebook(path: Path) -> int:
    return execute.main(["--root", str(path.parents[2]), "--force"])


@lru_cache
def bank() -> Any:
    return dict(list(load_bank().items())[:20])


WRITERS = {
    "checkpoint": Writer(
        "run.pt",
        write_checkpoint,
        lambda path: cli.main([*TRAIN, "--checkpoint", str(path), "--picture", str(path.with_suffix(".png"))]),
        lambda path: load_checkpoint(path, RECIPE, images().fingerprint),
    ),
    "record": Writer(
        "run.json",
        lambda path: save_record(load_record(path), path),
        lambda path: cli.main([*TRAIN, "--out", str(path), "--picture", str(path.with_suffix(".png"))]),
        load_record,
    ),
    "picture": Writer(
        "run.png",
        write_picture,
        lambda path: cli.main(["show", str(path.with_suffix(".json")), "--picture", str(path)]),
        is_png,
    ),
    "bank": Writer(
        "bank.json", terminal.write_json, lambda path: cli.main(["cards", "json", "--out", str(path)]), Path.read_text
    ),
    "deck": Writer(
        "deck.apkg",
        lambda path: anki.write_deck(path, bank()),
        lambda path: cli.main(["cards", "deck", "--out", str(path)]),
        Path.read_bytes,
    ),
    "notebook": Writer(
        "notebooks/basics/first.ipynb", lambda path: execute.execute(chapter(path)), run_notebook, Path.read_text
    ),
}


def prepare(folder: Path, monkeypatch: Any) -> dict[str, Path]:
    """Make whole old files of every kind in `folder`, and all the commands quick; their paths by kind."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(cli, "open_images", lambda name: images())
    monkeypatch.setattr(terminal, "bank_json", _bank_json)
    monkeypatch.setattr(anki, "load_bank", bank)
    monkeypatch.setattr(execute.NotebookClient, "execute", lambda *arguments, **options: None)
    source = folder / "book/chapters/basics/first.md"
    source.parent.mkdir(parents=True)
    source.write_text("# One\n\n```{code-cell} ipython3\n1\n```\n")
    (folder / "run.pt").write_bytes(_first_epoch())
    (folder / "run.json").write_bytes(_record())
    paths = {name: folder / writer.file for name, writer in WRITERS.items()}
    for name in ("picture", "bank", "deck", "notebook"):
        WRITERS[name].write(paths[name])
    return paths


_bank_json = lru_cache(bank_json)


@lru_cache
def _first_epoch() -> bytes:
    """The checkpoint of a run of two epochs after the first."""
    from minilab.training import train

    def stop(run: Any) -> None:
        raise KeyboardInterrupt

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.pt"
        with contextlib.suppress(KeyboardInterrupt):
            train(RECIPE, images(), checkpoint=path, progress=False, on_epoch=stop)
        return path.read_bytes()


@lru_cache
def _record() -> bytes:
    from minilab.records import record_of
    from minilab.training import train

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.json"
        save_record(record_of(train(RECIPE, images(), progress=False)), path)
        return path.read_bytes()


def parts(folder: Path) -> list[str]:
    """What is left of writing under other names."""
    return [path.name for path in folder.rglob("*") if path.name.endswith((".part", ".lock"))]


def die(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Dying(io.BufferedWriter):
    """A file whose process is killed once `most` bytes are on the disk."""

    def __init__(self, descriptor: int, most: int) -> None:
        super().__init__(io.FileIO(descriptor, "wb"))
        self.most = most

    def write(self, content: Any) -> int:
        content = memoryview(content).cast("B")
        if self.tell() + len(content) >= self.most:
            super().write(content[: self.most - self.tell()])
            self.flush()
            die()
        return super().write(content)


def killed(work: Callable[[], Any], moment: str, half: int) -> None:
    """Do `work` in a process that is killed with SIGKILL at a `moment` of its writing a file."""
    child = os.fork()
    if child == 0:
        try:
            real = os.replace
            if moment == "half is written":
                files.os.fdopen = lambda descriptor, mode: Dying(descriptor, half)
            elif moment == "all is written":
                os.fsync = die
            elif moment == "before it has its name":
                os.replace = die
            else:
                os.replace = lambda *names: die(real(*names))
            work()
        finally:
            os._exit(1)  # it was not killed
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL, f"not killed when {moment}"


MOMENTS = ("half is written", "all is written", "before it has its name", "after it has its name")


@contextlib.contextmanager
def no_file_above(size: int) -> Iterator[None]:
    """Let the kernel refuse (EFBIG) what would make a file of this process larger than `size` bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextlib.contextmanager
def full_disk(monkeypatch: Any) -> Iterator[None]:
    """Let the kernel refuse (ENOSPC) all that is written aside: it goes to /dev/full."""
    real = tempfile.mkstemp

    def mkstemp(*arguments: Any, **options: Any) -> tuple[int, str]:
        descriptor, name = real(*arguments, **options)
        if str(name).endswith(".part"):
            os.close(descriptor)
            descriptor = os.open("/dev/full", os.O_WRONLY)
        return descriptor, name

    with monkeypatch.context() as patch:
        patch.setattr(tempfile, "mkstemp", mkstemp)
        yield
