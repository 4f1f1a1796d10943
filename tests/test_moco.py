"""MoCo's state: the queue, the key encoder, and when each may change."""

import copy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from minilab.losses import normalize
from minilab.moco import MoCo
from minilab.recipe import Recipe


def small(**changes) -> MoCo:
    torch.manual_seed(0)
    values = {"encoder": "micro", "batch": 8, "queue": 20, "dim": 6, "momentum": 0.9, **changes}
    return MoCo(Recipe("moco", **values))


def views(images: int = 8, seed: int = 0) -> torch.Tensor:
    return torch.rand(2 * images, 3, 8, 8, generator=torch.Generator().manual_seed(seed))


def numbered(start: int, count: int, dim: int = 6) -> torch.Tensor:
    """Keys whose first entry is their number, to follow them through the queue."""
    keys = torch.zeros(count, dim)
    keys[:, 0] = torch.arange(start, start + count)
    return keys


def in_order(moco: MoCo) -> list[float]:
    """First entries of the queue, oldest first."""
    return moco.queue.roll(-int(moco.oldest), dims=0)[:, 0].tolist()


@settings(max_examples=80, deadline=None)
@given(size=st.integers(1, 30), pushes=st.lists(st.integers(0, 75), min_size=1, max_size=8))
def test_the_queue_keeps_the_newest_in_order(size, pushes):
    """First in, first out, for pushes that do not divide the queue, fill it several times over, or are empty."""
    moco = small(queue=size)
    pushed = 0
    for count in pushes:
        moco.push(numbered(pushed, count))
        pushed += count
    kept = min(size, pushed)
    assert in_order(moco)[size - kept :] == list(range(pushed - kept, pushed))
    assert int(moco.filled) == kept
    assert moco.gauges() == {"queue_filled": kept / size}


def test_it_starts_full_of_random_unit_vectors_and_says_so():
    moco = small(queue=500)
    torch.testing.assert_close(moco.queue.norm(dim=1), torch.ones(500))
    assert abs(float(moco.queue.mean())) < 0.05
    assert int(moco.filled) == 0 and int(moco.oldest) == 0
    assert moco.negatives == 500


def test_keys_enter_after_the_step_and_not_before():
    moco = small()
    before = moco.queue.clone()
    loss = moco(views())
    assert torch.equal(moco.queue, before)  # a loss awaits backward
    loss.backward()
    assert torch.equal(moco.queue, before)
    moco.after_step()
    assert int(moco.filled) == 8 and not torch.equal(moco.queue[:8], before[:8])
    assert torch.equal(moco.queue[8:], before[8:])
    torch.testing.assert_close(moco.queue.norm(dim=1), torch.ones(20))


def test_changing_the_queue_before_backward_is_an_error_not_a_wrong_gradient():
    moco = small()
    loss = moco(views())
    moco.after_step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_two_losses_before_a_step_push_both():
    moco = small()
    (moco(views(seed=1)) + moco(views(seed=2))).backward()
    moco.after_step()
    assert int(moco.filled) == 16 and moco.waiting == []


def test_the_key_encoder_is_an_average_and_gets_no_gradient():
    moco = small(momentum=0.75)
    with torch.no_grad():
        for parameter in moco.encoder.parameters():
            parameter.add_(1.0)
    keys = [p.clone() for p in moco.key_encoder.parameters()]
    moco(views()).backward()
    assert all(p.grad is None and not p.requires_grad for p in moco.key_encoder.parameters())
    assert all(p.grad is not None for p in [*moco.encoder.parameters(), *moco.head.parameters()])
    assert all(torch.equal(p, q) for p, q in zip(moco.key_encoder.parameters(), keys, strict=True))
    moco.after_step()
    queries = [*moco.encoder.parameters(), *moco.head.parameters()]
    for now, before, query in zip(moco.key_encoder.parameters(), keys, queries, strict=True):
        torch.testing.assert_close(now, 0.75 * before + 0.25 * query)


@pytest.mark.parametrize("momentum, follows", [(0.0, True), (1.0, False)])
def test_the_ends_of_momentum_copy_and_freeze(momentum, follows):
    moco = small(momentum=momentum)
    with torch.no_grad():
        moco.head[0].weight.add_(1.0)
    before = moco.key_encoder[1][0].weight.clone()
    moco(views()).backward()
    moco.after_step()
    expected = moco.head[0].weight if follows else before
    assert torch.equal(moco.key_encoder[1][0].weight, expected)


def test_evaluation_changes_nothing():
    moco = small().eval()
    before = copy.deepcopy(moco.state_dict())
    with torch.no_grad():
        assert bool(moco(views()).isfinite())
        assert bool(moco.key_encoder(views()).isfinite().all())
    moco.after_step()
    assert all(torch.equal(value, before[name]) for name, value in moco.state_dict().items())
    assert moco.waiting == []


def test_batch_norm_of_the_key_encoder_gathers_statistics_of_its_own():
    moco = small()
    norm = moco.key_encoder[0].layers[1]
    before = norm.running_mean.clone()
    moco(views()).backward()
    after_forward = norm.running_mean.clone()
    assert not torch.equal(after_forward, before)  # its own forward pass in training mode
    moco.after_step()
    assert torch.equal(norm.running_mean, after_forward)  # the average moves weights only


def test_shuffled_keys_come_back_in_order():
    """In eval mode batch norm does not depend on the group, so shuffling must change nothing."""
    one, four = small(bn_groups=1).eval(), small(bn_groups=4).eval()
    torch.testing.assert_close(one.keys(views()), four.keys(views()))
    four.train()
    keys = four.keys(views())
    assert keys.shape == (16, 6)
    # In training mode a key depends on the images it is normalised with, so a new shuffle moves it.
    assert not torch.allclose(keys, four.keys(views()))


def test_groups_have_their_own_statistics():
    moco = small(bn_groups=2)
    data = views()
    data[:4] += 5.0  # half of the queries are brighter
    moco.eval()
    joined = normalize(moco.head(moco.encoder(data[:8])))
    moco.train()
    grouped = torch.cat([moco.head(moco.encoder(part)) for part in data[:8].chunk(2)])
    whole = moco.head(moco.encoder(data[:8]))
    assert not torch.allclose(grouped, whole, atol=1e-3) and joined.shape == (8, 6)


def test_the_symmetric_loss_is_the_mean_of_both_directions():
    plain, symmetric = small(), small(symmetric=True)
    data = views()
    swapped = torch.cat([data[8:], data[:8]])
    with torch.no_grad():
        expected = (copy.deepcopy(plain)(data) + copy.deepcopy(plain)(swapped)) / 2
        # Batch statistics only: the running ones differ, and training mode does not read them.
        torch.testing.assert_close(symmetric(data), expected)
    assert sum(len(keys) for keys in symmetric.waiting) == 16


def test_the_state_dict_is_the_whole_state():
    first, second = small(), small(queue=20)
    for seed in range(3):
        first(views(seed=seed)).backward()
        first.after_step()
    second.load_state_dict(first.state_dict())
    assert int(second.filled) == 20 and int(second.oldest) == 4
    a, b = first(views(seed=9)), second(views(seed=9))
    assert torch.equal(a, b)
    first.after_step(), second.after_step()
    assert torch.equal(first.queue, second.queue)


def test_a_short_batch_wraps_round_the_ring():
    moco = small(queue=20)
    for images in (8, 8, 3, 5):
        moco(views(images)).backward()
        moco.after_step()
    assert int(moco.oldest) == 4 and int(moco.filled) == 20


def test_without_a_shuffle_a_key_is_normalised_beside_its_query():
    """Two groups of images of different brightness: unshuffled, each key sees its own group alone."""
    data = views()
    data[:4] += 5.0
    data[8:12] += 5.0
    plain = small(bn_groups=2, shuffle=False).train()
    alone = torch.cat([plain.key_encoder(part) for part in data[8:].chunk(2)])
    torch.testing.assert_close(plain.keys(data[8:]), normalize(alone))
    assert not torch.allclose(small(bn_groups=2).train().keys(data[8:]), normalize(alone), atol=1e-3)
