"""The runaway's rate against the simulated system, small runs, and the fitted boundary against one that is known."""

import copy
import math

import numpy as np
import pytest
import torch

from minilab.losses import chance_loss, info_nce, normalize
from minilab.spectra.phases import EVERY, fit_boundary, fit_runaway, runaway_rate, small_images, small_runs


@pytest.mark.parametrize("leak, age, drive", [(0.5, 20, 0.4), (0.05, 60, 0.2), (1.0, 10, 0.3)])
def test_the_rate_is_that_of_the_simulated_system(leak, age, drive):
    step = 0.05
    length = round(age / step)
    past, u, v, total, marks = [0.0] * length, 1e-6, 0.0, 0.0, []
    rate = runaway_rate(leak, age, drive)
    steps = round(max(6 / rate, 4 * age) / step)
    for number in range(2 * steps):
        mean = total / length
        u, v = u + step * drive * (v - mean), v + step * leak * (u - v)
        total += v - past[number % length]
        past[number % length] = v
        if number + 1 in (steps, 2 * steps):
            marks.append(math.log(abs(u)))
    assert (marks[1] - marks[0]) / (steps * step) == pytest.approx(rate, rel=0.06)


def test_a_short_queue_is_safe_at_any_leak():
    assert all(runaway_rate(leak, 4.9, 0.4) == 0 for leak in (0.001, 0.1, 1.0))
    assert all(runaway_rate(leak, 5.1, 0.4) > 0 for leak in (0.001, 0.1, 1.0))


def test_a_faster_key_encoder_and_a_longer_queue_run_away_faster():
    assert runaway_rate(0.01, 50, 0.2) < runaway_rate(0.1, 50, 0.2) < runaway_rate(1.0, 50, 0.2)
    assert runaway_rate(0.1, 20, 0.2) < runaway_rate(0.1, 50, 0.2) < math.sqrt(0.1 * 0.2)


@pytest.fixture(scope="module")
def inputs():
    return 4 * torch.rand(400, 64, generator=torch.Generator().manual_seed(0))


def test_a_small_run_collapses_onto_a_point_that_flees_its_queue(inputs):
    runs = small_runs(inputs, 64, [1.0, 0.003], [0.01, 0.01], steps=300)
    gone, alive = runs.spread[:, -1].tolist()
    assert gone < 0.05 and alive > 0.3
    assert 0.3 < float(runs.loss[0, -50:].mean()) < 0.95  # below chance with all embeddings at one point
    assert float(runs.centre[0].norm(dim=1).min()) > 0.99
    assert runs.loss.shape == (2, 300) and runs.centre.shape == (2, 300 // EVERY, 32)


def test_a_final_batch_norm_keeps_the_spread(inputs):
    assert float(small_runs(inputs, 64, [1.0], [0.01], norm=True, steps=100).spread[0, -1]) > 0.9


def test_a_queue_that_is_short_for_its_learning_rate_is_safe_with_a_copy_as_key_encoder(inputs):
    def end(age, rate):
        return float(small_runs(inputs, age, [1.0], [rate]).spread[0, -1])

    assert end(16, 0.01) < 0.1 < 0.4 < min(end(16, 0.0001), end(1, 0.001))


def losses_of_plain_modules(inputs, age, leak, rate, steps, batch):
    """The same run as torch's own layers, loss and optimiser make it, from the same draws."""
    dice, layers = torch.Generator().manual_seed(0), []
    for inside, outside in ((64, 128), (128, 128), (128, 32)):
        layer = torch.nn.Linear(inside, outside)
        for weight, rows in ((layer.weight, inside), (layer.bias, 1)):
            draw = (2 * torch.rand(1, rows, outside, generator=dice) - 1) / math.sqrt(inside)
            weight.data = draw[0].T.reshape(weight.shape).clone()
        layers += [layer, torch.nn.ReLU()]
    query = torch.nn.Sequential(*layers[:-1])
    key = copy.deepcopy(query)
    queue = normalize(torch.randn(age * batch, 32, generator=dice))
    optimizer, losses = torch.optim.SGD(query.parameters(), rate, momentum=0.9), []
    for _ in range(steps):
        seen = inputs[torch.randint(len(inputs), (batch,), generator=dice)]
        first, second = seen + torch.randn(2, *seen.shape, generator=dice)
        keys = normalize(key(second)).detach()
        loss = info_nce(query(first), keys, queue, 0.1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        for old, new in zip(key.parameters(), query.parameters(), strict=True):
            old.data = (1 - leak) * old.data + leak * new.data
        queue = torch.cat([queue, keys])[batch:]
        losses.append(float(loss.detach()) / chance_loss(age * batch))
    return losses


def test_small_runs_are_those_of_plain_modules(inputs):
    runs = small_runs(inputs, 3, [0.5, 0.1], [0.003, 0.01], steps=EVERY, batch=8)
    for losses, leak, rate in zip(runs.loss, (0.5, 0.1), (0.003, 0.01), strict=True):
        assert losses.tolist() == pytest.approx(losses_of_plain_modules(inputs, 3, leak, rate, EVERY, 8), rel=2e-3)


def test_small_runs_need_steps_enough_to_measure(inputs):
    with pytest.raises(ValueError, match="steps is 49; allowed: 50 or more"):
        small_runs(inputs, 1, [1.0], [0.1], steps=49)


def test_small_images_are_means_of_patches():
    images = torch.randint(0, 256, (3, 3, 32, 32), dtype=torch.uint8)
    small = small_images(images)
    assert small.shape == (3, 64)
    assert float(small[1, 9]) == pytest.approx(float(images[1, :, 4:8, 4:8].float().mean()) / 255 * 4, rel=1e-5)
    with pytest.raises(ValueError, match="images is torch.float32 .*allowed: uint8"):
        small_images(images.float())


@pytest.mark.parametrize("age, leaks, rates", [(0, [1.0], [0.1]), (1, [1.0], []), (1, [], [])])
def test_small_runs_refuse_wrong_values(inputs, age, leaks, rates):
    with pytest.raises(ValueError, match="age is .*allowed"):
        small_runs(inputs, age, leaks, rates)


def plane():
    leaks, ages = np.geomspace(0.001, 1, 10), np.array([1, 4, 16, 64])
    grid = [(leak, age) for leak in leaks for age in ages]
    return [leak for leak, _ in grid], [age for _, age in grid]


@pytest.mark.parametrize("exponent", [0.0, 1.0, 2.0])
def test_a_known_boundary_is_found_again(exponent):
    leak, age = plane()
    middle = np.median([math.log(g) + exponent * math.log(t) for g, t in zip(leak, age, strict=True)])
    collapsed = [math.log(g) + exponent * math.log(t) > middle for g, t in zip(leak, age, strict=True)]
    found = fit_boundary(leak, age, collapsed)
    assert found.exponent == pytest.approx(exponent, abs=0.25) and found.level == pytest.approx(middle, abs=0.6)
    assert found.right >= 0.95 and 0 < found.errors[0] < 0.6


def test_runs_without_a_boundary_have_a_large_error():
    leak, age = plane()
    dice = np.random.default_rng(1)
    found = fit_boundary(leak, age, list(dice.random(40) < 0.5))
    assert found.right < 0.75 and found.errors[0] > 0.5


@pytest.mark.parametrize("collapsed", [[True] * 4, [False] * 4, [True, False]])
def test_runs_of_one_kind_have_no_boundary(collapsed):
    with pytest.raises(ValueError, match="runs of both kinds"):
        fit_boundary([0.1, 0.2, 0.1, 0.2], [1, 1, 2, 2], collapsed)


@pytest.mark.parametrize("drive, rate", [(1.0, 0.15), (0.3, 0.05)])
def test_a_boundary_that_the_law_drew_is_found_again(drive, rate):
    leak, age = plane()
    failed = [runaway_rate(g, t, drive) > rate for g, t in zip(leak, age, strict=True)]
    found = fit_runaway(leak, age, failed)
    assert found.right == 1 and found.drives[0] <= drive * 1.13 and drive / 1.13 <= found.drives[1]
    said = [runaway_rate(g, t, found.drive) > found.rate for g, t in zip(leak, age, strict=True)]
    assert said == failed


def test_the_law_is_wrong_about_runs_that_a_short_queue_spoils():
    leak, age = plane()
    assert fit_runaway(leak, age, [t < 4 for t in age]).right < 0.8


@pytest.mark.parametrize("failed", [[True, True], [False, False], [True]])
def test_runs_of_one_kind_fit_no_law(failed):
    with pytest.raises(ValueError, match="runs of both kinds"):
        fit_runaway([0.1, 0.2], [1, 2], failed)


@pytest.mark.parametrize("arguments, named", [((0, 1, 1), "leak"), ((1, -1, 1), "age"), ((1, 1, math.inf), "drive")])
def test_wrong_values_are_named(arguments, named):
    with pytest.raises(ValueError, match=f"{named} is .*allowed"):
        runaway_rate(*arguments)
