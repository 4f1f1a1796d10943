"""Two random views of a batch, on the device, one draw of parameters per image.

The recipe of SimCLR on CIFAR-10 (arXiv 2002.05709, appendix A and B.9): random resized crop,
flip, colour jitter, grayscale; no blur. Each operation equals torchvision's on the same
parameters to 1e-5 (tests/test_views.py). Parameters are drawn on the CPU, so that
a seed gives the same views on every device, and go there in one copy that nobody waits for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from minilab import checks
from minilab.transfer import send

IDENTITY = (1.0, 1.0, 1.0, 0.0)  # brightness, contrast, saturation and hue that change nothing
GRAY = (0.2989, 0.587, 0.114)  # torchvision's weights of red, green and blue
GROUP = 512  # views that share one order of jitter; few enough to stay in the cache of a processor


@dataclass(frozen=True)
class Augmentation:
    """Strengths of the views. Defaults are SimCLR's for CIFAR-10 with a milder smallest crop.

    `crop`: smallest share of the area kept. `brightness`, `contrast`, `saturation`: the factor is
    drawn from 1 - s to 1 + s, but not below 0; s is at most 10. `hue`: shift in turns, from -s to s, at most 0.5.
    `jitter`, `gray`, `flip`: probabilities per view. A wrong value raises `ValueError`.
    """

    crop: float = 0.2
    brightness: float = 0.4
    contrast: float = 0.4
    saturation: float = 0.4
    hue: float = 0.1
    jitter: float = 0.8
    gray: float = 0.2
    flip: float = 0.5

    def __post_init__(self) -> None:
        checks.number("crop", self.crop, 0, 1, open_low=True)
        for name, high in (("brightness", 10), ("contrast", 10), ("saturation", 10), ("hue", 0.5), ("jitter", 1),
                           ("gray", 1), ("flip", 1)):  # fmt: skip
            checks.number(name, getattr(self, name), 0, high)


def two_views(
    images: Tensor, generator: Generator, augmentation: Augmentation = Augmentation(), part: tuple[int, int] = (0, 1)
) -> Tensor:
    """Images (N, C, H, W) to views (2N, C, H, W): rows i and i + N come from image i.

    `images`: uint8, or floats in [0, 1]. C is 1 or 3. Returns float32 in [-1, 1]. `part` (r, W): only the
    views of the r-th of W equal parts of the images, the same as they would be among all; W divides N.
    """
    check_images(images)
    whole = isinstance(part, tuple) and len(part) == 2 and all(type(place) is int for place in part)
    number, parts = part if whole else (-1, 0)
    if not 0 <= number < parts or len(images) % parts:
        checks.refuse("part", part, f"(r, W) with r from 0 to below W, and W a divisor of {len(images)}")
    rows = torch.arange(2 * len(images)).view(2, parts, -1)[:, number].flatten() if parts > 1 else None
    return _draw_views(torch.cat([images, images]), generator, augmentation, rows)


def random_views(
    images: Tensor, generator: Generator, augmentation: Augmentation = Augmentation(), rows: Tensor | None = None
) -> Tensor:
    """One random view of each image: (N, C, H, W) to float32 (N, C, H, W) in [-1, 1].

    `rows`: numbers (n,), ascending, of those that are wanted; the others are drawn and not computed.
    """
    check_images(images)
    if rows is not None:
        checks.ascending(rows, len(images))
    return _draw_views(images, generator, augmentation, rows)


def _draw_views(images: Tensor, generator: Generator, augmentation: Augmentation, rows: Tensor | None) -> Tensor:
    """`random_views` of what has been checked: a training step reads no values."""
    count, _, height, width = images.shape
    boxes = draw_crops(count, height, width, augmentation, generator)
    factors = draw_jitter(count, augmentation, generator)
    gray = torch.rand(count, generator=generator) < augmentation.gray
    orders = [torch.randperm(4, generator=generator).tolist() for _ in range(0, count, GROUP)]
    wanted = torch.arange(count) if rows is None else rows
    groups = [wanted[wanted // GROUP == group] for group in range(len(orders))]
    # On the CPU nobody waits for what is counted here; then all goes to the device at once.
    plans = [_plan(group, boxes, factors, gray) for group in groups]
    sent = send([tensor for plan in plans for tensor in plan], images.device)
    views = torch.empty((len(wanted), *images.shape[1:]), device=images.device)
    for number, done in enumerate(views.split([len(group) for group in groups])):
        if len(done):
            _view_group(images, sent[5 * number : 5 * number + 5], orders[number], done)
    return views.mul_(2).sub_(1)  # [0, 1] to [-1, 1]


def _plan(group: Tensor, boxes: Tensor, factors: Tensor, gray: Tensor) -> tuple[Tensor, ...]:
    """What the views of `group` (n,) need, of the draws for all views.

    The jittered ones come first, so that they are one block, changed in place. Returned: which images in that order
    (n,), where each view is in it (n,), their boxes (n, 5), factors of the jittered (m, 4), which views are gray (g,).
    """
    plain = (factors[group] == factors.new_tensor(IDENTITY)).all(dim=1)
    front = plain.int().argsort(stable=True)
    chosen = group[front]
    jittered = chosen[: len(group) - int(plain.sum())]
    return chosen, front.argsort(), boxes[chosen], factors[jittered], gray[group].nonzero().squeeze(1)


def _view_group(images: Tensor, plan: list[Tensor], order: list[int], out: Tensor) -> None:
    """Write the views (n, C, H, W) in [0, 1] of one `_plan` to `out`; all on the device."""
    chosen, back, boxes, factors, grays = plan
    if images.shape[1] == 1:  # a gray image has no saturation or hue to change
        order = [operation for operation in order if operation < 2]
    # index_select: several times as fast as indexing with [...] on a CPU
    x = _cut(images.index_select(0, chosen), boxes)
    color_jitter_(x[: len(factors)], factors, order)
    torch.index_select(x, 0, back, out=out)
    if images.shape[1] == 3:
        out.index_copy_(0, grays, grayscale(out.index_select(0, grays)))


def plain_views(images: Tensor) -> Tensor:
    """The images as the encoder wants them, with no augmentation: float32 in [-1, 1]."""
    check_images(images)
    return images.float().mul(2 / 255 if images.dtype == torch.uint8 else 2).sub_(1)


def check_images(images: Tensor) -> None:
    """Raise `ValueError` unless `images` is (N, C, H, W) with 1 or 3 channels, uint8 or floating point."""
    checks.kind("images", images, Tensor, "a tensor of shape (N, 1 or 3, H, W)")
    if images.ndim != 4 or images.shape[1] not in (1, 3) or 0 in images.shape:
        raise ValueError(f"images has shape {tuple(images.shape)}; allowed: (N, 1 or 3, H, W), none of them 0")
    if images.dtype != torch.uint8 and not images.is_floating_point():
        raise ValueError(f"images has type {images.dtype}; allowed: uint8, or floating point in [0, 1]")


def draw_crops(count: int, height: int, width: int, augmentation: Augmentation, generator: Generator) -> Tensor:
    """Crop boxes, int64 (count, 5): top, left, height, width, and 1 where the crop is mirrored.

    As torchvision draws them: area from `crop` to 1 of the image, aspect ratio from 3/4 to 4/3
    (uniform in its logarithm), ten tries, and where none fits the largest centred box.
    """
    for name, size in (("count", count), ("height", height), ("width", width)):
        checks.whole(name, size, 1, 2**31)
    _check_drawing(augmentation, generator)
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
    checks.whole("count", count, 1, 2**31)
    _check_drawing(augmentation, generator)
    a = augmentation
    strength = torch.tensor([a.brightness, a.contrast, a.saturation, a.hue])
    identity = torch.tensor(IDENTITY)
    drawn = identity + strength * (2 * torch.rand(count, 4, generator=generator) - 1)
    drawn[:, :3].clamp_(min=0)
    jittered = torch.rand(count, 1, generator=generator) < a.jitter
    return torch.where(jittered, drawn, identity)


def crop_and_resize(images: Tensor, boxes: Tensor) -> Tensor:
    """Cut each box out and stretch it back to H x W (bilinear), mirrored where the box says so.

    `images`: (N, C, H, W), uint8 or floats in [0, 1]. `boxes`: int64 (N, 5) as `draw_crops` returns.
    Returns floats in [0, 1]. Bilinear interpolation is linear in each axis, so rows and columns go one
    after the other: far fewer passes over memory than gathering four neighbours for every pixel.
    """
    check_images(images)
    checks.boxes(boxes, images)
    return _cut(images, boxes)


def _cut(images: Tensor, boxes: Tensor) -> Tensor:
    """`crop_and_resize` of what has been checked."""
    count, channels, height, width = images.shape
    top, left, h, w, mirrored = boxes.unbind(dim=1)
    bytes_ = images.dtype == torch.uint8
    x = (images.float() if bytes_ else images).reshape(-1, width)
    # A row of the result is a weighted sum of two rows of the image. `embedding_bag` is that in one pass.
    y = _source(top, h, height)  # (N, H)
    above = y.long()
    weight = torch.stack([above + 1 - y, y - above], dim=2) / (255 if bytes_ else 1)  # bytes to [0, 1]
    pair = torch.stack([above, (above + 1).clamp(max=height - 1)], dim=2)  # (N, H, 2)
    first = torch.arange(0, count * channels * height, height, device=x.device).view(count, channels, 1, 1)
    x = F.embedding_bag(
        (first + pair[:, None]).view(-1, 2),
        x,
        mode="sum",
        per_sample_weights=weight[:, None].expand(-1, channels, -1, -1).reshape(-1, 2).to(x.dtype),
    )
    # Along a row, a pixel's weight falls linearly to 0 at distance 1: a small matrix for each image.
    columns = _source(left, w, width)
    columns = torch.where(mirrored[:, None] == 1, columns.flip(1), columns)
    matrix = (columns[:, None] - torch.arange(width, device=x.device)[:, None]).abs_().neg_().add_(1).clamp_(min=0)
    return torch.bmm(x.view(count, channels * height, width), matrix.to(x.dtype)).view(images.shape)


def _source(start: Tensor, length: Tensor, size: int) -> Tensor:
    """Where in the image each of `size` pixels comes from, (N, size): `length` pixels from `start` on, stretched."""
    target = torch.arange(size, device=start.device)
    position = (target + 0.5) * (length[:, None] / size) - 0.5  # pixel centres, as align_corners=False
    return position.clamp_(min=0).minimum(length[:, None] - 1.0) + start[:, None]  # stay in the box


def color_jitter_(images: Tensor, factors: Tensor, order: list[int]) -> Tensor:
    """Brightness (0), contrast (1), saturation (2) and hue (3), applied in `order`, in place.

    `images`: float (N, C, H, W) in [0, 1]. `factors`: (N, 4) as `draw_jitter` returns.
    One channel has no saturation and no hue.
    """
    channels = checks.floats(images)
    if not isinstance(factors, Tensor) or factors.shape != (len(images), 4):
        checks.refuse("factors", factors, f"numbers of shape ({len(images)}, 4)")
    if not isinstance(order, list) or any(step not in range(4 if channels == 3 else 2) for step in order):
        checks.refuse("order", order, "a list of 0 to 3, or with one channel of 0 and 1")
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
    checks.floats(images, (3,))
    if not isinstance(shift, Tensor) or shift.shape != images.shape[:1]:
        checks.refuse("shift", shift, f"numbers of shape ({len(images)},)")
    if out is not None and (not isinstance(out, Tensor) or out.shape != images.shape or out.dtype != images.dtype):
        checks.refuse("out", out, f"None or {images.dtype} of shape {tuple(images.shape)}")
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
    checks.floats(images, (3,))
    return _gray(images).expand_as(images)


def _gray(images: Tensor) -> Tensor:
    """(N, C, H, W) to (N, 1, H, W): the luma of three channels, or the one channel itself."""
    if images.shape[1] == 1:
        return images.clone()
    r, g, b = images.split(1, dim=1)
    return (GRAY[0] * r).add_(g, alpha=GRAY[1]).add_(b, alpha=GRAY[2])


def _check_drawing(augmentation: Augmentation, generator: Generator) -> None:
    checks.kind("augmentation", augmentation, Augmentation, "an Augmentation")
    checks.kind("generator", generator, Generator, "a torch.Generator")
