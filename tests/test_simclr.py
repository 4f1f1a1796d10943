"""SimCLR: one encoder, both views together."""

import copy

import torch

from minilab.losses import nt_xent
from minilab.recipe import Recipe
from minilab.simclr import SimCLR


def small() -> SimCLR:
    torch.manual_seed(0)
    return SimCLR(Recipe("simclr", encoder="micro", batch=8, dim=6))


def test_it_has_no_state_but_its_weights():
    simclr = small()
    assert simclr.negatives == 14 and simclr.gauges() == {}
    before = copy.deepcopy(simclr.state_dict())
    simclr.after_step()
    assert all(torch.equal(value, before[name]) for name, value in simclr.state_dict().items())
    assert {name.split(".")[0] for name in before} == {"encoder", "head"}


def test_its_loss_is_nt_xent_of_both_views_through_one_encoder():
    simclr = small()
    views = torch.rand(16, 3, 8, 8)
    reference = copy.deepcopy(simclr)
    loss = simclr(views)
    assert torch.equal(loss, nt_xent(reference.head(reference.encoder(views)), 0.1))
    loss.backward()
    assert all(p.grad is not None and bool(p.grad.isfinite().all()) for p in simclr.parameters())


def test_a_batch_of_another_size_is_right():
    simclr = small()
    for images in (2, 5, 13):
        assert bool(simclr(torch.rand(2 * images, 3, 8, 8)).isfinite())
