"""Views, images and Shapes: what holds of any draw, against loops over pixels, and what is refused by name."""

from __future__ import annotations

import colorsys
import dataclasses
from typing import Any

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import (
    Door,
    covers,
    exempt,
    few,
    no_images,
    no_number,
    no_text,
    no_whole,
    one,
    other_than,
    refusals,
    refused,
    some,
)
from torch import Generator, Tensor

from minilab import images, shapes, views

GRAY = (0.2989, 0.587, 0.114)
SHARES = st.one_of(st.floats(0, 1), st.sampled_from([0, 1, 0.5]))


def seeded(seed: int) -> Generator:
    return Generator().manual_seed(seed)


@st.composite
def pictures(draw: st.DrawFn, floats: bool = False, square: bool = False) -> Tensor:
    """(N, C, H, W), uint8 or floats in [0, 1], down to one pixel."""
    count, channels, height = draw(st.integers(1, 5)), draw(st.sampled_from([1, 3])), draw(st.integers(1, 9))
    shape = [count, channels, height, height if square else draw(st.integers(1, 9))]
    pixels = torch.randint(0, 256, shape, generator=seeded(draw(st.integers(0, 2**31))), dtype=torch.uint8)
    return pixels.float() / 255 if floats or draw(st.booleans()) else pixels


@st.composite
def augmentations(draw: st.DrawFn) -> views.Augmentation:
    strengths = {name: draw(SHARES) for name in ("brightness", "contrast", "saturation", "jitter", "gray", "flip")}
    return views.Augmentation(crop=draw(st.floats(1e-3, 1)), hue=draw(st.floats(0, 0.5)), **strengths)


NOTHING = views.Augmentation(crop=1, brightness=0, contrast=0, saturation=0, hue=0, jitter=0, gray=0, flip=0)


@covers(views.random_views, views.two_views, views.plain_views, views.check_images)
@some
@given(pictures(), augmentations(), st.integers(0, 2**31))
def test_views_are_in_range_repeat_with_the_seed_and_come_in_any_part(
    pixels: Tensor, augmentation: views.Augmentation, seed: int
) -> None:
    views.check_images(pixels)
    found = views.random_views(pixels, seeded(seed), augmentation)
    assert found.shape == pixels.shape and found.dtype == torch.float32
    assert bool(((found >= -1 - 1e-5) & (found <= 1 + 1e-5)).all())
    both = views.two_views(pixels, seeded(seed), augmentation)
    assert both.shape == (2 * len(pixels), *pixels.shape[1:])
    assert torch.equal(both, views.random_views(torch.cat([pixels, pixels]), seeded(seed), augmentation))
    for parts in range(1, len(pixels) + 1):
        if len(pixels) % parts == 0:
            own = [views.two_views(pixels, seeded(seed), augmentation, (part, parts)) for part in range(parts)]
            whole = torch.cat([part.unflatten(0, (2, -1)) for part in own], dim=1).flatten(0, 1)
            assert torch.allclose(whole, both, atol=1e-5)
    rows = torch.arange(len(pixels))[::2]
    assert torch.allclose(views.random_views(pixels, seeded(seed), augmentation, rows), found[rows], atol=1e-5)
    plain = views.plain_views(pixels)
    assert torch.allclose(plain, pixels.float() / (127.5 if pixels.dtype == torch.uint8 else 0.5) - 1, atol=1e-6)
    assert float(plain.min()) >= -1 and float(plain.max()) <= 1 + 1e-6


@covers(views.Augmentation)
@some
@given(pictures(square=True), st.integers(0, 2**31))
def test_strengths_of_nothing_change_nothing_and_gray_is_gray(pixels: Tensor, seed: int) -> None:
    # another aspect ratio does not fit into the whole area of a square: after ten tries it is the whole image
    assert torch.allclose(views.random_views(pixels, seeded(seed), NOTHING), views.plain_views(pixels), atol=1e-5)
    gray = views.random_views(pixels, seeded(seed), dataclasses.replace(NOTHING, gray=1))
    assert torch.equal(gray, gray[:, :1].expand_as(gray))


@covers(views.draw_crops)
@some
@given(st.integers(1, 40), st.integers(1, 64), st.integers(1, 64), augmentations(), st.integers(0, 2**31))
def test_crops_lie_within_the_image(
    count: int, height: int, width: int, augmentation: views.Augmentation, seed: int
) -> None:
    boxes = views.draw_crops(count, height, width, augmentation, seeded(seed))
    assert boxes.shape == (count, 5) and boxes.dtype == torch.int64
    for top, left, h, w, mirrored in boxes.tolist():
        assert top >= 0 and left >= 0 and h >= 1 and w >= 1 and mirrored in (0, 1)
        assert top + h <= height and left + w <= width
    if augmentation.flip in (0, 1):
        assert set(boxes[:, 4].tolist()) == {int(augmentation.flip)}


@covers(views.draw_jitter)
@some
@given(st.integers(1, 40), augmentations(), st.integers(0, 2**31))
def test_factors_stay_within_their_strengths(count: int, augmentation: views.Augmentation, seed: int) -> None:
    factors = views.draw_jitter(count, augmentation, seeded(seed))
    assert factors.shape == (count, 4)
    limits = (augmentation.brightness, augmentation.contrast, augmentation.saturation, augmentation.hue)
    for row in factors.tolist():
        for value, middle, limit in zip(row, (1, 1, 1, 0), limits, strict=True):
            assert abs(value - middle) <= limit + 1e-6
    if augmentation.jitter == 0:
        assert torch.equal(factors, torch.tensor([[1.0, 1.0, 1.0, 0.0]]).expand(count, 4))


@covers(views.crop_and_resize)
@some
@given(st.data())
def test_a_crop_equals_cutting_and_stretching_each_image(data: st.DataObject) -> None:
    pixels = data.draw(pictures())
    height, width = pixels.shape[2:]
    boxes = []
    for _ in range(len(pixels)):
        h, w = data.draw(st.integers(1, height)), data.draw(st.integers(1, width))
        top, left = data.draw(st.integers(0, height - h)), data.draw(st.integers(0, width - w))
        boxes.append([top, left, h, w, data.draw(st.integers(0, 1))])
    found = views.crop_and_resize(pixels, torch.tensor(boxes))
    whole = pixels.double() / (255 if pixels.dtype == torch.uint8 else 1)
    for image, box, out in zip(whole, boxes, found, strict=True):
        cut = image[:, box[0] : box[0] + box[2], box[1] : box[1] + box[3]]
        expected = torch.nn.functional.interpolate(cut[None], (height, width), mode="bilinear")[0]
        assert torch.allclose(out.double(), expected.flip(2) if box[4] else expected, atol=1e-5)


@covers(views.color_jitter_, views.shift_hue, views.grayscale)
@some
@given(st.data())
def test_colours_change_as_pixel_by_pixel(data: st.DataObject) -> None:
    pixels = data.draw(pictures(floats=True))
    count, channels = pixels.shape[:2]
    factors = torch.tensor([[data.draw(st.floats(0, 2)) for _ in range(3)] + [data.draw(st.floats(-0.5, 0.5))]] * count)
    steps = range(4 if channels == 3 else 2)
    order = data.draw(st.lists(st.sampled_from(list(steps)), max_size=4))
    found = views.color_jitter_(pixels.clone(), factors, order)
    b, c, s, h = factors[0].tolist()
    for image, out in zip(pixels.double(), found, strict=True):
        x = image.clone()
        for step in order:
            luma = sum(g * plane for g, plane in zip(GRAY, x, strict=True)) if channels == 3 else x[0]
            if step == 0:
                x = b * x
            elif step == 1:
                x = c * x + (1 - c) * float(luma.mean())
            elif step == 2:
                x = s * x + (1 - s) * luma
            else:
                turned = [turn(pixel, h) for pixel in x.flatten(1).T.tolist()]
                x = torch.tensor(turned, dtype=torch.float64).T.reshape(x.shape)
            x = x.clamp(0, 1)
        assert torch.allclose(out.double(), x, atol=2e-4), order
    if channels == 3:
        gray = views.grayscale(pixels)
        luma = sum(weight * pixels[:, place] for place, weight in enumerate(GRAY))
        assert gray.shape == pixels.shape and torch.allclose(gray, luma[:, None].expand_as(gray), atol=1e-6)
        shift = factors[:, 3].contiguous()
        expected = [turn(pixel, h) for pixel in pixels[0].double().flatten(1).T.tolist()]
        out = torch.empty_like(pixels)
        assert views.shift_hue(pixels, shift, out) is out and torch.equal(out, views.shift_hue(pixels, shift))
        assert torch.allclose(out[0].double().flatten(1).T, torch.tensor(expected, dtype=torch.float64), atol=2e-4)


def turn(pixel: list[float], shift: float) -> list[float]:
    """Python's own conversion to hue and back."""
    hue, saturation, value = colorsys.rgb_to_hsv(*pixel)
    return list(colorsys.hsv_to_rgb((hue + shift) % 1, saturation, value))


@covers(images.Images, images.Images.subset, images.Images.to)
@some
@given(st.data())
def test_images_hold_what_they_were_given(data: st.DataObject) -> None:
    count, test, classes = (data.draw(st.integers(1, 6)) for _ in range(3))
    dice = seeded(data.draw(st.integers(0, 2**31)))
    shape = (data.draw(st.sampled_from([1, 3])), data.draw(st.integers(1, 4)), 3)
    split = [torch.randint(0, 256, (n, *shape), generator=dice, dtype=torch.uint8) for n in (count, test)]
    labels = [torch.randint(0, classes, (n,), generator=dice) for n in (count, test)]
    names = tuple("abcdef"[:classes])
    found = images.Images("some", split[0], labels[0], split[1], labels[1], names)
    first, second = data.draw(st.integers(1, count)), data.draw(st.integers(1, test))
    part = found.subset(first, second)
    for field, whole, number in (("train", split[0], first), ("train_labels", labels[0], first),
                                  ("test", split[1], second), ("test_labels", labels[1], second)):  # fmt: skip
        assert torch.equal(getattr(part, field), whole[:number])
    assert (part.fingerprint == found.fingerprint) == ((first, second) == (count, test))
    assert found.to("cpu").fingerprint == found.fingerprint
    for wrong in (0, -1, count + 1, 1.0, True, "1", None):
        refused(found.subset, wrong, named="train", shown=wrong)


@covers(shapes.shapes, shapes.concept_names)
@few
@given(st.data())
def test_any_good_arguments_give_fair_images_and_the_same_again(data: st.DataObject) -> None:
    concepts, train, test = data.draw(st.integers(1, 64)), data.draw(st.integers(1, 12)), data.draw(st.integers(1, 4))
    names = ("colour", "position", "scale", "rotation", "background", "lighting", "noise")
    strengths: dict[str, Any] = {name: data.draw(SHARES) for name in names}
    size, seed = data.draw(st.integers(8, 40)), data.draw(st.integers(0, 2**63))
    found = shapes.shapes(concepts, train, test, seed, size=size, **strengths)
    assert found.train.shape == (train, 3, size, size) and found.test.shape == (test, 3, size, size)
    for labels, count in ((found.train_labels, train), (found.test_labels, test)):
        each = np.bincount(labels.numpy(), minlength=concepts)
        assert each.sum() == count and each.max() - each.min() <= 1
    assert found.classes == shapes.concept_names(concepts) and len(set(found.classes)) == concepts
    again = shapes.shapes(np.int64(concepts), train, np.int32(test), seed, size=size, **strengths)
    assert again.fingerprint == found.fingerprint


exempt(shapes.measure, "trains for 100 s; refusals below, its figures are read by hand")


def box(*values: int) -> Tensor:
    return torch.tensor([values, values])


def split() -> dict[str, Any]:
    pixels, labels = torch.zeros(2, 3, 4, 4, dtype=torch.uint8), torch.zeros(2, dtype=torch.int64)
    return {
        "name": "n",
        "train": pixels,
        "train_labels": labels,
        "test": pixels,
        "test_labels": labels,
        "classes": ("a", "b"),
    }


PIXELS = torch.zeros(2, 3, 8, 8)
NO_GENERATOR, NO_AUGMENTATION = other_than(Generator), other_than(views.Augmentation)
NO_LABELS = one(
    None, [0, 0], torch.zeros(2), torch.zeros(3, dtype=torch.int64), torch.tensor([0, 2]), torch.tensor([-1, 0])
)
NO_DEVICE = st.one_of(no_text("cpu", "cuda", "mps", "meta"), one("", "gpu", "cuda:x", None, 3.5))
NO_PIXELS = one(None, "x", np.zeros((2, 3, 4, 4), np.uint8), torch.zeros(2, 3, 4, 4), torch.zeros(0, 3, 4, 4).byte())


def drawing() -> dict[str, Any]:
    return {"images": PIXELS, "generator": seeded(0), "augmentation": views.Augmentation()}


test_refusals = refusals(
    Door(
        views.Augmentation,
        dict,
        {
            "crop": no_number(0, 1, low_too=True),
            "hue": no_number(0, 0.5),
            **{name: no_number(0, 10) for name in ("brightness", "contrast", "saturation")},
            **{name: no_number(0, 1) for name in ("jitter", "gray", "flip")},
        },
    ),
    Door(views.check_images, dict, {"images": no_images()}),
    Door(views.plain_views, dict, {"images": no_images()}),
    Door(
        views.random_views,
        drawing,
        {
            "images": no_images(),
            "generator": NO_GENERATOR,
            "augmentation": NO_AUGMENTATION,
            "rows": one(*[torch.tensor(x) for x in ([1, 0], [0, 0], [2], [-1], [[0]], 0, [0.0])], "x", [0]),
        },
    ),
    Door(
        views.two_views,
        drawing,
        {
            "images": no_images(),
            "generator": NO_GENERATOR,
            "augmentation": NO_AUGMENTATION,
            "part": one((1, 1), (0, 3), (-1, 2), (0, 0), (0,), 0, None, "ab", (0.0, 1), (True, 2), [0, 1]),
        },
    ),
    Door(
        views.draw_crops,
        lambda: {"count": 2, "height": 8, "width": 8, "augmentation": views.Augmentation(), "generator": seeded(0)},
        {
            **{name: no_whole(1) for name in ("count", "height", "width")},
            "augmentation": NO_AUGMENTATION,
            "generator": NO_GENERATOR,
        },
    ),
    Door(
        views.draw_jitter,
        lambda: {"count": 2, "augmentation": views.Augmentation(), "generator": seeded(0)},
        {"count": no_whole(1), "augmentation": NO_AUGMENTATION, "generator": NO_GENERATOR},
    ),
    Door(
        views.crop_and_resize,
        lambda: {"images": PIXELS, "boxes": box(0, 0, 8, 8, 0)},
        {
            "images": no_images(),
            "boxes": one(
                None,
                [],
                torch.zeros(2, 4, dtype=torch.int64),
                box(0, 0, 8, 8, 0).double(),
                box(0, 0, 8, 8, 0)[:1],
                *(
                    box(*b)
                    for b in (
                        (-1, 0, 8, 8, 0),
                        (0, 0, 9, 8, 0),
                        (1, 0, 8, 8, 0),
                        (0, 7, 1, 2, 1),
                        (0, 0, 0, 8, 0),
                        (0, 0, 8, 8, 2),
                        (0, 0, 2**62, 8, 0),
                        (2**62, 0, 2**62, 8, 0),
                    )
                ),
            ),
        },
    ),
    Door(
        views.color_jitter_,
        lambda: {"images": PIXELS.clone(), "factors": torch.ones(2, 4), "order": [0, 1, 2, 3]},
        {
            "images": no_images(floats=True),
            "factors": one(None, [1], torch.ones(2, 3), torch.ones(3, 4), torch.ones(4)),
            "order": one(None, 1, "01", [4], [-1], [0, "1"], (0, 1), [0.5]),
        },
    ),
    Door(
        views.shift_hue,
        lambda: {"images": PIXELS, "shift": torch.zeros(2)},
        {
            "images": no_images(channels=(3,), floats=True),
            "shift": one(0.1, [0.1], torch.zeros(3), torch.zeros(2, 1), "x"),
            "out": one("x", torch.zeros(2, 3, 8, 9), torch.zeros(2, 3, 8, 8).double(), 1),
        },
    ),
    Door(views.grayscale, dict, {"images": no_images(channels=(3,), floats=True)}),
    Door(
        images.Images,
        split,
        {
            "name": other_than(str),
            "classes": one((), None, "ab", ["a", "b"], ("a", 1), {"a": 1}),
            "train_labels": NO_LABELS,
            "test_labels": NO_LABELS,
            "train": NO_PIXELS,
            "test": NO_PIXELS,
        },
    ),
    Door(
        lambda train, test: images.Images(**split()).subset(train, test),
        lambda: {"train": 1, "test": 1},
        {"train": no_whole(1, 2), "test": no_whole(1, 2).filter(lambda x: x is not None)},
    ),
    Door(lambda device: images.Images(**split()).to(device), dict, {"device": NO_DEVICE}),
    Door(shapes.concept_names, dict, {"concepts": no_whole(1, 64)}),
    Door(shapes.measure, dict, {"steps": no_whole(1), "batch": no_whole(1)}),
    Door(
        shapes.shapes,
        lambda: {"train": 2, "test": 2},
        {
            "concepts": no_whole(1, 64),
            "train": no_whole(1, 10**7),
            "test": no_whole(1, 10**7),
            "seed": no_whole(0, 2**63),
            "size": no_whole(8, 512),
            **{
                name: no_number(0, 1)
                for name in ("colour", "position", "scale", "rotation", "background", "lighting", "noise")
            },
        },
    ),
)
