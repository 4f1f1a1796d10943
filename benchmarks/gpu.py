"""The lab on one GPU, in one run of a few minutes: speed, what compiling brings, memory, and time to a kNN of .80.

Four parts, for SimCLR and MoCo with ResNet-18 at 512 images a step, in half precision. Each has a share of the minutes
and does less on a slower GPU:
- speed: images a second, and the fraction of what the bare networks would allow (`minilab.bench`);
- variants: float32, half precision, cuDNN left to choose its kernels by trial, and `torch.compile`, taking turns;
- memory: the peak of a step against SimCLR's batch and MoCo's queue, beside what `minilab.memory` counts. The count
  has all logits of MoCo at once, which this lab never holds; neither has what lives for a moment within a layer;
- time to a kNN of .80 on CIFAR-10 (k = 200, all images): a cosine schedule as long as the time that is left allows. If
  that is too short, it says how far it came.

The recipes are those of lightly's CIFAR-10 benchmark (docs/source/getting_started/benchmarks/cifar10_benchmark.py in
lightly-ai/lightly), which lists kNN .83 (SimCLR) and .85 (MoCo) after 200 epochs at this batch; but with one
batch-norm group. No figure of a GPU is recorded here yet.

    python benchmarks/gpu.py --json gpu.json
"""

from __future__ import annotations

import argparse
import gc
import json
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from minilab import Recipe, bench
from minilab.compiled import Compiled
from minilab.data import Images, default, shapes
from minilab.evaluation import extract, knn
from minilab.files import check_writable, written_aside
from minilab.memory import Budget, device_bytes, peak_saved_bytes
from minilab.precision import DTYPES
from minilab.recipe import METHODS
from minilab.shortage import is_out_of_memory
from minilab.training import Run, Trainer, pick_device, train

SHARES = {"speed": 0.15, "variants": 0.15, "memory": 0.1}  # of the minutes; the rest is for training
LONGEST = 200  # epochs


@dataclass(frozen=True)
class Size:
    """How large everything is. `network`: the encoder's name in `minilab.memory`."""

    encoder: str
    network: str
    batch: int
    queue: int
    batches: tuple[int, ...]
    queues: tuple[int, ...]
    target: float
    backend: str  # of torch.compile

    def recipe(self, method: str, **changes: Any) -> Recipe:
        """What is trained: the rates and temperatures of lightly's benchmark."""
        own = {"temperature": 0.5} if method == "simclr" else {"symmetric": True, "queue": self.queue}
        values = {"encoder": self.encoder, "batch": self.batch, "learning_rate": 0.06 * self.batch / 128, **own}
        return Recipe(method, **{**values, "epochs": 1000, "precision": half(), **changes})  # type: ignore[arg-type]


SIZES = {
    "full": Size(
        "resnet18", "resnet18, small images", 512, 8192,
        (256, 512, 1024, 2048, 4096), (4096, 16_384, 65_536, 262_144), 0.80, "inductor",
    ),
    "smallest": Size("tiny", "tiny", 32, 64, (16, 32), (64, 1024), 0.20, "aot_eager"),
}  # fmt: skip


def half() -> str:
    """The half precision of this GPU; on the CPU float32."""
    if not torch.cuda.is_available():
        return "float32"
    return "bfloat16" if torch.cuda.is_bf16_supported(including_emulation=False) else "float16"


def noise(count: int) -> Images:
    """Images for parts that only measure: their kind does not matter."""
    pixels = torch.randint(0, 256, (count, 3, 32, 32), dtype=torch.uint8)
    labels = torch.arange(count) % 2
    return Images("noise", pixels, labels, pixels[:300], labels[:300], ("a", "b"))


def trainer_of(recipe: Recipe, images: Images) -> Trainer:
    """One whose next step trains."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of queues longer than the images: only time and memory are measured
        trainer = Trainer(recipe, images, pick_device(None), checkpoint=None)
    trainer.run.method.train()
    return trainer


def stepping(trainer: Trainer, autotune: bool = False) -> Callable[[], Any]:
    """A function that makes one step."""
    batch = torch.arange(trainer.recipe.batch, device=trainer.device)

    def step() -> None:
        torch.backends.cudnn.benchmark = autotune
        trainer.take_step(batch)

    return step


def speed(size: Size, seconds: float) -> dict[str, Any]:
    """Of each method: the figures of `minilab.bench`, in eager mode."""
    images = noise(4 * size.batch)
    return {m: bench._measure(size.recipe(m), images, seconds / len(METHODS)) for m in METHODS}


def variants(size: Size, method: str, seconds: float) -> dict[str, Any]:
    """Images a second of each variant, and how many times as fast compiled is as eager; seconds of its first step."""
    images = noise(size.batch)
    torch.compiler.reset()
    trainers = {name: trainer_of(size.recipe(method), images) for name in ("eager", "autotuned", "compiled")}
    trainers["float32"] = trainer_of(size.recipe(method, precision="float32"), images)
    parts = {name: stepping(trainer, name == "autotuned") for name, trainer in trainers.items()}
    found: dict[str, Any] = {"backend": size.backend, "ratio": None, "first_step_seconds": None, "failed": None}
    start = time.perf_counter()
    try:
        trainers["compiled"].compiled = Compiled(trainers["compiled"].run.method, size.backend)
        parts["compiled"]()
        bench._wait(pick_device(None))
        found["first_step_seconds"] = time.perf_counter() - start
    except Exception as error:  # a compiler that is missing, or fails, in one of many ways: the rest is still measured
        found["failed"] = f"{type(error).__name__}: {error}"[:300]
        del parts["compiled"]
    spent = bench._in_turn(parts, bench.ROUNDS, pick_device(None), seconds)
    torch.backends.cudnn.benchmark = False
    found["images_per_second"] = {name: size.batch / value for name, value in spent.items()}
    if "compiled" in spent:
        found["ratio"] = spent["eager"] / spent["compiled"]
    return found


def peak(recipe: Recipe) -> int | None:
    """Most bytes allocated in two steps on a GPU; on the CPU what autograd kept, and the state. None: too little."""
    try:
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_allocated()
            step = stepping(trainer_of(recipe, noise(recipe.batch)))
            step(), step()
            return torch.cuda.max_memory_allocated() - before
        trainer = trainer_of(recipe, noise(recipe.batch))
        method = trainer.run.method
        _, kept = peak_saved_bytes(stepping(trainer), method)
        tensors = [*method.state_dict().values(), *[p for p in method.parameters() if p.requires_grad] * 2]
        return kept + sum(tensor.nbytes for tensor in tensors)  # gradient and momentum of each weight
    except (RuntimeError, MemoryError) as error:
        if is_out_of_memory(error):
            return None
        raise


def memory(size: Size, deadline: float) -> dict[str, Any]:
    """Bytes measured and counted against SimCLR's batch and MoCo's queue; what the deadline cut off is missing."""
    how = "torch.cuda.max_memory_allocated" if torch.cuda.is_available() else "what autograd keeps, and the state"
    found: dict[str, Any] = {"how": how, "simclr by batch": {}, "moco by queue": {}}
    recipes = [("simclr by batch", n, size.recipe("simclr", batch=n)) for n in size.batches]
    recipes += [("moco by queue", k, size.recipe("moco", queue=k, symmetric=False)) for k in size.queues]
    for name, number, recipe in recipes:
        if time.perf_counter() > deadline:
            break
        budget = Budget(size.network, 32, 1, 1.0, recipe.precision != "float32", recipe.batch, recipe.queue)
        counted = device_bytes(budget, recipe.method)
        predicted = sum(counted.values()) - counted["overhead"]  # of the libraries, which the allocator does not see
        found[name][str(number)] = {"measured": peak(recipe), "predicted": predicted}
    return found


class Enough(Exception):
    """The target is reached, or the time is up."""


def time_to_knn(recipe: Recipe, images: Images, target: float, deadline: float, compile: bool) -> dict[str, Any]:
    """Train until the kNN of all test images in all training images reaches `target`, or the time is up."""
    device = pick_device(None)
    there = images.to(device)
    start = time.perf_counter()
    found: dict[str, Any] = {"recipe": recipe.to_dict(), "knn": [], "wall_seconds": [], "training_seconds": []}

    def look(run: Run) -> None:
        dtype = DTYPES[run.precision]
        with torch.autocast(device.type, dtype, enabled=dtype != torch.float32):
            bank, asked = (extract(run.encoder, pixels) for pixels in (there.train, there.test))
        found["knn"].append(knn(bank, there.train_labels, asked, there.test_labels))
        found["wall_seconds"].append(time.perf_counter() - start)
        found["training_seconds"].append(sum(entry["seconds"] for entry in run.history))
        if found["knn"][-1] >= target or time.perf_counter() > deadline:
            raise Enough

    with suppress(Enough):
        train(recipe, images, device=device, progress=False, on_epoch=look, compile=compile)
    return {**found, "target": target, "reached": found["knn"][-1] >= target, "compiled": compile}


def training(size: Size, name: str, figures: dict[str, Any], end: float) -> dict[str, Any] | None:
    """`time_to_knn` of both methods in the time until `end`, each as it was found to be faster; None: no CIFAR-10."""
    images = default() if name == "full" else shapes(concepts=4, train=256, test=64)
    if name == "full" and not images.name.startswith("CIFAR-10"):
        return None
    found: dict[str, Any] = {"data": images.name}
    for left, method in zip((2, 1), METHODS, strict=True):
        allowed = (end - time.perf_counter()) / left
        rate = figures["variants"][method]["images_per_second"]
        compile_ = size.backend == "inductor" and rate.get("compiled", 0) > 1.05 * rate["eager"]
        epoch = len(images.train) / rate["compiled" if compile_ else "eager"]
        epochs = int(min(LONGEST, max(2, 0.7 * allowed / epoch)))  # the rest is for kNN after each
        torch.compiler.reset()
        recipe = size.recipe(method, epochs=epochs)
        found[method] = time_to_knn(recipe, images, size.target, time.perf_counter() + allowed, compile_)
        print(knn_line(method, found[method]), flush=True)
    return found


def knn_line(method: str, row: dict[str, Any]) -> str:
    """What came of one training, in words."""
    spent = f"{row['wall_seconds'][-1]:.0f} s, of which training {row['training_seconds'][-1]:.0f} s"
    if row["reached"]:
        return f"{method}: kNN {row['target']:.2f} after {len(row['knn'])} epochs and {spent}"
    return (
        f"{method}: kNN {row['target']:.2f} not reached; {max(row['knn']):.3f} after {len(row['knn'])} epochs, {spent}"
    )


def show_variants(method: str, row: dict[str, Any]) -> str:
    """Images a second of each variant, in a line."""
    rates = ", ".join(f"{name} {rate:,.0f}" for name, rate in row["images_per_second"].items())
    compiled = f"failed: {row['failed']}" if row["failed"] else f"{row['ratio']:.2f} times as fast as eager"
    return f"{method}, images/s: {rates}; compiled ({row['backend']}) {compiled}"


def measure(name: str, minutes: float) -> dict[str, Any]:
    """All parts, printed as they come."""
    start, size, device = time.perf_counter(), SIZES[name], pick_device(None)
    seconds = 60 * minutes
    figures: dict[str, Any] = {
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "torch": torch.__version__, "precision": half(), "size": name, "minutes": minutes,
    }  # fmt: skip
    figures["speed"] = speed(size, SHARES["speed"] * seconds)
    for method, row in figures["speed"].items():
        share = f"{row['fraction_of_limit']:.3f} of the limit, {row['limit_images_per_second']:,.0f}"
        print(f"{method}: {row['images_per_second']:,.0f} images/s, {share} ({row['precision']})", flush=True)
    figures["variants"] = {}
    for method in METHODS:
        row = figures["variants"][method] = variants(size, method, SHARES["variants"] * seconds / len(METHODS))
        print(show_variants(method, row), flush=True)
    figures["memory"] = memory(size, time.perf_counter() + SHARES["memory"] * seconds)
    for part in ("simclr by batch", "moco by queue"):
        for number, row in figures["memory"][part].items():
            measured = "too little" if row["measured"] is None else f"{row['measured'] / 2**20:,.0f} MB"
            print(f"memory, {part} {int(number):,}: {measured}, counted {row['predicted'] / 2**20:,.0f} MB", flush=True)
    figures["time_to_knn"] = training(size, name, figures, start + seconds)
    if figures["time_to_knn"] is None:
        print("time to kNN: left out, because CIFAR-10 is not here (run `minilab data`)")
    return {**figures, "seconds": time.perf_counter() - start}


def main(arguments: list[str] | None = None) -> None:
    """Measure, print, and write what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=SIZES, default="full", help="smallest: runs on a CPU, to see that it works")
    parser.add_argument("--minutes", type=float, default=8.0, help="in all (default: %(default)s)")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    options = parser.parse_args(arguments)
    if not 0 < options.minutes <= 600:
        parser.error(f"minutes is {options.minutes}; allowed: above 0, at most 600")
    if options.size == "full" and not torch.cuda.is_available():
        parser.error("size is 'full' and torch sees no GPU; allowed here: smallest")
    if options.json is not None:
        check_writable(options.json)
    figures = measure(options.size, options.minutes)
    if options.json is not None:
        with written_aside(options.json) as file:
            file.write(json.dumps(figures, indent=1).encode() + b"\n")


if __name__ == "__main__":
    main()
