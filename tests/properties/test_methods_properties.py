"""Recipes, encoders, methods, chunks and probes: what holds of any good input, and what is refused by name."""

from __future__ import annotations

import copy
import dataclasses
import json
import math
from contextlib import nullcontext
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import (
    Door,
    covers,
    few,
    many,
    no_images,
    no_matrix,
    no_number,
    no_text,
    no_whole,
    one,
    other_than,
    refusals,
    refused,
    some,
)
from torch import Tensor, nn

from minilab import alternatives, chunks, encoder, probes, simclr
from minilab.images import Images
from minilab.losses import info_nce, normalize, nt_xent
from minilab.moco import MoCo
from minilab.recipe import ACCUMULATIONS, ALTERNATIVES, CACHED, METHODS, NORMS, OPTIMIZERS, PRECISIONS, Recipe
from minilab.training import build_method

# --- recipes


@st.composite
def recipes(draw: st.DrawFn) -> dict[str, Any]:
    batch = draw(st.integers(2, 64))
    method = draw(st.sampled_from(METHODS + ALTERNATIVES))
    values: dict[str, Any] = {
        "method": method,
        "encoder": draw(st.sampled_from(list(encoder.ENCODERS))),
        "epochs": draw(st.integers(1, 1000)),
        "batch": batch,
        "temperature": draw(st.floats(1e-6, 100)),
        "dim": draw(st.integers(1, 65_536)),
        "queue": draw(st.integers(1, 10**8)),
        "momentum": draw(st.floats(0, 1)),
        "symmetric": draw(st.booleans()),
        "bn_groups": draw(st.sampled_from([n for n in range(1, batch // 2 + 1) if batch % n == 0])),
        "shuffle": draw(st.booleans()),
        "norm": draw(st.sampled_from(NORMS)),
        "head_norm": draw(st.booleans()),
        "accumulation": draw(st.sampled_from(ACCUMULATIONS)),
        "learning_rate": draw(st.none() | st.floats(0, 1000)),
        "warmup_epochs": draw(st.floats(0, 1)),
        "weight_decay": draw(st.floats(0, 1)),
        "optimizer": draw(st.sampled_from(OPTIMIZERS)),
        "crop": draw(st.floats(1e-6, 1)),
        "precision": draw(st.sampled_from(PRECISIONS)),
        "seed": draw(st.integers(0, 2**31 - 1)),
    }
    if values["bn_groups"] == 1 and method in CACHED and draw(st.booleans()):
        values["chunk"] = draw(st.sampled_from([n for n in range(2, batch + 1) if batch % n != 1]))
    return values


@covers(Recipe, Recipe.from_dict)
@many
@given(recipes())
def test_a_recipe_survives_json(values: dict[str, Any]) -> None:
    recipe = Recipe(**values)
    assert {name: getattr(recipe, name) for name in values} == values
    again = Recipe.from_dict(json.loads(json.dumps(recipe.to_dict())))
    assert again == recipe and hash(again) == hash(recipe)
    assert recipe.peak_learning_rate >= 0


@some
@given(st.text(max_size=10), st.data())
def test_an_unknown_field_and_no_dictionary_are_refused(name: str, data: st.DataObject) -> None:
    if name not in {field.name for field in dataclasses.fields(Recipe)}:
        refused(Recipe.from_dict, {"method": "moco", name: 1}, named=repr(name))
    refused(Recipe.from_dict, data.draw(other_than(dict)), named="recipe")


# --- networks


@covers(encoder.build_encoder, encoder.ResNet, encoder.ResNet.forward, encoder.norm_layer, encoder.projection_head)
@few
@given(st.data())
def test_features_have_the_last_width_and_do_not_depend_on_other_images(data: st.DataObject) -> None:
    channels, norm = data.draw(st.integers(1, 4)), data.draw(st.sampled_from(NORMS))
    network = encoder.build_encoder("micro", channels, norm).eval()
    shape = [data.draw(st.integers(1, 3)), channels, *(data.draw(st.integers(1, 20)) for _ in "hw")]
    images = torch.rand(shape)
    features = network(images)
    assert features.shape == (shape[0], 64) == (shape[0], network.features)
    for image, row in zip(images, features, strict=True):
        assert torch.allclose(network(image[None])[0], row, atol=1e-5)
    head = encoder.projection_head(64, data.draw(st.integers(1, 9)), data.draw(st.booleans())).eval()
    hidden = (features @ head[0].weight.T + head[0].bias).clamp(min=0)
    expected = hidden @ head[2].weight.T + head[2].bias
    assert torch.allclose(head(features), expected / math.sqrt(1 + 1e-5) if len(head) == 4 else expected, atol=1e-5)


@covers(encoder.BasicBlock, encoder.BasicBlock.forward)
@few
@given(st.data())
def test_a_block_of_zero_weights_is_its_shortcut(data: st.DataObject) -> None:
    inside, stride, norm = data.draw(st.integers(1, 8)), data.draw(st.integers(1, 3)), data.draw(st.sampled_from(NORMS))
    block = encoder.BasicBlock(inside, data.draw(st.sampled_from([8, 16])), stride, norm).eval()
    nn.init.zeros_(block.conv2.weight)
    x = torch.rand(2, inside, *(data.draw(st.integers(2, 9)) for _ in "hw"))
    out = block(x)
    assert torch.allclose(out, torch.relu(block.shortcut(x)), atol=1e-6)
    assert out.shape[2:] == tuple(-(-side // stride) for side in x.shape[2:])


# --- methods

SIDE = 8


def views_of(images: int, seed: int = 0) -> Tensor:
    return torch.rand(2 * images, 3, SIDE, SIDE, generator=torch.Generator().manual_seed(seed))


@covers(
    simclr.SimCLR, simclr.SimCLR.forward, simclr.SimCLR.embed, simclr.SimCLR.loss, alternatives.DCL,
    alternatives.DCL.loss, alternatives.Sigmoid, alternatives.Sigmoid.loss, alternatives.SimSiam,
    alternatives.SimSiam.loss, alternatives.SimSiamNoStop, alternatives.Oracle, alternatives.Oracle.loss,
)  # fmt: skip
@few
@given(st.data())
def test_the_order_of_images_changes_no_loss_of_a_method(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(["simclr", *ALTERNATIVES]))
    images, groups = data.draw(st.sampled_from([2, 4, 6])), data.draw(st.sampled_from([1, 2]))
    recipe = Recipe(name, encoder="micro", batch=max(images, 4), dim=5, bn_groups=groups)
    method, views = build_method(recipe).eval(), views_of(images, data.draw(st.integers(0, 99)))
    labels = torch.arange(images)
    order = torch.tensor(data.draw(st.permutations(range(images))))
    losses = []
    for places in (torch.arange(images), order):
        method.labels = labels[places]
        pairs = torch.cat([places, places + images])
        z = method.embed(views[pairs])
        assert torch.allclose(z, method.head(method.encoder(views[pairs])), atol=1e-5)  # in eval, groups change nothing
        losses.append(method(views[pairs]))
        assert torch.allclose(losses[-1], method.loss(z), atol=1e-5)
    assert bool(losses[0].isfinite()) and torch.allclose(*losses, atol=1e-4)
    if name in ("simclr", "oracle"):  # all labels differ
        assert torch.allclose(losses[0], nt_xent(method.embed(views), 0.1), atol=1e-4)


@covers(MoCo, MoCo.forward, MoCo.queries, MoCo.keys)
@few
@given(st.data())
def test_moco_is_info_nce_of_queries_and_keys(data: st.DataObject) -> None:
    images, groups = data.draw(st.sampled_from([2, 4])), data.draw(st.sampled_from([1, 2]))
    symmetric = data.draw(st.booleans())
    recipe = Recipe("moco", encoder="micro", batch=4, dim=5, queue=data.draw(st.integers(1, 9)), bn_groups=groups,
                    symmetric=symmetric)  # fmt: skip
    method, views = build_method(recipe).eval(), views_of(images, data.draw(st.integers(0, 99)))
    first, second = views.chunk(2)
    assert torch.allclose(method.keys(second), normalize(method.queries(second)).detach(), atol=1e-5)  # before any step
    expected = info_nce(method.queries(first), method.keys(second), method.queue, 0.1)
    if symmetric:
        expected = (expected + info_nce(method.queries(second), method.keys(first), method.queue, 0.1)) / 2
    assert torch.allclose(method(views), expected, atol=1e-5)


@covers(MoCo.push)
@many
@given(st.integers(1, 9), st.lists(st.integers(0, 12), max_size=6))
def test_the_queue_holds_the_newest_keys_as_a_list_would(size: int, pushes: list[int]) -> None:
    method = MoCo.__new__(MoCo)
    nn.Module.__init__(method)
    method.register_buffer("queue", torch.full((size, 1), -1.0))
    method.register_buffer("oldest", torch.zeros((), dtype=torch.long))
    method.register_buffer("filled", torch.zeros((), dtype=torch.long))
    count, slow = 0, [-1.0] * size
    for pushed in pushes:
        keys = torch.arange(count, count + pushed, dtype=torch.float32)[:, None]
        method.push(keys)
        for key in keys[:, 0].tolist():
            slow[count % size] = key
            count += 1
        assert method.queue[:, 0].tolist() == slow
    assert int(method.filled) == min(count, size) and int(method.oldest) == count % size


# --- chunks

OFF = nullcontext()


def unscaled(loss: Tensor) -> Tensor:
    return loss


def gradients(method: nn.Module, way: Any, *arguments: Any) -> tuple[Tensor, Tensor]:
    method = copy.deepcopy(method)
    loss = way(method, *arguments, unscaled, OFF)
    return loss, torch.cat([p.grad.flatten() for p in method.parameters() if p.grad is not None])


@covers(chunks.backward, chunks.whole, chunks.naive, chunks.gradcache, chunks.split)
@few
@given(st.data())
def test_gradcache_is_the_whole_batch_and_naive_the_mean_of_its_parts(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(CACHED))
    images, chunk = data.draw(st.integers(4, 7)), data.draw(st.integers(2, 4))
    recipe = Recipe(name, encoder="micro", batch=images, dim=4, norm="group", queue=6)
    method, views = build_method(recipe).double(), views_of(images, data.draw(st.integers(0, 99))).double()
    parts = list(chunks.split(views, chunk))
    halves = [torch.cat([part[: len(part) // 2] for part in parts]), torch.cat([p[len(p) // 2 :] for p in parts])]
    assert torch.equal(torch.cat(halves), views) and max(map(len, parts)) <= 2 * chunk
    loss, gradient = gradients(method, chunks.whole, views)
    assert torch.equal(loss, gradients(method, chunks.backward, views, recipe)[0])
    if images % chunk == 1 or chunk > images:
        return
    of_recipe = {way: dataclasses.replace(recipe, chunk=chunk, accumulation=way) for way in ACCUMULATIONS}
    cached, its_gradient = gradients(method, chunks.backward, views, of_recipe["gradcache"])
    assert torch.allclose(cached, loss, rtol=1e-9) and torch.allclose(its_gradient, gradient, rtol=1e-6, atol=1e-10)
    if name != "moco":
        again, same_gradient = gradients(method, chunks.gradcache, views, chunk)
        assert torch.equal(again, cached) and torch.equal(same_gradient, its_gradient)
    mean = sum(float(copy.deepcopy(method)(part).detach()) * len(part) / len(views) for part in parts)
    assert float(gradients(method, chunks.naive, views, chunk)[0]) == pytest.approx(mean, rel=1e-9)
    assert float(gradients(method, chunks.backward, views, of_recipe["naive"])[0]) == pytest.approx(mean, rel=1e-9)


@covers(chunks.statistics_kept, chunks.random_state, chunks.set_random_state)
@few
@given(st.integers(0, 2**31), st.integers(2, 9))
def test_statistics_and_random_states_come_back(seed: int, rows: int) -> None:
    norm = nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 3))
    before = copy.deepcopy(norm.state_dict())
    x = torch.randn(rows, 3)
    with chunks.statistics_kept(norm):
        inside = norm[0](x)
    assert all(torch.equal(value, before[name]) for name, value in norm.state_dict().items())
    assert torch.allclose(inside, norm[0](x), atol=1e-5)  # the batch's own statistics, in both
    assert not torch.equal(norm[0].running_mean, before["0.running_mean"])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        state = chunks.random_state(torch.device("cpu"))
        first = torch.rand(3)
        chunks.set_random_state(state, torch.device("cpu"))
        assert torch.equal(torch.rand(3), first)


# --- probes


@covers(probes.encode_points, probes.decode_points)
@many
@given(st.lists(st.tuples(st.floats(-2, 2), st.floats(-2, 2)), min_size=1, max_size=20))
def test_points_come_back_to_half_a_step(points: list[tuple[float, float]]) -> None:
    found = probes.decode_points(probes.encode_points(torch.tensor(points)))
    expected = torch.tensor(points, dtype=torch.float64).clamp(-probes.REACH, probes.REACH)
    assert torch.allclose(found, expected, atol=probes.REACH / 254 + 1e-6)
    assert probes.encode_points(found) == probes.encode_points(torch.tensor(points))


@covers(probes.decode_points)
@many
@given(st.text(max_size=30))
def test_any_text_is_points_or_refused(text: str) -> None:
    try:
        found = probes.decode_points(text)
    except ValueError as error:
        assert "points" in str(error) and "allowed" in str(error)
    else:
        assert found.shape[1:] == (2,) and float(found.abs().max()) <= probes.REACH * 128 / 127 + 1e-9


@covers(probes.flatten)
@some
@given(st.integers(1, 12), st.integers(2, 6), st.integers(0, 2**31))
def test_a_map_keeps_what_lies_in_its_plane_and_turns_towards_the_last(rows: int, dim: int, seed: int) -> None:
    features = torch.randn(rows, dim, generator=torch.Generator().manual_seed(seed))
    flat = probes.flatten(features)
    z = normalize(features.double())
    z = z - z.mean(dim=0)
    values = torch.linalg.eigvalsh(z.T @ z).flip(0)[:2]
    width = min(2, flat.shape[1])
    assert flat.shape[0] == rows
    assert torch.allclose(flat.square().sum(dim=0)[:width], values[:width], atol=1e-9)
    if flat.shape[1] == 2:
        angle = torch.tensor(1.0, dtype=torch.float64)
        turn = torch.stack([torch.stack([angle.cos(), -angle.sin()]), torch.stack([angle.sin(), angle.cos()])])
        assert torch.allclose(probes.flatten(features, flat @ turn), flat @ turn, atol=1e-6) or rows < 4


@covers(probes.pretext_accuracy, probes.lag)
@few
@given(st.data())
def test_training_s_question_is_answered_as_by_the_loop(data: st.DataObject) -> None:
    name, images = data.draw(st.sampled_from(METHODS)), data.draw(st.integers(2, 6))
    method = build_method(Recipe(name, encoder="micro", batch=8, dim=4, queue=3, norm="group"))
    views = views_of(images, data.draw(st.integers(0, 99)))
    before = copy.deepcopy(method.state_dict())
    found = probes.pretext_accuracy(method, views)
    assert all(torch.equal(value, before[key]) for key, value in method.state_dict().items())
    right = 0
    if isinstance(method, MoCo):
        with torch.no_grad():
            queries, keys = normalize(method.queries(views[:images])), method.keys(views[images:])
        for query, key in zip(queries, keys, strict=True):
            right += all(float(query @ key) > float(query @ old) for old in method.queue)
        assert found == pytest.approx(right / images, abs=1.5 / images)
        assert probes.lag(method) == 0.0
        with torch.no_grad():
            for weights in method.key_weights:
                weights.mul_(0.5)
        assert probes.lag(method) == pytest.approx(0.5, rel=1e-5)
    else:
        with torch.no_grad():
            z = normalize(method.embed(views))
        for i in range(2 * images):
            partner = (i + images) % (2 * images)
            others = [j for j in range(2 * images) if j not in (i, partner)]
            right += all(float(z[i] @ z[partner]) > float(z[i] @ z[j]) for j in others)
        assert found == pytest.approx(right / (2 * images), abs=1.5 / images)


def small_images(test: int = 6, channels: int = 3) -> Images:
    dice = torch.Generator().manual_seed(0)
    train = torch.randint(0, 256, (8, channels, SIDE, SIDE), generator=dice, dtype=torch.uint8)
    labels = torch.arange(8) % 2
    return Images("some", train, labels, train[:test], labels[:test], ("a", "b"))


@covers(probes.Probe, probes.Probe.after_step, probes.Probe.end_epoch, probes.Probe.load)
@few
@given(st.sampled_from(METHODS), st.integers(1, 5), st.integers(2, 6))
def test_a_probe_that_is_loaded_goes_on_to_the_same_figures(name: str, steps: int, test: int) -> None:
    method = build_method(Recipe(name, encoder="micro", batch=4, dim=4, queue=5)).train()
    before = copy.deepcopy(method.state_dict())
    first = probes.Probe(small_images(test), steps)
    for step in range(1, steps + 1):
        first.after_step(method, step)
    losses = torch.rand(steps)
    figures, curve = first.end_epoch(method, steps, losses)
    second = probes.Probe(small_images(test), steps)
    second.load(copy.deepcopy(first.state))
    for probe in (first, second):
        probe.after_step(method, steps + 1)
    assert first.end_epoch(method, steps + 1, losses) == second.end_epoch(method, steps + 1, losses)
    assert all(torch.equal(value, before[key]) for key, value in method.state_dict().items())
    assert len(probes.decode_points(curve["points"])) == test
    assert all(math.isfinite(value) for value in figures.values())
    assert not curve.get("age") or all(value == pytest.approx(1, abs=1e-4) for value in curve["consistency"])


# --- refusals

SIMCLR = build_method(Recipe("simclr", encoder="micro", batch=4, dim=4))
MOCO = build_method(Recipe("moco", encoder="micro", batch=4, dim=4, queue=5))
NO_VIEWS = one(
    None, 1, "x", [1.0], torch.zeros(()), torch.zeros(4), torch.zeros(3, 3, 8, 8), torch.zeros(0, 3, 8, 8),
    torch.zeros(4, 3, 8, 8, dtype=torch.uint8), torch.zeros(4, 3, 0, 8),
)  # fmt: skip
NO_CHANNELS = st.one_of(no_images(channels=(1, 3), floats=True))
NO_RECIPE, NO_METHOD, NO_IMAGES = other_than(Recipe), other_than(nn.Module), other_than(Images)
CHUNKED = {"views": NO_VIEWS, "scale": one(None, 1, "x"), "autocast": one(None, 1, "x", len), "method": NO_METHOD}


def chunked(**more: Any) -> Any:
    return lambda: {"method": SIMCLR, "views": views_of(4), "scale": unscaled, "autocast": OFF, **more}


def recipe_values() -> dict[str, Any]:
    return {"method": "moco"}


test_recipe_refusals = refusals(
    Door(
        Recipe,
        recipe_values,
        {
            "method": no_text(*METHODS, *ALTERNATIVES),
            "encoder": no_text(*encoder.ENCODERS),
            "epochs": no_whole(1, 10**6),
            "batch": no_whole(2, 10**6),
            "temperature": no_number(1e-6, 100),
            "dim": no_whole(1, 65_536),
            "queue": no_whole(1, 10**8),
            "momentum": no_number(0, 1),
            "symmetric": other_than(bool),
            "bn_groups": st.one_of(no_whole(1, 128), one(3, 5, 96)),
            "shuffle": other_than(bool),
            "norm": no_text(*NORMS),
            "head_norm": other_than(bool),
            "chunk": st.one_of(no_whole(2, 256).filter(lambda x: x is not None), one(3, 5, 85, 255)),
            "accumulation": no_text(*ACCUMULATIONS),
            "learning_rate": no_number(0, 1000).filter(lambda x: x is not None),
            "warmup_epochs": no_number(0, 10),
            "weight_decay": no_number(0, 1),
            "optimizer": no_text(*OPTIMIZERS),
            "crop": no_number(0, 1, low_too=True),
            "precision": no_text(*PRECISIONS),
            "seed": no_whole(0, 2**31 - 1),
        },
    ),
)
test_encoder_refusals = refusals(
    Door(encoder.build_encoder, lambda: {"name": "micro"},
         {"name": no_text(*encoder.ENCODERS), "channels": no_whole(1), "norm": no_text(*NORMS)},
         {"name": "encoder"}),
    Door(encoder.norm_layer, lambda: {"norm": "group", "channels": 8},
         {"norm": no_text(*NORMS), "channels": st.one_of(no_whole(1), one(1, 7, 12))}),
    Door(encoder.projection_head, lambda: {"features": 4, "dim": 4},
         {"features": no_whole(1), "dim": no_whole(1), "norm": other_than(bool)}),
    Door(encoder.BasicBlock, lambda: {"channels_in": 4, "channels": 8, "stride": 1},
         {"channels_in": no_whole(1), "channels": no_whole(1), "stride": no_whole(1), "norm": no_text(*NORMS)}),
    Door(encoder.ResNet, lambda: {"blocks": (1, 1, 1, 1), "widths": (8, 8, 8, 8), "stem_stride": 1},
         {"blocks": one(None, 1, (1, 1, 1), (1, 1, 1, 0), (1, 1, 1, 1.0), "1111", [1, 1, 1, True]),
          "widths": one(None, 8, (8, 8, 8), (8, 8, 8, 0), (8, 8, 8, 8.0), "8888"),
          "stem_stride": no_whole(1), "channels": no_whole(1), "norm": no_text(*NORMS)}),
    Door(encoder.build_encoder("micro").forward, dict,
         {"x": st.one_of(no_images(channels=(3,), floats=True), one(torch.zeros(2, 3, 8, 8).double()))},
         {"x": "images"}),
    Door(encoder.BasicBlock(3, 8, 1).forward, dict,
         {"x": st.one_of(no_images(channels=(3,), floats=True), one(torch.zeros(2, 3, 8, 8).half()))},
         {"x": "images"}),
)  # fmt: skip
test_method_refusals = refusals(
    *(Door(kind, lambda: {"recipe": Recipe("simclr", encoder="micro")}, {"recipe": NO_RECIPE, "channels": no_whole(1)})
      for kind in (simclr.SimCLR, MoCo, alternatives.DCL, alternatives.Sigmoid, alternatives.SimSiam,
                   alternatives.SimSiamNoStop, alternatives.Oracle)),
    *(Door(method, dict, {"views": NO_VIEWS}) for method in (SIMCLR.forward, SIMCLR.embed, MOCO.forward)),
    *(Door(method, dict, {"views": no_images(channels=(3,), floats=True)}, {"views": "images"})
      for method in (MOCO.keys, MOCO.queries)),
    *(Door(build_method(Recipe(name, encoder="micro", batch=4, dim=4)).loss, dict, {"embeddings": no_matrix(4)})
      for name in ("simclr", "dcl", "sigmoid", "simsiam", "simsiam-no-stop")),
    Door(build_method(Recipe("oracle", encoder="micro")).loss, lambda: {"embeddings": torch.ones(4, 4)},
         {"embeddings": one(torch.ones(4, 4), torch.ones(6, 4))}, {"embeddings": "labels"}),
    Door(MOCO.push, dict, {"keys": no_matrix(0, 4)}),
)  # fmt: skip
test_chunk_refusals = refusals(
    Door(chunks.backward, chunked(recipe=Recipe("simclr", encoder="micro", batch=4, chunk=2)),
         {**CHUNKED, "recipe": NO_RECIPE}),
    Door(chunks.whole, chunked(), CHUNKED),
    Door(chunks.naive, chunked(chunk=2), {**CHUNKED, "chunk": no_whole(1)}),
    Door(chunks.gradcache, chunked(chunk=2),
         {**CHUNKED, "chunk": no_whole(1), "method": st.one_of(NO_METHOD, one(MOCO, nn.Identity()))}),
    Door(lambda **wrong: list(chunks.split(**wrong)), lambda: {"views": views_of(4), "chunk": 2},
         {"views": NO_VIEWS, "chunk": no_whole(1)}),
    Door(lambda module: chunks.statistics_kept(module).__enter__(), dict, {"module": NO_METHOD}),
    Door(chunks.random_state, dict, {"device": one(None, 1, "cpu", "gpu")}),
    Door(chunks.set_random_state, lambda: {"state": (torch.get_rng_state(), None), "device": torch.device("cpu")},
         {"device": one(None, 1, "cpu"),
          "state": one(None, (), (1, 2), torch.get_rng_state(), (torch.zeros(3).byte(), None))}),
)  # fmt: skip
NO_STATE = one(None, 1, {}, {"keys": {}}, {"keys": 1, "points": None}, {"keys": {1: 2}, "points": None})
test_probe_refusals = refusals(
    Door(probes.Probe, lambda: {"images": small_images(), "steps_per_epoch": 1},
         {"images": NO_IMAGES, "steps_per_epoch": no_whole(1)}),
    Door(probes.Probe(small_images(), 1).after_step, lambda: {"method": SIMCLR, "step": 1},
         {"method": NO_METHOD, "step": no_whole(0)}),
    Door(probes.Probe(small_images(), 1).end_epoch, lambda: {"method": SIMCLR, "step": 1, "losses": torch.ones(1)},
         {"method": NO_METHOD, "step": no_whole(0),
          "losses": one(None, 1.0, [1.0], torch.ones(()), torch.ones(0), torch.ones(2, 2), torch.ones(2).long())}),
    Door(probes.Probe(small_images(), 1).load, dict, {"state": NO_STATE}),
    Door(probes.pretext_accuracy, lambda: {"method": SIMCLR, "views": views_of(2)},
         {"method": NO_METHOD, "views": NO_VIEWS}),
    Door(probes.lag, dict, {"method": st.one_of(NO_METHOD, one(SIMCLR))}),
    Door(probes.flatten, lambda: {"features": torch.eye(4)},
         {"features": st.one_of(no_matrix(), one(torch.ones(4, 1), torch.full((4, 4), math.nan))),
          "towards": one(1, "x", torch.ones(4, 2), torch.ones(3, 2).double(), torch.ones(4, 3).double())}),
    Door(probes.encode_points, dict, {"points": st.one_of(no_matrix(1, 2), one(torch.full((4, 2), math.inf)))}),
    Door(probes.decode_points, dict, {"text": st.one_of(other_than(str, bytes), one("", "A", "AA", "AA==", "\u00e9"))},
         {"text": "points"}),
)  # fmt: skip
