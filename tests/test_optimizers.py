"""The schedule's ends, and LARS against its equations."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from minilab.moco import MoCo
from minilab.optimizers import LARS, build_optimizer, schedule
from minilab.recipe import Recipe


@given(steps=st.integers(1, 5000), share=st.floats(0, 1))
def test_the_schedule_has_exact_ends(steps, share):
    warmup = share * steps
    assert schedule(steps, steps, warmup) == (1.0 if warmup == steps else pytest.approx(0, abs=1e-15))
    assert schedule(0, steps, warmup) == (0.0 if warmup > 0 else 1.0)
    assert schedule(warmup, steps, warmup) == 1.0
    factors = [schedule(step, steps, warmup) for step in range(0, steps + 1, max(1, steps // 50))]
    assert all(0 <= factor <= 1 for factor in factors)


def test_the_schedule_rises_in_a_line_and_falls_as_a_cosine():
    assert [schedule(step, 10, 4) for step in range(5)] == [0, 0.25, 0.5, 0.75, 1]
    assert schedule(7, 10, 4) == pytest.approx(0.5)


@pytest.mark.parametrize("step, steps, warmup", [(11, 10, 1), (-1, 10, 1), (1, 10, 11), (1, 10, -1)])
def test_a_step_outside_is_refused(step, steps, warmup):
    with pytest.raises(ValueError, match=r"allowed: both from 0 to steps \(10\)"):
        schedule(step, steps, warmup)


def test_the_key_encoder_is_not_optimised():
    moco = MoCo(Recipe("moco", batch=8, queue=16))
    keys = {id(p) for p in moco.key_encoder.parameters()}
    for recipe in (Recipe("moco"), Recipe("moco", optimizer="lars")):
        groups = build_optimizer(moco, recipe).param_groups
        optimised = [id(p) for group in groups for p in group["params"]]
        assert not keys & set(optimised)
        assert len(optimised) == len(list(moco.encoder.parameters())) + len(list(moco.head.parameters()))


def test_lars_leaves_vectors_out_of_decay_and_adaptation():
    groups = build_optimizer(MoCo(Recipe("moco", batch=8, queue=16)), Recipe("moco", optimizer="lars")).param_groups
    for group in groups:
        matrices = group["adapt"]
        assert all((p.ndim > 1) == matrices for p in group["params"])
        assert group["weight_decay"] == (5e-4 if matrices else 0)


def test_lars_follows_its_equation():
    weight = torch.tensor([[3.0, 4.0]], requires_grad=True)  # length 5
    bias = torch.tensor([1.0], requires_grad=True)
    optimizer = LARS([
        {"params": [weight], "adapt": True, "weight_decay": 0.1, "lr": 2.0},
        {"params": [bias], "adapt": False, "lr": 2.0},
    ])  # fmt: skip
    direction = torch.tensor([[0.0, 1.0]]) + 0.1 * weight.detach()
    local = 0.001 * 5 / direction.norm() * direction
    expected, velocity = weight.detach().clone(), torch.zeros(1, 2)
    for step in range(2):
        weight.grad, bias.grad = torch.tensor([[0.0, 1.0]]), torch.tensor([0.5])
        if step == 1:
            direction = weight.grad + 0.1 * weight.detach()
            local = 0.001 * weight.detach().norm() / direction.norm() * direction
        velocity = 0.9 * velocity + local
        expected = expected - 2.0 * velocity
        optimizer.step()
        torch.testing.assert_close(weight.detach(), expected)
    assert float(bias.detach()) == pytest.approx(1 - 2 * 0.5 - 2 * (0.9 * 0.5 + 0.5))


def test_lars_is_finite_at_zero_weights_and_gradients():
    weight = torch.zeros(3, 3, requires_grad=True)
    weight.grad = torch.zeros(3, 3)
    LARS([{"params": [weight], "adapt": True, "lr": 1.0}]).step()
    assert torch.equal(weight.detach(), torch.zeros(3, 3))
