"""The benchmark measures what it says: parts of one step, in one run."""

import pytest

from minilab import bench
from minilab.recipe import METHODS


@pytest.fixture(scope="module")
def figures():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bench, "ROUNDS", 5)
        patch.setattr(bench, "QUEUES", (32, 64))
        patch.setattr(bench, "BATCHES", (16,))
        patch.setattr(bench, "_in_a_process", lambda work, *arguments: work(*arguments))
        patch.setattr(bench, "KNN", {"bank": 500, "queries": 100})
        return bench.bench("micro", batch=32, precision="float32")


def test_every_method_has_its_figures(figures):
    for method in METHODS:
        row = figures[method]
        step, encoder = row["milliseconds"]["step"], row["milliseconds"]["networks"]
        assert row["images_per_second"] == pytest.approx(32_000 / step)
        assert row["limit_images_per_second"] == pytest.approx(32_000 / encoder)
        assert row["fraction_of_limit"] == pytest.approx(encoder / step)
        assert set(row["milliseconds"]) == {"step", "networks", "views", "loss", "after step"}


def test_the_table_has_a_row_for_each_method(figures):
    lines = bench.table(figures).splitlines()
    assert [line.split()[0] for line in lines[1:3]] == list(METHODS)
    assert all(f"{figures[line.split()[0]]['fraction_of_limit']:.3f}" in line for line in lines[1:3])
    assert f"augmentation: {figures['views_per_second']:,.0f} views/s" in lines[3]
    assert f"{figures['queue_step_ratio']['64']:.2f} at K = 64" in lines[4]


def test_views_queue_memory_and_knn_have_their_figures(figures):
    assert figures["views_per_second"] == pytest.approx(64_000 / figures["simclr"]["milliseconds"]["views"])
    assert set(figures["queue_step_ratio"]) == {"64"} and figures["queue_step_ratio"]["64"] > 0
    assert set(figures["peak_megabytes"]) == {"simclr by batch", "moco by batch", "moco by queue"}
    assert all(value > 0 for row in figures["peak_megabytes"].values() for value in row.values())
    assert figures["knn"]["seconds"] > 0 and figures["knn"]["megabytes"] >= 0


def test_a_process_of_its_own_sees_only_its_own_peak():
    small = bench._in_a_process(bench._peak, bench.Recipe("simclr", "micro", batch=16, precision="float32"))
    large = bench._in_a_process(bench._peak, bench.Recipe("simclr", "micro", batch=1024, precision="float32"))
    assert large > small + 20  # MB of activations


def test_the_bare_step_moves_an_encoder_of_its_own():
    images = bench.shapes(concepts=2, train=64, test=8)
    trainer = bench.Trainer(bench.Recipe("moco", "micro", batch=16, queue=20), images, bench.pick_device("cpu"), None)
    before = [p.clone() for p in trainer.run.encoder.parameters()]
    bench._bare_step(trainer, bench.two_views(images.train[:16], trainer.views_rng))()
    assert all((p == q).all() for p, q in zip(trainer.run.encoder.parameters(), before, strict=True))
