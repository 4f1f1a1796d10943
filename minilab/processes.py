"""Starts real processes that work together, from a script or a notebook cell, and never leaves one behind."""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import pickle
import signal
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from datetime import timedelta
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from minilab import checks

GRACE = 1.0  # seconds in which a second failure is still listed beside the first


class WorkerError(RuntimeError):
    """A process failed, died or hung. The message has its rank and, where there is one, its traceback."""


def run_processes(work: Callable[..., Any], world: int, *args: Any, seconds: float = 60.0) -> list[Any]:
    """Call `work(*args)` in each of `world` new processes that form one process group; results by rank.

    `work` must be importable (a function of a module, not of a notebook), `args` and results picklable
    and free of tensors: pass NumPy arrays. The group is gloo's, or NCCL's where each process can have a
    GPU of its own. It meets through a file, so no port is taken before the processes have found each other.
    Raises `WorkerError` if one fails or dies, at once, or if one has no result after `seconds`; in each
    case, as on an interrupt, all processes are killed before this returns.
    """
    checks.kind("work", work, Callable, "a function of a module")
    checks.whole("world", world, 1, 4096)
    checks.number("seconds", seconds, 0, 10**6, open_low=True)
    context = multiprocessing.get_context("spawn")
    workers: list[tuple[Any, Connection]] = []
    with tempfile.TemporaryDirectory(prefix="minilab-") as folder:
        try:
            for rank in range(world):
                here, there = context.Pipe(duplex=False)
                process = context.Process(target=_work, args=(there, work, args, rank, world, folder, seconds))
                process.daemon = True
                try:
                    process.start()
                except (pickle.PicklingError, AttributeError, TypeError) as error:
                    here.close()
                    there.close()
                    raise ValueError(
                        f"work is {checks.shown(work)} with arguments {checks.shown(args)}; allowed: a function of a "
                        f"module, not one made in another, and arguments that can be pickled ({error})"
                    ) from error
                there.close()  # else the end of the process would not be seen here
                workers.append((process, here))
            return _results(workers, Path(folder), seconds)
        finally:
            for process, here in workers:
                process.kill()
                process.join()
                here.close()


def _results(workers: list[tuple[Any, Connection]], folder: Path, seconds: float) -> list[Any]:
    """What each process sends. Raises `WorkerError` with all that failed, or with where the slow ones are."""
    rank_of = {here: rank for rank, (_, here) in enumerate(workers)}
    results: dict[int, Any] = {}
    failures: dict[int, str] = {}
    deadline = time.monotonic() + seconds
    while len(results) + len(failures) < len(workers):
        open_ = [here for here, rank in rank_of.items() if rank not in results and rank not in failures]
        ready = wait(open_, timeout=max(0.0, deadline - time.monotonic()))
        if not ready:
            break
        for here in ready:
            assert isinstance(here, Connection)
            rank = rank_of[here]
            try:
                good, value = here.recv()
            except EOFError:
                process = workers[rank][0]
                process.join()
                good, value = False, f"ended with exit code {process.exitcode}"
            if good:
                results[rank] = value
            else:
                failures[rank] = value
        if failures:
            deadline = min(deadline, time.monotonic() + GRACE)
    if failures:
        raise WorkerError("\n".join(f"rank {rank}: {failures[rank]}" for rank in sorted(failures)))
    late = [rank for rank in range(len(workers)) if rank not in results]
    if late:
        where = "".join(f"\nrank {rank} was here:\n{_stack(workers[rank][0].pid, folder, rank)}" for rank in late)
        raise WorkerError(f"no result from rank {', '.join(map(str, late))} after {seconds:g} seconds{where}")
    return [results[rank] for rank in range(len(workers))]


def _stack(pid: int, folder: Path, rank: int) -> str:
    """Where a process is. One that has no file yet is still importing, and would die of the signal."""
    file = folder / f"stack-{rank}"
    if not file.exists():
        return "(it had not started)"
    os.kill(pid, signal.SIGUSR1)
    time.sleep(0.2)
    return file.read_text()


def _work(
    there: Connection, work: Callable[..., Any], args: tuple[Any, ...], rank: int, world: int, folder: str, limit: float
) -> None:
    """What a process does: join the group, call `work`, and send what comes of it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what an interrupt ends
    threading.Thread(target=end_with_parent, daemon=True).start()
    with open(Path(folder) / f"stack-{rank}.new", "w") as stack:
        faulthandler.register(signal.SIGUSR1, file=stack)  # the parent asks a late process where it is
        os.rename(stack.name, Path(folder) / f"stack-{rank}")  # from now on it may ask
        try:
            join_group(rank, world, Path(folder) / "meet", limit)
            result = work(*args)
            dist.barrier()  # a rank that is done must not close what others still read from
            there.send((True, result))
        except Exception:
            there.send((False, traceback.format_exc()))
    if dist.is_initialized():
        dist.destroy_process_group()


def join_group(rank: int, world: int, meet: Path, seconds: float) -> None:
    """Join the process group that meets at the file `meet`, as rank `rank` of `world`."""
    checks.whole("world", world, 1)
    checks.whole("rank", rank, 0, world - 1)
    checks.kind("meet", meet, Path, "a pathlib.Path")
    checks.number("seconds", seconds, 0, 10**6, open_low=True)
    gpus = torch.cuda.device_count() >= world
    if gpus:
        torch.cuda.set_device(rank)
    else:
        torch.set_num_threads(max(1, (os.cpu_count() or 1) // world))
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo0" if os.uname().sysname == "Darwin" else "lo")
    store = torch.distributed.FileStore(str(meet), world)  # type: ignore[attr-defined]
    dist.init_process_group(
        "nccl" if gpus else "gloo", store=store, rank=rank, world_size=world, timeout=timedelta(seconds=seconds)
    )


def end_with_parent() -> None:
    """Wait for the parent to end, whatever ended it, and then end this process at once."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
