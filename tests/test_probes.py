"""What the probe measures, against slow and known answers; and that measuring changes nothing."""

import copy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from minilab import probes
from minilab.data import shapes
from minilab.probes import Probe, decode_points, encode_points, flatten, lag
from minilab.recipe import Recipe
from minilab.training import build_method


@pytest.fixture(scope="module")
def images():
    return shapes(concepts=4, train=64, test=40, seed=3)


def moco(momentum: float = 0.9):
    return build_method(Recipe("moco", "micro", batch=16, queue=32, momentum=momentum))


def test_measuring_changes_no_weight_no_statistic_and_no_random_state(images):
    method = moco().train()
    before, state = copy.deepcopy(method.state_dict()), torch.get_rng_state()
    probe = Probe(images, 4)
    probe.after_step(method, 3)
    probe.end_epoch(method, 4, torch.tensor([1.0, 2.0]))
    assert all(torch.equal(value, before[name]) for name, value in method.state_dict().items())
    assert torch.equal(torch.get_rng_state(), state) and method.training and method.key_encoder.training


def test_consistency_compares_keys_then_and_now(images):
    method, probe = moco(), Probe(images, 4)
    for step in range(1, 9):
        if step == 5:  # between ages 4 and 1 before the end at step 8, the encoder becomes another
            torch.manual_seed(9)
            for weight in method.key_weights:
                weight.normal_(std=0.3)
        probe.after_step(method, step)
    _, curve = probe.end_epoch(method, 8, torch.ones(4))
    assert curve["age"] == [1, 4]
    assert curve["consistency"][0] == pytest.approx(1, abs=1e-5) and curve["consistency"][1] < 0.9


def test_only_keys_that_will_be_asked_for_are_kept(images, monkeypatch):
    method, probe = moco(), Probe(images, 8)
    monkeypatch.setattr(probe, "_embed", lambda network: torch.zeros(1, 1))
    for step in range(1, 600):
        probe.after_step(method, step)
    assert set(probe.keys) == {s for s in range(599 - 256, 600) if s % 8 in (0, 4, 7)}


def test_simclr_has_no_keys(images):
    probe = Probe(images, 4)
    method = build_method(Recipe("simclr", "micro", batch=16))
    probe.after_step(method, 3)
    figures, curve = probe.end_epoch(method, 4, torch.tensor([1.0, 3.0]))
    assert set(figures) == {"loss_std", "embedding_cosine", "pretext_accuracy"} and figures["loss_std"] == 1
    assert set(curve) == {"points"}


def test_the_cosine_of_two_is_that_of_a_slow_loop():
    z = torch.nn.functional.normalize(torch.randn(7, 3, generator=torch.Generator().manual_seed(0)), dim=1)
    pairs = [float(z[i] @ z[j]) for i in range(7) for j in range(7) if i != j]
    assert probes._cosine_of_two(z) == pytest.approx(sum(pairs) / len(pairs), abs=1e-6)
    assert probes._cosine_of_two(torch.ones(5, 4) / 2) == pytest.approx(1)


def test_lag_is_a_distance_over_a_length():
    method = moco()
    assert lag(method) == 0
    with torch.no_grad():
        for weight in method.key_weights:
            weight.mul_(0.75)
    assert lag(method) == pytest.approx(0.25)


def test_the_map_is_the_two_main_components():
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(50, 6, generator=generator, dtype=torch.float64)
    z = torch.nn.functional.normalize(features, dim=1)
    z = z - z.mean(dim=0)
    kept = torch.linalg.eigvalsh(z.T @ z)[-2:]
    flat = flatten(features)
    torch.testing.assert_close((flat.T @ flat).diagonal().flip(0), kept)


def test_a_later_map_is_turned_towards_the_earlier_one():
    features = torch.randn(50, 6, generator=torch.Generator().manual_seed(0))
    first = flatten(features)
    turn = torch.linalg.qr(torch.randn(2, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64))[0]
    torch.testing.assert_close(flatten(features, first @ turn), first @ turn)


def test_equal_features_give_a_map_of_one_point():
    flat = flatten(torch.ones(20, 6), torch.zeros(20, 2, dtype=torch.float64))
    assert float(flat.abs().max()) < 1e-6


@given(st.integers(0, 2**31), st.integers(1, 40))
@settings(max_examples=40, deadline=None)
def test_points_come_back_to_half_a_step(seed, count):
    points = 1.5 * (2 * torch.rand(count, 2, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) - 1)
    back = decode_points(encode_points(points))
    assert float((back - points.clamp(-probes.REACH, probes.REACH)).abs().max()) <= probes.REACH / 254 + 1e-9


@pytest.mark.parametrize("text", ["", "AAA", "AAAA", "<script>", "é"])
def test_a_text_that_is_no_map_is_refused(text):
    with pytest.raises(ValueError):
        decode_points(text)


@pytest.mark.parametrize("name", ["simclr", "moco"])
def test_pretext_accuracy_is_the_share_of_anchors_that_find_their_partner(images, name):
    method = build_method(Recipe(name, "micro", batch=16, queue=32)).train()
    views = torch.rand(32, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    found = 0
    with torch.no_grad(), probes.statistics_kept(method):
        if name == "simclr":
            z = torch.nn.functional.normalize(method.embed(views))
            for anchor in range(32):
                cosines = z @ z[anchor]
                cosines[anchor] = -2
                found += int(cosines.argmax()) == (anchor + 16) % 32
        else:
            queries = torch.nn.functional.normalize(method.queries(views[:16]))
            candidates = torch.cat([method.keys(views[16:]), method.queue])
            for anchor in range(16):
                cosines = queries[anchor] @ candidates[[anchor, *range(16, 48)]].T
                found += int(cosines.argmax()) == 0
    state = torch.get_rng_state()
    assert probes.pretext_accuracy(method, views) == pytest.approx(found / (32 if name == "simclr" else 16))
    assert torch.equal(torch.get_rng_state(), state) and method.training
