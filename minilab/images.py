"""A labelled set of images in two splits: what every run in this lab is trained and measured on."""

from __future__ import annotations

import dataclasses
import hashlib
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from minilab import checks


@dataclass(frozen=True, eq=False)
class Images:
    """Images and labels of a training and a test split, checked when they are put together.

    Args:
        name: what to call the data on a page, for example "CIFAR-10".
        train: uint8 pixels, 0 to 255, shape (N, C, H, W).
        train_labels: int64 class numbers from 0, shape (N,).
        test, test_labels: the same for the test split, shapes (M, C, H, W) and (M,).
        classes: one name for each class number.

    Raises:
        ValueError: a field has the wrong type, shape or content; the message names the field.
    """

    name: str
    train: Tensor
    train_labels: Tensor
    test: Tensor
    test_labels: Tensor
    classes: tuple[str, ...]

    def __post_init__(self) -> None:
        checks.kind("name", self.name, str, "a text")
        if self.classes == ():
            raise ValueError("classes is empty; allowed: one name or more")
        if not isinstance(self.classes, tuple) or not all(isinstance(name, str) for name in self.classes):
            checks.refuse("classes", self.classes, "a tuple of names")
        for split in ("train", "test"):
            _check_split(split, getattr(self, split), getattr(self, f"{split}_labels"), len(self.classes))
        if self.train.shape[1:] != self.test.shape[1:]:
            raise ValueError(
                f"test has images of shape {tuple(self.test.shape[1:])}; "
                f"allowed: {tuple(self.train.shape[1:])}, as in train"
            )

    @cached_property
    def fingerprint(self) -> str:
        """The first 16 hex digits of a SHA-256 over the pixels and labels of both splits.

        It changes with any pixel, any label and any order, and not with the device: a recorded run keeps it
        to say which data it saw. About .2 s for all of CIFAR-10, once.
        """
        digest = hashlib.sha256()
        for tensor in (self.train, self.train_labels, self.test, self.test_labels):
            digest.update(repr(tuple(tensor.shape)).encode())
            digest.update(tensor.cpu().contiguous().numpy().data)
        return digest.hexdigest()[:16]

    def to(self, device: str | torch.device) -> Images:
        """The same images on another device, such as "cuda". Raises `ValueError` if it is no name of one."""
        checks.device(device)
        tensors = ("train", "train_labels", "test", "test_labels")
        return dataclasses.replace(self, **{field: getattr(self, field).to(device) for field in tensors})

    def subset(self, train: int, test: int | None = None) -> Images:
        """The first `train` training images, and the first `test` test images (all of them if None).

        Both data sets of this lab come in shuffled order, so the first n are a random sample.

        Raises:
            ValueError: fewer than 1 image is asked for, or more than there are.
        """
        test = len(self.test) if test is None else test
        for field, asked, there in (("train", train, len(self.train)), ("test", test, len(self.test))):
            if not isinstance(asked, int) or isinstance(asked, bool) or not 1 <= asked <= there:
                raise ValueError(f"{field} is {asked}; allowed: 1 to {there}, the {field} images of {self.name}")
        return dataclasses.replace(
            self,
            train=self.train[:train],
            train_labels=self.train_labels[:train],
            test=self.test[:test],
            test_labels=self.test_labels[:test],
        )


def _check_split(split: str, pixels: Tensor, labels: Tensor, classes: int) -> None:
    """Raise a ValueError, naming the field, unless a split's pixels and labels belong together."""
    for field, tensor in ((split, pixels), (f"{split}_labels", labels)):
        checks.kind(field, tensor, Tensor, "a tensor")
    if pixels.dtype != torch.uint8 or pixels.ndim != 4 or pixels.numel() == 0:
        raise ValueError(
            f"{split} is {pixels.dtype} of shape {tuple(pixels.shape)}; "
            "allowed: torch.uint8 of shape (N, C, H, W), not empty"
        )
    if labels.dtype != torch.int64 or labels.shape != pixels.shape[:1]:
        raise ValueError(
            f"{split}_labels is {labels.dtype} of shape {tuple(labels.shape)}; "
            f"allowed: torch.int64 of shape ({len(pixels)},), one label an image"
        )
    low, high = int(labels.min()), int(labels.max())
    if low < 0 or high >= classes:
        raise ValueError(
            f"{split}_labels has the label {low if low < 0 else high}; "
            f"allowed: 0 to {classes - 1}, for {classes} classes"
        )
