"""SimCLR's training speed here, through lightly, and through torchvision with a DataLoader, in one run.

All three train the same encoder and head at the same batch on the same images with the same strengths of
augmentation; they differ in who makes the views and the loss. Each peer is first tried at several numbers of
threads and of DataLoader workers, and then runs at its best. The ratios printed are medians over rounds in
which the three take turns, so that a slow spell of the machine hits all alike.

Measured on 2026-11-30, two cores of an AMD EPYC, torch 2.14.1, lightly 1.6.0, torchvision 0.29.1, encoder "tiny",
batch 256, five rounds: minilab 1,766 images/s, lightly 759 (2.3 times), torchvision 991 (1.8 times).

    python -m venv peers && peers/bin/pip install -r benchmarks/requirements.txt .
    peers/bin/python benchmarks/peers.py --json peers.json
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from lightly.loss import NTXentLoss
from lightly.transforms import SimCLRTransform
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms

from minilab import Recipe
from minilab.data import shapes
from minilab.encoder import build_encoder, projection_head
from minilab.files import check_writable, written_aside
from minilab.losses import nt_xent
from minilab.training import Trainer, pick_device

TRIAL, STEPS, ROUNDS = 10, 20, 5


class Pairs(Dataset):
    """PIL images, each as two views made by `transform`."""

    def __init__(self, images: Tensor, transform: Any) -> None:
        self.images, self.transform = images, transform
        self.to_pil = transforms.ToPILImage()

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> Any:
        return self.transform(self.to_pil(self.images[index]))


class TwoCrops:
    """torchvision's own pipeline, twice."""

    def __init__(self, size: int, crop: float) -> None:
        jitter = transforms.ColorJitter(0.4, 0.4, 0.4, 0.1)
        self.transform = transforms.Compose(
            [
                transforms.RandomResizedCrop(size, scale=(crop, 1)),
                transforms.RandomHorizontalFlip(),
                transforms.RandomApply([jitter], p=0.8),
                transforms.RandomGrayscale(p=0.2),
                transforms.ToTensor(),
                transforms.Normalize([0.5] * 3, [0.5] * 3),
            ]
        )

    def __call__(self, image: Any) -> list[Tensor]:
        """Two views of a PIL image."""
        return [self.transform(image), self.transform(image)]


class Peer:
    """A training loop fed by a DataLoader."""

    def __init__(self, recipe: Recipe, images: Tensor, transform: Any, criterion: Any, workers: int) -> None:
        torch.manual_seed(0)
        encoder = build_encoder(recipe.encoder)
        self.device = pick_device(None)
        self.model = nn.Sequential(encoder, projection_head(encoder.features, recipe.dim)).to(self.device)
        self.model.to(memory_format=torch.channels_last)
        self.criterion = criterion
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.06, momentum=0.9, weight_decay=5e-4)
        self.loader = DataLoader(
            Pairs(images, transform),
            batch_size=recipe.batch,
            shuffle=True,
            drop_last=True,
            num_workers=workers,
            persistent_workers=workers > 0,
        )
        self.batches = self._forever()

    def _forever(self) -> Iterator[list[Tensor]]:
        while True:
            yield from self.loader

    def step(self) -> None:
        """One update."""
        first, second = (view.to(self.device) for view in next(self.batches)[:2])
        z = self.model(torch.cat([first, second])).chunk(2)
        loss = self.criterion(*z)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()


class Ours:
    """minilab's own step."""

    def __init__(self, recipe: Recipe, images: Any) -> None:
        self.trainer = Trainer(recipe, images, pick_device(None), checkpoint=None)
        self.trainer.run.method.train()
        self.order = torch.randperm(len(images.train)).split(recipe.batch)[:-1]

    def step(self) -> None:
        """One update."""
        self.trainer.take_step(self.order[self.trainer.step % len(self.order)].to(self.trainer.device))


def speed(peer: Any, batch: int, steps: int) -> float:
    """Images a second over `steps` steps."""
    start = time.perf_counter()
    for _ in range(steps):
        peer.step()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return batch * steps / (time.perf_counter() - start)


def at_its_best(make: Any, batch: int, cores: int) -> tuple[Any, dict[str, int], dict[str, float]]:
    """The fastest of several numbers of threads and workers: the peer, its setting, and all that were tried."""
    tried: dict[str, float] = {}
    best: tuple[float, Any, dict[str, int]] | None = None
    for threads, workers in itertools.product(sorted({1, cores}), sorted({0, 1, cores, 2 * cores})):
        torch.set_num_threads(threads)
        peer = make(workers)
        speed(peer, batch, 3)
        found = speed(peer, batch, TRIAL)
        tried[f"{threads} threads, {workers} workers"] = round(found, 1)
        if best is None or found > best[0]:
            best = (found, peer, {"threads": threads, "workers": workers})
    assert best is not None
    return best[1], best[2], tried


def compare(batch: int, encoder: str) -> dict[str, Any]:
    """Figures of all three, the setting of each peer, and the ratios."""
    cores = torch.get_num_threads()
    images = shapes(train=max(10_000, 4 * batch), test=16)
    recipe = Recipe("simclr", encoder, epochs=1000, batch=batch, precision="float32")
    size = images.train.shape[-1]
    by_lightly = SimCLRTransform(
        input_size=size, cj_strength=0.5, cj_hue=0.2, min_scale=recipe.crop, gaussian_blur=0.0,
        normalize={"mean": [0.5] * 3, "std": [0.5] * 3},
    )  # fmt: skip
    makers = {
        "lightly": lambda workers: Peer(recipe, images.train, by_lightly, NTXentLoss(recipe.temperature), workers),
        "torchvision": lambda workers: Peer(
            recipe,
            images.train,
            TwoCrops(size, recipe.crop),
            lambda a, b: nt_xent(torch.cat([a, b]), recipe.temperature),
            workers,
        ),
    }
    peers: dict[str, tuple[Any, dict[str, int]]] = {}
    tried = {}
    for name, make in makers.items():
        peer, setting, tried[name] = at_its_best(make, batch, cores)
        peers[name] = (peer, setting)
        print(f"{name}: {tried[name]}", flush=True)
    peers["minilab"] = (Ours(recipe, images), {"threads": cores, "workers": 0})
    found: dict[str, list[float]] = {name: [] for name in peers}
    for _ in range(ROUNDS):
        for name, (peer, setting) in peers.items():
            torch.set_num_threads(setting["threads"])
            speed(peer, batch, 2 + 2 * setting["workers"])  # batches that its workers made while the others ran
            found[name].append(speed(peer, batch, STEPS))
    ours = found["minilab"]
    return {
        "images_per_second": {name: statistics.median(values) for name, values in found.items()},
        "setting": {name: setting for name, (_, setting) in peers.items()},
        "tried": tried,
        "ratio": {
            name: statistics.median(a / b for a, b in zip(ours, found[name], strict=True)) for name in makers
        },
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--encoder", default="tiny")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    options = parser.parse_args()
    if options.json is not None:
        check_writable(options.json)
    figures = compare(options.batch, options.encoder)
    for name, value in figures["images_per_second"].items():
        ratio = f"minilab is {figures['ratio'][name]:.2f} times as fast" if name in figures["ratio"] else ""
        print(f"{name:12s} {value:7,.0f} images/s  {figures['setting'][name]}  {ratio}")
    if options.json is not None:
        with written_aside(options.json) as file:
            file.write(json.dumps(figures, indent=1).encode() + b"\n")


if __name__ == "__main__":
    main()
