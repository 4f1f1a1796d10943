"""What a training step sends between devices, and how long that takes: arithmetic, not a measurement.

A collective takes (steps of a ring or tree) x latency + (bytes that a device sends) / bandwidth. NVIDIA's NCCL chooses
its algorithms by a model of this form (src/graph/tuning.cc) and counts bytes as here (nccl-tests, doc/PERFORMANCE.md).
Left out: data loading, stragglers, other traffic. So an efficiency from here is more than one can hope for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from minilab import checks
from minilab.memory import NETWORKS

FLOAT = 4  # bytes of a number that is sent: gradients and views stay in float32 under autocast
NORMS = {"simclr": ("apart", "synchronised"), "moco": ("apart", "shuffled", "synchronised")}
TRIPS = {"all-reduce": 2, "all-gather": 1, "reduce-scatter": 1}  # times round a ring of W devices, in W - 1 steps


@dataclass(frozen=True)
class Cluster:
    """Devices and what joins them; each default is an assumption. A wrong value raises `ValueError`.

    `devices`: their number W, `node` of them in a machine. `link`, `network`: GB/s within a node, and out of a whole
    node. `hop`, `far_hop`: microseconds of a step within a node and between two. `call`: microseconds that any
    collective takes. `views`: views a second that a device takes forward and backward. `floor`: milliseconds of a
    forward pass that no small batch gets under; 0 leaves it out. `overlap`: whether gradients travel during backward.
    """

    devices: int
    node: int = 8
    link: float = 200.0
    network: float = 37.5
    hop: float = 1.9
    far_hop: float = 4.0
    call: float = 10.0
    views: float = 2470.0
    floor: float = 13.0
    overlap: bool = True

    def __post_init__(self) -> None:
        _check(self, "devices node", 1, whole=True)
        _check(self, "link network views", 1e-3)
        _check(self, "hop far_hop call floor", 0)
        checks.kind("overlap", self.overlap, bool, "True or False")


@dataclass(frozen=True)
class Workload:
    """A contrastive step. A wrong value raises `ValueError`.

    `batch`: images N a step, over all devices. `weights`: numbers with a gradient. `pixels`: numbers of a view.
    `dim`, `queue`: length of an embedding; MoCo's K. `norm`: batch norm of each device's images ("apart"), the same
    with keys shuffled ("shuffled", MoCo only), or over all devices ("synchronised"). `layers`, `channels`: batch norms
    of encoder and head, and their channels added up.
    """

    method: str
    batch: int
    weights: int
    pixels: int
    layers: int
    channels: int
    dim: int = 128
    queue: int = 65_536
    norm: str = "apart"

    def __post_init__(self) -> None:
        checks.one_of("method", self.method, tuple(NORMS))
        checks.one_of("norm", self.norm, NORMS[self.method])
        _check(self, "batch weights pixels layers channels dim queue", 1, whole=True)

    def share(self, devices: int) -> int:
        """Images of each device; `ValueError` unless all have equally many, one or more."""
        Cluster(devices)  # refuses what is no number of devices
        if self.batch % devices:
            raise ValueError(f"batch is {self.batch}; allowed on {devices} devices: a multiple of {devices}")
        return self.batch // devices


def resnet50(method: str, batch: int, norm: str = "apart") -> Workload:
    """A ResNet-50 with a projection head of one hidden layer to 128 numbers, at 224 x 224, as in MoCo v2."""
    network = NETWORKS["resnet50"]
    out = [channels for _, channels, *_ in network.convolutions(224)]
    head = network.features * (network.features + 1) + 128 * (network.features + 1)
    return Workload(method, batch, network.weights() + head, 3 * 224**2, len(out), sum(out), norm=norm)


@dataclass(frozen=True)
class Collective:
    """`calls` collectives of one kind. `size`: bytes of the whole array of one, which all devices have before or after.

    `kind`: "all-reduce", "all-gather" or "reduce-scatter". `hidden`: whether it can run during the backward pass.
    """

    name: str
    kind: str
    size: float
    calls: int = 1
    hidden: bool = False

    def __post_init__(self) -> None:
        checks.one_of("kind", self.kind, tuple(TRIPS))
        _check(self, "size", 0)
        _check(self, "calls", 0, whole=True)

    def sent(self, devices: int) -> float:
        """Bytes that each of W devices sends: 2 (W - 1) / W of the size in an all-reduce, else half of that."""
        Cluster(devices)  # refuses what is no number of devices
        return self.calls * TRIPS[self.kind] * (devices - 1) / devices * self.size


def collectives(work: Workload, devices: int) -> list[Collective]:
    """What a step of this lab sends on W `devices`, in order; nothing on one. `ValueError` if they get unequal shares.

    Embeddings: 2N rows, and their gradients on the way back (`minilab.distributed`). MoCo: keys for the queue, and if
    shuffled all images and keys once more (`MoCo.keys`). `minilab.syncbn`: two numbers a channel, forward and back.
    """
    checks.kind("work", work, Workload, "a Workload")
    row, found = FLOAT * work.dim, []
    if work.norm == "synchronised":  # a key encoder has no backward pass
        size, passes = 2 * FLOAT * work.channels / work.layers, 1 if work.method == "simclr" else 2
        found.append(Collective("batch-norm statistics", "all-gather", size * devices, passes * work.layers))
        found.append(Collective("batch-norm gradients", "all-reduce", size, work.layers))
    if work.method == "simclr":
        found.append(Collective("embeddings", "all-gather", 2 * work.batch * row))
        found.append(Collective("embedding gradients", "reduce-scatter", 2 * work.batch * row))
    if work.norm == "shuffled":
        found.append(Collective("shuffled images", "all-gather", FLOAT * work.batch * work.pixels))
        found.append(Collective("shuffled keys", "all-gather", work.batch * row))
    found.append(Collective("weight gradients", "all-reduce", FLOAT * work.weights, hidden=True))
    if work.method == "moco":
        found.append(Collective("queue keys", "all-gather", work.batch * row))
    return found if work.share(devices) < work.batch else []


def seconds(what: Collective, cluster: Cluster) -> float:
    """Seconds of these collectives, one after another; 0 on one device.

    A ring goes through all devices, node by node, so a node's network carries what one device sends. An all-reduce
    takes a tree of nodes where that is faster: fewer steps, slightly more bytes.
    """
    checks.kind("what", what, Collective, "a Collective")
    checks.kind("cluster", cluster, Cluster, "a Cluster")
    devices, nodes = cluster.devices, math.ceil(cluster.devices / cluster.node)
    speed = cluster.link if nodes == 1 else min(cluster.link, cluster.network)
    whole = what.size / speed / 1e3  # microseconds in which it passes a link once
    steps = (devices - nodes) * cluster.hop + (nodes - 1) * cluster.far_hop
    time = TRIPS[what.kind] * (steps + (devices - 1) / devices * whole)
    if what.kind == "all-reduce":
        deep = (min(devices, cluster.node) - 1) * cluster.hop + math.ceil(math.log2(nodes)) * cluster.far_hop
        time = min(time, 2 * (deep + whole))
    return what.calls * (cluster.call + time) / 1e6 if devices > 1 else 0.0


def computing(work: Workload, cluster: Cluster) -> float:
    """Seconds that a device computes in a step: in proportion to its images, but not under the floor.

    A backward pass counts as two forward passes. SimCLR takes two views through both; MoCo one, and one more forward.
    """
    checks.kind("work", work, Workload, "a Workload")
    checks.kind("cluster", cluster, Cluster, "a Cluster")
    passes, views = (3, 2.0) if work.method == "simclr" else (4, 4 / 3)
    return max(work.share(cluster.devices) * views / cluster.views, passes * cluster.floor / 1e3)


def parts(work: Workload, cluster: Cluster) -> dict[str, float]:
    """Seconds of a step by what they go to: `computing`, and each collective as far as nothing hides it."""
    found = {"computing": computing(work, cluster)}
    backward = found["computing"] * (2 / 3 if work.method == "simclr" else 1 / 2)
    for what in collectives(work, cluster.devices):
        behind = backward if what.hidden and cluster.overlap else 0.0
        found[what.name] = max(0.0, seconds(what, cluster) - behind)
    return found


def efficiency(work: Workload, cluster: Cluster, strong: bool) -> float:
    """Speed as a share of W times one device's, in (0, 1].

    `strong`: one device with the whole batch is the measure, so a device that is no longer full counts as a loss.
    Not strong (weak): one device with its share of the batch is; the batch has grown with the devices.
    """
    checks.kind("strong", strong, bool, "True or False")
    step = sum(parts(work, cluster).values())
    if not strong:
        return computing(work, cluster) / step
    return computing(work, replace(cluster, devices=1)) / (cluster.devices * step)


def held(work: Workload, devices: int) -> dict[str, float]:
    """Bytes on each device of what W does not divide, or only once: logits, queue, and what is gathered whole."""
    checks.kind("work", work, Workload, "a Workload")
    share = work.share(devices)
    rows, columns = (2 * share, 2 * work.batch) if work.method == "simclr" else (share, work.queue + 1)
    queue = {"queue": FLOAT * work.queue * work.dim} if work.method == "moco" else {}
    whole = [what for what in collectives(work, devices) if what.kind == "all-gather" and what.calls == 1]
    return {"logits": FLOAT * rows * columns, **queue, **{what.name: what.size for what in whole}}


def _check(holder: object, names: str, least: float, whole: bool = False) -> None:
    for name in names.split():
        if whole:
            checks.whole(name, getattr(holder, name), int(least), 2**40)
        else:
            checks.number(name, getattr(holder, name), least)
