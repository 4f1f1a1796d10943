"""The checks that compute something: ranks, rates, bytes. They read no run, and give the same at every time."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from minilab.losses import normalize, nt_xent
from minilab.memory import NETWORKS, Budget, device_bytes, largest_batch
from minilab.pitfalls.accumulation import compare, freeze_batch_norm
from minilab.recipe import Recipe
from minilab.simclr import SimCLR
from minilab.spectra.dynamics import (
    coupled_rates,
    fixed_leak_rate,
    measured_rate,
    moco_rate,
    noisy_growth,
    simclr_rate,
)
from minilab.spectra.mixing import effective_samples, gap_closed, lag_of_average, noise_kept
from minilab.spectra.phases import runaway_rate
from minilab.spectra.repulsion import (
    bounds,
    effective_rank,
    entropy,
    forces,
    forces_of_queue,
    gradient,
    rank,
    shares,
    spectrum,
    union,
)  # fmt: skip
from minilab.textbook.findings import Finding, exactly
from minilab.training import build_method

DIM = 128
BUDGET = Budget("resnet50", size=224, devices=8, gigabytes=24, half=False, batch=256, queue=65_536)  # the interview's
WORDS_A_MINUTE = 150


def _cloud(rows: int, seed: int = 0, dim: int = DIM) -> Tensor:
    """Random unit vectors (rows, dim) in float64."""
    return normalize(torch.randn(rows, dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64))


@exactly("chance-loss")
def _chance_loss() -> Finding:
    """Of an embedding that is one point: the log of the number of candidates."""
    losses = {n: float(nt_xent(torch.ones(2 * n, 2, dtype=torch.float64), 0.1)) for n in (256, 1024)}
    right = all(abs(loss - math.log(2 * n - 1)) < 1e-9 for n, loss in losses.items())
    told = " and ".join(f"{loss:.2f} at N = {n:,}" for n, loss in losses.items())
    return Finding(f"NT-Xent of a network that tells nothing apart is {told}, which is ln(2N − 1)", right)


@exactly("entropy-ceiling")
def _entropy_ceiling() -> Finding:
    small, large = (float(entropy(torch.full((2 * n - 1,), 1 / (2 * n - 1)))) for n in (256, 8192))
    more = large / small - 1
    text = f"the most entropy is {small:.2f} nats at N = 256 and {large:.2f} at 8,192: {more:.0%} more for 32 x"
    return Finding(text, large / small < 2)


@exactly("entropy-temperature")
def _entropy_temperature() -> Finding:
    found = {t: float(entropy(shares(_cloud(512), t)).mean()) for t in (0.05, 0.1, 0.5)}
    doubled = float(entropy(shares(_cloud(512), 0.1)).mean() - entropy(shares(_cloud(256), 0.1)).mean())
    told = ", ".join(f"{value:.2f} nats at {t:g}" for t, value in found.items())
    text = f"256 random images: {told}; twice the batch adds {doubled:.2f}"
    return Finding(text, found[0.5] - found[0.05] > doubled and found[0.05] < found[0.1] < found[0.5])


@exactly("rank-bounds")
def _rank_bounds() -> Finding:
    sizes = (2, 8, 64, 65, 256)
    found = {n: (rank(forces(_cloud(2 * n), 0, 0.5)), rank(gradient(_cloud(2 * n), 0.5))) for n in sizes}
    right = all((bounds(n, DIM).anchor, bounds(n, DIM).batch) == ranks for n, ranks in found.items())
    told = ", ".join(f"{anchor} and {batch} at N = {n}" for n, (anchor, batch) in found.items())
    return Finding(f"d = 128, directions on one anchor and in the whole gradient: {told}", right)


@exactly("rank-over-steps")
def _rank_over_steps() -> Finding:
    """One anchor, two images a step: other images each step."""
    anchor = _cloud(1)
    steps = [torch.cat([anchor, _cloud(3, seed)]) for seed in range(1, 101)]
    pushes = [forces(z, 0, 0.5) for z in steps]
    found = {count: rank(torch.cat(pushes[:count])) for count in (1, 10, 100)}
    told = ", ".join(f"{directions} after {count}" for count, directions in found.items())
    return Finding(f"with N = 2, directions met in so many steps: {told} (d − 1 = {DIM - 1})", found[100] == DIM - 1)


@exactly("effective-below-rank")
def _effective_below_rank() -> Finding:
    z = _cloud(512)
    found = {t: effective_rank(forces(z, 0, t)) for t in (0.1, 0.5)}
    full = rank(forces(z, 0, 0.1))
    text = f"N = 256, d = 128: rank {full}; effective rank {found[0.1]:.0f} at τ = 0.1 and {found[0.5]:.0f} at 0.5"
    return Finding(text, found[0.1] < found[0.5] < full and found[0.1] < 0.95 * full)


@exactly("ranks-add-up-to-d")
def _ranks_add_up() -> Finding:
    """One anchor and its partner, pushed by its batch, and by a queue of other keys."""
    found = []
    for images, keys in ((8, 18), (100, 200)):
        z = _cloud(2 * images)
        found.append(union(forces(z, 0, 0.2), forces_of_queue(z[0], z[images], _cloud(keys, 1), 0.2)))
    few, many = found
    text = (
        f"{few.batch} directions from a batch of 8 and {few.queue} from 18 keys make {few.both}; "
        f"{many.batch} from a batch of 100 and {many.queue} from 200 keys make {many.both}"
    )
    return Finding(text, few.both == few.total and many.both == DIM - 1 < many.total)


@exactly("gram-and-covariance")
def _gram_and_covariance() -> Finding:
    """However many keys: the Gram matrix of the queue's forces has d - 1 eigenvalues that are not zero."""
    pushes = forces_of_queue(_cloud(1)[0], _cloud(1, 1)[0], _cloud(600, 2), 0.2)
    gram = torch.linalg.eigvalsh(pushes @ pushes.T / len(pushes)).flip(0)
    apart = float((gram[:DIM] - spectrum(pushes)).abs().max() / gram[0])
    alive = int((gram > 1e-10 * gram[0]).sum())
    text = (
        f"600 keys, d = 128: the 600 x 600 matrix has {alive} non-zero eigenvalues, those of the covariance to within "
        f"{apart:.0e} of the largest"
    )
    return Finding(text, alive == DIM - 1 and apart < 1e-10)


@exactly("escape-rate")
def _escape_rate() -> Finding:
    found = {k: (measured_rate(0.5, k, steps=100), simclr_rate(1, 0.5, k)) for k in (1, 16)}
    told = " and ".join(f"{measured:.2f} (K = {k}; predicted {said:.2f})" for k, (measured, said) in found.items())
    right = all(abs(measured / said - 1) < 0.08 for measured, said in found.values())
    return Finding(f"spread grows from the collapsed point at a rate of {told}", right)


@exactly("escape-doubles")
def _escape_doubles() -> Finding:
    ratio = simclr_rate(1, 0.1, 10**9) / simclr_rate(1, 0.1, 1)
    text = f"from one negative to infinitely many, the escape rate grows {ratio:.2f} times; it is above 0 for each"
    return Finding(text, simclr_rate(1, 0.1, 1) > 0 and ratio < 2.01)


@exactly("moco-escapes")
def _moco_escapes() -> Finding:
    found = {leak: moco_rate(1, 0.5, 1, leak) for leak in (0.001, 0.1, 10.0)}
    told = ", ".join(f"{rate:.3f} (γ = {leak:g})" for leak, rate in found.items())
    values = list(found.values())
    return Finding(f"with one negative MoCo's escape rate is {told}", values[0] > 0 and values == sorted(values))


@exactly("tether")
def _tether() -> Finding:
    """A growing mode, A = 0.1, tied with kappa = 0.5 to its own average, and to a point that stays where it is."""
    leaks = (0.001, 0.1, 10.0)
    follows = [coupled_rates(0.1, 0.5, leak)[0].real for leak in leaks]
    stays = [fixed_leak_rate(0.1, leak) for leak in leaks]
    told = ", ".join(f"{rate:.4f} (γ = {leak:g})" for leak, rate in zip(leaks, follows, strict=True))
    text = f"growth 0.1, tied to its own average: {told}; tied to a point that stays, {stays[-1]:.1f} at γ = 10"
    return Finding(text, 0 < follows[0] < follows[1] < follows[2] < 0.1 and stays[-1] < 0)


@exactly("mean-against-median")
def _mean_against_median() -> Finding:
    average, median = noisy_growth(rate=0.5, noise=1.5, time=3.0, paths=200_000)
    text = f"over 200,000 noisy paths the mean grows {average:.1f} times while the median falls to {median:.2f}"
    return Finding(text, average > 1 > median)


@exactly("average-lags")
def _average_lags() -> Finding:
    text = (
        f"m = 0.999: noise variance falls to {noise_kept(0.999):.2%}, the lag behind a steady drift is "
        f"{lag_of_average(0.999):.0f} steps, and {gap_closed(0.999, 256):.1%} of a gap closes in 256 steps"
    )
    return Finding(text, noise_kept(0.999) < 0.001 and lag_of_average(0.999) > 256 and gap_closed(0.999, 256) < 0.5)


@exactly("horizon")
def _horizon() -> Finding:
    """1 / (1 - m) steps, and the rule m -> m^kappa for a batch kappa times as large."""
    scaled = 0.996 ** (1 / 8)
    closed = gap_closed(0.999, 1000)
    text = f"m = 0.999 closes {closed:.0%} of a gap in 1,000 steps; 0.996 at batch 4,096 scales to {scaled:.4f} at 512"
    return Finding(text, abs(closed - (1 - math.exp(-1))) < 0.01 and abs(scaled - 0.9995) < 1e-4)


@exactly("coverage-is-linear")
def _coverage_is_linear() -> Finding:
    """Keys whose neighbours correlate with exp(-1 / 100): how many independent ones they are worth."""
    found = {q: effective_samples(q, math.exp(-1 / 100)) for q in (1_000, 10_000)}
    grows = found[10_000] / found[1_000]
    text = (
        f"with τ_mix = 100, 1,000 keys in a row are worth {found[1_000]:.1f} independent ones and 10,000 "
        f"{found[10_000]:.1f}: {grows:.1f} times, where ln Q grows {math.log(10_000) / math.log(1_000):.1f} times"
    )
    return Finding(text, grows > 8)


@exactly("queue-formulas")
def _queue_formulas() -> Finding:
    """The framework's time scales set equal, exp(1 / (gamma tau)), and the law that it states, exp(c gamma)."""
    equal = [math.exp(1 / (leak * 100)) for leak in (0.001, 0.01)]
    stated = [math.exp(leak) for leak in (0.001, 0.01)]
    text = (
        f"τ_mix = 100: equal time scales ask for Q = {equal[0]:,.0f} at γ = 0.001 and {equal[1]:.1f} at 0.01; "
        f"the stated law changes by {stated[1] / stated[0] - 1:.1%}, the other way (c = 1)"
    )
    return Finding(text, equal[0] > equal[1] and stated[0] < stated[1])


@exactly("runaway-threshold")
def _runaway_threshold() -> Finding:
    short, long = (runaway_rate(0.1, age, 0.4) for age in (4.9, 50))
    text = (
        f"linear model, drive 0.4 a step: growth {short:.0f} for a queue of 4.9 steps, {long:.3f} a step for one of 50"
    )
    slower = runaway_rate(0.001, 50, 0.4)
    return Finding(f"{text} at γ = 0.1, {slower:.3f} at 0.001", short == 0 < slower < long)


@exactly("memory-of-a-queue")
def _memory_of_a_queue() -> Finding:
    kinds = device_bytes(BUDGET, "moco")
    copy = 4 * NETWORKS["resnet50"].weights()
    text = (
        f"65,536 keys of 128 numbers take {kinds['queue'] / 1e6:.1f} MB, the key encoder {copy / 1e6:.0f} MB, the "
        f"activations of 32 views a device {kinds['activations'] / 1e9:.1f} GB"
    )
    return Finding(text, kinds["queue"] + copy < 0.1 * kinds["activations"])


@exactly("memory-of-a-batch")
def _memory_of_a_batch() -> Finding:
    needs = {n: sum(device_bytes(BUDGET, "simclr", n).values()) / 1e9 for n in (256, 512, 4096)}
    told = ", ".join(f"{value:.1f} GB at N = {n:,}" for n, value in needs.items())
    most = largest_batch(BUDGET, "simclr")
    text = f"ResNet-50, 224 pixels, 8 devices: SimCLR takes {told} on each; {most} images fit in 24 GB"
    return Finding(text, needs[512] < 24 < needs[4096] and most >= 512)


@exactly("chunks-are-exact")
def _chunks_are_exact() -> Finding:
    method = build_method(Recipe("simclr", "micro", batch=32)).double()
    assert isinstance(method, SimCLR)
    freeze_batch_norm(method)
    views = torch.rand(64, 3, 16, 16, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    found = compare(method, views, chunk=8)
    off = abs(found["gradcache"]["norm_ratio"] - 1) + abs(found["gradcache"]["cosine"] - 1)
    text = (
        f"32 images in chunks of 8: accumulated, an anchor has {found['naive']['candidates'] - 1:.0f} negatives and "
        f"the gradient a cosine of {found['naive']['cosine']:.2f} with the whole batch's; with GradCache "
        f"{found['gradcache']['candidates'] - 1:.0f} negatives, gradient equal to within {max(off, 1e-16):.0e}"
    )
    exact = off < 1e-9 and found["gradcache"]["candidates"] == found["whole"]["candidates"] == 63
    return Finding(text, exact and found["naive"]["candidates"] == 15 and found["naive"]["cosine"] < 0.999)


@exactly("speaking-time")
def _speaking_time() -> Finding:
    """The card's two answers have 40 and 140 words, as a person counts who splits at spaces."""
    short, long = (60 * words / WORDS_A_MINUTE for words in (40, 140))
    text = f"40 and 140 words, at {WORDS_A_MINUTE} a minute: {short:.0f} and {long:.0f} s"
    return Finding(text, short < 22 and long < 60)
