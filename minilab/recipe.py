"""One frozen, validated description of a run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from minilab.checks import kind, number, one_of, temperature, whole
from minilab.encoder import ENCODERS

METHODS = ("simclr", "moco")
ALTERNATIVES = ("dcl", "sigmoid", "simsiam", "simsiam-no-stop", "oracle")  # SimCLR with another loss
CACHED = ("simclr", "dcl", "moco")  # nothing outside the embeddings has a part in their loss
NORMS = ("batch", "group")
PRECISIONS = ("auto", "float32", "bfloat16", "float16")
OPTIMIZERS = ("sgd", "lars")
ACCUMULATIONS = ("gradcache", "naive")


@dataclass(frozen=True)
class Recipe:
    """Everything that decides a run besides its images. A wrong value raises `ValueError` when it is made.

    `method`: "simclr" or "moco", or one of `minilab.alternatives`. `encoder`: a name in `minilab.encoder.ENCODERS`.
    `epochs`: passes over the images. `batch`: images a step (each gives two views).
    `temperature`: divides the cosines (tau). `dim`: length of an embedding.
    `queue`, `momentum`: MoCo's K and m; SimCLR has neither and ignores them.
    `symmetric`: MoCo only: each view is the query once, and the two losses are averaged (MoCo v3).
    `bn_groups`: virtual devices, each with batch-norm statistics of its own; in MoCo the keys are
    shuffled among them (ShuffleBN, MoCo v1 section 3.3). 1 = one group, where a shuffle does nothing.
    `shuffle`: whether they are; off, only to see what then happens. `norm`: the encoder's layers, "batch" or "group".
    `head_norm`: whether the head ends in a batch norm without weights, as in SimSiam and MoCo v3.
    `chunk`: images whose activations are in memory at once; None = the whole batch. Batch norm then
    sees one chunk at a time. `accumulation`: how chunks make a step: "gradcache", one loss over the
    whole batch (arXiv 2101.06983), or "naive", a loss for each chunk, averaged. MoCo's loss is the same in both.
    `learning_rate`: the peak, reached after `warmup_epochs`, then cosine to 0.
    None means 0.06 * sqrt(batch / 256): the square-root rule of SimCLR's appendix B.1.
    `weight_decay`: not applied to biases and norm layers under LARS. `optimizer`: "sgd" or "lars".
    `crop`: smallest share of the image's area that a random crop may keep.
    `precision`: of the encoder; "auto" measures at the start whether autocast is faster here.
    """

    method: str
    encoder: str = "tiny"
    epochs: int = 10
    batch: int = 256
    temperature: float = 0.1
    dim: int = 128
    queue: int = 4096
    momentum: float = 0.99
    symmetric: bool = False
    bn_groups: int = 1
    shuffle: bool = True
    norm: str = "batch"
    head_norm: bool = False
    chunk: int | None = None
    accumulation: str = "gradcache"
    learning_rate: float | None = None
    warmup_epochs: float = 1.0
    weight_decay: float = 5e-4
    optimizer: str = "sgd"
    crop: float = 0.2
    precision: str = "auto"
    seed: int = 0

    def __post_init__(self) -> None:
        one_of("method", self.method, METHODS + ALTERNATIVES)
        one_of("norm", self.norm, NORMS)
        one_of("encoder", self.encoder, tuple(ENCODERS))
        one_of("precision", self.precision, PRECISIONS)
        one_of("optimizer", self.optimizer, OPTIMIZERS)
        one_of("accumulation", self.accumulation, ACCUMULATIONS)
        whole("epochs", self.epochs, 1, 1_000_000)
        whole("batch", self.batch, 2, 1_000_000)
        whole("dim", self.dim, 1, 65_536)
        whole("queue", self.queue, 1, 100_000_000)
        whole("bn_groups", self.bn_groups, 1, self.batch // 2)
        whole("seed", self.seed, 0, 2**31 - 1)
        temperature(self.temperature)
        number("momentum", self.momentum, 0.0, 1.0)
        number("warmup_epochs", self.warmup_epochs, 0.0, float(self.epochs))
        number("weight_decay", self.weight_decay, 0.0, 1.0)
        number("crop", self.crop, 0.0, 1.0, open_low=True)
        if self.learning_rate is not None:
            number("learning_rate", self.learning_rate, 0.0, 1000.0)
        for name in ("symmetric", "shuffle", "head_norm"):
            kind(name, getattr(self, name), bool, "True or False")
        if self.batch % self.bn_groups:
            raise ValueError(f"bn_groups is {self.bn_groups}; allowed: a divisor of batch ({self.batch})")
        if self.chunk is not None:
            whole("chunk", self.chunk, 2, self.batch)
            if self.method not in CACHED:
                raise ValueError(f"chunk is {self.chunk}; allowed: None for {self.method}")
            if self.bn_groups != 1:
                raise ValueError(f"bn_groups is {self.bn_groups}; allowed: 1 with a chunk, which is a group itself")
            if self.batch % self.chunk == 1:
                raise ValueError(f"chunk is {self.chunk}; allowed: one that leaves no single image of {self.batch}")

    @property
    def peak_learning_rate(self) -> float:
        """The learning rate at the end of the warm-up."""
        if self.learning_rate is not None:
            return self.learning_rate
        return 0.06 * math.sqrt(self.batch / 256)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as a record stores them."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Recipe:
        """The recipe of a record. An unknown or missing field raises `ValueError` naming it."""
        kind("recipe", values, Mapping, "a dictionary of its fields")
        known = [field.name for field in fields(cls)]
        for name in values:
            if name not in known:
                raise ValueError(f"recipe has the unknown field {name!r}; allowed: {', '.join(known)}")
        if "method" not in values:
            raise ValueError(f"recipe has no field 'method'; allowed: {', '.join(METHODS)}")
        return cls(**values)
