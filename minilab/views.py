"""Two random views of a batch, on the device, one draw of parameters per image.

The recipe of SimCLR on CIFAR-10 (arXiv 2002.05709, appendix A and B.9): random resized crop,
flip, colour jitter, grayscale; no blur. Each operation equals torchvision's on the same
parameters to 1e-5 (tests/test_views.py). Parameters are drawn on the CPU, so that
a seed gives the same views on every device.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

IDENTITY = (1.0, 1.0, 1.0, 0.0)  # brightness, contrast, saturation and hue that change nothing
GRAY = (0.2989, 0.587, 0.114)  # torchvision's weights of red, green and blue
GROUP = 512  # views that share one order of jitter; few enough to stay in the cache of a processor


@dataclass(frozen=True)
class Augmentation:
    """Strengths of the views. Defaults are SimCLR's for CIFAR-10 with a milder smallest crop.

    `crop`: smallest share of the area kept. `brightness`, `contrast`, `saturation`: the factor is
    drawn from 1 - s to 1 + s. `hue`: shift in turns, from -s to s, at most 0.5.
    `jitter`, `gray`, `flip`: probabilities per view.
    """

    crop: float = 0.2
    brightness: float = 0.4
    contrast: float = 0.4
    saturation: float = 0.4
    hue: float = 0.1
    jitter: float = 0.8
    gray: float = 0.2
    flip: float = 0.5


def two_views(images: Tensor, generator: Generator, augmentation: Augmentation = Augmentation()) -> Tensor:
    """Images (N, C, H, W) to views (2N, C, H, W): rows i and i + N come from image i.

    `images`: uint8, or floats in [0, 1]. C is 1 or 3. Returns float32 in [-1, 1].
    """
    return random_views(torch.cat([images, images]), generator, augmentation)


def random_views(images: Tensor, generator: Generator, augmentation: Augmentation = Augmentation()) -> Tensor:
    """One random view of each image: (N, C, H, W) to float32 (N, C, H, W) in [-1, 1]."""
    check_images(images)
    count, channels, height, width = images.shape
    boxes = draw_crops(count, height, width, augmentation, generator).to(images.device)
    factors = draw_jitter(count, augmentation, generator)
    jittered = (factors != factors.new_tensor(IDENTITY)).any(dim=1)  # stays on the CPU, as `gray` does
    factors = factors.to(images.device)
    gray = torch.rand(count, generator=generator) < augmentation.gray  # stays on the CPU: no sync to index by it
    rows, columns = crop_matrices(boxes, height, width)
    rows = rows / 255 if images.dtype == torch.uint8 else rows  # bytes to [0, 1], with no pass of their own
    views = torch.empty(images.shape, device=images.device)
    minus_one = torch.full((), -1.0, device=images.device)
    for start in range(0, count, GROUP):
        part = slice(start, start + GROUP)
        order = torch.randperm(4, generator=generator).tolist()
        x = resample(images[part].float(), rows[part], columns[part])
        if channels == 1:  # a gray image has no saturation or hue to change
            order = [operation for operation in order if operation < 2]
        moved = jittered[part].nonzero().squeeze(1)
        x[moved] = color_jitter_(x[moved], factors[part][moved], order)
        if channels == 3:
            chosen = gray[part].nonzero().squeeze(1)
            x[chosen] = grayscale(x[chosen])
        torch.add(minus_one, x, alpha=2, out=views[part])  # [0, 1] to [-1, 1]
    return views


def plain_views(images: Tensor) -> Tensor:
    """The images as the encoder wants them, with no augmentation: float32 in [-1, 1]."""
    check_images(images)
    return images.float().mul(2 / 255 if images.dtype == torch.uint8 else 2).sub_(1)


def check_images(images: Tensor) -> None:
    """Raise `ValueError` unless `images` is (N, C, H, W) with 1 or 3 channels, uint8 or floating point."""
    if images.ndim != 4 or images.shape[1] not in (1, 3) or 0 in images.shape:
        raise ValueError(f"images has shape {tuple(images.shape)}; allowed: (N, 1 or 3, H, W), none of them 0")
    if images.dtype != torch.uint8 and not images.is_floating_point():
        raise ValueError(f"images has type {images.dtype}; allowed: uint8, or floating point in [0, 1]")


def draw_crops(count: int, height: int, width: int, augmentation: Augmentation, generator: Generator) -> Tensor:
    """Crop boxes, int64 (count, 5): top, left, height, width, and 1 where the crop is mirrored.

    As torchvision draws them: area from `crop` to 1 of the image, aspect ratio from 3/4 to 4/3
    (uniform in its logarithm), ten tries, and where none fits the largest centred box.
    """
    tries = torch.rand(2, count, 10, generator=generator)
    area = height * width * (augmentation.crop + (1 - augmentation.crop) * tries[0])
    ratio = torch.exp(math.log(3 / 4) + (math.log(4 / 3) - math.log(3 / 4)) * tries[1])
    w, h = (area * ratio).sqrt().round().long(), (area / ratio).sqrt().round().long()
    fits = (w >= 1) & (w <= width) & (h >= 1) & (h <= height)
    first = fits.int().argmax(dim=1, keepdim=True)
    w, h, fits = (x.gather(1, first).squeeze(1) for x in (w, h, fits))
    where = torch.rand(2, count, generator=generator)
    top, left = (where[0] * (height - h + 1)).long(), (where[1] * (width - w + 1)).long()
    full_h, full_w = min(height, round(width / (3 / 4))), min(width, round(height * (4 / 3)))
    centred = torch.tensor([(height - full_h) // 2, (width - full_w) // 2, full_h, full_w])
    box = torch.where(fits[:, None], torch.stack([top, left, h, w], dim=1), centred)
    mirrored = torch.rand(count, 1, generator=generator) < augmentation.flip
    return torch.cat([box, mirrored.long()], dim=1)


def draw_jitter(count: int, augmentation: Augmentation, generator: Generator) -> Tensor:
    """Jitter parameters, float32 (count, 4): brightness, contrast, saturation factors and hue shift in turns.

    A view that is not jittered gets 1, 1, 1, 0: the identity.
    """
    a = augmentation
    strength = torch.tensor([a.brightness, a.contrast, a.saturation, a.hue])
    identity = torch.tensor(IDENTITY)
    drawn = identity + strength * (2 * torch.rand(count, 4, generator=generator) - 1)
    drawn[:, :3].clamp_(min=0)
    jittered = torch.rand(count, 1, generator=generator) < a.jitter
    return torch.where(jittered, drawn, identity)


def crop_and_resize(images: Tensor, boxes: Tensor) -> Tensor:
    """Cut each box out and stretch it back to H x W (bilinear), mirrored where the box says so.

    `images`: float (N, C, H, W). `boxes`: int64 (N, 5) as `draw_crops` returns.
    """
    return resample(images, *crop_matrices(boxes, *images.shape[2:]))


def crop_matrices(boxes: Tensor, height: int, width: int) -> tuple[Tensor, Tensor]:
    """The crops as matrices: rows (N, H, H) and columns (N, W, W), for `resample`.

    Bilinear interpolation is linear in each axis, so a crop is two small matrix products an
    image: far fewer passes over memory than gathering four neighbours for every pixel.
    """
    top, left, h, w, mirrored = boxes.unbind(dim=1)
    return _stretch(top, h, height, torch.zeros_like(mirrored)), _stretch(left, w, width, mirrored)


def _stretch(start: Tensor, length: Tensor, size: int, mirrored: Tensor) -> Tensor:
    """Matrices (N, size, size) that stretch `length` pixels from `start` to `size` pixels, bilinearly."""
    target = torch.arange(size, device=start.device)
    step = torch.where(mirrored[:, None] == 1, size - 1 - target, target)
    position = (step + 0.5) * (length[:, None] / size) - 0.5  # pixel centres, as align_corners=False
    position = position.clamp(min=0).minimum(length[:, None] - 1.0) + start[:, None]  # stay in the box
    # A pixel's weight falls linearly to 0 at distance 1: the bilinear kernel.
    return (position[:, :, None] - target).abs_().neg_().add_(1).clamp_(min=0)


def resample(images: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """rows @ image @ columns^T for each channel: float (N, C, H, W) to (N, C, H, W)."""
    count, channels, height, width = images.shape
    x = images.permute(0, 2, 1, 3).reshape(count, height, channels * width)
    x = torch.bmm(rows, x)  # (N, H, C * W)
    x = torch.bmm(x.view(count, height * channels, width), columns.mT)  # (N, H * C, W)
    return x.view(count, height, channels, width).permute(0, 2, 1, 3).contiguous()


def color_jitter_(images: Tensor, factors: Tensor, order: list[int]) -> Tensor:
    """Brightness (0), contrast (1), saturation (2) and hue (3), applied in `order`, in place.

    `images`: float (N, C, H, W) in [0, 1]. `factors`: (N, 4) as `draw_jitter` returns.
    """
    x = images
    f = factors[:, :, None, None, None]  # each factor broadcasts over (C, H, W)
    for operation in order:
        if operation == 0:
            x.mul_(f[:, 0])
        elif operation == 1:  # blend with the mean gray of the image
            mean = _gray(x.mean(dim=(2, 3), keepdim=True))
            x.mul_(f[:, 1]).add_(mean * (1 - f[:, 1]))
        elif operation == 2:  # blend with the gray image
            gray = _gray(x).mul_(1 - f[:, 2])
            x.mul_(f[:, 2]).add_(gray)
        else:
            shift_hue(x, factors[:, 3], out=x)
            continue  # stays between the least and the greatest channel
        x.clamp_(0, 1)
    return x


def shift_hue(images: Tensor, shift: Tensor, out: Tensor | None = None) -> Tensor:
    """Turn the hue of (N, 3, H, W) images in [0, 1] by `shift` (N,) turns, at most half; value and chroma stay.

    Hue is a place on a hexagon of perimeter 6: red at 0, green at 2, blue at -2. A channel equals
    the value within 1 of its corner, the least channel beyond 2, and falls linearly in between.
    """
    r, g, b = images.unbind(dim=1)  # each (N, H, W)
    value, least = torch.maximum(torch.maximum(r, g), b), torch.minimum(torch.minimum(r, g), b)
    chroma = value - least
    scale = chroma.clamp(min=1e-12).reciprocal_()
    # Distance from red with no branch: u if red is the largest, 1 + t in the middle, 3 - u the smallest.
    side = g - b
    u, t = side.abs().mul_(scale), (value - r).mul_(scale)
    hue = torch.copysign(torch.addcmul(u, t, 3 - 2 * u), side).add_(shift[:, None, None], alpha=6)
    hue.sub_((hue / 6).round_(), alpha=6)  # back into [-3, 3]
    out = torch.empty_like(images) if out is None else out  # which may be `images`: it is no longer read
    for channel, corner in enumerate((0.0, 2.0, -2.0)):
        rise = (hue - corner).abs_().sub_(3).abs_().sub_(1).clamp_(0, 1)
        torch.addcmul(least, rise, chroma, out=out[:, channel])
    return out


def grayscale(images: Tensor) -> Tensor:
    """(N, 3, H, W) to gray images of the same shape."""
    return _gray(images).expand_as(images)


def _gray(images: Tensor) -> Tensor:
    """(N, C, H, W) to (N, 1, H, W): the luma of three channels, or the one channel itself."""
    if images.shape[1] == 1:
        return images.clone()
    r, g, b = images.split(1, dim=1)
    return (GRAY[0] * r).add_(g, alpha=GRAY[1]).add_(b, alpha=GRAY[2])
