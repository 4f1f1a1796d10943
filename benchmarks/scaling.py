"""One run on more processes: how much faster a fixed batch gets (strong), and a batch that grows with them (weak).

Each process has one thread of the CPU, or a GPU of its own where there are enough. Ratios to one process are medians
over rounds. Below them stands arithmetic, labelled so (`minilab.scaling`): what a step sends, and the efficiency that
this alone would allow at 8, 64 and 512 devices, if nothing overlaps.

Measured on 2026-12-01, two cores of an AMD EPYC, torch 2.13.0, gloo, encoder "tiny", 1 and 2 processes of one thread,
share of the ideal: with `--apart` SimCLR .78 strong and .86 weak, MoCo .66 and .84. With batch norm synchronised, which
then took two small collectives a layer and direction, SimCLR .34 and .43, MoCo .23 and .33: slower than one process.

    python benchmarks/scaling.py --processes 1 2 --json scaling.json
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.modules.batchnorm import _BatchNorm

from minilab import Recipe
from minilab.data import shapes
from minilab.files import check_writable, written_aside
from minilab.processes import run_processes
from minilab.scaling import Cluster, Workload, collectives, seconds
from minilab.training import Trainer, build_method

WARM, STEPS, ROUNDS = 3, 8, 3
AT = (8, 64, 512)  # devices of the arithmetic


def seconds_of_a_step(values: dict[str, Any]) -> float:
    """In one process of a group: seconds of a step, the median over rounds."""
    recipe = Recipe.from_dict(values)
    gpu = dist.get_backend() == "nccl"
    if not gpu:
        torch.set_num_threads(1)
    device = torch.device("cuda", torch.cuda.current_device()) if gpu else torch.device("cpu")
    trainer = Trainer(recipe, shapes(train=4 * recipe.batch, test=300), device, checkpoint=None)
    trainer.run.method.train()
    batch = torch.arange(recipe.batch, device=device)
    for _ in range(WARM):
        trainer.take_step(batch)
    found = []
    for _ in range(ROUNDS):
        dist.barrier()
        start = time.perf_counter()
        for _ in range(STEPS):
            loss = trainer.take_step(batch)
        float(loss)  # wait for the device
        found.append((time.perf_counter() - start) / STEPS)
    return statistics.median(found)


def measure(recipe: Recipe, worlds: list[int], grows: bool, apart: bool) -> dict[int, float]:
    """Images a second by number of processes; `grows`: the batch is that of each process; `apart`: so is batch norm."""
    speed = {}
    for world in worlds:
        batch = recipe.batch * world if grows else recipe.batch
        values = {**recipe.to_dict(), "batch": batch, "bn_groups": world if apart else 1}
        speed[world] = batch / max(run_processes(seconds_of_a_step, world, values, seconds=300))
    return speed


def workload(recipe: Recipe, batch: int) -> Workload:
    """The step of `recipe` with `batch` images in all, by its numbers."""
    method = build_method(recipe)
    norms = [m for part in (method.encoder, method.head) for m in part.modules() if isinstance(m, _BatchNorm)]
    return Workload(
        recipe.method,
        batch,
        weights=sum(p.numel() for p in method.parameters() if p.requires_grad),
        pixels=3 * 32 * 32,
        layers=len(norms),
        channels=sum(norm.num_features for norm in norms),
        dim=recipe.dim,
        queue=recipe.queue,
        norm="synchronised" if recipe.bn_groups == 1 else "shuffled" if recipe.method == "moco" else "apart",
    )


def table(name: str, speed: dict[int, float]) -> str:
    """Speed, and its ratio to one process and to as many times one process."""
    first = min(speed)
    lines = [f"{name:24s}images/s    ratio   of the ideal"]
    for world, value in speed.items():
        ratio = value / speed[first]
        lines.append(f"{world:3d} processes{value:21,.0f} {ratio:8.2f} {ratio * first / world:13.0%}")
    return "\n".join(lines)


def arithmetic(recipe: Recipe, each: int, step: float, gigabytes: float) -> str:
    """The table of what is sent and of the efficiency it allows; `step` seconds of computing, `gigabytes` a second."""
    given = f"{each} images a device, {1e3 * step:.0f} ms of computing, {gigabytes:g} GB/s, no overlap"
    lines = [f"Arithmetic, not measured: {given}; latencies as in minilab.scaling"]
    for world in AT:
        sends = collectives(workload(recipe, each * world), world)
        cluster = Cluster(world, link=gigabytes, network=gigabytes)
        waiting = sum(seconds(what, cluster) for what in sends)
        total = sum(what.sent(world) for what in sends)
        told = ", ".join(f"{what.name} {what.sent(world) / 1e6:.1f}" for what in sends)
        lines.append(f"{world:4d} devices: {total / 1e6:8.1f} MB ({told}); efficiency {step / (step + waiting):.0%}")
    return "\n".join(lines)


def main() -> None:
    """Measure, print, and write what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--encoder", default="tiny")
    parser.add_argument("--batch", type=int, default=128, help="strong: of all; weak: of each (default: %(default)s)")
    parser.add_argument("--bandwidth", type=float, default=10.0, help="GB/s of the arithmetic (default: %(default)s)")
    parser.add_argument("--apart", action="store_true", help="each process normalises its own images (bn_groups)")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.json is not None:
        check_writable(options.json)
    figures: dict[str, Any] = {}
    for method in ("simclr", "moco"):
        recipe = Recipe(method, options.encoder, batch=options.batch, precision="float32")
        strong, weak = (measure(recipe, options.processes, grows, options.apart) for grows in (False, True))
        figures[method] = {"strong": strong, "weak": weak}
        print(table(f"{method}, strong", strong), table(f"{method}, weak", weak), sep="\n")
        one = weak[min(weak)] / min(weak)
        print(arithmetic(recipe, options.batch, options.batch / one, options.bandwidth), end="\n\n", flush=True)
    if options.json is not None:
        with written_aside(options.json) as file:
            file.write(json.dumps(figures, indent=1).encode() + b"\n")


if __name__ == "__main__":
    main()
