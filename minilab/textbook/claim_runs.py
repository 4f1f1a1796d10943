"""The checks that read recorded runs. Thresholds are wide: they ask which way an effect goes, not for its last digit.

kNN is the last epoch's. Those of the grid `phases` stand in `claim_phases`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from minilab.pictures import by_setting
from minilab.records import Record
from minilab.textbook.findings import Finding, Read, from_runs, mean, seeds

MIDDLE = 4  # the epoch, counted from 0, at which drift is read: at the end the learning rate is 0 and nothing drifts


def _of(records: Iterable[Record], **wanted: Any) -> list[Record]:
    """The records whose recipe has these values."""
    return [r for r in records if all(getattr(r.recipe, name) == value for name, value in wanted.items())]


def _means(values: dict[Any, list[float]]) -> dict[Any, float]:
    return {setting: mean(found) for setting, found in values.items()}


def _told(values: dict[Any, list[float]], name: str) -> str:
    """Means by setting: "0.241 (m = 0.0), 0.268 (m = 0.5)"."""
    return ", ".join(f"{value:.3f} ({name} = {setting:,})" for setting, value in _means(values).items())


def _range(values: Iterable[float]) -> float:
    found = list(values)
    return max(found) - min(found)


def _flat(read: Read, method: str, name: str, most: float) -> Finding:
    """kNN over 32 to 512 images a step: supported while the settings' means differ by less than `most`."""
    found = {size: values for size, values in by_setting(_of(read("batch"), method=method), "batch").items()
             if 32 <= size <= 512}  # fmt: skip
    means = _means(found)
    text = (
        f"{name}'s kNN is {min(means.values()):.3f} to {max(means.values()):.3f} "
        f"over N = {min(means)} to {max(means)}, {seeds(found.values())}"
    )
    return Finding(text, len(means) >= 4 and _range(means.values()) < most)


@from_runs("batch-flat")
def _batch_flat(read: Read) -> Finding:
    return _flat(read, "simclr", "SimCLR", 0.05)


@from_runs("batch-flat-moco")
def _batch_flat_moco(read: Read) -> Finding:
    return _flat(read, "moco", "MoCo", 0.06)


@from_runs("batch-no-collapse")
def _batch_no_collapse(read: Read) -> Finding:
    records = _of(read("batch"), method="simclr")
    cosines = [r.last("embedding_cosine") for r in records]
    smallest = min(r.recipe.batch for r in records)
    text = (
        f"over {len(records)} runs of SimCLR from N = {smallest} the mean cosine of two images is at most "
        f"{max(cosines):.2f} (1 would be collapse)"
    )
    return Finding(text, smallest <= 16 and max(cosines) < 0.3)


@from_runs("batch-beyond-count")
def _batch_beyond_count(read: Read) -> Finding:
    """At 1,024 images a step MoCo has as many negatives as ever, and still falls: few steps, not few negatives."""
    means = _means(by_setting(_of(read("batch"), method="moco"), "batch"))
    fall = max(means.values()) - means[1024]
    text = f"with K = 4,096 throughout, MoCo's kNN at N = 1,024 is {fall:.3f} below its best over N"
    return Finding(f"{text}, n = {len(_of(read('batch'), method='moco'))} runs", fall > 0.015)


@from_runs("queue-flat")
def _queue_flat(read: Read) -> Finding:
    found = by_setting(list(read("queue")), "queue")
    means = _means(found)
    gain = means[max(means)] - means[min(means)]
    text = f"kNN {_told(found, 'K')}, {seeds(found.values())}: from the shortest to the longest {gain:+.3f}"
    return Finding(text, gain < 0.01 and max(means.values()) - means[min(means)] < 0.02)


@from_runs("momentum-order")
def _momentum_order(read: Read) -> Finding:
    found = by_setting(list(read("momentum")), "momentum")
    means = _means(found)
    slow = max(means[0.99], means[0.999])
    inside = slow > means[max(means)] and slow > means[0.9] + 0.05 and means[0.9] > means[0.0]
    return Finding(f"kNN {_told(found, 'm')}, {seeds(found.values())}", inside)


@from_runs("momentum-zero")
def _momentum_zero(read: Read) -> Finding:
    records = _of(read("momentum"), momentum=0.0)
    losses, cosines, knn = ([r.last(name) for r in records] for name in ("loss", "embedding_cosine", "knn"))
    chance = records[0].last("loss_reference")
    text = (
        f"at m = 0 the loss ends at {min(losses):.2f} to {max(losses):.2f}, below the {chance:.2f} of a guess, "
        f"while two images have a cosine of {min(cosines):.2f} to {max(cosines):.2f} "
        f"and kNN is {max(knn):.2f} at best, {len(records)} seeds"
    )
    return Finding(text, max(losses) < chance and min(cosines) > 0.8 and max(knn) < 0.3)


def _consistency(record: Record, epoch: int, age: int) -> float:
    """Mean cosine of an image's key now and `age` steps ago."""
    curve = record.curves[epoch]
    return curve["consistency"][curve["age"].index(age)]


@from_runs("drift-by-momentum")
def _drift(read: Read) -> Finding:
    values = {
        m: [_consistency(r, MIDDLE, 64) for r in _of(read("momentum"), momentum=m)] for m in (0.9, 0.99, 0.999, 0.9999)
    }
    means = list(_means(values).values())
    text = (
        f"half-way through training, a key and the key of the same image 64 steps before have a cosine of "
        f"{_told(values, 'm')}, {seeds(values.values())}"
    )
    return Finding(text, means == sorted(means) and means[2] > 0.9 and means[0] < 0.5)


@from_runs("keys-turn")
def _keys_turn(read: Read) -> Finding:
    """A decay never falls below 0; keys that come to point the other way do."""
    lowest = [
        min(value for curve in r.curves[1:] for value in curve["consistency"])
        for r in read("momentum")
        if r.recipe.momentum <= 0.9
    ]
    text = (
        f"with m at most 0.9, in {sum(value < -0.1 for value in lowest)} of {len(lowest)} runs a key of some age "
        f"points away from today's: cosine down to {min(lowest):.2f}"
    )
    return Finding(text, sum(value < -0.1 for value in lowest) >= len(lowest) / 2)


@from_runs("lag-beats-age")
def _lag_beats_age(read: Read) -> Finding:
    """At K = 4,096 and N = 256 the oldest key is 16 steps old."""
    records = _of(read("momentum"), momentum=0.999)
    old = [_consistency(r, MIDDLE, 16) for r in records]
    positive = [r.history[MIDDLE]["key_cosine"] for r in records]
    text = (
        f"m = 0.999, half-way: the oldest key, of 16 steps ago, has a cosine of {mean(old):.3f} with today's key "
        f"of its image; an image's query and fresh key only {mean(positive):.2f}, {len(records)} seeds"
    )
    return Finding(text, mean(old) > mean(positive) + 0.1)


@from_runs("temperature-beats-batch")
def _temperature_beats_batch(read: Read) -> Finding:
    by_temperature = _means(by_setting(_of(read("temperature"), method="simclr"), "temperature"))
    by_batch = _means(by_setting(_of(read("batch"), method="simclr"), "batch"))
    sizes = [value for size, value in by_batch.items() if 32 <= size <= 512]
    text = (
        f"SimCLR's kNN moves by {_range(by_temperature.values()):.3f} over temperatures 0.05 to 0.5 (1 seed each), "
        f"and by {_range(sizes):.3f} over N = 32 to 512"
    )
    return Finding(text, _range(by_temperature.values()) > 2 * _range(sizes))


@from_runs("accumulation-level")
def _accumulation_level(read: Read) -> Finding:
    records = read("accumulation")
    arms = {name: [r.last("knn") for r in _of(records, chunk=32, accumulation=name)] for name in ("naive", "gradcache")}
    arms["large batch"] = [r.last("knn") for r in _of(records, batch=256, chunk=None, bn_groups=8)]
    means = _means(arms)
    text = (
        f"kNN after 10 epochs: 8 x 32 accumulated {means['naive']:.3f}, "
        f"8 x 32 with GradCache {means['gradcache']:.3f}, 256 at once {means['large batch']:.3f}, "
        f"{seeds(arms.values())}"
    )
    return Finding(text, _range(means.values()) < 0.03)


def _concepts(record: Record) -> int:
    return int(record.data["name"].partition("(")[2].split()[0])  # "Shapes (8 concepts)"


@from_runs("narrow-corpus")
def _narrow_corpus(read: Read) -> Finding:
    """On the narrowest corpus every second negative is false."""
    records = [r for r in read("concepts") if _concepts(r) == 2]
    found = by_setting(records, "queue")
    means = _means(found)
    text = f"on 2 concepts kNN is {_told(found, 'K')}, {seeds(found.values())}"
    return Finding(text, means[max(means)] > means[min(means)] - 0.02)


@from_runs("oracle-gain")
def _oracle_gain(read: Read) -> Finding:
    gains = {}
    for concepts in sorted({_concepts(r) for r in read("oracle")}):
        here = [r for r in read("oracle") if _concepts(r) == concepts]
        values = {method: [r.last("knn") for r in _of(here, method=method)] for method in ("simclr", "oracle")}
        if all(values.values()):
            gains[concepts] = mean(values["oracle"]) - mean(values["simclr"])
    told = ", ".join(f"{gain:+.3f} ({concepts} concepts)" for concepts, gain in gains.items())
    text = f"leaving out the negatives of an image's own class changes kNN by {told}, n = {len(read('oracle'))} runs"
    return Finding(text, gains[min(gains)] > 0.005 and mean(gains.values()) > 0)


@from_runs("shuffle-loss")
def _shuffle_loss(read: Read) -> Finding:
    groups = _of(read("batchnorm"), norm="batch", bn_groups=32)
    loss, knn = (
        {shuffle: [r.last(name) for r in _of(groups, shuffle=shuffle)] for shuffle in (False, True)}
        for name in ("loss", "knn")
    )
    gap = mean(loss[True]) - mean(loss[False])
    text = (
        f"with batch norm in 32 groups the shuffle raises the loss by {gap:.2f}, and changes kNN by "
        f"{mean(knn[True]) - mean(knn[False]):+.3f}, {seeds(loss.values())}"
    )
    return Finding(text, gap > 0.15)


@from_runs("stop-gradient")
def _stop_gradient(read: Read) -> Finding:
    found = {
        method: {name: [r.last(name) for r in _of(read("alternatives"), method=method)]
                 for name in ("embedding_cosine", "knn")}
        for method in ("simsiam", "simsiam-no-stop")
    }  # fmt: skip
    cosines = {method: mean(values["embedding_cosine"]) for method, values in found.items()}
    text = (
        f"SimSiam has no negatives: two images have a cosine of {cosines['simsiam']:.2f} and kNN is "
        f"{mean(found['simsiam']['knn']):.3f}; without its stop-gradient {cosines['simsiam-no-stop']:.2f} and "
        f"{mean(found['simsiam-no-stop']['knn']):.3f}, {seeds(values['knn'] for values in found.values())}"
    )
    return Finding(text, cosines["simsiam"] < 0.5 < 0.8 < cosines["simsiam-no-stop"])


@from_runs("dcl-level")
def _dcl_level(read: Read) -> Finding:
    records = read("alternatives")
    gains = {
        size: mean(r.last("knn") for r in _of(records, method="dcl", batch=size))
        - mean(r.last("knn") for r in _of(records, method="simclr", batch=size))
        for size in (32, 256)
    }
    told = " and ".join(f"{gain:+.3f} at N = {size}" for size, gain in gains.items())
    runs = len(_of(records, method="dcl")) + len(_of(records, method="simclr"))
    return Finding(f"the decoupled loss changes SimCLR's kNN by {told}, n = {runs} runs", max(gains.values()) < 0.03)
