"""The checks themselves, memory and scaling by arithmetic: loops, invariants, and refusals by name."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import (
    NO_NUMBERS,
    Door,
    covers,
    few,
    many,
    no_images,
    no_labels,
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

from minilab import checks, encoder, memory, scaling

# --- checks


@covers(checks.whole, checks.number, checks.temperature)
@many
@given(st.one_of(st.integers(), st.floats(), st.sampled_from([*NO_NUMBERS, True, 10**400, 10**5000])), st.data())
def test_a_value_is_a_number_within_its_limits_or_refused_by_name(value: Any, data: st.DataObject) -> None:
    low = data.draw(st.integers(-100, 100))
    high = data.draw(st.integers(low, 200))
    is_whole = type(value) is int
    cases = [
        (lambda: checks.whole("n", value, low, high), is_whole and low <= value <= high),
        (lambda: checks.whole("n", value, low), is_whole and value >= low),
        (lambda: checks.number("n", value, low, high), type(value) in (int, float) and low <= value <= high),
        (lambda: checks.number("n", value, low, high, open_low=True),
         type(value) in (int, float) and low < value <= high),
        (lambda: checks.number("n", value, low), type(value) in (int, float) and low <= value <= checks.MOST),
    ]  # fmt: skip
    for check, good in cases:
        if good:
            check()
        else:
            refused(check, named="n is ")
    if type(value) in (int, float) and 1e-6 <= value <= 100:
        checks.temperature(value)
    else:
        refused(checks.temperature, value, named="temperature")


@covers(checks.one_of, checks.kind, checks.refuse, checks.shown, checks.device)
@many
@given(st.one_of(st.text(), st.binary(), st.integers(), other_than()))
def test_a_value_is_one_of_some_or_refused_and_shown_in_short(value: Any) -> None:
    text = checks.shown(value)
    assert 0 < len(text) <= 201
    assert text in refused(checks.refuse, "field", value, "nothing", named="field")
    allowed = ("a", "b", "")
    if isinstance(value, str) and value in allowed:
        checks.one_of("field", value, allowed)
    else:
        refused(checks.one_of, "field", value, allowed, named="field")
    if isinstance(value, bytes):
        checks.kind("field", value, bytes, "bytes")
        refused(checks.kind, "field", value, (str, int), "a text or a number", named="field")
    assert checks.device("cpu") == checks.device(torch.device("cpu")) == torch.device("cpu")


SHAPES = st.lists(st.integers(0, 4), max_size=5)
KINDS = st.sampled_from([torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.uint8, torch.bool])


@covers(checks.matrix, checks.labels, checks.pairs, checks.floats, checks.finite, checks.ascending, checks.boxes)
@many
@given(SHAPES, KINDS, st.integers(0, 3), st.none() | st.integers(1, 4))
def test_a_tensor_has_the_shape_and_type_or_is_refused(
    shape: list[int], kind: torch.dtype, rows: int, dim: int | None
) -> None:
    x = torch.ones(shape).to(kind)
    real, flat = kind.is_floating_point, len(shape) == 2
    image = real and len(shape) == 4
    cases = [
        (lambda: checks.matrix("x", x, rows, dim),
         real and flat and shape[0] >= rows and (shape[1] == dim if dim else shape[1] > 0), "x"),
        (lambda: checks.labels("x", x, rows), kind == torch.int64 and shape == [rows], "x"),
        (lambda: checks.pairs(x), image and 0 not in shape and shape[0] % 2 == 0, "views"),
        (lambda: checks.pairs(x, "(2N, ...)"),
         real and len(shape) > 1 and 0 not in shape and shape[0] % 2 == 0, "views"),
        (lambda: checks.floats(x), image and shape[1] in (1, 3), "images"),
        (lambda: checks.floats(x, ()), image, "images"),
        (lambda: checks.ascending(x, 9), kind == torch.int64 and len(shape) == 1 and shape[0] < 2, "rows"),
    ]  # fmt: skip
    for check, good, name in cases:
        if good:
            check()
        else:
            refused(check, named=name)
    checks.finite("x", x)
    if real and x.numel():
        refused(checks.finite, "x", x / 0, named="x")
    boxes = torch.tensor([[0, 1, 2, 2, 1]])
    checks.boxes(boxes, torch.zeros(1, 3, 2, 3))
    refused(checks.boxes, boxes, torch.zeros(1, 3, 2, 2), named="boxes", shown=boxes.tolist()[0])


# --- memory


@covers(memory.activation_bytes, memory.peak_saved_bytes)
@few
@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 9))
def test_a_linear_layer_keeps_its_input_and_a_square_its_own(rows: int, inside: int, outside: int) -> None:
    layer = nn.Linear(inside, outside, bias=False)
    method = nn.Sequential(layer)
    method.forward = lambda views: layer(views).square().sum()  # type: ignore[method-assign]
    views = torch.rand(rows, inside)
    expected = 4 * rows * (inside + outside)
    assert memory.activation_bytes(method, views) == expected

    def work() -> Tensor:
        for _ in range(2):  # one after the other: the first is let go before the second
            loss = method(views)
            loss.backward()
            del loss
        return views

    result, most = memory.peak_saved_bytes(work, method)
    assert result is views and most == expected


@covers(memory.Network, memory.Network.convolutions, memory.Network.kept)
@few
@given(st.tuples(*[st.integers(1, 2)] * 4), st.tuples(*[st.sampled_from([8, 16])] * 4), st.integers(1, 2), st.data())
def test_a_network_by_its_numbers_is_the_network(
    blocks: tuple[int, ...], widths: tuple[int, ...], stride: int, data: st.DataObject
) -> None:
    network = memory.Network(blocks, widths, 1, (3, stride), False)
    real = encoder.ResNet(blocks, widths, stride)  # type: ignore[arg-type]
    assert network.features == real.features
    assert network.weights() == sum(weight.numel() for weight in real.parameters())
    size, sides = data.draw(st.integers(1, 40)), []
    for layer in real.modules():
        if isinstance(layer, nn.Conv2d):
            layer.register_forward_hook(lambda layer, _, out: sides.append((layer.kernel_size[0], *out.shape[1:3])))
    real.eval()(torch.rand(1, 3, size, size))
    assert sorted((kernel, out, side) for _, out, kernel, side, _ in network.convolutions(size)) == sorted(sides)
    assert network.kept(size) >= 3 * size**2 + sum(out * side**2 for _, out, side in sides)


@st.composite
def budgets(draw: st.DrawFn) -> memory.Budget:
    name, size = draw(st.sampled_from(list(memory.NETWORKS))), draw(st.integers(8, 256))
    devices, gigabytes = draw(st.integers(1, 16)), draw(st.floats(0.1, 1000))
    return memory.Budget(name, size, devices, gigabytes, draw(st.booleans()), draw(st.integers(2, 2**16)),
                         draw(st.integers(1, 2**20)), draw(st.integers(1, 4096)))  # fmt: skip


@covers(memory.Budget, memory.device_bytes, memory.largest_batch, memory.recommend)
@some
@given(budgets(), st.sampled_from(["simclr", "moco"]))
def test_the_largest_batch_fits_and_one_more_image_a_device_does_not(budget: memory.Budget, method: str) -> None:
    room = memory.USABLE * budget.gigabytes * 1e9
    most = memory.largest_batch(budget, method)
    assert most % budget.devices == 0
    if most:
        assert sum(memory.device_bytes(budget, method, most).values()) <= room
    if most < 2**20 * budget.devices:
        assert sum(memory.device_bytes(budget, method, most + budget.devices).values()) > room
    kinds = memory.device_bytes(budget, method)
    assert all(value >= 0 for value in kinds.values()) and kinds == memory.device_bytes(budget, method, budget.batch)
    found, why = memory.recommend(budget)
    fits = {name: sum(memory.device_bytes(budget, name).values()) <= room for name in ("simclr", "moco")}
    assert why and (fits[found] if found in fits else not any(fits.values()))


# --- scaling

CLUSTERS = st.builds(scaling.Cluster, st.integers(1, 4096), st.integers(1, 16), st.floats(1, 900), st.floats(1, 400))


@st.composite
def workloads(draw: st.DrawFn, devices: int) -> scaling.Workload:
    method = draw(st.sampled_from(["simclr", "moco"]))
    batch, norm = devices * draw(st.integers(1, 64)), draw(st.sampled_from(scaling.NORMS[method]))
    return scaling.Workload(method, batch, *(draw(st.integers(1, 10**8)) for _ in range(4)), norm=norm)


@covers(
    scaling.Cluster, scaling.Workload, scaling.Workload.share, scaling.collectives, scaling.computing, scaling.parts,
    scaling.efficiency, scaling.held, scaling.seconds, scaling.Collective, scaling.Collective.sent, scaling.resnet50,
)  # fmt: skip
@some
@given(CLUSTERS, st.data())
def test_a_step_is_the_sum_of_its_parts_and_no_network_helps(cluster: scaling.Cluster, data: st.DataObject) -> None:
    work, devices = data.draw(workloads(cluster.devices)), cluster.devices
    assert work.share(devices) * devices == work.batch
    sent = scaling.collectives(work, devices)
    assert bool(sent) == (devices > 1)
    parts = scaling.parts(work, cluster)
    assert set(parts) == {"computing", *(what.name for what in sent)} and all(value >= 0 for value in parts.values())
    assert parts["computing"] == scaling.computing(work, cluster)
    whole = sum(scaling.seconds(what, cluster) for what in sent) + parts["computing"]
    assert sum(parts.values()) <= whole + 1e-12
    for strong in (True, False):
        assert 0 < scaling.efficiency(work, cluster, strong) <= 1 + 1e-12
    slow = replace(cluster, link=cluster.link / 2, network=cluster.network / 2)
    assert sum(scaling.parts(work, slow).values()) >= sum(parts.values()) - 1e-12
    assert all(value > 0 for value in scaling.held(work, devices).values())
    for what in sent:
        assert what.sent(devices) == pytest.approx(what.calls * slow_ring(what, devices))
    example = scaling.resnet50(work.method, work.batch, work.norm)
    assert example.weights == pytest.approx(23.5e6 + 4.5e6, rel=0.02)  # torchvision's without fc, and the head


def slow_ring(what: scaling.Collective, devices: int) -> float:
    """Bytes that a device passes on, step by step: a W-th of the array in each of W - 1, twice in an all-reduce."""
    steps = (devices - 1) * (2 if what.kind == "all-reduce" else 1)
    return math.fsum(what.size / devices for _ in range(steps))


# --- refusals

WORK, CLUSTER = scaling.resnet50("moco", 256), scaling.Cluster(8)
GATHER = scaling.Collective("keys", "all-gather", 1.0)
NO_WORK, NO_CLUSTER = other_than(scaling.Workload), other_than(scaling.Cluster)
WHOLE = no_whole(1, 2**40)
test_refusals = refusals(
    Door(checks.device, dict, {"value": one("gpu", "", "cuda:x", None, 1, 3.5, [], b"cpu")}, {"value": "device"}),
    Door(checks.boxes, lambda: {"images": torch.zeros(2, 3, 4, 4)},
         {"value": one(None, torch.zeros(2, 5), torch.zeros(2, 4).long(), torch.zeros(2, 5).long())},
         {"value": "boxes"}),
    Door(checks.floats, dict, {"images": no_images(floats=True)}),
    Door(checks.matrix, lambda: {"name": "m"}, {"value": no_matrix()}, {"value": "m"}),
    Door(checks.labels, lambda: {"name": "m", "rows": 4}, {"value": no_labels(4)}, {"value": "m"}),
    Door(scaling.Cluster, lambda: {"devices": 8},
         {"devices": WHOLE, "node": WHOLE, "overlap": other_than(bool),
          **{name: no_number(1e-3) for name in ("link", "network", "views")},
          **{name: no_number(0) for name in ("hop", "far_hop", "call", "floor")}}),
    Door(scaling.Workload,
         lambda: {"method": "moco", "batch": 8, "weights": 1, "pixels": 1, "layers": 1, "channels": 1},
         {"method": no_text(*scaling.NORMS), "norm": no_text(*scaling.NORMS["moco"]),
          **dict.fromkeys(("batch", "weights", "pixels", "layers", "channels", "dim", "queue"), WHOLE)}),
    Door(scaling.resnet50, lambda: {"method": "moco", "batch": 8},
         {"method": no_text(*scaling.NORMS), "batch": WHOLE, "norm": no_text(*scaling.NORMS["moco"])}),
    Door(scaling.Collective, lambda: {"name": "n", "kind": "all-gather", "size": 1},
         {"kind": no_text(*scaling.TRIPS), "size": no_number(0), "calls": no_whole(0, 2**40)}),
    Door(WORK.share, dict, {"devices": st.one_of(WHOLE, one(3, 512))}, {"devices": ""}),
    Door(GATHER.sent, dict, {"devices": WHOLE}),
    Door(scaling.collectives, lambda: {"work": WORK, "devices": 8}, {"work": NO_WORK, "devices": WHOLE}),
    Door(scaling.held, lambda: {"work": WORK, "devices": 8}, {"work": NO_WORK, "devices": WHOLE}),
    Door(scaling.seconds, lambda: {"what": GATHER, "cluster": CLUSTER},
         {"what": other_than(scaling.Collective), "cluster": NO_CLUSTER}),
    Door(scaling.computing, lambda: {"work": WORK, "cluster": CLUSTER}, {"work": NO_WORK, "cluster": NO_CLUSTER}),
    Door(scaling.parts, lambda: {"work": WORK, "cluster": CLUSTER}, {"work": NO_WORK, "cluster": NO_CLUSTER}),
    Door(scaling.efficiency, lambda: {"work": WORK, "cluster": CLUSTER, "strong": True},
         {"work": NO_WORK, "cluster": NO_CLUSTER, "strong": other_than(bool)}),
    Door(memory.Budget, lambda: {"network": "tiny", "size": 32, "devices": 1, "gigabytes": 1.0, "half": True,
                                 "batch": 8, "queue": 8},
         {"size": no_whole(8, 1024), "devices": no_whole(1, 4096), "batch": no_whole(2, 2**20),
          "queue": no_whole(1, 2**24), "dim": no_whole(1, 65_536)}),
    Door(memory.device_bytes, lambda: {"budget": memory.Budget("tiny", 32, 1, 1.0, True, 8, 8)},
         {"method": st.text(max_size=5)}),
)  # fmt: skip
