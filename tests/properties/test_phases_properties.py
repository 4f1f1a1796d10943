"""Runaway queues and points on a circle: against loops and plain equations; what each refuses, by name."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import covers, few, many, no_number, no_whole, refused, some

from minilab.spectra import phases, points

POSITIVE = st.floats(1e-6, 1e6)
SHARE = st.floats(0.0, 0.9999)
SEED = st.integers(0, 2**31)
BAD_SHAPES = [torch.zeros(0, 3), torch.zeros(4), torch.zeros(4, 0), torch.zeros(4, 3, dtype=torch.long), [[1.0]], None]


def cloud(rows: int, dim: int, seed: int) -> torch.Tensor:
    """Unit vectors (rows, dim) in float64."""
    z = torch.randn(rows, dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return z / z.norm(dim=1, keepdim=True)


@covers(phases.runaway_rate)
@many
@given(st.floats(1e-4, 1), st.floats(0.1, 1e4), st.floats(1e-3, 10), no_number(0.0, low_too=True))
def test_the_runaway_rate_solves_its_equation(leak, age, drive, bad):
    rate = phases.runaway_rate(leak, age, drive)
    assert (rate > 0) == (age * drive > 2) or abs(age * drive - 2) < 1e-6
    if rate:
        left, right = rate * (rate + leak), drive * leak * (1 + math.expm1(-rate * age) / (rate * age))
        assert left == pytest.approx(right, rel=1e-3, abs=1e-12)
    for place, name in enumerate(("leak", "age", "drive")):
        arguments = [leak, age, drive]
        arguments[place] = bad
        refused(phases.runaway_rate, *arguments, named=f"{name} is")


@covers(phases.small_images)
@few
@given(st.integers(1, 4), st.sampled_from([1, 3]), st.sampled_from([8, 16, 32]), SEED)
def test_small_images_are_means_of_patches(count, channels, side, seed):
    images = torch.from_numpy(
        np.random.default_rng(seed).integers(0, 256, (count, channels, side, side), dtype=np.uint8)
    )
    patch = side // 8
    want = images.double().mean(1).reshape(count, 8, patch, 8, patch).mean((2, 4)).flatten(1) * 4 / 255
    assert torch.allclose(phases.small_images(images).double(), want, atol=1e-5)
    for wrong in (images.float(), images[0], images[:0], images[..., :0]):
        refused(phases.small_images, wrong, named="images is")


@covers(phases.SmallRuns, phases.small_runs)
@few
@given(st.integers(1, 4), st.integers(1, 3), SEED, st.booleans())
def test_small_runs_do_not_depend_on_their_neighbours(age, runs, seed, norm):
    inputs = torch.rand(12, 64, generator=torch.Generator().manual_seed(seed))
    leaks, rates = [0.5**n for n in range(runs)], [0.01] * runs
    found = phases.small_runs(inputs, age, leaks, rates, norm=norm, steps=50, batch=4, seed=seed)
    alone = phases.small_runs(inputs, age, leaks[-1:], rates[-1:], norm=norm, steps=50, batch=4, seed=seed)
    assert found.loss.shape == (runs, 50) and found.spread.shape == (runs, 1) and found.centre.shape == (runs, 1, 32)
    assert torch.allclose(found.loss[-1], alone.loss[0], atol=1e-4) and bool(found.loss.isfinite().all())


def test_small_runs_name_what_they_refuse():
    inputs = torch.rand(12, 64)
    for wrong in (inputs[:, :5], inputs.double(), inputs[:0], torch.full((2, 64), math.nan), None):
        refused(phases.small_runs, wrong, 1, [1.0], [0.1], named="inputs")
    for age in (0, -1, 1.5, math.nan, True):
        refused(phases.small_runs, inputs, age, [1.0], [0.1], named="age is")
    for bad in ([math.nan], [2.0], [-0.1], ["x"]):
        refused(phases.small_runs, inputs, 1, bad, [0.1], named="leaks is")
    refused(phases.small_runs, inputs, 1, [1.0], [math.inf], named="rates is")
    refused(phases.small_runs, inputs, 1, [1.0], [0.1, 0.1], named="rates")
    refused(phases.small_runs, inputs, 1, [1.0], [0.1], steps=49, named="steps is 49")
    refused(phases.small_runs, inputs, 1, [1.0], [0.1], batch=0, named="batch is 0")
    refused(phases.small_runs, inputs, 1, [1.0], [0.1], seed=-1, named="seed is -1")


@covers(phases.Boundary, phases.fit_boundary, phases.Contour, phases.fit_runaway)
@few
@given(st.sampled_from([0.5, 1.0, 2.0]), SEED)
def test_boundaries_that_were_planted_are_found(exponent, seed):
    dice = random.Random(seed)
    leak = [10 ** dice.uniform(-3, 0) for _ in range(80)]
    age = [10 ** dice.uniform(0, 2) for _ in range(80)]
    over = [math.log(g) + exponent * math.log(t) > -1.5 for g, t in zip(leak, age, strict=True)]
    if 15 < sum(over) < 65:
        found = phases.fit_boundary(leak, age, over, draws=2)
        assert found.right > 0.95 and found.exponent == pytest.approx(exponent, rel=0.35)
    failed = [phases.runaway_rate(g, t, 0.3) > 0.02 for g, t in zip(leak, age, strict=True)]
    if 5 < sum(failed) < 75:
        assert phases.fit_runaway(leak, age, failed).right > 0.95


@pytest.mark.parametrize("fit", [phases.fit_boundary, phases.fit_runaway])
def test_boundaries_name_what_they_refuse(fit):
    good = ([0.1, 0.2, 0.1, 0.2], [1, 1, 40, 40], [False, True, False, True])
    fit(*good)
    for leak in ([0.1, 0.2], [0.1, 0.2, 0.1, math.nan], [0.1, 0.2, 0.1, -1], [0.1, 0.2, 0.1, "x"], []):
        refused(fit, leak, good[1], good[2], named="leak")
    for kinds in ([True] * 4, [False] * 4, [True], []):
        refused(fit, good[0], good[1], kinds, named="leak, age and")
    refused(fit, [0.1, 0.2], [0.01, 0.02], [True, False], named="age") if fit is phases.fit_runaway else None


def test_a_fit_of_no_draws_and_of_no_kind_is_refused():
    refused(phases.fit_boundary, [0.1, 0.2], [1, 2], [True, False], draws=0, named="draws is 0")
    refused(phases.fit_boundary, [0.1] * 4, [1, 1, 2, 2], [True, False] * 2, named="leak, age and")


@covers(points.Setting, points.Setting.negatives, points.Setting.guess)
@many
@given(st.data())
def test_a_setting_is_right_or_names_its_field(data):
    name = data.draw(st.sampled_from([*points.LIMITS, *points.RANGES]))
    least, most = {**points.LIMITS, **points.RANGES}[name]
    bad = data.draw(no_whole(least, most) if name in points.LIMITS else no_number(least, most))
    refused(points.Setting, **{name: bad}, named=f"{name} is")
    refused(points.Setting, data.draw(st.sampled_from(["", "byol", None, 3, []])), named="method is")
    refused(points.Setting, "simclr", batch=1, named="batch is 1")
    batch, queue = data.draw(st.integers(2, 64)), data.draw(st.integers(1, 512))
    assert points.Setting("simclr", batch=batch).negatives == 2 * batch - 2
    moco = points.Setting(queue=queue)
    assert moco.negatives == queue and math.exp(moco.guess) == pytest.approx(queue + 1)


@covers(points.Random, points.Random.uniform, points.Random.normal)
@some
@given(st.integers(0, 2**32 - 1), st.integers(1, 50))
def test_random_numbers_are_mulberry32_in_plain_python(seed, count):
    def draw(state: int) -> float:
        t = (state ^ (state >> 15)) * (state | 1) % 2**32
        t = ((t + (t ^ (t >> 7)) * (t | 61)) % 2**32) ^ t
        return (t ^ (t >> 14)) / 2**32

    want = [draw((seed + n * 0x6D2B79F5) % 2**32) for n in range(1, count + 1)]
    assert points.Random(seed).uniform(count).tolist() == want
    one = points.Random(seed)
    first = [one.uniform(1)[0] for _ in range(count)]
    assert first == want, "one at a time or all at once"
    u, v = points.Random(seed).uniform(2)
    normal = math.sqrt(-2 * math.log(1 - u)) * math.cos(2 * math.pi * v)
    assert points.Random(seed).normal(1, 1)[0, 0] == pytest.approx(normal, abs=1e-12)


@given(no_whole(0, 2**32 - 1), no_whole(1, points.MOST))
@some
def test_random_numbers_name_what_they_refuse(seed, count):
    refused(points.Random, seed, named="seed is")
    refused(points.Random(0).uniform, count, named="count is")
    refused(points.Random(0).normal, count, 2, named="rows is")
    refused(points.Random(0).normal, 2, count, named="columns is")


@covers(points.embed, points.moco_loss, points.simclr_loss)
@some
@given(st.integers(2, 6), st.integers(1, 9), st.floats(0.05, 5), SEED)
def test_losses_of_points_are_those_of_torch(images, keys, temperature, seed):
    z, key, queue = cloud(2 * images, 2, seed), cloud(2 * images, 2, seed + 1), cloud(keys, 2, seed + 2)
    leaf = z.clone().requires_grad_()
    logits = torch.cat([(leaf * key).sum(1, keepdim=True), leaf @ queue.T], dim=1) / temperature
    want = torch.nn.functional.cross_entropy(logits, torch.zeros(len(z), dtype=torch.long))
    (slope,) = torch.autograd.grad(want, leaf)
    loss, pull = points.moco_loss(z.numpy(), key.numpy(), queue.numpy(), temperature)
    assert loss == pytest.approx(float(want.detach()), abs=1e-9) and np.allclose(pull, slope.numpy(), atol=1e-9)
    both = (leaf @ leaf.T / temperature).fill_diagonal_(-math.inf)
    want = torch.nn.functional.cross_entropy(both, torch.arange(len(z)).roll(images))
    (slope,) = torch.autograd.grad(want, leaf)
    loss, pull = points.simclr_loss(z.numpy(), temperature)
    assert loss == pytest.approx(float(want.detach()), abs=1e-9) and np.allclose(pull, slope.numpy(), atol=1e-9)
    unit, length = points.embed(z.numpy().T.copy()[:, :4], key.numpy().reshape(-1, 4))
    assert np.allclose(unit * length, key.numpy().reshape(-1, 4) @ z.numpy()[:4]) and np.allclose((unit**2).sum(1), 1)


@given(no_number(0.0, low_too=True))
@some
def test_losses_of_points_name_what_they_refuse(temperature):
    z = cloud(4, 2, 0).numpy()
    refused(points.moco_loss, z, z, z, temperature, named="temperature is")
    refused(points.simclr_loss, z, temperature, named="temperature is")
    refused(points.moco_loss, z, z[:3], z, 0.1, named="queries, keys and queue")
    refused(points.moco_loss, z[:0], z[:0], z, 0.1, named="queries, keys and queue")
    for wrong in (z[:3], z[:2], z[0]):
        refused(points.simclr_loss, wrong, 0.1, named="z has the shape")
    refused(points.embed, z, np.ones((3, 5)), named="images has the shape")
    refused(points.embed, z.T, np.zeros((3, 4)), named="images holds")


P = points.Points


@covers(P, P.points, P.views, P.gradient, P.step, P.gauges)
@some
@given(st.sampled_from(["simclr", "moco"]), st.integers(2, 9), st.integers(1, 40), st.integers(0, 9), SEED)
def test_points_stay_on_the_circle_and_descend(method, batch, queue, count, seed):
    setting = points.Setting(method, batch=batch, queue=queue, seed=seed, rate=0.05)
    run, again = points.Points(setting), points.Points(setting)
    run.step(count)
    for _ in range(count):
        again.step()
    assert np.array_equal(run.weights, again.weights), "many steps at once or one by one"
    assert np.allclose((run.points() ** 2).sum(axis=1), 1) and np.allclose((run.queue**2).sum(axis=1), 1)
    found = run.gauges()
    assert found["steps"] == count and 0 <= found["spread"] <= 1 + 1e-9 and 0 <= found["mean"] <= 1 + 1e-9
    first, second = run.views()
    assert first.shape == second.shape == (batch, 9) and (first[:, 0] == 1).all()
    loss, slope, _ = run.gradient(first, second)
    run.weights = run.weights - 1e-4 * slope / max(1e-9, float(np.abs(slope).max()))
    assert run.gradient(first, second)[0] <= loss + 1e-9
    for bad in (-1, 1.5, None, "1", 10**9):
        refused(run.step, bad, named="count is")
