"""Escape from the collapsed point: measured rates against predicted ones, and the linear systems by hand."""

import math

import numpy as np
import pytest

from minilab.spectra.dynamics import (
    coupled_rates,
    fixed_leak_rate,
    measured_rate,
    moco_rate,
    noisy_growth,
    simclr_rate,
)  # fmt: skip

NEGATIVES = (1, 2, 4, 16, 64)


@pytest.mark.parametrize("negatives", NEGATIVES)
def test_simclr_escapes_at_the_predicted_rate_with_any_number_of_negatives(negatives):
    assert measured_rate(0.5, negatives, steps=200) == pytest.approx(simclr_rate(1, 0.5, negatives), rel=0.05)


@pytest.mark.parametrize("leak", [0.01, 0.1, 1.0, 10.0])
@pytest.mark.parametrize("negatives", NEGATIVES)
def test_moco_escapes_at_the_predicted_rate(negatives, leak):
    assert measured_rate(0.5, negatives, leak, steps=200) == pytest.approx(moco_rate(1, 0.5, negatives, leak), rel=0.05)


def test_augmentation_noise_has_no_part_in_the_rate():
    rates = [measured_rate(0.5, 4, steps=200, noise=noise) for noise in (0.0, 1.0)]
    assert rates[0] == pytest.approx(rates[1], rel=0.06)


def test_infinitely_many_negatives_only_double_the_rate():
    assert simclr_rate(1, 0.1, 10**9) / simclr_rate(1, 0.1, 1) == pytest.approx(2)


def test_mocos_rate_between_its_limits():
    kappa = 1 / 0.2 * 64 / 65
    assert moco_rate(1, 0.2, 64, 1e9) == pytest.approx(kappa, rel=1e-4)
    assert moco_rate(1, 0.2, 64, 1e-9) == pytest.approx(math.sqrt(1e-9 * kappa), rel=1e-3)
    assert all(moco_rate(1, 0.2, 1, leak) > 0 for leak in (1e-6, 1e-3, 1, 1e3))


@pytest.mark.parametrize("leak", [0.001, 0.1, 10.0])
def test_a_tether_that_follows_never_stabilises(leak):
    fast, slow = coupled_rates(0.1, 0.5, leak)
    assert fast.real > 0 and (fast * slow).real == pytest.approx(-0.1 * leak)
    assert fast.real < 0.1  # it only slows the growth; and a faster one slows it less
    assert coupled_rates(0.1, 0.5, leak * 2)[0].real > fast.real
    assert (fixed_leak_rate(0.1, leak) < 0) is (leak > 0.1)  # a fixed one does, where the leak is large enough


def test_the_coupled_rates_are_those_of_the_system():
    rates = coupled_rates(0.2, 0.7, 0.3)
    state, step, at_20 = np.array([1.0, 1.0]), 1e-3, 0.0
    for number in range(40_000):  # to time 40; by time 20 the other mode has died out
        a, b = state
        at_20 = a if number == 20_000 else at_20
        state = state + step * np.array([0.2 * a - 0.7 * (a - b), 0.3 * (a - b)])
    assert math.log(state[0] / at_20) / 20 == pytest.approx(rates[0].real, rel=0.01)


def test_the_mean_explodes_while_the_median_decays():
    mean, median = noisy_growth(rate=0.5, noise=1.5, time=3.0, paths=400_000)
    assert mean == pytest.approx(math.exp(1.5), rel=0.2) and mean > 1
    assert median == pytest.approx(math.exp((0.5 - 1.125) * 3), rel=0.05) and median < 1


@pytest.mark.parametrize(
    "arguments, named", [((0, 0.5, 1), "variance"), ((1, math.nan, 1), "temperature"), ((1, 0.5, 0), "negatives")]
)
def test_wrong_values_are_named(arguments, named):
    with pytest.raises(ValueError, match=f"{named} is .*allowed"):
        simclr_rate(*arguments)
    with pytest.raises(ValueError, match=f"{named} is .*allowed"):
        moco_rate(*arguments, 1.0)


def test_a_leak_of_zero_is_refused():
    with pytest.raises(ValueError, match="leak is 0; allowed: above 0"):
        moco_rate(1, 0.5, 1, 0)
