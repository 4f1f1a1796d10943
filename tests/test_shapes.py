"""Shapes: what its knobs do, that labels hang on concepts alone, and that pixels alone do not give them away."""

import time

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from minilab.shapes import MOST_CONCEPTS, SHAPES, TEXTURES, concept_names, measure, shapes

NUISANCES = ("colour", "position", "scale", "rotation", "background", "lighting", "noise")
OFF = dict.fromkeys(NUISANCES, 0.0)


def only(train=320, **strengths):
    """Shapes whose concepts are one image each, but for the nuisances that are named."""
    return shapes(8, train=train, test=8, **{**OFF, **strengths})


def of_concept(images, name):
    """Training images (n, 3, H, W) of one concept, as floats in 0 to 255."""
    return images.train[images.train_labels == images.classes.index(name)].float()


def object_mask(images):
    """(n, H, W): pixels unlike the top left corner, where the plain disc of these tests never reaches."""
    return (images - images[:, :, :1, :1]).abs().amax(dim=1) > 30


def centre(mask):
    """(n, 2): mean row and column of the true pixels."""
    rows = torch.arange(mask.shape[1], dtype=torch.float32)
    total = mask.sum((1, 2))
    return torch.stack([(mask * rows[:, None]).sum((1, 2)) / total, (mask * rows).sum((1, 2)) / total], dim=1)


def pixel_knn(images, k):
    """Weighted kNN, temperature .1, by the cosine of pixels less the mean image; in plain words, not minilab's."""
    bank, queries = images.train.flatten(1).float(), images.test.flatten(1).float()
    bank, queries = F.normalize(bank - bank.mean(0)), F.normalize(queries - bank.mean(0))
    cosine, index = (queries @ bank.T).topk(k, dim=1)
    votes = F.one_hot(images.train_labels[index], len(images.classes)) * (cosine / 0.1).exp()[:, :, None]
    return (votes.sum(1).argmax(1) == images.test_labels).float().mean().item()


def test_the_same_arguments_give_the_same_images():
    first, again = shapes(10, 300, 50, seed=3), shapes(10, 300, 50, seed=3)
    assert first.fingerprint == again.fingerprint
    assert shapes(10, 300, 50, seed=4).fingerprint != first.fingerprint


def test_the_splits_share_no_image_and_do_not_hang_on_each_other():
    images = shapes(4, 400, 400)
    rows = torch.cat([images.train, images.test]).flatten(1)
    assert len(torch.unique(rows, dim=0)) == 800
    assert torch.equal(shapes(4, 400, 40).train, images.train)
    assert torch.equal(shapes(4, 40, 400).test, images.test)


@pytest.mark.parametrize("concepts", [1, 2, 10, 64])
def test_labels_are_balanced_and_in_random_order(concepts):
    images = shapes(concepts, 1003, 130)
    for labels in (images.train_labels, images.test_labels):
        counts = torch.bincount(labels, minlength=concepts)
        assert counts.max() - counts.min() <= 1
    first = torch.bincount(images.train_labels[:500], minlength=concepts)
    assert first.max() < 500 / concepts + 5 * (500 / concepts) ** 0.5
    assert images.classes == concept_names(concepts)
    assert images.name == f"Shapes ({concepts} concepts)"


def test_every_pair_of_texture_and_shape_is_a_concept():
    assert set(concept_names(MOST_CONCEPTS)) == {f"{texture} {shape}" for texture in TEXTURES for shape in SHAPES}
    assert len({name.split()[0] for name in concept_names(8)}) == 8
    assert len({name.split()[1] for name in concept_names(8)}) == 8


def test_without_nuisances_a_concept_is_one_image_and_no_two_are_alike():
    images = shapes(MOST_CONCEPTS, 4 * MOST_CONCEPTS, MOST_CONCEPTS, **OFF)
    prototypes = torch.stack([images.test[images.test_labels == c][0] for c in range(MOST_CONCEPTS)])
    assert torch.equal(images.train, prototypes[images.train_labels])
    difference = (prototypes[:, None].int() - prototypes[None].int()).abs().amax(dim=(2, 3, 4))
    assert (difference + 255 * torch.eye(MOST_CONCEPTS, dtype=torch.int32)).min() > 60


@pytest.mark.parametrize("factor", NUISANCES)
def test_each_nuisance_varies_the_images_and_more_when_it_is_stronger(factor):
    spread = [of_concept(only(**{factor: strength}), "striped square").std(0).mean() for strength in (0.0, 0.3, 1.0)]
    assert spread[0] == 0
    assert 0 < spread[1] < spread[2]


@pytest.mark.parametrize("factor", NUISANCES)
def test_turning_one_nuisance_leaves_the_draws_of_the_others(factor):
    for low, high in ((0.0, 1e-6), (0.98, 1.0)):
        less, more = (shapes(6, 300, 6, **{factor: strength}) for strength in (low, high))
        assert torch.equal(less.train_labels, more.train_labels)
        unlike = (less.train.float() - more.train.float()).abs().mean((1, 2, 3))
        assert unlike.median() < 8  # of 255; two unrelated images of one concept differ by about 60


def test_position_moves_the_object_and_scale_sizes_it():
    moved = object_mask(of_concept(only(800, position=1), "plain disc"))
    sized = object_mask(of_concept(only(800, scale=1), "plain disc"))
    assert centre(moved).std(0).min() > 2  # pixels
    assert centre(sized).std(0).max() < 0.1
    width = sized.any(1).sum(1).float()
    assert width.min() < 17
    assert width.max() > 24
    visible = moved.sum((1, 2)) / object_mask(of_concept(only(), "plain disc")).sum((1, 2))[0]
    assert visible.min() > 0.6  # it may lean over the edge, never leave
    assert visible.mean() > 0.9


def test_rotation_turns_the_object_where_it_stands():
    turned = object_mask(of_concept(only(800, rotation=1), "striped square"))
    assert centre(turned).std(0).max() < 0.15
    assert turned.any(1).sum(1).float().std() > 1  # the bounding box of a square grows as it tilts
    area = turned.sum((1, 2)).float()
    assert area.std() / area.mean() < 0.03


def test_colour_takes_every_hue_and_turns_light_on_dark_around():
    images = of_concept(only(800, colour=1), "plain disc")
    ground, disc = images[:, :, 0, 0], images[:, :, 16, 16]
    assert 0.3 < (disc.mean(1) > ground.mean(1)).float().mean() < 0.7
    assert (disc.mean(1) - ground.mean(1)).abs().min() > 25  # in grey, too, the object shows
    for channel in range(3):  # each of red, green and blue leads in its share of objects
        assert 0.15 < (disc.argmax(1) == channel).float().mean() < 0.6


def test_background_stays_behind_the_object():
    images = of_concept(only(background=1), "plain disc")
    assert images[:, :, 14:18, 14:18].std(0).max() == 0
    assert images[:, :, 0, 0].std(0).min() > 8


def test_lighting_changes_brightness_contrast_and_side():
    images = of_concept(only(800, lighting=1), "plain disc").mean(1)
    assert images.mean((1, 2)).std() > 8
    assert (images[:, 16, 16] - images[:, 0, 0]).std() > 8
    assert (images[:, 0].mean(1) - images[:, -1].mean(1)).std() > 8


def test_noise_is_the_grain_it_says():
    red = of_concept(only(2400, noise=1), "plain disc")[:, 0, 0, 0]  # far from black and white: nothing is cut off
    assert red.std() == pytest.approx(0.05 * 255, rel=0.15)
    assert red.mean() == pytest.approx(of_concept(only(), "plain disc")[0, 0, 0, 0], abs=3)


def test_mean_colour_tells_nothing_of_the_concept():
    images = shapes(10, 4000, 10)
    colour = images.train.float().mean((2, 3))
    middles = torch.stack([colour[:2000][images.train_labels[:2000] == c].mean(0) for c in range(10)])
    guess = torch.cdist(colour[2000:], middles).argmin(1)
    assert (guess == images.train_labels[2000:]).float().mean() < 0.17  # chance is .10


def test_left_and_right_tell_nothing_of_the_concept():
    images = shapes(64, 6400, 64, **{**OFF, "rotation": 1})
    bank, labels = images.train[:5000].flatten(1).float(), images.train_labels
    for queries in (images.train[5000:], images.train[5000:].flip(3)):
        nearest = torch.cdist(queries.flatten(1).float(), bank).argmin(1)
        assert (labels[nearest] == labels[5000:]).float().mean() > 0.75


def test_pixels_alone_do_not_solve_it_but_nuisances_are_why():
    hard, easy = shapes(10, 3000, 500), shapes(10, 1000, 200, **{**OFF, "noise": 1.0, "lighting": 0.5})
    for k in (1, 20, 200):
        assert 0.10 < pixel_knn(hard, k) < 0.33
    assert pixel_knn(easy, 1) > 0.95


def test_the_measurement_gives_both_figures():
    figures = measure(steps=1, batch=8)
    assert 0.15 < figures["pixel_knn"] <= 0.30
    assert 0 <= figures["supervised"] <= 1


strengths = st.fixed_dictionaries({name: st.floats(0, 1) for name in NUISANCES})


@given(st.integers(1, 64), st.integers(1, 130), st.integers(1, 9), st.integers(0, 2**63), st.integers(8, 40), strengths)
@settings(max_examples=40, deadline=None)
def test_any_allowed_arguments_give_images(concepts, train, test, seed, size, chosen):
    images = shapes(concepts, train, test, seed, size=size, **chosen)
    assert images.train.shape == (train, 3, size, size)
    assert images.test.shape == (test, 3, size, size)
    assert len(images.classes) == concepts
    assert int(images.train_labels.max()) < concepts


@pytest.mark.parametrize(
    ("field", "wrong", "allowed"),
    [
        *((name, wrong, "0 to 1") for name in NUISANCES for wrong in (-0.1, 1.01, float("nan"), "much", None)),
        *(("concepts", wrong, "1 to 64") for wrong in (0, 65, 2.5, True, None)),
        *(("train", wrong, "1 to 10000000") for wrong in (0, -5, 10.0)),
        ("test", 0, "1 to 10000000"),
        ("seed", -1, "0 to"),
        ("size", 7, "8 to 512"),
    ],
)
def test_a_wrong_argument_is_named_with_what_is_allowed(field, wrong, allowed):
    with pytest.raises(ValueError, match=rf"^{field} is {wrong!r}; allowed: .*{allowed}"):
        shapes(**{"train": 8, "test": 8, field: wrong})


def test_numpy_numbers_count_as_numbers():
    plain = shapes(4, 40, 4, 7, noise=0.5)
    assert shapes(np.int64(4), np.int32(40), 4, np.int64(7), noise=np.float64(0.5)).fingerprint == plain.fingerprint


@pytest.mark.serial
def test_50_000_images_take_seconds():
    start = time.process_time()
    shapes(train=5000, test=1)
    assert 10 * (time.process_time() - start) < 15
