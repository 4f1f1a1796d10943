"""The training loop. It knows nothing of either method: a method has a loss, and work after a step."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Generator, Tensor, nn
from tqdm import tqdm

from minilab import chunks
from minilab.alternatives import DCL, Oracle, Sigmoid, SimSiam, SimSiamNoStop
from minilab.checkpoints import load_checkpoint, refused, save_checkpoint
from minilab.compiled import Compiled
from minilab.data import Images
from minilab.distributed import agree, apart, average, rank, share_gradients, world_size
from minilab.evaluation import evaluate
from minilab.files import one_writer
from minilab.fit import check_fit
from minilab.moco import MoCo
from minilab.optimizers import build_optimizer, schedule
from minilab.precision import DTYPES, Scaler, choose_precision, keep_freed_memory
from minilab.probes import Probe
from minilab.recipe import Recipe
from minilab.shortage import explained
from minilab.simclr import SimCLR
from minilab.syncbn import synchronise
from minilab.views import Augmentation, two_views

METHODS: dict[str, type[SimCLR] | type[MoCo]] = {
    "simclr": SimCLR, "moco": MoCo,
    "dcl": DCL, "sigmoid": Sigmoid, "simsiam": SimSiam, "simsiam-no-stop": SimSiamNoStop, "oracle": Oracle,
}  # fmt: skip
LOOK = 20  # steps between looks at the loss: each look makes the device wait
SAVE = 60.0  # seconds between checkpoints within an epoch
MONITOR = {"bank": 10_000, "test": 2_000}  # images of the kNN after each epoch; the last epoch asks all


@dataclass
class Run:
    """A finished (or stopped) training run.

    `history`: one dict an epoch: `epoch, loss, loss_reference, knn, knn_bank, knn_test, spread,
    effective_rank, alignment, uniformity, seconds, images_per_second`, the probe's figures and the method's gauges.
    `curves`: one dict an epoch: what `minilab.probes` draws. `method`: the trained module; `encoder`: the
    part of it that is kept.
    """

    recipe: Recipe
    images: Images
    method: SimCLR | MoCo
    precision: str
    history: list[dict[str, float]] = field(default_factory=list)
    curves: list[dict[str, Any]] = field(default_factory=list)

    @property
    def encoder(self) -> nn.Module:
        """Images to features; what is evaluated and reused."""
        return self.method.encoder


def train(
    recipe: Recipe,
    images: Images,
    *,
    device: str | torch.device | None = None,
    checkpoint: str | Path | None = None,
    progress: bool = True,
    on_epoch: Callable[[Run], None] | None = None,
    compile: bool = False,
) -> Run:
    """Train `recipe` on `images` and return the `Run`.

    `device`: None takes the GPU if there is one. `checkpoint`: a file to resume from if it exists, and to save to
    after every epoch and every minute; it ends as the finished run. `on_epoch` is called with the run after each
    epoch. `compile`: as `minilab.compiled` says. Raises `ValueError` if recipe, images and checkpoint do not fit,
    `FloatingPointError` if loss or weights stop being finite, `MemoryError` saying what a step takes if there is too
    little memory, `OSError` if the checkpoint cannot be written or another process has it.
    In the processes of one group (see `minilab.distributed`) each takes its part of every batch, and the run is the
    one that a single process would make. The first measures, reports and saves.
    """
    mine = checkpoint if rank() == 0 else None  # only the first writes it
    # the caller's random state is left as it was
    with one_writer(mine), explained(recipe, images, build_method), torch.random.fork_rng(devices=[]):
        return _train(Trainer(recipe, images, pick_device(device), checkpoint, compile), progress, on_epoch)


def _train(trainer: Trainer, progress: bool, on_epoch: Callable[[Run], None] | None) -> Run:
    quiet = not progress or not trainer.first
    bar = tqdm(total=trainer.steps, initial=trainer.step, unit="step", disable=quiet, dynamic_ncols=True)
    with bar:
        while trainer.step < trainer.steps:
            trainer.run_epoch(bar)
            if on_epoch is not None:
                on_epoch(trainer.run)
    return trainer.run


def pick_device(device: str | torch.device | None = None) -> torch.device:
    """`device` itself, or the GPU if there is one, or else the CPU."""
    return torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))


def build_method(recipe: Recipe, channels: int = 3) -> SimCLR | MoCo:
    """The untrained method of a recipe; the seed decides its weights, and nothing else changes."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(recipe.seed)
        return METHODS[recipe.method](recipe, channels)


class Trainer:
    """A run in progress: what a checkpoint holds, and how one step follows another."""

    def __init__(
        self, recipe: Recipe, images: Images, device: torch.device, checkpoint: str | Path | None, compile: bool = False
    ) -> None:
        check_fit(recipe, images)
        keep_freed_memory()
        self.recipe, self.device = recipe, device
        self.first = rank() == 0  # of the processes
        self.checkpoint = Path(checkpoint) if checkpoint is not None else None
        count, channels = images.train.shape[:2]
        self.images = images.to(device)
        self.steps_per_epoch = count // recipe.batch  # the rest waits for the next epoch's order
        self.steps = recipe.epochs * self.steps_per_epoch
        method = build_method(recipe, channels).to(device)
        method.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.forward: nn.Module = method
        if world_size() > 1:
            if recipe.bn_groups == 1:
                synchronise(method)
            self.forward = share_gradients(method)
        self.compiled: Compiled | nullcontext[None] = Compiled(method) if compile else nullcontext()
        self.optimizer = build_optimizer(method, recipe)
        self.views_rng = Generator().manual_seed(recipe.seed)
        torch.manual_seed(recipe.seed)  # for what a method draws, such as MoCo's shuffle
        self.losses = torch.zeros(self.steps_per_epoch, device=device)  # of this epoch
        self.probe = Probe(self.images, self.steps_per_epoch)
        self.step, self.seconds = 0, 0.0
        self.run = Run(recipe, images, method, recipe.precision)
        if self.checkpoint is not None and self.checkpoint.exists():
            self._load(self.checkpoint)
        else:
            size = (images.train.shape[2], images.train.shape[3])
            self.run.precision = agree(choose_precision(recipe.precision, recipe.encoder, channels, size, device))
            self.scaler = Scaler(device.type, self.run.precision)

    def run_epoch(self, bar: tqdm) -> None:
        """The steps that are left of this epoch, then evaluation, history and checkpoint."""
        self.run.method.train()
        epoch, first = divmod(self.step, self.steps_per_epoch)
        order = self._order(epoch)
        clock = saved = time.perf_counter()
        for index in range(first, self.steps_per_epoch):
            self.losses[index] = self.take_step(order[index])
            if self.first:
                with apart():
                    self.probe.after_step(self.run.method, self.step)
            bar.update()
            last = index + 1 == self.steps_per_epoch
            if last or (index + 1) % LOOK == 0:
                self._look(index, bar)
                now = time.perf_counter()
                self.seconds, clock = self.seconds + now - clock, now
                if self.checkpoint is not None and not last and now - saved > SAVE:
                    self._check_weights()
                    self.save()
                    saved = now
        self._end_epoch()
        self._look(index, bar)

    def take_step(self, chosen: Tensor) -> Tensor:
        """One update on the images `chosen`; returns the loss, still on the device."""
        recipe, method = self.recipe, self.run.method
        rate = recipe.peak_learning_rate * self._factor(self.step)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        if isinstance(method, Oracle):
            method.labels = self.images.train_labels.index_select(0, chosen)
        dtype = DTYPES[self.run.precision]
        batch, part = self.images.train.index_select(0, chosen), (rank(), world_size())
        views = two_views(batch, self.views_rng, Augmentation(crop=recipe.crop), part)
        autocast = torch.autocast(self.device.type, dtype, enabled=dtype != torch.float32)
        with self.compiled:
            loss = chunks.backward(self.forward, views, recipe, self.scaler.scale, autocast)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)
        method.after_step()
        self.step += 1
        return average(loss)

    def _factor(self, step: int) -> float:
        return schedule(step, self.steps, self.recipe.warmup_epochs * self.steps_per_epoch)

    def _order(self, epoch: int) -> Tensor:
        """Image numbers of each step of an epoch (steps, batch): a shuffle that seed and epoch decide."""
        generator = Generator().manual_seed(self.recipe.seed * 1_000_003 + epoch)
        order = torch.randperm(len(self.images.train), generator=generator)
        used = self.steps_per_epoch * self.recipe.batch
        return order[:used].view(self.steps_per_epoch, self.recipe.batch).to(self.device)

    def _look(self, index: int, bar: tqdm) -> None:
        """Read the losses so far: stop if one is not finite, else show the newest beside chance."""
        so_far = self.losses[: index + 1]
        finite = so_far.isfinite()
        if not bool(finite.all()):
            broken = self.step - index - 1 + int((~finite).int().argmax())
            raise FloatingPointError(f"the loss is not finite at step {broken} of {self.run.recipe}")
        shown = {"loss": f"{float(so_far[-LOOK:].mean()):.2f} (chance {self.run.method.chance():.2f})"}
        if self.run.history:
            shown["kNN"] = f"{self.run.history[-1]['knn']:.3f}"
        for name, value in self.run.method.gauges().items():
            if value < 1:  # a queue that is not yet full: until then the loss is too low
                shown[name] = f"{value:.0%}"
        bar.set_description(f"{self.recipe.method} epoch {len(self.run.history)}/{self.recipe.epochs}", refresh=False)
        bar.set_postfix(shown, refresh=False)

    def _check_weights(self) -> None:
        """Stop if a step has spoilt the weights: its own loss, computed before, may still be finite."""
        finite = torch.stack([values.isfinite().all() for values in self.run.method.state_dict().values()])
        if not bool(finite.all()):
            raise FloatingPointError(f"the weights are not finite after step {self.step - 1} of {self.run.recipe}")

    def _end_epoch(self) -> None:
        self._check_weights()
        seconds, self.seconds = self.seconds, 0.0
        entry: dict[str, Any] = {}
        curve: dict[str, Any] = {}
        if self.first:
            with apart():
                entry, curve = self._measure(seconds)
        self.run.history.append(agree(entry))
        self.run.curves.append(agree(curve))
        if self.checkpoint is not None:
            self.save()

    def _measure(self, seconds: float) -> tuple[dict[str, Any], dict[str, Any]]:
        """The entry of the history and the curve of the epoch that has ended."""
        last = self.step == self.steps
        monitor = {"bank": None, "test": None} if last else MONITOR
        figures, curve = self.probe.end_epoch(self.run.method, self.step, self.losses)
        entry = {
            "epoch": len(self.run.history) + 1,
            "loss": float(self.losses.double().mean()),
            "loss_reference": self.run.method.chance(),
            **figures,
            **evaluate(self.run.encoder, self.images, **monitor),
            "knn_bank": len(self.images.train[: monitor["bank"]]),
            "knn_test": len(self.images.test[: monitor["test"]]),
            **self.run.method.gauges(),
            "seconds": round(seconds, 3),
            "images_per_second": round(self.steps_per_epoch * self.recipe.batch / seconds, 1),
        }
        return entry, curve

    def save(self) -> None:
        """Write the whole state to the checkpoint: another process goes on from it to the same numbers."""
        assert self.checkpoint is not None
        if not self.first:
            return
        save_checkpoint(
            self.checkpoint,
            {
                "recipe": self.recipe.to_dict(),
                "data": self.images.fingerprint,
                "precision": self.run.precision,
                "step": self.step,
                "seconds": self.seconds,
                "history": self.run.history,
                "curves": self.run.curves,
                "probe": self.probe.state,
                "losses": self.losses,
                "method": self.run.method.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "scaler": self.scaler.state_dict(),
                "views_rng": self.views_rng.get_state(),
                "global_rng": torch.get_rng_state(),
            },
        )

    def _load(self, path: Path) -> None:
        state = load_checkpoint(path, self.recipe, self.images.fingerprint)
        with refused(path):
            self.run.method.load_state_dict(state["method"])
            self.optimizer.load_state_dict(state["optimizer"])
            self.views_rng.set_state(state["views_rng"])
            torch.set_rng_state(state["global_rng"])
            self.losses.copy_(state["losses"])
            self.step, self.seconds = state["step"], state["seconds"]
            self.run.history, self.run.curves = state["history"], state["curves"]
            self.run.precision = state["precision"]
            self.probe.load(state["probe"])
            self.scaler = Scaler(self.device.type, self.run.precision)
            self.scaler.load_state_dict(state["scaler"])
