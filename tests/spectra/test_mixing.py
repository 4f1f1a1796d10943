"""Decay, lag and effective samples against simulations and known answers."""

import math

import numpy as np
import pytest

from minilab.spectra.mixing import effective_samples, excess, fit_decay, gap_closed, lag_of_average, noise_kept

AGES = (1, 4, 16, 64, 256)


@pytest.mark.parametrize("time", [2.0, 30.0, 500.0])
def test_a_decay_is_found_again(time):
    found = fit_decay(AGES, [math.exp(-age / time) for age in AGES])
    assert found.time == pytest.approx(time, rel=1e-4) and found.misfit < 1e-6 and found.error < 1e-2 * time


def test_its_error_is_that_of_repeated_noisy_fits():
    dice, truth = np.random.default_rng(0), np.exp(-np.asarray(AGES) / 40)
    fits = [fit_decay(AGES, truth + 0.02 * dice.standard_normal(5)) for _ in range(300)]
    spread = float(np.std([fit.time for fit in fits]))
    assert np.median([fit.error for fit in fits]) == pytest.approx(spread, rel=0.3)


def test_keys_that_turn_are_no_exponential():
    assert fit_decay(AGES, [0.95, 0.7, 0.2, -0.5, -0.2]).misfit > 0.2


def test_excess_is_one_for_the_same_key_and_zero_for_a_strangers():
    assert excess([1.0, 0.7, 0.4], 0.4) == pytest.approx([1.0, 0.5, 0.0])
    with pytest.raises(ValueError, match="floor is 1.0; allowed: below 1"):
        excess([1.0], 1.0)


@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.99, 0.999])
def test_an_average_lags_behind_a_ramp(momentum):
    value, steps = 0.0, 20_000
    for step in range(1, steps + 1):
        value = momentum * value + (1 - momentum) * step
    assert steps - value == pytest.approx(lag_of_average(momentum), abs=1e-3)


def test_an_average_quietens_noise():
    dice, value, values = np.random.default_rng(0), 0.0, []
    for draw in dice.standard_normal(400_000):
        value = 0.9 * value + 0.1 * draw
        values.append(value)
    assert np.var(values) == pytest.approx(noise_kept(0.9), rel=0.05)


def test_the_share_of_a_gap():
    assert gap_closed(0.999, 256) == pytest.approx(0.226, abs=5e-4) and gap_closed(0.0, 1) == 1


def test_effective_samples_are_those_of_the_mean():
    dice, count, correlation = np.random.default_rng(0), 50, 0.8
    walks = np.empty((20_000, count))
    walks[:, 0] = dice.standard_normal(20_000)
    for step in range(1, count):
        walks[:, step] = correlation * walks[:, step - 1] + 0.6 * dice.standard_normal(20_000)
    assert effective_samples(count, correlation) == pytest.approx(1 / walks.mean(axis=1).var(), rel=0.05)
    assert effective_samples(7, 0.0) == 7 and effective_samples(1, 0.5) == 1


@pytest.mark.parametrize(
    "call, named",
    [
        (lambda: lag_of_average(1.0), "momentum is 1.0"),
        (lambda: noise_kept(-0.1), "momentum is -0.1"),
        (lambda: effective_samples(5, 1.0), "correlation is 1.0"),
        (lambda: effective_samples(0, 0.1), "count is 0"),
        (lambda: fit_decay([1, 2], [1, 1]), "ages has 2 values"),
        (lambda: fit_decay([0, 1, 2], [1, 1, 1]), "ages or values"),
        (lambda: fit_decay([1, 2, 3], [1, math.nan, 1]), "ages or values"),
    ],
)
def test_wrong_values_are_named(call, named):
    with pytest.raises(ValueError, match=named):
        call()
