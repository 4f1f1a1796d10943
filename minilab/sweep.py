"""Trains the runs of a grid on all cores, each in a process of its own, and writes a record for each.

A run whose record is there is not trained again; one that was cut short goes on from its checkpoint, to the
same numbers. Losing a process, or the machine, loses at most the last minute of each run in progress.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from minilab.files import held
from minilab.grids import GRIDS, Cell, grid
from minilab.processes import end_with_parent
from minilab.records.store import load_record, record_of, save_record
from minilab.training import Run, train

TRIES = 3  # of a run whose process was killed


def is_complete(cell: Cell, folder: Path) -> bool:
    """Whether `folder` has a sound record of `cell`: its recipe, its number of images, all of its epochs."""
    try:
        record = load_record(folder / f"{cell.name}.json")
    except (OSError, ValueError):
        return False
    whole = len(record.history) == cell.recipe.epochs and record.data["images"] == cell.images
    return whole and record.recipe == cell.recipe


def listing(folder: Path) -> str:
    """A table of the grids: how many of their runs are recorded in `folder`, and which are not."""
    lines = [f"{'grid':14s}recorded   missing (records in {folder})"]
    for name in GRIDS:
        cells = grid(name).cells
        missing = [cell.name for cell in cells if not is_complete(cell, folder)]
        shown = ", ".join(missing[:3]) + (f" and {len(missing) - 3} more" if len(missing) > 3 else "")
        lines.append(f"{name:14s}{len(cells) - len(missing):3d} of {len(cells):<3d} {shown or '-'}")
    return "\n".join(lines)


def pending(names: list[str], folder: Path) -> list[Cell]:
    """The cells of the named grids that have no record yet, each once, in the grids' order."""
    cells = {cell.name: cell for name in names for cell in grid(name).cells}
    return [cell for cell in cells.values() if not is_complete(cell, folder)]


def sweep(cells: list[Cell], folder: Path, workers: int) -> dict[str, str]:
    """Train `cells`, `workers` at a time, into `folder`. Returns what went wrong: name of the cell to a traceback.

    Each worker gets cores // workers threads. Raises `ValueError` if workers is not from 1 to the number of
    cores, and `OSError` if another sweep is at work in `folder`.
    """
    threads = threads_of(workers)
    with locked(folder):
        reports: Any = multiprocessing.get_context("spawn").Queue()
        total = sum(cell.recipe.epochs * cell.images for cell in cells)
        with Progress(total, len(cells), reports) as progress, ThreadPoolExecutor(workers) as pool:
            outcomes = pool.map(lambda cell: _in_a_process(cell, folder, threads, reports, progress), cells)
            return {cell.name: trouble for cell, trouble in zip(cells, outcomes, strict=True) if trouble}


def threads_of(workers: int) -> int:
    """Threads for each of `workers` processes, so that together they use every core once."""
    if not 1 <= workers <= cores():
        raise ValueError(f"workers is {workers}; allowed: 1 to {cores()}, the number of cores")
    return cores() // workers


def cores() -> int:
    """Processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def train_cell(cell: Cell, checkpoint: Path | None, on_epoch: Callable[[Run], None] | None = None) -> Run:
    """Train one cell, from its checkpoint if there is one."""
    return train(cell.recipe, cell.open(), checkpoint=checkpoint, progress=False, on_epoch=on_epoch)


class Progress:
    """A bar over the images of all runs, with the time left; runs report epochs to it through a queue."""

    def __init__(self, images: int, runs: int, reports: Any) -> None:
        self.reports, self.runs, self.done = reports, runs, 0
        self.bar = tqdm(total=images, unit="image", unit_scale=True, dynamic_ncols=True)
        self.thread = threading.Thread(target=self._listen, daemon=True)

    def __enter__(self) -> Progress:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.reports.put(None)
        self.thread.join(timeout=10)
        self.bar.close()

    def finished(self, name: str, trouble: str | None) -> None:
        """Say that a run has ended, well or not."""
        self.done += 1
        self.bar.set_description(f"{self.done} of {self.runs} runs", refresh=False)
        if trouble:
            self.bar.write(f"{name} failed: {trouble.strip().splitlines()[-1]}", file=sys.stderr)

    def _listen(self) -> None:
        while (report := self.reports.get()) is not None:
            name, images, knn, resumed = report
            if resumed:  # epochs of an earlier sweep: no part of this one's speed
                self.bar.total -= images
                self.bar.refresh()
            else:
                self.bar.update(images)
                self.bar.set_postfix_str(f"{name} kNN {knn:.3f}")


def _in_a_process(cell: Cell, folder: Path, threads: int, reports: Any, progress: Progress) -> str | None:
    """Run `cell` in a new process until it ends by itself. Returns None, or why it has no record."""
    context = multiprocessing.get_context("spawn")
    trouble: str | None = None
    for _ in range(TRIES):
        failure: Any = context.SimpleQueue()
        process = context.Process(target=_work, args=(cell, folder, threads, reports, failure), name=cell.name)
        process.start()
        process.join()
        if process.exitcode == 0:
            trouble = None
            break
        if not failure.empty():  # an error, which would come again
            trouble = str(failure.get())
            break
        trouble = f"its process ended with exit code {process.exitcode}, {TRIES} times"
    progress.finished(cell.name, trouble)
    return trouble


def _work(cell: Cell, folder: Path, threads: int, reports: Any, failure: Any) -> None:
    """What a process does: train a cell, write its record, and remove its checkpoint."""
    # else a run would go on beside the one that the next sweep starts
    threading.Thread(target=end_with_parent, daemon=True).start()
    try:
        torch.set_num_threads(threads)
        checkpoint = folder / f".{cell.name}.pt"
        told = 0

        def report(run: Run) -> None:
            nonlocal told
            epochs = len(run.history)
            if epochs - told > 1:
                reports.put((cell.name, (epochs - told - 1) * cell.images, 0.0, True))
            told = epochs
            reports.put((cell.name, cell.images, run.history[-1]["knn"], False))

        run = train_cell(cell, checkpoint, report)
        if told == 0:  # it lacked only its record
            reports.put((cell.name, len(run.history) * cell.images, 0.0, True))
        save_record(record_of(run), folder / f"{cell.name}.json")
        checkpoint.unlink(missing_ok=True)
    except BaseException:
        failure.put(traceback.format_exc())
        raise SystemExit(1) from None


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold `folder` for one sweep. Raises `OSError` if another holds it; a killed sweep holds nothing."""
    with held(folder / ".lock", f"another sweep is at work in {folder}"):
        yield


def sweep_on_ray(cells: list[Cell], folder: Path, workers: int, address: str | None = None) -> dict[str, str]:
    """The same on a Ray cluster: `address`, or one of `workers` workers on this machine. Needs `minilab[ray]`.

    Workers send their records back, so they need not share a disk; Ray gives the run of a lost one to another, which
    begins it anew. Runs of a cluster at an address have one thread each, as those of a sweep with a worker for each
    core. Raises `OSError` naming the address if no cluster answers there, or none starts.
    """
    try:
        import ray
    except ImportError:
        raise ValueError(
            "ray is not installed; allowed: `pip install 'minilab[ray]'`, or a sweep without --ray"
        ) from None

    threads = threads_of(workers) if address is None else 1
    with locked(folder):
        # "local": with no address, Ray would join whatever cluster this machine has
        cluster = {"address": address} if address else {"address": "local", "num_cpus": workers}
        try:
            ray.init(**cluster, log_to_driver=False, include_dashboard=False)
        except Exception as error:  # of many kinds, a plain Exception among them
            raise OSError(f"no Ray cluster at {cluster['address']}: {error}") from error
        try:
            work = ray.remote(num_cpus=1, max_retries=TRIES)(_work_on_ray)
            waiting = {work.remote(cell, threads): cell for cell in cells}
            troubles = {}
            with tqdm(total=len(cells), unit="run", dynamic_ncols=True) as bar:
                while waiting:
                    (done, *_), _ = ray.wait(list(waiting))
                    cell = waiting.pop(done)
                    try:
                        save_record(ray.get(done), folder / f"{cell.name}.json")
                    except ray.exceptions.RayError as error:
                        troubles[cell.name] = str(error)
                        bar.write(f"{cell.name} failed: {str(error).strip().splitlines()[-1]}", file=sys.stderr)
                    bar.update()
            return troubles
        finally:
            ray.shutdown()


def _work_on_ray(cell: Cell, threads: int) -> Any:
    torch.set_num_threads(threads)
    return record_of(train_cell(cell, checkpoint=None))
