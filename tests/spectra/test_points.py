"""Points on a circle: the gradient is autograd's, the queue is a queue, and the random numbers are mulberry32's."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from minilab.geometry import spread
from minilab.losses import chance_loss, info_nce, nt_xent
from minilab.spectra.points import DIFFERENCE, NOISE, NUMBERS, Points, Random, Setting

SETTINGS = [
    Setting("moco", batch=5, queue=7, momentum=0.9, seed=1),
    Setting("moco", batch=1, queue=1, temperature=0.05, seed=2),
    Setting("moco", batch=16, queue=3, width=0.02, images=2, seed=3),
    Setting("simclr", batch=2, seed=4),
    Setting("simclr", batch=9, temperature=0.07, width=0.02, seed=5),
]


def mulberry32(state: int, count: int) -> list[float]:
    """The generator in plain whole numbers."""
    found = []
    for _ in range(count):
        state = (state + 0x6D2B79F5) & 0xFFFFFFFF
        t = ((state ^ (state >> 15)) * (state | 1)) & 0xFFFFFFFF
        t = ((t + ((t ^ (t >> 7)) * (t | 61) & 0xFFFFFFFF)) & 0xFFFFFFFF) ^ t
        found.append((t ^ (t >> 14)) / 2**32)
    return found


@pytest.mark.parametrize("seed", [0, 1, 123456789, 2**32 - 1])
def test_the_numbers_are_those_of_mulberry32_however_they_are_asked_for(seed: int) -> None:
    expected = mulberry32(seed, 1000)
    dice = Random(seed)
    assert [*dice.uniform(3), *dice.uniform(1), *dice.uniform(996)] == expected


def test_the_numbers_look_normal() -> None:
    x = Random(7).normal(20_000, 2)
    assert abs(x.mean()) < 0.02 and abs(x.std() - 1) < 0.02 and abs(np.corrcoef(x.T)[0, 1]) < 0.02
    assert abs((np.abs(x) > 1.96).mean() - 0.05) < 0.005


@pytest.mark.parametrize("setting", SETTINGS)
def test_loss_and_gradient_are_those_of_the_lab_by_autograd(setting: Setting) -> None:
    run = Points(setting)
    run.step(3)  # so that the two encoders differ
    first, second = run.views()
    loss, slope, _ = run.gradient(first, second)
    weights = torch.tensor(run.weights, requires_grad=True)
    one, two = torch.tensor(first), torch.tensor(second)
    if setting.method == "moco":
        keys = two @ torch.tensor(run.key_weights).T
        exact = info_nce(one @ weights.T, keys, torch.tensor(run.queue), setting.temperature)
    else:
        exact = nt_xent(torch.cat([one, two]) @ weights.T, setting.temperature)
    exact.backward()
    assert loss == pytest.approx(exact.item(), abs=1e-12)
    assert weights.grad is not None and np.abs(slope - weights.grad.numpy()).max() < 1e-11
    assert np.abs(slope).max() > 1e-4
    assert setting.guess == chance_loss(setting.negatives)


def test_a_step_descends_rescales_then_moves_the_key_encoder() -> None:
    run, twin = (Points(Setting(momentum=0.75, rate=0.3)) for _ in range(2))
    before = run.weights.copy()
    _, slope, keys = twin.gradient(*twin.views())
    run.step()
    moved = before - 0.3 * slope
    assert np.allclose(run.weights, moved / np.linalg.norm(moved), atol=1e-15)
    assert np.allclose(run.key_weights, 0.75 * before + 0.25 * run.weights, atol=1e-15)
    assert np.array_equal(run.queue[:8], keys)


def test_rescaling_the_weights_moves_no_point() -> None:
    run = Points(Setting())
    before = run.points()
    run.weights *= 7
    assert np.allclose(run.points(), before, atol=1e-14)


@pytest.mark.parametrize("batch, size", [(3, 7), (4, 4), (5, 3), (1, 1), (8, 512)])
def test_the_queue_holds_the_newest_keys_and_loses_the_oldest(batch: int, size: int) -> None:
    run, twin = (Points(Setting(batch=batch, queue=size, momentum=0.5)) for _ in range(2))
    made: list[np.ndarray] = list(twin.queue)
    for _ in range(6):
        twin.weights, twin.key_weights, twin.queue = run.weights, run.key_weights, run.queue
        made.extend(twin.gradient(*twin.views())[2])
        run.step()
    oldest_first = np.roll(run.queue, -run.oldest, axis=0)
    assert np.array_equal(oldest_first, np.array(made[-size:]))


def test_images_and_views_are_spread_as_they_say() -> None:
    run = Points(Setting(images=64, batch=64))
    assert run.images.shape == (64, 1 + NUMBERS) and (run.images[:, 0] == 1).all()
    assert run.images[:, 1:].std() == pytest.approx(DIFFERENCE, rel=0.1)
    first, second = run.views()
    assert (first[:, 0] == 1).all() and (second[:, 0] == 1).all()
    assert (first - second)[:, 1:].std() == pytest.approx(math.sqrt(2) * NOISE, rel=0.15)


def test_the_gauges_are_those_of_the_lab() -> None:
    run = Points(Setting(images=20))
    assert math.isnan(run.gauges()["loss"]) and run.gauges()["steps"] == 0
    run.step(5)
    gauges, z = run.gauges(), torch.tensor(run.points())
    assert gauges["spread"] == pytest.approx(spread(z), abs=1e-12)
    assert gauges["mean"] == pytest.approx(float(z.mean(dim=0).norm()), abs=1e-12)
    assert gauges["steps"] == 5 and gauges["loss"] == run.loss


@pytest.mark.parametrize("turn", [0.3, -0.3])
def test_turns_add_up_over_the_whole_way_round(turn: float) -> None:
    run = Points(Setting(width=0.01))
    cosine, sine = math.cos(2 * math.pi * turn), math.sin(2 * math.pi * turn)
    for _ in range(10):
        run.weights = np.array([[cosine, -sine], [sine, cosine]]) @ run.weights
        run._follow()
    assert run.turns == pytest.approx(10 * turn)


def test_a_mean_near_the_centre_has_no_direction_to_follow() -> None:
    run = Points(Setting(width=0.01))
    run.weights[:, 0] = 0  # no bias: the points lie on both sides
    run.weights[:, 1:] = 0
    run.weights[0, 1] = 1
    run.images[:, 1] = np.where(np.arange(12) % 2, 1, -1)
    run._follow()
    assert run.turns == 0 and run.gauges()["mean"] < 1e-12


def test_simclr_uses_neither_queue_nor_momentum() -> None:
    setting = Setting("simclr", batch=4)
    run, other = Points(setting), Points(replace(setting, momentum=0.0))
    queue = run.queue.copy()
    run.step(20)
    other.step(20)
    assert np.array_equal(run.weights, other.weights) and np.array_equal(run.queue, queue)


@pytest.mark.parametrize(
    "field, value, allowed",
    [
        ("method", "byol", "simclr, moco"),
        ("batch", 0, "a whole number from 1 to 64"),
        ("batch", 2.0, "a whole number from 1 to 64"),
        ("batch", True, "a whole number from 1 to 64"),
        ("queue", 513, "a whole number from 1 to 512"),
        ("images", 1, "a whole number from 2 to 64"),
        ("seed", -1, "a whole number from 0 to 4294967295"),
        ("momentum", 1.1, "a number from 0.0 to 1.0"),
        ("temperature", 0, "a number from 0.01 to 10.0"),
        ("rate", math.nan, "a number from 0.0 to 100.0"),
        ("width", "1", "a number from 0.001 to 10.0"),
    ],
)
def test_a_wrong_value_is_refused_by_name(field: str, value: object, allowed: str) -> None:
    with pytest.raises(ValueError) as told:
        Setting(**{field: value})  # type: ignore[arg-type]
    assert str(told.value) == f"{field} is {value!r}; allowed: {allowed}"


def test_simclr_needs_two_images() -> None:
    with pytest.raises(ValueError, match="batch is 1; allowed: 2 or more"):
        Setting("simclr", batch=1)
