"""Views: each operation against torchvision's recorded answers, and what the draws may give."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from minilab import views
from minilab.views import Augmentation, random_views, two_views

REFERENCE = Path(__file__).parent / "fixtures" / "views_reference.npz"
TOLERANCE = 1e-5


@pytest.fixture(scope="module")
def reference() -> dict[str, torch.Tensor]:
    with np.load(REFERENCE, allow_pickle=False) as file:
        return {name: torch.from_numpy(file[name]) for name in file.files}


def assert_close(ours: torch.Tensor, theirs: torch.Tensor) -> None:
    torch.testing.assert_close(ours, theirs, atol=TOLERANCE, rtol=0)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_crop_equals_torchvision(reference):
    assert_close(views.crop_and_resize(reference["images"], reference["boxes"]), reference["crops"])


@pytest.mark.parametrize("operation, name", list(enumerate(["brightness", "contrast", "saturation", "hue"])))
def test_jitter_equals_torchvision(reference, operation, name):
    ours = views.color_jitter_(reference["images"].clone(), reference["factors"], [operation])
    assert_close(ours, reference[name])


def test_jitter_in_any_order_equals_torchvision(reference):
    orders = [name for name in reference if name.startswith("order_")]
    assert len(orders) == 4
    for name in orders:
        order = [int(digit) for digit in name.removeprefix("order_")]
        assert_close(views.color_jitter_(reference["images"].clone(), reference["factors"], order), reference[name])


def test_one_channel_and_gray_equal_torchvision(reference):
    one = views.color_jitter_(reference["images"][:, :1].clone(), reference["factors"], [0, 1])
    assert_close(one, reference["one_channel"])
    assert_close(views.grayscale(reference["images"]), reference["gray"])


def test_operations_leave_their_input_alone(reference):
    images = reference["images"].clone()
    views.shift_hue(images, reference["factors"][:, 3])
    views.grayscale(images)
    views.crop_and_resize(images, reference["boxes"])
    assert torch.equal(images, reference["images"])


def test_hue_is_its_own_inverse_and_keeps_gray():
    images, shift = torch.rand(16, 3, 8, 8), torch.linspace(-0.5, 0.5, 16)
    assert_close(views.shift_hue(views.shift_hue(images, shift), -shift), images)
    gray = torch.rand(16, 1, 8, 8).expand(16, 3, 8, 8)
    assert_close(views.shift_hue(gray, shift), gray)


def test_no_strength_gives_the_images_back():
    images = torch.randint(0, 256, (70, 3, 20, 28), dtype=torch.uint8)
    still = Augmentation(crop=1.0, jitter=0.0, gray=0.0, flip=0.0)
    # A crop of the whole area may still have another shape: boxes are drawn, so take whole ones.
    boxes = torch.tensor([[0, 0, 20, 28, 0]]).repeat(70, 1)
    assert_close(views.crop_and_resize(images.float() / 255, boxes), images.float() / 255)
    jitter = views.draw_jitter(70, still, seeded())
    assert_close(views.color_jitter_(images.float() / 255, jitter, [3, 1, 0, 2]), images.float() / 255)


@settings(max_examples=60, deadline=None)
@given(height=st.integers(1, 70), width=st.integers(1, 70), crop=st.floats(0.01, 1.0), seed=st.integers(0, 2**31 - 1))
def test_crops_lie_in_the_image(height, width, crop, seed):
    boxes = views.draw_crops(50, height, width, Augmentation(crop=crop), seeded(seed))
    top, left, h, w, mirrored = boxes.unbind(dim=1)
    assert bool(((top >= 0) & (h >= 1) & (top + h <= height)).all())
    assert bool(((left >= 0) & (w >= 1) & (left + w <= width)).all())
    assert set(mirrored.tolist()) <= {0, 1}


def test_crop_area_is_uniform_and_edges_are_reached():
    boxes = views.draw_crops(20_000, 32, 32, Augmentation(crop=0.2), seeded()).float()
    share = boxes[:, 2] * boxes[:, 3] / 1024
    # Uniform on [0.2, 1] has mean 0.6; large boxes of an odd shape do not fit and are drawn again.
    assert 0.55 < float(share.mean()) < 0.6
    assert float(share.min()) < 0.22 and float(share.max()) > 0.97
    ratio = boxes[:, 3] / boxes[:, 2]
    assert float(ratio.min()) > 0.6 and float(ratio.max()) < 1.65
    assert 0.49 < float(boxes[:, 4].mean()) < 0.51


def test_jitter_stays_in_its_range_and_is_drawn_per_view():
    factors = views.draw_jitter(10_000, Augmentation(), seeded())
    untouched = (factors == torch.tensor([1.0, 1.0, 1.0, 0.0])).all(dim=1).float().mean()
    assert 0.18 < float(untouched) < 0.22
    assert bool((factors[:, :3] >= 0.6).all() and (factors[:, :3] <= 1.4).all())
    assert float(factors[:, 3].abs().max()) <= 0.1
    assert len(factors[:, 0].unique()) > 7_000


@pytest.mark.parametrize("shape", [(5, 3, 32, 32), (130, 3, 8, 20), (3, 1, 28, 28), (64, 3, 1, 5)])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_any_shape_gives_finite_views_of_that_shape(shape, dtype):
    images = torch.randint(0, 256, shape, dtype=torch.uint8)
    images = images if dtype == torch.uint8 else images.float() / 255
    out = two_views(images, seeded())
    assert out.shape == (2 * shape[0], *shape[1:]) and out.dtype == torch.float32
    assert bool(out.isfinite().all()) and float(out.min()) >= -1 - 1e-6 and float(out.max()) <= 1 + 1e-6


def test_two_views_pair_rows_i_and_i_plus_n():
    images = (torch.arange(10) * 25).to(torch.uint8)[:, None, None, None].expand(10, 3, 16, 16).contiguous()
    plain = Augmentation(jitter=0.0, gray=0.0)
    out = two_views(images, seeded(), plain).mean(dim=(1, 2, 3))
    assert_close(out[:10], out[10:])
    assert len(out[:10].round(decimals=3).unique()) == 10


def test_views_differ_between_calls_and_repeat_with_the_seed():
    images = torch.randint(0, 256, (20, 3, 32, 32), dtype=torch.uint8)
    generator = seeded(3)
    first, second = random_views(images, generator), random_views(images, generator)
    assert not torch.equal(first, second)
    assert torch.equal(first, random_views(images, seeded(3)))


def test_a_gray_view_is_gray():
    images = torch.randint(0, 256, (50, 3, 8, 8), dtype=torch.uint8)
    out = random_views(images, seeded(), Augmentation(gray=1.0))
    assert torch.equal(out[:, 0], out[:, 1]) and torch.equal(out[:, 0], out[:, 2])
    assert not torch.equal(random_views(images, seeded(), Augmentation(gray=0.0))[:, 0], out[:, 0])


@pytest.mark.parametrize("shape", [(4, 2, 8, 8), (4, 4, 8, 8), (3, 8, 8), (0, 3, 8, 8), (4, 3, 0, 8)])
def test_other_shapes_are_refused(shape):
    with pytest.raises(ValueError, match=r"images has shape .* allowed: \(N, 1 or 3, H, W\)"):
        random_views(torch.zeros(shape), seeded())


def test_integer_images_other_than_uint8_are_refused():
    with pytest.raises(ValueError, match=r"images has type torch.int64; allowed: uint8"):
        random_views(torch.zeros(2, 3, 8, 8, dtype=torch.int64), seeded())


@pytest.mark.parametrize(("count", "parts"), [(4, 2), (6, 3), (8, 4), (600, 3), (640, 2)])  # 512 views share an order
def test_a_part_of_the_views_is_that_part_of_all(count, parts):
    images = torch.randint(0, 256, (count, 3, 8, 8), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    whole_dice = torch.Generator().manual_seed(1)
    whole = two_views(images, whole_dice).unflatten(0, (2, parts, -1))
    for number in range(parts):
        dice = torch.Generator().manual_seed(1)
        part = two_views(images, dice, part=(number, parts))
        torch.testing.assert_close(part, whole[:, number].flatten(0, 1), rtol=0, atol=1e-6)
        assert torch.equal(dice.get_state(), whole_dice.get_state())  # and what is drawn next is the same, too


@pytest.mark.parametrize("part", [(2, 2), (-1, 2), (0, 3), (0, 0)])
def test_a_part_that_there_is_not_is_refused(part):
    with pytest.raises(ValueError, match="part is .*; allowed: "):
        two_views(torch.zeros(4, 3, 8, 8), torch.Generator(), part=part)
