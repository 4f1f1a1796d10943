"""The benchmark measures what it says: parts of one step, in one run."""

import pytest

from minilab import bench
from minilab.recipe import METHODS


@pytest.fixture(scope="module")
def figures():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bench, "ROUNDS", 5)
        return bench.bench("micro", batch=32, precision="float32")


def test_every_method_has_its_figures(figures):
    assert set(figures) == set(METHODS)
    for row in figures.values():
        step, encoder = row["milliseconds"]["step"], row["milliseconds"]["networks"]
        assert row["images_per_second"] == pytest.approx(32_000 / step)
        assert row["limit_images_per_second"] == pytest.approx(32_000 / encoder)
        assert row["fraction_of_limit"] == pytest.approx(encoder / step)
        assert set(row["milliseconds"]) == {"step", "networks", "views", "loss", "after step"}


def test_the_table_has_a_row_for_each_method(figures):
    lines = bench.table(figures).splitlines()
    assert [line.split()[0] for line in lines[1:]] == list(METHODS)
    assert all(f"{figures[line.split()[0]]['fraction_of_limit']:.3f}" in line for line in lines[1:])


def test_the_bare_step_moves_an_encoder_of_its_own():
    images = bench.shapes(concepts=2, train=64, test=8)
    trainer = bench.Trainer(bench.Recipe("moco", "micro", batch=16, queue=20), images, bench.pick_device("cpu"), None)
    before = [p.clone() for p in trainer.run.encoder.parameters()]
    bench._bare_step(trainer, bench.two_views(images.train[:16], trainer.views_rng))()
    assert all((p == q).all() for p, q in zip(trainer.run.encoder.parameters(), before, strict=True))
