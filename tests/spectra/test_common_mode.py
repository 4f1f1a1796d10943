"""The simulated common mode: its growth against the predicted rate, and where it must not grow."""

import itertools
import math

import pytest

from minilab.spectra.common_mode import PARTS, START, _numbers, common_mode, growth_rate
from minilab.spectra.phases import runaway_rate


@pytest.mark.parametrize("drive", [0.1, 0.3, 1.0])
@pytest.mark.parametrize("age", [4, 16, 64])
@pytest.mark.parametrize("leak", [0.005, 0.05, 0.5, 1.0])
def test_it_grows_at_the_predicted_rate_where_it_grows(leak, age, drive):
    rate = runaway_rate(leak, age, drive)
    if rate == 0:
        assert age * drive <= 2
        return
    found = growth_rate(common_mode(leak, age, drive, math.ceil(16 / rate)))
    assert found == pytest.approx(rate, rel=0.02)


@pytest.mark.parametrize("leak", [0.001, 0.1, 1.0])
@pytest.mark.parametrize("age, drive", [(1, 1.0), (4, 0.4), (16, 0.1), (64, 0.02)])
def test_it_does_not_grow_where_the_queue_is_younger_than_two_over_the_drive(leak, age, drive):
    values = common_mode(leak, age, drive, 600)
    assert abs(growth_rate(values)) < 1e-3
    assert max(map(abs, values)) < 10 * START


def test_it_is_the_system_that_a_plain_integration_gives():
    leak, age, drive, step, steps = 0.2, 3, 0.9, 1 / 400, 20
    start = common_mode(leak, age, drive, 1)[0]
    past = slow_start(age, round(1 / step))
    u, v, length = start, past[-1], len(past) - 1
    for _ in range(round(steps / step)):
        mean = (sum(past[-length - 1 :]) - (past[-length - 1] + past[-1]) / 2) / length
        u, v = u + step * drive * (v - mean), v + step * leak * (u - v)
        past.append(v)
    assert common_mode(leak, age, drive, steps)[-1] == pytest.approx(u, rel=0.02)


def slow_start(age: int, parts: int) -> list[float]:
    """The queue at the start, oldest first, with the eight entries a step joined by lines."""
    entries = _numbers(age * PARTS + 2)
    coarse = [*entries[2:], entries[1]]
    fine, each = [], parts // PARTS
    for left, right in itertools.pairwise(coarse):
        fine += [left + (right - left) * i / each for i in range(each)]
    return [*fine, coarse[-1]]


def test_the_start_is_small_and_always_the_same():
    first, again = common_mode(0.1, 16, 0.2, 5), common_mode(0.1, 16, 0.2, 5)
    assert first == again and len(first) == 6 and 0 < abs(first[0]) <= START


def test_the_rate_of_an_exponential_is_found():
    assert growth_rate([3 * math.exp(0.25 * n) for n in range(40)]) == pytest.approx(0.25)
    with pytest.raises(ValueError, match="values has 3 numbers; allowed: 4 or more"):
        growth_rate([1.0, 2.0, 3.0])


@pytest.mark.parametrize(
    "arguments, named",
    [
        ((0, 4, 0.1, 10), "leak is 0"),
        ((0.1, 4, 1.5, 10), "drive is 1.5"),
        ((0.1, 4, math.nan, 10), "drive is nan"),
        ((0.1, 2.5, 0.1, 10), "age is 2.5"),
        ((0.1, 0, 0.1, 10), "age is 0"),
        ((0.1, 4, 0.1, True), "steps is True"),
        ((1.0, 4, 1.0, 691), "steps is 691"),
    ],
)
def test_wrong_values_are_named(arguments, named):
    with pytest.raises(ValueError, match=f"{named}; allowed: "):
        common_mode(*arguments)
