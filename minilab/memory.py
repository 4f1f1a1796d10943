"""What a training step takes in memory: counted on the real networks, and by arithmetic for larger ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks


def activation_bytes(method: nn.Module, views: Tensor) -> int:
    """Bytes that a forward pass of `views` keeps for its backward pass, weights and buffers not counted.

    Counted as autograd stores each tensor, every piece of memory once. The module is left as it was,
    but for the statistics of batch norm, and for MoCo's keys that wait to be pushed, which are dropped.
    """
    own = {tensor.untyped_storage().data_ptr() for tensor in (*method.parameters(), *method.buffers())}
    kept: dict[int, int] = {}

    def note(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with saved_tensors_hooks(note, lambda tensor: tensor):
        loss = method(views)  # alive until here, so no two of its tensors share an address
    waiting = getattr(method, "waiting", None)
    if waiting is not None:
        waiting.clear()
    del loss
    return sum(kept.values())


def peak_saved_bytes(work: Callable[[], Any], module: nn.Module) -> tuple[Any, int]:
    """What `work()` returns, and the most bytes that autograd kept at any moment in it, `module`'s own not counted.

    A piece of memory counts from when it is first kept until the last graph that keeps it is gone.
    """
    own = {tensor.untyped_storage().data_ptr() for tensor in (*module.parameters(), *module.buffers())}
    holders: dict[int, int] = {}
    now = most = 0

    class Held:
        """A kept tensor, which says when it is let go."""

        def __init__(self, tensor: Tensor) -> None:
            nonlocal now, most
            self.tensor, storage = tensor, tensor.untyped_storage()
            self.place, self.size = storage.data_ptr(), storage.nbytes()
            holders[self.place] = holders.get(self.place, 0) + 1
            if holders[self.place] == 1 and self.place not in own:
                now += self.size
                most = max(most, now)

        def __del__(self) -> None:
            nonlocal now
            holders[self.place] -= 1
            if holders[self.place] == 0 and self.place not in own:
                now -= self.size

    with saved_tensors_hooks(Held, lambda held: held.tensor):
        result = work()
    return result, most


@dataclass(frozen=True)
class Network:
    """A residual network by its numbers: enough to count its weights and what it keeps of a view.

    `blocks`, `widths`: per stage. `expansion`: 1 for two 3 x 3 convolutions a block, 4 for bottlenecks, whose output
    has four times their width. `stem`: side of its kernel and its stride. `pool`: a 3 x 3 pooling of stride 2 after it.
    """

    blocks: tuple[int, ...]
    widths: tuple[int, ...]
    expansion: int
    stem: tuple[int, int]
    pool: bool

    @property
    def features(self) -> int:
        """Length of the feature vector."""
        return self.widths[-1] * self.expansion

    def convolutions(self, size: int) -> list[tuple[int, int, int, int, bool]]:
        """Of an image of `size` x `size`: channels in, channels out, kernel side, output side, on a shortcut or not."""
        kernel, stride = self.stem
        side, channels = _halved(size, stride), self.widths[0]
        found = [(3, channels, kernel, side, False)]
        side = _halved(side, 2 if self.pool else 1)
        for stage, (count, width) in enumerate(zip(self.blocks, self.widths, strict=True)):
            for block in range(count):
                step = 2 if stage > 0 and block == 0 else 1
                out, after = width * self.expansion, _halved(side, step)
                if self.expansion == 1:
                    path = [(channels, width, 3, after), (width, width, 3, after)]
                else:
                    path = [(channels, width, 1, side), (width, width, 3, after), (width, out, 1, after)]
                found += [(*convolution, False) for convolution in path]
                if step != 1 or channels != out:
                    found.append((channels, out, 1, after, True))
                side, channels = after, out
        return found

    def weights(self) -> int:
        """Numbers in the encoder: convolutions, and two a channel for batch norm."""
        return sum(inside * out * kernel**2 + 2 * out for inside, out, kernel, *_ in self.convolutions(32))

    def kept(self, size: int) -> int:
        """Numbers that a forward pass of one view keeps for the backward pass.

        The view; each convolution's output, and what becomes of it after batch norm and ReLU, but on a shortcut, where
        it is added at once; and what the pooling gives, with the place of each maximum (8 bytes: two numbers).
        """
        kept = 3 * size**2 + sum((2 - last) * out * side**2 for _, out, _, side, last in self.convolutions(size))
        if self.pool:
            kept += 3 * self.widths[0] * _halved(_halved(size, self.stem[1]), 2) ** 2
        return kept


NETWORKS = {
    "tiny": Network((1, 1, 1, 1), (16, 32, 64, 256), 1, (3, 2), False),
    "resnet18, small images": Network((2, 2, 2, 2), (64, 128, 256, 512), 1, (3, 1), False),
    "resnet18": Network((2, 2, 2, 2), (64, 128, 256, 512), 1, (7, 2), True),
    "resnet50": Network((3, 4, 6, 3), (64, 128, 256, 512), 4, (7, 2), True),
}
OVERHEAD = 10**9  # bytes that a GPU's own libraries take, roughly: an assumption, not a count
USABLE = 0.9  # of a device's memory: the rest is for what lives within a layer, and for gaps


@dataclass(frozen=True)
class Budget:
    """What there is, and what is wanted of it. A wrong value raises `ValueError`.

    `network`: a name in `NETWORKS`. `size`: side of the images in pixels. `devices`: accelerators of `gigabytes`
    (10^9 bytes) each. `half`: activations in 2 bytes a number, not 4; weights stay in 4. `batch`: images a step,
    over all devices. `queue`, `dim`: MoCo's K, and the length of an embedding.
    """

    network: str
    size: int
    devices: int
    gigabytes: float
    half: bool
    batch: int
    queue: int
    dim: int = 128

    def __post_init__(self) -> None:
        if self.network not in NETWORKS:
            raise ValueError(f"network is {self.network!r}; allowed: {', '.join(NETWORKS)}")
        for name, low, high in (("size", 8, 1024), ("devices", 1, 4096), ("batch", 2, 2**20), ("queue", 1, 2**24),
                                ("dim", 1, 65_536)):  # fmt: skip
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
                raise ValueError(f"{name} is {value!r}; allowed: a whole number from {low} to {high}")
        if not 0 < self.gigabytes <= 10_000:
            raise ValueError(f"gigabytes is {self.gigabytes!r}; allowed: above 0, at most 10,000")


def device_bytes(budget: Budget, method: str, batch: int | None = None) -> dict[str, int]:
    """Bytes on each device in training, by kind; `batch` instead of the budget's, if given.

    Kinds: `weights` (with gradients and SGD's momentum; MoCo's key encoder too), `activations` (two views of an
    image in SimCLR, one in MoCo), `logits`, `queue`, `overhead`. Left out: what lives for a moment within a layer.
    """
    batch = budget.batch if batch is None else batch
    network = NETWORKS[budget.network]
    images = -(-batch // budget.devices)  # on one device, rounded up
    head = network.features * (network.features + 1) + (network.features + 1) * budget.dim
    weights = 4 * (network.weights() + head)
    view = network.kept(budget.size) * (2 if budget.half else 4)
    if method == "simclr":
        kinds = {
            "weights": 3 * weights,
            "activations": 2 * images * view,
            "logits": 8 * 2 * images * 2 * batch,
            "queue": 0,
        }
    elif method == "moco":
        kinds = {
            "weights": 4 * weights,
            "activations": images * view,
            "logits": 8 * images * (budget.queue + 1),
            "queue": 4 * budget.queue * budget.dim,
        }
    else:
        raise ValueError(f"method is {method!r}; allowed: simclr, moco")
    return {**kinds, "overhead": OVERHEAD}


def largest_batch(budget: Budget, method: str) -> int:
    """The most images a step that fit in `USABLE` of each device, a multiple of their number; 0 if none does."""
    room, low, high = USABLE * budget.gigabytes * 10**9, 0, 2**20
    while low < high:  # images on a device; bisection, because logits grow with the square
        middle = (low + high + 1) // 2
        if sum(device_bytes(budget, method, middle * budget.devices).values()) <= room:
            low = middle
        else:
            high = middle - 1
    return low * budget.devices


ENOUGH = 256  # images a step from which SimCLR is within about two points of its largest batch (2002.05709, table B.1)


def recommend(budget: Budget) -> tuple[str, list[str]]:
    """A place to start, "simclr", "moco" or "neither", and the reasons in words. A rule of thumb, to be tried out."""
    room = USABLE * budget.gigabytes * 10**9
    needs = {method: sum(device_bytes(budget, method).values()) for method in ("simclr", "moco")}
    most = largest_batch(budget, "simclr")
    age = -(-budget.queue // budget.batch)
    spared = (needs["simclr"] - needs["moco"]) / 1e9
    if needs["simclr"] <= room and budget.batch >= ENOUGH:
        return "simclr", [
            f"SimCLR fits at {budget.batch:,} images a step: {2 * budget.batch - 2:,} fresh negatives for each anchor.",
            "It is the simpler system: one encoder, no queue, nothing stale.",
            f"MoCo would free {spared:.1f} GB a device, if memory is wanted for other things.",
        ]
    if needs["moco"] <= room:
        why = (
            f"SimCLR fits at {budget.batch:,} images a step, but has only {2 * budget.batch - 2:,} negatives."
            if needs["simclr"] <= room
            else f"SimCLR does not fit at {budget.batch:,} images a step; {most:,} is the most."
        )
        return "moco", [
            why,
            f"MoCo fits, with {budget.queue:,} negatives that are up to {age:,} steps old.",
            f"Choose m so that 1 / (1 - m) is well above {age:,}.",
        ]
    return "neither", [
        f"Neither fits at {budget.batch:,} images a step.",
        f"The most that fits: {most:,} for SimCLR, {largest_batch(budget, 'moco'):,} for MoCo.",
        "Use a smaller batch, half precision, smaller images, or chunks (GradCache).",
    ]


def _halved(side: int, stride: int) -> int:
    return -(-side // stride)  # as a padded convolution of this stride rounds
