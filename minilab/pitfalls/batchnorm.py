"""What shared batch-norm statistics give away in MoCo, shown twice.

First a network that cannot see its image: what it finds, it finds by the statistics alone. Then any MoCo, asked
with each key normalised among its query's images, and again among others: what differs is the statistics' work.
MoCo v1 (arXiv 1911.05722) names the leak in section 3.3 and measures it in appendix A.9.
"""

from __future__ import annotations

import copy
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from minilab.checks import shown
from minilab.chunks import statistics_kept
from minilab.encoder import norm_layer
from minilab.losses import normalize
from minilab.moco import MoCo
from minilab.probes import pretext_accuracy
from minilab.recipe import Recipe
from minilab.simclr import SimCLR
from minilab.spectra.checks import pairs, whole
from minilab.training import build_method

DETECTORS = 16  # each fires for one kind of image
MISREAD = 0.05  # share of views in which another one fires
BLUR = 1e-3  # added to what a blind encoder returns, so that equal candidates are a lottery and not a tie


class Blind(nn.Module):
    """An encoder that cannot see its image: it reads the norm layer where every detector is silent.

    There the input is 0, so batch norm returns minus the mean over the standard deviation of the images that
    share its statistics: the same for all of them, whatever they show.
    """

    def __init__(self, norm: str) -> None:
        super().__init__()
        self.norm = norm_layer(norm, DETECTORS)

    def forward(self, x: Tensor) -> Tensor:
        """Detectors (N, 16, H, W) to embeddings (N, 16), equal within a group of batch norm but for `BLUR`."""
        silent = self.norm(F.pad(x, (0, 1)))[:, :, 0, -1]  # a column of zeros on the right, and one place in it
        return silent + BLUR * torch.randn_like(silent)


def blind(recipe: Recipe) -> SimCLR | MoCo:
    """The method of `recipe` with `Blind` for its encoder and nothing for its head; to be asked, not trained."""
    method = build_method(replace(recipe, dim=DETECTORS), DETECTORS)
    encoder = Blind(recipe.norm)
    method.add_module("encoder", encoder)
    method.add_module("head", nn.Identity())
    if isinstance(method, MoCo):
        method.add_module("key_encoder", copy.deepcopy(encoder))
    return method


def readings(count: int, dice: Generator) -> Tensor:
    """What the detectors report of two views of `count` images: (2 * count, 16, 1, 1), rows i and i + count of one.

    One detector fires in each view. In a share `MISREAD` of the views it is one at random.
    """
    if not whole(count, 1, 10_000_000):
        raise ValueError(f"count is {shown(count)}; allowed: a whole number from 1 to 10,000,000")
    kind = torch.randint(DETECTORS, (count,), generator=dice).repeat(2)
    wrong = torch.rand(2 * count, generator=dice) < MISREAD
    fires = torch.where(wrong, torch.randint(DETECTORS, (2 * count,), generator=dice), kind)
    return F.one_hot(fires, DETECTORS).float()[:, :, None, None]


@torch.no_grad()
def blind_accuracy(recipe: Recipe, asked: int = 16) -> float:
    """Pretext accuracy of `blind(recipe)`, over `asked` steps of new images. A guess is 1 / (negatives + 1).

    MoCo's queue holds keys of this very network, of steps before: their age cannot give them away.
    """
    if not whole(asked, 1, 100_000):
        raise ValueError(f"asked is {shown(asked)}; allowed: a whole number from 1 to 100,000")
    method, dice = blind(recipe).train(), Generator().manual_seed(recipe.seed)
    with torch.random.fork_rng(devices=[]):  # for the shuffle and the blur
        torch.manual_seed(recipe.seed)
        if isinstance(method, MoCo):
            for _ in range(-(-recipe.queue // recipe.batch)):
                method.push(method.keys(readings(recipe.batch, dice)[recipe.batch :]))
        return sum(pretext_accuracy(method, readings(recipe.batch, dice)) for _ in range(asked)) / asked


@torch.no_grad()
def company(method: MoCo, views: Tensor, size: int) -> dict[str, dict[str, float]]:
    """The same queries against the same images' keys, normalised in the query's company ("kept") or not ("parted").

    `views`: (2n, C, H, W), embedded as in training, `size` images at a time; parted keys are shuffled among all n.
    Of each way: `pretext_accuracy`, the share of queries whose own key is more similar than all of `method`'s queue;
    `own`, the mean cosine of a query and its key; `mates`, that of a query and the keys of its group's other images.
    `method` and the random state are left alone. Raises `ValueError` if n is not two or more groups of `size`.
    """
    pairs("views", len(views))
    count = len(views) // 2
    if not whole(size, 2, count // 2) or count % size:
        raise ValueError(f"size is {shown(size)}; allowed: 2 or more, and a half, a third, ... of the {count} images")
    method = copy.deepcopy(method).train()
    method.groups = count // size
    first, second = views.chunk(2)
    group = torch.arange(count, device=views.device) // size
    mates = (group[:, None] == group) & ~torch.eye(count, dtype=torch.bool, device=views.device)  # (n, n)
    found = {}
    with torch.random.fork_rng(devices=[]), statistics_kept(method):
        torch.manual_seed(0)
        queries = normalize(method.queries(first))  # (n, dim)
        hardest = (queries @ method.queue.T).amax(dim=1)
        for name, shuffle in (("kept", False), ("parted", True)):
            method.shuffle = shuffle
            cosine = queries @ method.keys(second).T  # (n, n)
            found[name] = {
                "pretext_accuracy": float((cosine.diag() > hardest).double().mean()),
                "own": float(cosine.diag().mean()),
                "mates": float(cosine[mates].mean()),
            }
    return found
