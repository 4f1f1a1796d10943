"""What explains a run's kNN, measured on fixed test images at every epoch without changing the run.

For MoCo: how well the keys of different ages agree (queue consistency) and how far the key encoder lags.
For all: the spread of the loss, how often training's own question is answered, and a map in two dimensions.
"""

from __future__ import annotations

import base64
from typing import Any

import torch
from torch import Generator, Tensor, nn

from minilab import checks
from minilab.chunks import statistics_kept
from minilab.data import Images
from minilab.evaluation import extract
from minilab.losses import normalize
from minilab.moco import MoCo
from minilab.simclr import SimCLR
from minilab.views import plain_views, two_views

AGES = (1, 4, 16, 64, 256)  # in steps
KEYS = 256  # test images whose keys are compared
POINTS = 300  # test images on the map
PRETEXT = 256  # training images that are asked training's own question
REACH = 0.8  # the map's largest coordinate; one of 127 steps is 0.0063


class Probe:
    """Measurements of one run. `state` goes into the checkpoint, so that a resumed run measures the same."""

    def __init__(self, images: Images, steps_per_epoch: int) -> None:
        checks.kind("images", images, Images, "an Images")
        checks.whole("steps_per_epoch", steps_per_epoch, 1)
        self.views = plain_views(images.test[:KEYS])
        self.shown = images.test[:POINTS]
        self.asked = two_views(images.train[:PRETEXT], Generator().manual_seed(0))  # (2n, C, H, W)
        self.steps_per_epoch = steps_per_epoch
        self.keys: dict[int, Tensor] = {}  # step: the keys (n, dim) of the images then
        self.points: Tensor | None = None  # the last map (n, 2), which the next is turned towards

    def after_step(self, method: SimCLR | MoCo, step: int) -> None:
        """Keep today's keys if the end of an epoch, some of `AGES` ahead, will ask for them."""
        _check(method)
        checks.whole("step", step, 0)
        if isinstance(method, MoCo) and any((step + age) % self.steps_per_epoch == 0 for age in AGES):
            self.keys[step] = self._embed(method.key_encoder)
            self.keys = {then: keys for then, keys in self.keys.items() if then >= step - AGES[-1]}

    def end_epoch(self, method: SimCLR | MoCo, step: int, losses: Tensor) -> tuple[dict[str, float], dict[str, Any]]:
        """Figures for the history, and this epoch's curve and map.

        Figures: `loss_std` over the epoch's steps; `embedding_cosine`, the mean cosine between the
        embeddings of two images, 1 where all are one point: consistency says something only above it;
        `pretext_accuracy`, see there.
        MoCo only: `lag`, the distance between the weights of the two encoders over the length of the
        query encoder's; `key_cosine`, the mean cosine of an image's query and key. Curve, MoCo only: `age`
        in steps and `consistency`, the mean cosine between the key of an image then and now.
        Map: `points` as `encode_points` makes them.
        """
        _check(method)
        checks.whole("step", step, 0)
        if not isinstance(losses, Tensor) or losses.ndim != 1 or not losses.is_floating_point() or not len(losses):
            checks.refuse("losses", losses, "floating-point numbers of shape (steps,), one or more")
        embeddings = self._embed(nn.Sequential(method.encoder, method.head))
        figures = {"loss_std": float(losses.std(correction=0)), "embedding_cosine": _cosine_of_two(embeddings)}
        figures["pretext_accuracy"] = pretext_accuracy(method, self.asked)
        curve: dict[str, Any] = {}
        if isinstance(method, MoCo):
            now = self._embed(method.key_encoder)
            figures["lag"] = lag(method)
            figures["key_cosine"] = _cosine(now, embeddings)
            ages = [age for age in AGES if step - age in self.keys]
            curve = {"age": ages, "consistency": [round(_cosine(self.keys[step - age], now), 5) for age in ages]}
        self.points = flatten(extract(method.encoder, self.shown), self.points)
        return figures, {**curve, "points": encode_points(self.points)}

    @torch.no_grad()
    def _embed(self, network: nn.Module) -> Tensor:
        """Unit embeddings (n, dim) as training makes them: batch norm by the batch."""
        was_training = network.training
        network.train()
        with statistics_kept(network):
            embeddings = normalize(network(self.views))
        network.train(was_training)
        return embeddings

    @property
    def state(self) -> dict[str, Any]:
        """All that a resumed run needs."""
        return {"keys": self.keys, "points": self.points}

    def load(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        good = isinstance(state, dict) and isinstance(state.get("keys"), dict) and "points" in state
        if not good or not all(isinstance(keys, Tensor) for keys in state["keys"].values()):
            checks.refuse("state", state, "what `state` of a probe was")
        self.keys = {step: keys.to(self.views.device) for step, keys in state["keys"].items()}
        self.points = None if state["points"] is None else state["points"]


@torch.no_grad()
def pretext_accuracy(method: SimCLR | MoCo, views: Tensor) -> float:
    """Share of anchors that are most similar to their partner, of views (2n, C, H, W) embedded as in training.

    The other candidates are the other views, in MoCo the queue. The method and the random state are left alone.
    """
    _check(method)
    checks.pairs(views)
    was_training = method.training
    method.train()
    with statistics_kept(method), torch.random.fork_rng(devices=[]):  # MoCo draws its shuffle
        if isinstance(method, MoCo):
            first, second = views.chunk(2)
            queries, keys = normalize(method.queries(first)), method.keys(second)
            partner, hardest = (queries * keys).sum(dim=1), (queries @ method.queue.T).amax(dim=1)
        else:
            z = normalize(method.embed(views))
            partner = (z * z.roll(len(z) // 2, dims=0)).sum(dim=1)
            places = torch.arange(len(z), device=z.device)
            both = torch.stack([places, places.roll(len(z) // 2)], dim=1)  # itself and its partner
            hardest = (z @ z.T).scatter(1, both, -1.0).amax(dim=1)
    method.train(was_training)
    return float((partner > hardest).double().mean())


def lag(method: MoCo) -> float:
    """Distance between the weights of the two encoders, over the length of the query encoder's. 0 to about 1."""
    checks.kind("method", method, MoCo, "a MoCo")
    pairs = list(zip(method.query_weights, method.key_weights, strict=True))
    apart = sum(float((query.detach() - key).double().square().sum()) for query, key in pairs)
    length = sum(float(query.detach().double().square().sum()) for query, _ in pairs)
    return (apart / length) ** 0.5


def flatten(features: Tensor, towards: Tensor | None = None) -> Tensor:
    """Features (N, d) to their first two principal components (N, 2), on the unit sphere before.

    Axes and signs of principal components are arbitrary: the map is turned or mirrored towards
    `towards` (N, 2) if there is one, so that a film of maps does not jump. Lengths are kept.
    Raises `ValueError` for fewer than two features, or if the shapes do not fit.
    """
    checks.matrix("features", features)
    checks.finite("features", features)
    if features.shape[1] < 2:
        checks.refuse("features", features, "shape (N, d) with d >= 2")
    if towards is not None and (
        not isinstance(towards, Tensor) or towards.shape != (len(features), 2) or towards.dtype != torch.float64
    ):
        checks.refuse("towards", towards, f"None, or a map: torch.float64 of shape ({len(features)}, 2)")
    z = normalize(features.cpu().double())
    z = z - z.mean(dim=0)
    _, _, axes = torch.linalg.svd(z, full_matrices=False)
    flat = z @ axes[:2].T
    if towards is None:
        return flat
    u, _, v = torch.linalg.svd(flat.T @ towards)  # orthogonal Procrustes
    return flat @ u @ v


def encode_points(points: Tensor) -> str:
    """Points (N, 2) as base64 of N pairs of signed bytes, in steps of `REACH` / 127."""
    checks.matrix("points", points, dim=2)
    checks.finite("points", points)
    steps = (points / REACH * 127).round().clamp(-127, 127).to(torch.int8)
    return base64.b64encode(steps.numpy().tobytes()).decode()


def decode_points(text: str) -> Tensor:
    """The points (N, 2) of `encode_points`, to half a step. Raises `ValueError` if it is not such a text."""
    try:
        raw = bytearray(base64.b64decode(text, validate=True))
    except (ValueError, TypeError):
        checks.refuse("points", text, "base64 of pairs of bytes")
    if not raw or len(raw) % 2:
        raise ValueError(f"points hold {len(raw)} bytes; allowed: an even number, 2 or more")
    return torch.frombuffer(raw, dtype=torch.int8).view(-1, 2).double() * (REACH / 127)


def _cosine_of_two(z: Tensor) -> float:
    """Mean cosine between two different rows of unit vectors (n, d)."""
    count = len(z)
    return float((z.sum(dim=0).square().sum() - z.square().sum()) / (count * (count - 1)))


def _cosine(a: Tensor, b: Tensor) -> float:
    return float((a * b).sum(dim=1).mean())


def _check(method: nn.Module) -> None:
    checks.kind("method", method, (SimCLR, MoCo), "a SimCLR or a MoCo")
