"""Pitfalls: counts and gradients against what they must be by their definition; what each refuses, by name."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import covers, exempt, few, no_whole, refused, some
from torch import nn

from minilab.moco import MoCo
from minilab.pitfalls import accumulation, batchnorm, sharding
from minilab.recipe import Recipe
from minilab.training import build_method

exempt(sharding.compare, "starts real processes: tests/pitfalls/test_sharding.py; what it refuses is below")
SMALL = {"encoder": "micro", "batch": 8, "queue": 16, "dim": 8, "precision": "float32"}


def images(count: int, seed: int = 0) -> torch.Tensor:
    return torch.rand(2 * count, 3, 32, 32, generator=torch.Generator().manual_seed(seed))


def frozen() -> nn.Module:
    method = build_method(Recipe("simclr", **SMALL))
    accumulation.freeze_batch_norm(method)
    return method


@covers(accumulation.CandidateCounter)
@some
@given(st.integers(1, 6), st.integers(2, 7), st.booleans(), st.integers(0, 99))
def test_the_counter_counts_what_is_not_ruled_out(rows, columns, by_name, seed):
    dice = torch.Generator().manual_seed(seed)
    logits = torch.randn(rows, columns, generator=dice)
    out = torch.rand(rows, columns, generator=dice) < 0.3
    out[:, 0] = False
    logits[out] = -math.inf
    target = torch.zeros(rows, dtype=torch.long)
    want = F.cross_entropy(logits, target)
    with accumulation.CandidateCounter() as counter:
        found = F.cross_entropy(input=logits, target=target) if by_name else F.cross_entropy(logits, target)
    assert torch.equal(found, want) and counter.seen == [(rows, int((~out).sum(dim=1).min()))]
    F.cross_entropy(logits, target)
    assert len(counter.seen) == 1, "after it, nothing is counted"


@covers(accumulation.Step, accumulation.one_step, accumulation.compare, accumulation.freeze_batch_norm)
@settings(few, max_examples=4)
@given(st.sampled_from([(4, 2), (5, 3)]), st.integers(0, 99))
def test_gradcache_is_the_whole_batch_and_naive_is_the_mean_of_its_chunks(sizes, seed):
    count, chunk = sizes
    method, views = frozen(), images(count, seed)
    before = {name: value.clone() for name, value in method.state_dict().items()}
    found = accumulation.compare(method, views, chunk)
    assert found["gradcache"]["cosine"] == pytest.approx(1, abs=1e-4)
    assert found["gradcache"]["loss"] == pytest.approx(found["whole"]["loss"], abs=1e-4)
    assert found["whole"]["candidates"] == found["gradcache"]["candidates"] == 2 * count - 1
    first, second = views.chunk(2)
    pieces = [torch.cat(both) for both in zip(first.split(chunk), second.split(chunk), strict=True)]
    steps = [accumulation.one_step(method, piece, "whole", 2) for piece in pieces]
    loss = sum(step.loss * len(piece) for step, piece in zip(steps, pieces, strict=True)) / len(views)
    assert found["naive"]["loss"] == pytest.approx(loss, abs=1e-4)
    assert found["naive"]["candidates"] == min(len(piece) for piece in pieces) - 1
    assert all(torch.equal(value, before[name]) for name, value in method.state_dict().items()), "left alone"


def test_accumulation_names_what_it_refuses():
    method, views = frozen(), images(4)
    for chunk in (0, 1, 5, 2.0, None, "2", True, math.nan, 3):  # 3 of 4 leaves a single image
        refused(accumulation.one_step, method, views, "naive", chunk, named="chunk is")
        refused(accumulation.compare, method, views, chunk, named="chunk is")
    for wrong in (views[0], views[:3], views[:2], views[:0]):
        refused(accumulation.one_step, method, wrong, "whole", 2, named="views has")
    for way in ("", "half", None, 3, ["whole"]):
        refused(accumulation.one_step, method, views, way, 2, named="way is")


@covers(batchnorm.Blind, batchnorm.Blind.forward, batchnorm.readings)
@some
@given(st.integers(2, 60), st.integers(0, 99))
def test_a_blind_network_sees_its_group_and_nothing_else(count, seed):
    views = batchnorm.readings(count, torch.Generator().manual_seed(seed))
    assert views.shape == (2 * count, batchnorm.DETECTORS, 1, 1)
    assert torch.equal(views.sum(dim=1).flatten(), torch.ones(2 * count)), "one detector fires in each view"
    found = batchnorm.Blind("batch").train()(views)
    assert found.shape == (2 * count, batchnorm.DETECTORS)
    # batch norm over 2n values of a view and as many zeros: minus the mean over the standard deviation
    padded = F.pad(views, (0, 1))
    flat = padded.transpose(0, 1).flatten(1)
    want = -flat.mean(1) / (flat.var(1, correction=0) + 1e-5).sqrt()
    assert torch.allclose(found.mean(dim=0), want, atol=0.01) and float(found.detach().std(dim=0).max()) < 0.01


@covers(batchnorm.blind, batchnorm.blind_accuracy)
@settings(few, max_examples=8)
@given(st.sampled_from([("simclr", 1), ("moco", 1), ("moco", 4)]), st.integers(0, 9))
def test_only_shared_statistics_tell_a_blind_network_its_partner(kind, seed):
    method, groups = kind
    recipe = Recipe(method, **{**SMALL, "batch": 32, "queue": 64}, bn_groups=groups, shuffle=False, seed=seed)
    assert isinstance(batchnorm.blind(recipe).encoder, batchnorm.Blind)
    before = torch.random.get_rng_state()
    found = batchnorm.blind_accuracy(recipe, asked=3)
    assert torch.equal(before, torch.random.get_rng_state()) and found == batchnorm.blind_accuracy(recipe, asked=3)
    guess = 1 / 63 if method == "simclr" else 1 / 65
    if method == "moco":  # its queue was normalised in other company even if there is one group only
        assert found > 3 * guess
    else:
        assert found < 8 * guess


@covers(batchnorm.company)
@few
@given(st.integers(2, 4), st.integers(2, 4), st.integers(0, 9))
def test_keys_in_their_querys_company_are_those_of_the_groups(size, groups, seed):
    method = build_method(Recipe("moco", **SMALL, seed=seed))
    views = images(size * groups, seed)
    before = {name: value.clone() for name, value in method.state_dict().items()}
    found = batchnorm.company(method, views, size)
    assert all(torch.equal(value, before[name]) for name, value in method.state_dict().items()), "left alone"
    queries, keys = [], []
    method.train()
    method.key_encoder.train()
    first, second = views.chunk(2)
    with torch.no_grad():
        for place in range(0, len(first), size):  # one group after the other, by hand
            queries.append(F.normalize(method.head(method.encoder(first[place : place + size])), dim=1))
            keys.append(F.normalize(method.key_encoder(second[place : place + size]), dim=1))
    own = (torch.cat(queries) * torch.cat(keys)).sum(dim=1).mean()
    assert found["kept"]["own"] == pytest.approx(float(own), abs=1e-3)
    assert set(found) == {"kept", "parted"} and all(-1.001 <= each["mates"] <= 1.001 for each in found.values())


@given(no_whole(1, 10_000_000), no_whole(2, 4))
@few
def test_batch_norms_traps_name_what_they_refuse(count, size):
    refused(batchnorm.readings, count, torch.Generator(), named="count is")
    if count not in range(100_001, 10_000_001):
        refused(batchnorm.blind_accuracy, Recipe("simclr", **SMALL), count, named="asked is")
    refused(batchnorm.company, _moco(), images(8), size, named="size is")
    refused(batchnorm.company, _moco(), images(8), 3, named="size is 3")
    refused(batchnorm.company, _moco(), images(4)[:3], 2, named="views has 3 rows")


def _moco() -> MoCo:
    method = build_method(Recipe("moco", **SMALL))
    assert isinstance(method, MoCo)
    return method


@covers(sharding.Learner, sharding.Learner.forward, sharding.sharded_loss)
@few
@given(st.sampled_from(list(sharding.SCHEMES)), st.integers(2, 5), st.floats(0.1, 2), st.integers(0, 99))
def test_alone_every_scheme_is_the_plain_loss(scheme, count, temperature, seed):
    learner = sharding.Learner(frozen()).double()
    z, learned = learner(images(count, seed).double())
    assert torch.allclose(z.norm(dim=1), torch.ones(2 * count, dtype=torch.float64))
    assert float(learned.detach()) == pytest.approx(learner.method.temperature)
    z = z.detach()
    found = float(sharding.sharded_loss(z, torch.tensor(temperature), scheme))
    want = 0.0
    for i in range(2 * count):
        powers = {j: math.exp(float(z[i] @ z[j]) / temperature) for j in range(2 * count) if j != i}
        want -= math.log(powers[(i + count) % (2 * count)] / sum(powers.values())) / (2 * count)
    assert found == pytest.approx(want, abs=1e-5)


@covers(sharding.check_shards, sharding.Step, sharding.table)
@some
@given(st.integers(1, 40), st.integers(-2, 12))
def test_shards_are_equal_and_of_two_or_more(count, world):
    if count >= 4 and world >= 2 and count % world == 0 and count // world >= 2:
        sharding.check_shards(count, world)
        return
    refused(sharding.check_shards, count, world, named="images is" if count < 4 else "world is")


def test_shards_name_what_they_refuse():
    for world in (None, 2.0, "2", True, math.nan, 10**400):
        refused(sharding.check_shards, 8, world, named="world is")
    refused(sharding.check_shards, "8", 2, named="images is")
    recipe = Recipe("simclr", **SMALL)
    refused(sharding.compare, frozen(), recipe, images(4)[:3], 2, named="views has 3")
    refused(sharding.compare, frozen(), recipe, images(4), 3, named="world is 3")
    z = torch.eye(4, dtype=torch.float64)
    for scheme in ("", None, 3, []):
        refused(sharding.sharded_loss, z, torch.tensor(1.0), scheme, named="scheme is")
    for wrong in (z[:3], z[0], z * math.nan, z.long()):
        refused(sharding.sharded_loss, wrong, torch.tensor(1.0), next(iter(sharding.SCHEMES)), named="z ")
    refused(sharding.table, {}, named="steps has nothing")
    step = sharding.Step(1.0, 5, torch.ones(3), 0.5)
    assert "other                                     4  1.000   1.000   1.000   1.00" in sharding.table(
        {"one process": step, "other": step}
    )
