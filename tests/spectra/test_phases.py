"""The runaway's rate against the simulated system, and the fitted boundary against one that is known."""

import math

import numpy as np
import pytest

from minilab.spectra.phases import fit_boundary, runaway_rate


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


@pytest.mark.parametrize("arguments, named", [((0, 1, 1), "leak"), ((1, -1, 1), "age"), ((1, 1, math.inf), "drive")])
def test_wrong_values_are_named(arguments, named):
    with pytest.raises(ValueError, match=f"{named} is .*allowed"):
        runaway_rate(*arguments)
