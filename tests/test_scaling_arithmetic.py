"""The arithmetic of many devices: hand-worked cases, what must hold for all, and what the lab really sends."""

import importlib.util
import re
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook

from minilab import Recipe, distributed, scaling
from minilab.data import shapes
from minilab.memory import Budget, device_bytes
from minilab.processes import run_processes
from minilab.scaling import Cluster, Collective, Workload, collectives, efficiency, held, parts, resnet50, seconds
from minilab.training import Trainer

ROOT = Path(__file__).resolve().parents[1]
GRADIENTS = Collective("weight gradients", "all-reduce", 1e9)
PLAIN = {"hop": 0.0, "far_hop": 0.0, "call": 0.0}  # bytes over bandwidth, nothing else


def small(method="simclr", batch=64, **others):
    return Workload(method, batch, weights=1000, pixels=300, layers=2, channels=24, dim=8, queue=100, **others)


def sizes(work, devices):
    return {what.name: what.size for what in collectives(work, devices)}


@pytest.mark.parametrize("devices, in_ring, sent", [(1, 0.0, 0.0), (2, 1.0, 1e9), (4, 1.5, 1.5e9), (8, 1.75, 1.75e9)])
def test_a_gigabyte_all_reduced_at_a_gigabyte_a_second(devices, in_ring, sent):
    assert GRADIENTS.sent(devices) == sent
    assert seconds(GRADIENTS, Cluster(devices, link=1.0, **PLAIN)) == pytest.approx(in_ring)


@pytest.mark.parametrize("kind", ["all-gather", "reduce-scatter"])
def test_a_gather_sends_half_as_much(kind):
    half = Collective("embeddings", kind, 1e9)
    assert [half.sent(devices) for devices in (1, 2, 4)] == [0.0, 0.5e9, 0.75e9]
    assert seconds(half, Cluster(4, link=1.0, **PLAIN)) == pytest.approx(0.75)


def test_latencies_by_hand():
    nothing = {kind: Collective("x", kind, 0.0) for kind in ("all-reduce", "all-gather")}
    one_node = Cluster(8, hop=2.0, far_hop=5.0, call=10.0)
    assert seconds(nothing["all-gather"], one_node) == pytest.approx((10 + 7 * 2) / 1e6)
    assert seconds(nothing["all-reduce"], one_node) == pytest.approx((10 + 2 * 7 * 2) / 1e6)
    four_nodes = replace(one_node, devices=32)  # a ring of 28 steps within and 3 between; a tree of depth 7 and 2
    assert seconds(nothing["all-gather"], four_nodes) == pytest.approx((10 + 28 * 2 + 3 * 5) / 1e6)
    assert seconds(nothing["all-reduce"], four_nodes) == pytest.approx((10 + 2 * (7 * 2 + 2 * 5)) / 1e6)
    thrice = replace(nothing["all-reduce"], calls=3)
    assert seconds(thrice, one_node) == pytest.approx(3 * 38 / 1e6)


def test_between_nodes_the_network_of_a_node_decides():
    assert seconds(GRADIENTS, Cluster(16, link=8.0, network=2.0, **PLAIN)) == pytest.approx(2 * 15 / 16 / 2.0)
    assert seconds(GRADIENTS, Cluster(8, link=8.0, network=2.0, **PLAIN)) == pytest.approx(2 * 7 / 8 / 8.0)


def test_what_each_method_sends_by_hand():
    rows = 2 * 64 * 8 * 4  # views x dim x bytes
    assert sizes(small(), 4) == {"embeddings": rows, "embedding gradients": rows, "weight gradients": 4000}
    assert sizes(small("moco"), 4) == {"weight gradients": 4000, "queue keys": 2048}
    shuffled = sizes(small("moco", norm="shuffled"), 4)
    assert shuffled["shuffled images"] == 64 * 300 * 4 and shuffled["shuffled keys"] == 2048
    for method, forward in (("simclr", 2), ("moco", 4)):  # two layers; a key encoder doubles the forward passes
        statistics, back = collectives(small(method, norm="synchronised"), 4)[:2]
        assert (statistics.calls, statistics.size) == (forward, 4 * 96) and (back.calls, back.size) == (2, 96)


def test_the_example_network():
    work = resnet50("moco", 256, "shuffled")
    assert work.weights == 25_557_032 - 2_049_000 + 2048 * 2049 + 128 * 2049  # torchvision's, less classifier, and head
    assert (work.layers, work.channels, work.pixels) == (53, 26_560, 150_528)
    assert sizes(work, 8)["shuffled images"] == 154_140_672
    assert held(work, 8)["queue"] == 32 * 2**20
    budget = Budget("resnet50", 224, devices=8, gigabytes=80, half=True, batch=4096, queue=65_536)
    for method in scaling.NORMS:  # the planner counts logits twice: their gradient is as large
        assert 2 * held(resnet50(method, 4096), 8)["logits"] == pytest.approx(device_bytes(budget, method)["logits"])


def test_a_step_by_hand():
    cluster = Cluster(4, link=1.0, views=100.0, floor=0.0, overlap=False, **PLAIN)
    work = small(batch=400)  # 100 images of 2 views each: 2 s; embeddings 25,600 B, gradients 4,000 B
    gathered, reduced = 0.75 * 25_600 / 1e9, 1.5 * 4000 / 1e9
    assert parts(work, cluster) == pytest.approx(
        {"computing": 2.0, "embeddings": gathered, "embedding gradients": gathered, "weight gradients": reduced}
    )
    assert efficiency(work, cluster, strong=True) == pytest.approx(2 / (2 + 2 * gathered + reduced))
    assert parts(work, replace(cluster, overlap=True))["weight gradients"] == 0.0
    slow = replace(work, weights=10**9)  # 6 s of all-reduce, of which a backward pass hides 4/3 s
    assert parts(slow, replace(cluster, overlap=True))["weight gradients"] == pytest.approx(6 - 4 / 3)
    moco = small("moco", batch=300)  # a view, and a third of one for its key: 75 x 4/3 / 100
    assert parts(moco, cluster)["computing"] == pytest.approx(1.0)


def test_a_device_that_is_not_full_is_a_loss_of_strong_scaling_alone():
    cluster = Cluster(8, views=100.0, floor=1000.0, **PLAIN)
    work = small(batch=800)  # alone 16 s; eight devices would take 2 s, were it not for 3 passes of 1 s
    assert parts(work, cluster)["computing"] == 3.0
    assert efficiency(work, cluster, strong=True) == pytest.approx(2 / 3, rel=1e-6)
    assert efficiency(work, cluster, strong=False) == pytest.approx(1.0, rel=1e-6)


clusters = st.builds(
    Cluster,
    devices=st.just(1),
    node=st.sampled_from([1, 4, 8]),
    link=st.floats(1, 1000),
    network=st.floats(0.1, 1000),
    hop=st.floats(0, 50),
    far_hop=st.floats(0, 50),
    call=st.floats(0, 100),
    views=st.floats(10, 1e4),
    floor=st.floats(0, 50),
    overlap=st.booleans(),
)
works = st.sampled_from([(m, norm) for m, norms in scaling.NORMS.items() for norm in norms]).flatmap(
    lambda pair: st.builds(
        Workload,
        st.just(pair[0]),
        st.just(512),
        st.integers(1, 10**9),
        st.integers(1, 10**6),
        st.integers(1, 200),
        st.integers(1, 10**5),
        norm=st.just(pair[1]),
    )
)
some = settings(max_examples=60, deadline=None)


@some
@given(works, clusters)
def test_one_device_sends_nothing_and_loses_nothing(work, alone):
    assert collectives(work, 1) == [] and list(parts(work, alone)) == ["computing"]
    assert efficiency(work, alone, strong=True) == efficiency(work, alone, strong=False) == 1.0


@some
@given(works, clusters, st.booleans())
def test_efficiency_is_a_share_and_does_not_rise_with_devices(work, alone, strong):
    found = []
    for devices in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512):
        spread = work if strong else replace(work, batch=work.batch * devices)
        found.append(efficiency(spread, replace(alone, devices=devices), strong))
    assert all(0 < value <= 1 + 1e-9 for value in found)
    assert all(later <= earlier * (1 + 1e-9) for earlier, later in pairwise(found))


@some
@given(works, clusters, st.sampled_from([8, 64, 512]), st.sampled_from(["link", "network"]))
def test_twice_the_bandwidth_never_hurts(work, alone, devices, name):
    cluster = replace(alone, devices=devices)
    faster = replace(cluster, **{name: 2 * getattr(cluster, name)})
    assert efficiency(work, faster, True) >= efficiency(work, cluster, True) * (1 - 1e-9)
    shown = replace(cluster, overlap=True)
    assert efficiency(work, shown, True) >= efficiency(work, replace(shown, overlap=False), True)


@some
@given(works, st.sampled_from([2, 8, 64, 512]))
def test_bytes_stay_under_those_of_endless_rings(work, devices):
    """However many devices: an all-reduce sends less than twice its size, a gather less than its size."""
    for what in collectives(work, devices):
        assert 0 < what.sent(devices) < what.calls * scaling.TRIPS[what.kind] * what.size


def test_shares_must_be_equal_and_whole():
    with pytest.raises(ValueError, match="batch is 256; allowed on 512 devices: a multiple of 512"):
        efficiency(resnet50("moco", 256), Cluster(512), strong=True)
    for devices in (0, 2.0, True, "8"):
        with pytest.raises(ValueError, match="devices is .*; allowed: a whole number from 1"):
            collectives(small(), devices)


@pytest.mark.parametrize(
    "name, value",
    [("devices", 0), ("devices", 1.5), ("node", 0), ("link", 0), ("link", float("nan")), ("network", float("inf")),
     ("views", -1), ("views", "fast"), ("hop", -0.1), ("call", None), ("floor", float("inf"))],
)  # fmt: skip
def test_a_wrong_cluster_is_named(name, value):
    with pytest.raises(ValueError, match=f"{name} is {re.escape(repr(value))}; allowed: a .* number from "):
        replace(Cluster(8), **{name: value})


@pytest.mark.parametrize(
    "name, value",
    [("method", "byol"), ("norm", "shuffled"), ("batch", 0), ("weights", 1.0), ("pixels", True), ("layers", -1),
     ("channels", None), ("dim", 0), ("queue", "long")],
)  # fmt: skip
def test_a_wrong_workload_is_named(name, value):
    with pytest.raises(ValueError, match=f"{name} is {re.escape(repr(value))}; allowed: "):
        replace(small(), **{name: value})


def test_a_wrong_collective_is_named():
    with pytest.raises(ValueError, match="kind is 'all-to-all'; allowed: all-reduce, all-gather, reduce-scatter"):
        Collective("x", "all-to-all", 1.0)
    with pytest.raises(ValueError, match="size is -1; allowed: a finite number from 0"):
        Collective("x", "all-reduce", -1)


COLLECTIVES = {
    "all-gather": (distributed, "_all_gather"),
    "reduce-scatter": (distributed, "_reduce_scatter"),
    "all-reduce": (dist, "all_reduce"),
}


@contextmanager
def listening():
    """A list that gets (kind, bytes of the whole array) of each collective that this process calls."""
    found = []

    def through(kind, call):
        def noted(*tensors, **options):
            found.append((kind, max(t.numel() * t.element_size() for t in tensors if isinstance(t, torch.Tensor))))
            return call(*tensors, **options)

        return noted

    before = {kind: getattr(*place) for kind, place in COLLECTIVES.items()}
    for kind, place in COLLECTIVES.items():
        setattr(*place, through(kind, before[kind]))
    yield found
    for kind, place in COLLECTIVES.items():
        setattr(*place, before[kind])


def sent_by_the_lab(recipes):
    """What is sent in one real training step of each recipe, but for the loss's 4 bytes."""
    torch.set_num_threads(1)
    steps = []
    for recipe in map(Recipe.from_dict, recipes):
        trainer = Trainer(recipe, shapes(train=16, test=4, seed=0), torch.device("cpu"), checkpoint=None)
        trainer.forward.register_comm_hook(None, allreduce_hook)  # else DDP's own would not be heard
        trainer.run.method.train()
        with listening() as found:
            loss = trainer.take_step(torch.arange(recipe.batch))
        assert found.pop() == ("all-reduce", loss.element_size())
        steps.append(found)
    return steps


def test_the_lab_sends_what_the_arithmetic_says():
    recipes = [
        Recipe(method, "micro", batch=8, dim=8, queue=40, bn_groups=groups, precision="float32")
        for method in ("simclr", "moco")
        for groups in (1, 2)
    ]
    first, second = run_processes(sent_by_the_lab, 2, [recipe.to_dict() for recipe in recipes], seconds=200)
    assert first == second
    for recipe, lab in zip(recipes, first, strict=True):
        work = benchmark().workload(recipe, recipe.batch)
        counts, total = Counter(kind for kind, _ in lab), Counter()
        for kind, size in lab:
            total[kind] += size
        for kind in scaling.TRIPS:
            these = [what for what in collectives(work, 2) if what.kind == kind]
            assert counts[kind] == sum(what.calls for what in these), (recipe, kind)
            assert total[kind] == pytest.approx(sum(what.calls * what.size for what in these)), (recipe, kind)


def benchmark():
    spec = importlib.util.spec_from_file_location("scaling_benchmark", ROOT / "benchmarks" / "scaling.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_benchmark_prints_this_arithmetic():
    text = benchmark().arithmetic(Recipe("moco", "micro", batch=8, bn_groups=2), each=4, step=1.0, gigabytes=10.0)
    assert text.startswith("Arithmetic, not measured: 4 images a device")
    assert "shuffled images 0.3," in text  # 7/8 of 8 x 4 x 3,072 x 4 bytes
    assert "synchronised" not in text and text.count("efficiency") == 3


def test_the_page_says_what_the_benchmark_measured():
    """The ratios on two processes stand in the benchmark's docstring; the page has the same."""
    told = re.findall(r"(?<!\d)\.\d\d", benchmark().__doc__)
    page = (ROOT / "book" / "chapters" / "lookup" / "scaling.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (?:SimCLR|MoCo), .*$", page, flags=re.MULTILINE)
    assert sorted(re.findall(r"0(\.\d\d)", " ".join(rows))) == sorted(told)
    assert told
