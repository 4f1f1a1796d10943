"""Collapse and mixing: each function against plain arithmetic or a loop; what each refuses, by name."""

from __future__ import annotations

import cmath
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import covers, few, many, no_number, no_whole, refused, some

from minilab.spectra import checks, common_mode, dynamics, mixing

POSITIVE = st.floats(1e-6, 1e6)
SHARE = st.floats(0.0, 0.9999)
SEED = st.integers(0, 2**31)
BAD_SHAPES = [torch.zeros(0, 3), torch.zeros(4), torch.zeros(4, 0), torch.zeros(4, 3, dtype=torch.long), [[1.0]], None]


def cloud(rows: int, dim: int, seed: int) -> torch.Tensor:
    """Unit vectors (rows, dim) in float64."""
    z = torch.randn(rows, dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return z / z.norm(dim=1, keepdim=True)


@covers(checks.finite, checks.above_zero, checks.whole)
@many
@given(st.one_of(st.floats(), st.integers(), st.text(), st.none(), st.booleans(), st.lists(st.integers()), st.binary()))
def test_tests_of_one_argument_hold_for_any_value(value):
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    assert checks.finite(value) == (number and math.isfinite(value) and abs(value) <= 1e100)
    assert checks.above_zero(value) == (number and 1e-100 <= value <= 1e100)
    assert checks.whole(value, -5, 5) == (isinstance(value, int) and number and -5 <= value <= 5)
    assert checks.finite(torch.tensor(2.0)) and checks.finite(np.float32(2)) and not checks.finite(torch.ones(1))
    assert not checks.finite(10**400) and checks.whole(np.int64(3), 1, 3)


@covers(checks.series, checks.matrix, checks.pairs)
def test_tests_of_numbers_and_matrices_name_what_they_refuse():
    assert list(checks.series("x", (1, 2.5))) == [1.0, 2.5]
    for wrong in ([math.nan], [1e101], ["a"], [[1.0]], [], None, 3.0, [10**400], [[1], [1, 2]]):
        refused(checks.series, "x", wrong, named="x ")
    checks.matrix("x", torch.ones(2, 3))
    for rows in [*BAD_SHAPES, torch.full((2, 2), math.nan), torch.full((2, 2), math.inf)]:
        refused(checks.matrix, "x", rows, named="x ")
    checks.pairs("x", 4)
    for count in (0, 2, 5):
        refused(checks.pairs, "x", count, named="x has")


@covers(common_mode.common_mode, common_mode.growth_rate)
@few
@given(st.floats(0.05, 1.0), st.integers(1, 12), st.floats(0.05, 1.0))
def test_the_common_mode_is_the_euler_sum_in_small_parts(leak, age, drive):
    """Euler's method with eight times the parts, straight from the two equations, whose error halves with the part."""
    steps, fine = 6, 64
    found = common_mode.common_mode(leak, age, drive, steps)
    assert len(found) == steps + 1 and all(map(math.isfinite, found))
    start = common_mode._numbers(age * common_mode.PARTS + 2)
    coarse = [start[1], *start[2:]][::-1]  # oldest first; the ring's entries lie 1 / PARTS apart
    queue = list(np.interp(np.arange(age * fine + 1) / fine, np.arange(len(coarse)) / common_mode.PARTS, _ring(start)))
    u, v = start[0], start[1]
    for _ in range(steps * fine):
        mean = (sum(queue) - (queue[0] + queue[-1]) / 2) / (age * fine)
        u, v = u + drive * (v - mean) / fine, v + leak * (u - v) / fine
        queue = [*queue[1:], v]
    assert found[-1] == pytest.approx(u, abs=0.05 * max(map(abs, found)) + 2e-5)


def _ring(start: list[float]) -> list[float]:
    """The queue at the start, oldest first: entry 1 of the ring is the oldest, entry 0 is v now."""
    ring = [start[1], *start[2:]]
    return [*ring[1:], ring[0]]


@given(no_number(0.0, 1.0, low_too=True))
@some
def test_the_common_mode_names_what_it_refuses(bad):
    refused(common_mode.common_mode, bad, 4, 0.5, 10, named="leak is")
    refused(common_mode.common_mode, 0.5, 4, bad, 10, named="drive is")


@given(no_whole(1, 1_000_000))
@some
def test_the_common_mode_names_its_whole_numbers(bad):
    refused(common_mode.common_mode, 0.5, bad, 0.5, 10, named="age is")
    refused(common_mode.common_mode, 0.5, 4, 0.5, bad, named="steps is")


@given(st.floats(-5, 5), st.integers(4, 60))
@some
def test_the_rate_of_an_exponential_is_its_rate(rate, count):
    values = [3 * math.exp(rate * n) for n in range(count)]
    assert common_mode.growth_rate(values) == pytest.approx(rate, abs=1e-6)
    for wrong in (values[:3], [*values, math.nan], [*values, math.inf]):
        refused(common_mode.growth_rate, wrong, named="values")


@covers(dynamics.simclr_rate, dynamics.moco_rate)
@many
@given(POSITIVE, POSITIVE, st.integers(1, 10**9), POSITIVE)
def test_rates_solve_their_equations(variance, temperature, negatives, leak):
    kappa = variance / temperature * negatives / (negatives + 1)
    assert dynamics.simclr_rate(variance, temperature, negatives) == pytest.approx(2 * kappa)
    rate = dynamics.moco_rate(variance, temperature, negatives, leak)
    assert rate > 0
    assert rate * (rate + leak) == pytest.approx(leak * kappa, rel=1e-9)  # x^2 + gamma x = gamma kappa


@given(no_number(0.0, low_too=True), no_whole(1))
@some
def test_rates_name_what_they_refuse(bad, no_count):
    refused(dynamics.simclr_rate, bad, 0.1, 5, named="variance is")
    refused(dynamics.simclr_rate, 1.0, bad, 5, named="temperature is")
    refused(dynamics.moco_rate, 1.0, 0.1, 5, bad, named="leak is")
    refused(dynamics.moco_rate, 1.0, 0.1, no_count, 0.1, named="negatives is")


@covers(dynamics.measured_rate)
@few
@given(st.floats(0.2, 1.0), st.integers(1, 8), st.sampled_from([None, 0.1, 1.0]), st.integers(0, 99))
def test_the_measured_rate_is_near_the_predicted(temperature, negatives, leak, seed):
    found = dynamics.measured_rate(temperature, negatives, leak, noise=0.1, steps=60, seed=seed)
    one = dynamics.simclr_rate(1.0, temperature, negatives) if leak is None else None
    assert found == pytest.approx(one or dynamics.moco_rate(1.0, temperature, negatives, leak), rel=0.35)


@given(no_number(0.0, low_too=True), no_whole(1, 100_000), no_whole(8, 100_000), no_number(0.0, 100.0))
@few
def test_the_measured_rate_names_what_it_refuses(temperature, negatives, steps, noise):
    refused(dynamics.measured_rate, temperature, 4, named="temperature is")
    refused(dynamics.measured_rate, 0.5, negatives, named="negatives is")
    refused(dynamics.measured_rate, 0.5, 4, steps=steps, named="steps is")
    refused(dynamics.measured_rate, 0.5, 4, noise=noise, named="noise is")
    refused(dynamics.measured_rate, 0.5, 4, seed=-1, named="seed is")
    refused(dynamics.measured_rate, 0.5, 4, temperature if temperature is not None else "1", named="leak is")


@covers(dynamics.coupled_rates, dynamics.fixed_leak_rate)
@many
@given(*[st.floats(-1e3, 1e3)] * 3)
def test_two_rates_have_the_trace_and_the_determinant(growth, stiffness, leak):
    one, other = dynamics.coupled_rates(growth, stiffness, leak)
    scale = 1 + abs(growth) + abs(stiffness) + abs(leak)
    assert one.real >= other.real
    assert cmath.isclose(one + other, growth - stiffness - leak, abs_tol=1e-9 * scale)
    assert cmath.isclose(one * other, -growth * leak, abs_tol=1e-6 * scale**2)
    assert dynamics.fixed_leak_rate(growth, leak) == growth - leak


@given(no_number(-math.inf))
@some
def test_two_rates_name_what_they_refuse(bad):
    refused(dynamics.coupled_rates, bad, 1.0, 1.0, named="growth is")
    refused(dynamics.coupled_rates, 1.0, bad, 1.0, named="stiffness is")
    refused(dynamics.coupled_rates, 1.0, 1.0, bad, named="leak is")
    refused(dynamics.fixed_leak_rate, 1.0, bad, named="leak is")


@covers(dynamics.noisy_growth)
@some
@given(st.floats(-2, 2), st.floats(0, 0.5), st.floats(0, 4), st.integers(0, 99))
def test_noisy_growth_has_the_mean_and_median_of_a_lognormal(rate, noise, time, seed):
    mean, median = dynamics.noisy_growth(rate, noise, time, paths=4000, seed=seed)
    spread = noise * math.sqrt(time)
    assert math.log(median) == pytest.approx((rate - noise**2 / 2) * time, abs=1e-9 + 0.12 * spread)
    assert math.log(mean) == pytest.approx(rate * time, abs=1e-9 + 0.2 * spread)


@given(no_number(0.0), no_whole(1, 10_000_000))
@some
def test_noisy_growth_names_what_it_refuses(bad, paths):
    refused(dynamics.noisy_growth, 1.0, bad, 1.0, named="noise is")
    refused(dynamics.noisy_growth, 1.0, 1.0, bad, named="time is")
    refused(dynamics.noisy_growth, math.nan, 1.0, 1.0, named="rate is")
    refused(dynamics.noisy_growth, 1.0, 1.0, 1.0, paths=paths, named="paths is")
    refused(dynamics.noisy_growth, 1.0, 1.0, 1e6, named="time is")
    refused(dynamics.noisy_growth, 1.0, 1.0, 1.0, seed=-1, named="seed is")


@covers(mixing.excess, mixing.Decay, mixing.fit_decay)
@some
@given(st.floats(0.5, 5000), st.lists(st.integers(1, 2000), min_size=3, max_size=8, unique=True), st.floats(-1, 0.9))
def test_an_exact_decay_is_found_again(time, ages, floor):
    values = [math.exp(-age / time) for age in ages]
    seen = [floor + (1 - floor) * value for value in values]
    assert mixing.excess(seen, floor) == pytest.approx(values, abs=1e-12)
    found = mixing.fit_decay(ages, values)
    assert found.misfit < 1e-6
    if max(values) > 1e-3:  # else every key has been forgotten, and only an upper limit is to be had
        assert found.time == pytest.approx(time, rel=1e-3)


@given(
    no_number(-math.inf, 1.0),
    st.sampled_from([[1, 2, math.nan], [1, 2, "x"], [1, 2, None], [1, 2, 10**400], [0, 1, 2]]),
)
@some
def test_mixing_names_what_it_refuses(floor, ages):
    refused(mixing.excess, [0.5], floor, named="floor is")
    refused(mixing.excess, [math.nan], 0.5, named="consistency is")
    refused(mixing.fit_decay, ages, [1.0, 0.5, 0.2], named="ages")
    if ages[0]:
        refused(mixing.fit_decay, [1, 2, 3], ages, named="values")
    refused(mixing.fit_decay, [1, 2], [1, 1], named="ages has 2")


@covers(mixing.lag_of_average, mixing.noise_kept, mixing.gap_closed)
@some
@given(st.floats(0, 0.99), st.integers(0, 200))
def test_the_moving_average_does_what_a_loop_does(momentum, steps):
    average, weights = 0.0, []
    for _ in range(steps):
        average = momentum * average + (1 - momentum)
        weights = [momentum * weight for weight in weights] + [1 - momentum]
    assert mixing.gap_closed(momentum, steps) == pytest.approx(average, abs=1e-12)
    many_steps = [(1 - momentum) * momentum**n for n in range(4000)]
    assert mixing.noise_kept(momentum) == pytest.approx(sum(weight**2 for weight in many_steps))
    assert mixing.lag_of_average(momentum) == pytest.approx(sum(n * w for n, w in enumerate(many_steps)), abs=1e-9)


@given(no_number(0.0, 1.0), st.sampled_from([-1, math.nan, math.inf, None, "2"]))
@some
def test_the_moving_average_names_what_it_refuses(momentum, steps):
    for function in (mixing.lag_of_average, mixing.noise_kept):
        refused(function, momentum, named="momentum is")
        refused(function, 1.0, named="momentum is 1.0")
    refused(mixing.gap_closed, momentum, 1, named="momentum is")
    refused(mixing.gap_closed, 0.5, steps, named="steps is")


@covers(mixing.effective_samples)
@some
@given(st.integers(1, 40), st.floats(0, 0.99), no_whole(1, 10_000_000), no_number(0.0, 1.0))
def test_effective_samples_are_those_of_the_sum_over_all_pairs(count, correlation, no_count, no_correlation):
    variance = sum(correlation ** abs(i - j) for i in range(count) for j in range(count)) / count**2
    assert mixing.effective_samples(count, correlation) == pytest.approx(1 / variance)
    refused(mixing.effective_samples, no_count, 0.5, named="count is")
    refused(mixing.effective_samples, 4, no_correlation, named="correlation is")
