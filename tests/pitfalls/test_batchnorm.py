"""What shared statistics give away: to a network that cannot see, and to one that can."""

import pytest
import torch

from minilab.evaluation import knn
from minilab.pitfalls.batchnorm import BLUR, DETECTORS, Blind, blind, blind_accuracy, company, readings
from minilab.recipe import Recipe
from minilab.training import build_method

SMALL = {"batch": 64, "queue": 512, "dim": DETECTORS}


def dice(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_a_blind_encoder_says_the_same_of_all_that_share_statistics():
    encoder = Blind("batch").train()
    one, other = (encoder(readings(32, dice(seed))) for seed in (0, 1))
    assert (one - one[0]).abs().max() < 10 * BLUR < (one[0] - other[0]).abs().max()


def test_a_blind_encoder_is_useless_in_evaluation():
    encoder = Blind("batch").train()
    encoder(readings(500, dice()))
    shown = readings(600, dice(1))
    features, labels = encoder.eval()(shown), shown.flatten(1).argmax(dim=1)
    assert knn(features[:600], labels[:600], features[600:], labels[600:]) < 3 / DETECTORS


@pytest.mark.parametrize("groups", [1, 4])
def test_shared_statistics_are_enough_to_find_the_partner(groups):
    assert blind_accuracy(Recipe("moco", bn_groups=groups, shuffle=False, **SMALL)) > 0.8


def test_a_shuffle_takes_most_of_it_away_but_not_with_one_group():
    in_order, shuffled = (blind_accuracy(Recipe("moco", bn_groups=8, shuffle=way, **SMALL)) for way in (False, True))
    assert shuffled < 0.1 < 0.7 < in_order
    alone = [blind_accuracy(Recipe("moco", bn_groups=1, shuffle=way, **SMALL)) for way in (False, True)]
    assert alone[0] == alone[1] > 0.9


@pytest.mark.parametrize("recipe", [Recipe("moco", norm="group", **SMALL), Recipe("simclr", **SMALL)])
def test_where_no_candidate_differs_by_its_company_a_blind_network_guesses(recipe):
    assert blind_accuracy(recipe) < 0.03


def test_the_random_state_is_left_alone_and_the_answer_repeats():
    before = torch.get_rng_state()
    first, second = (blind_accuracy(Recipe("moco", bn_groups=8, **SMALL), asked=2) for _ in range(2))
    assert first == second and torch.equal(before, torch.get_rng_state())


def test_readings_are_two_views_of_one_kind_but_for_the_misread():
    views = readings(2000, dice()).flatten(1)
    assert torch.equal(views.sum(dim=1), torch.ones(4000))
    agree = (views[:2000] * views[2000:]).sum(dim=1).mean()
    assert 0.87 < agree < 0.94  # 0.95 squared, and some misread alike


def test_company_of_a_blind_network_is_all_that_counts():
    method = blind(Recipe("moco", bn_groups=8, **SMALL))
    for _ in range(8):
        method.train().push(method.keys(readings(64, dice())[64:]))
    found = company(method, readings(512, dice(1)), size=8)
    assert found["kept"]["pretext_accuracy"] > 0.7 > 0.1 > found["parted"]["pretext_accuracy"]
    assert found["kept"]["mates"] == pytest.approx(found["kept"]["own"], abs=1e-4)  # it cannot tell them apart
    assert found["kept"]["own"] > found["parted"]["own"] + 0.05


def test_company_does_not_count_with_group_norm():
    method = build_method(Recipe("moco", "micro", batch=16, queue=64, norm="group"))
    found = company(method, torch.rand(64, 3, 16, 16, generator=dice()), size=8)
    assert found["kept"] == pytest.approx(found["parted"], abs=1e-5)


def test_company_leaves_the_method_alone():
    method = build_method(Recipe("moco", "micro", batch=16, queue=64)).eval()
    before = {name: value.clone() for name, value in method.state_dict().items()}
    views, random = torch.rand(64, 3, 16, 16), torch.get_rng_state()
    company(method, views, size=8)
    assert all(torch.equal(value, before[name]) for name, value in method.state_dict().items())
    assert not method.training and method.groups == 1 and method.shuffle
    assert torch.equal(random, torch.get_rng_state())


@pytest.mark.parametrize("size", [1, 5, 32, 64])
def test_groups_that_do_not_fit_are_refused(size):
    method = build_method(Recipe("moco", "micro", batch=16, queue=64))
    with pytest.raises(ValueError, match=f"size is {size}; allowed: 2 or more"):
        company(method, torch.rand(64, 3, 16, 16), size)
