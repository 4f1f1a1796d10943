"""What a set of images refuses, and what its fingerprint tells apart."""

import dataclasses

import pytest
import torch

from minilab.images import Images


def small(**changes):
    generator = torch.Generator().manual_seed(0)
    fields = {
        "name": "six images",
        "train": torch.randint(256, (6, 3, 4, 5), generator=generator, dtype=torch.uint8),
        "train_labels": torch.tensor([0, 1, 2, 0, 1, 2]),
        "test": torch.randint(256, (3, 3, 4, 5), generator=generator, dtype=torch.uint8),
        "test_labels": torch.tensor([2, 1, 0]),
        "classes": ("a", "b", "c"),
    }
    return Images(**{**fields, **changes})


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("train", torch.zeros(6, 3, 4, 5), r"^train is torch.float32 of shape \(6, 3, 4, 5\); allowed: torch.uint8"),
        ("train", torch.zeros(6, 4, 5, dtype=torch.uint8), r"^train is .* \(6, 4, 5\); allowed: .*\(N, C, H, W\)"),
        ("train", torch.zeros(0, 3, 4, 5, dtype=torch.uint8), r"^train is .*not empty"),
        ("test", torch.zeros(3, 0, 4, 5, dtype=torch.uint8), r"^test is .*not empty"),
        ("test", torch.zeros(3, 3, 4, 4, dtype=torch.uint8), r"^test has images of shape \(3, 4, 4\); .*\(3, 4, 5\)"),
        ("train_labels", torch.zeros(6), r"^train_labels is torch.float32 .*int64 of shape \(6,\)"),
        ("train_labels", torch.zeros(5, dtype=torch.int64), r"^train_labels is .*\(5,\).*\(6,\)"),
        ("train_labels", torch.tensor([0, 1, 2, 3, 0, 0]), r"^train_labels has the label 3; allowed: 0 to 2"),
        ("test_labels", torch.tensor([0, -1, 2]), r"^test_labels has the label -1; allowed: 0 to 2"),
        ("classes", (), r"^classes is empty"),
    ],
)
def test_a_wrong_field_is_named(field, value, message):
    with pytest.raises(ValueError, match=message):
        small(**{field: value})


def test_the_fingerprint_changes_with_one_pixel_one_label_and_the_order():
    images = small()
    prints = [images.fingerprint]
    for field in ("train", "test", "train_labels", "test_labels"):
        changed = getattr(images, field).clone()
        changed.view(-1)[-1] = (changed.view(-1)[-1] + 1) % 3
        prints.append(dataclasses.replace(images, **{field: changed}).fingerprint)
    order = torch.tensor([1, 0, 2, 3, 4, 5])
    prints.append(small(train=images.train[order], train_labels=images.train_labels[order]).fingerprint)
    prints.append(images.subset(5).fingerprint)
    assert len(set(prints)) == len(prints)


def test_the_fingerprint_is_of_the_content_alone():
    images = small()
    assert len(images.fingerprint) == 16
    assert set(images.fingerprint) <= set("0123456789abcdef")
    strided = images.train.flip(0).contiguous().flip(0).permute(3, 2, 1, 0).contiguous().permute(3, 2, 1, 0)
    assert not strided.is_contiguous()
    assert small(train=strided, name="other").fingerprint == images.fingerprint
    assert images.to("cpu").fingerprint == images.fingerprint


def test_a_subset_is_the_first_images():
    part = small().subset(4, 2)
    assert torch.equal(part.train, small().train[:4])
    assert torch.equal(part.train_labels, small().train_labels[:4])
    assert torch.equal(part.test, small().test[:2])
    assert torch.equal(part.test_labels, small().test_labels[:2])
    assert len(small().subset(1).test) == 3  # the whole test split unless told otherwise


@pytest.mark.parametrize(
    ("train", "test", "message"),
    [
        (7, None, r"^train is 7; allowed: 1 to 6, the train images of six images"),
        (0, None, r"^train is 0; allowed: 1 to 6"),
        (6, 4, r"^test is 4; allowed: 1 to 3"),
        (6, -1, r"^test is -1; allowed: 1 to 3"),
    ],
)
def test_a_subset_larger_than_the_images_is_refused(train, test, message):
    with pytest.raises(ValueError, match=message):
        small().subset(train, test)


def test_all_four_tensors_move_to_another_device(monkeypatch):
    images, moved = small(), []
    monkeypatch.setattr(torch.Tensor, "to", lambda tensor, device: moved.append((device, tensor)) or tensor)
    images.to("cuda")
    assert [device for device, _ in moved] == ["cuda"] * 4
    assert {id(tensor) for _, tensor in moved} == {
        id(tensor) for tensor in (images.train, images.train_labels, images.test, images.test_labels)
    }
