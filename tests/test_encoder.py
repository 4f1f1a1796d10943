"""Encoders: shapes, the features before the head, and what they cost."""

import pytest
import torch

from minilab.encoder import ENCODERS, build_encoder, projection_head


@pytest.mark.parametrize("name", ENCODERS)
def test_every_encoder_gives_features_of_its_width(name):
    encoder = build_encoder(name).eval()
    with torch.no_grad():
        features = encoder(torch.rand(2, 3, 32, 32))
    assert features.shape == (2, encoder.features) == (2, ENCODERS[name][1][3])
    assert bool((features >= 0).all())  # after a ReLU and a mean


def test_resnet18_is_the_cifar_resnet18():
    """11.17 M parameters in the network of He et al. with a 3 x 3 stem and ten classes, here without them."""
    assert sum(p.numel() for p in build_encoder("resnet18").parameters()) == 11_173_962 - 5_130


@pytest.mark.parametrize("shape", [(2, 1, 28, 28), (2, 1, 32, 40)])
def test_other_sizes_and_one_channel(shape):
    assert build_encoder("micro", channels=1)(torch.rand(shape)).shape == (2, 64)


def test_the_layout_of_the_input_does_not_matter():
    encoder = build_encoder("micro").eval()
    images = torch.rand(4, 3, 32, 32)
    with torch.no_grad():
        torch.testing.assert_close(encoder(images), encoder(images.contiguous(memory_format=torch.channels_last)))


def test_the_head_has_one_hidden_layer():
    head = projection_head(64, 10)
    assert head(torch.rand(3, 64)).shape == (3, 10)
    assert [type(layer).__name__ for layer in head] == ["Linear", "ReLU", "Linear"]


def test_an_unknown_encoder_lists_what_there_is():
    with pytest.raises(ValueError, match="encoder is 'vit'; allowed: micro, tiny, small, resnet10, resnet18"):
        build_encoder("vit")


def test_with_group_norm_an_image_does_not_see_the_others():
    encoder = build_encoder("micro", norm="group").train()
    images = torch.rand(8, 3, 16, 16)
    torch.testing.assert_close(encoder(images)[:2], encoder(images[:2]), rtol=1e-4, atol=1e-5)
    assert not any(isinstance(layer, torch.nn.BatchNorm2d) for layer in encoder.modules())


def test_a_head_with_a_norm_gives_each_dimension_mean_0_and_variance_1():
    embeddings = projection_head(64, 10, norm=True)(torch.rand(200, 64) + 5)
    torch.testing.assert_close(embeddings.mean(dim=0), torch.zeros(10), atol=1e-4, rtol=0)
    torch.testing.assert_close(embeddings.var(dim=0, correction=0), torch.ones(10), atol=2e-2, rtol=0)
