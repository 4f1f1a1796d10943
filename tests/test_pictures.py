"""Pictures show what they say: nearest neighbours, the query apart, another class faded."""

import numpy as np
import torch
from matplotlib.figure import Figure

from minilab.data import shapes
from minilab.pictures import (
    _one_of_each,
    by_setting,
    draw_neighbours,
    draw_settings,
    nearest,
    picture_of_history,
    picture_of_run,
    table_of_settings,
)
from minilab.recipe import Recipe
from minilab.records import Record
from minilab.training import build_method

HISTORY = [
    {"epoch": i, "loss": 5.0 - i, "loss_reference": 6.2, "knn": 0.2 + 0.1 * i, "spread": 0.5, "effective_rank": 9.0 + i}
    for i in (1, 2)
]


def test_nearest_is_by_cosine_and_ordered():
    bank = torch.tensor([[1.0, 0.0], [0.0, 5.0], [3.0, 3.0], [-1.0, 0.0]])
    assert nearest(bank, torch.tensor([[2.0, 0.1]]), 3).tolist() == [[0, 2, 1]]
    assert nearest(bank, torch.tensor([[0.0, 1.0]]), 9).shape == (1, 4)


def test_one_of_each_class_in_turn():
    labels = torch.tensor([2, 2, 0, 1, 0, 1, 2])
    assert labels[_one_of_each(labels, 5)].tolist() == [0, 1, 2, 0, 1]


def test_neighbours_of_a_perfect_encoder_are_all_of_the_class():
    """An 'encoder' that has learned the test: the label is written into one pixel."""
    images = shapes(concepts=4, train=80, test=20)

    class Perfect(torch.nn.Module):
        def forward(self, x):
            labels = (x[:, 0, 0, 0] * 127.5 + 127.5).round().long()
            return torch.nn.functional.one_hot(labels, 4).float()

    train, test = images.train.clone(), images.test.clone()
    train[:, 0, 0, 0], test[:, 0, 0, 0] = images.train_labels.to(torch.uint8), images.test_labels.to(torch.uint8)
    marked = type(images)("marked", train, images.train_labels, test, images.test_labels, images.classes)
    axes = Figure().subplots()
    assert draw_neighbours(axes, Perfect(), marked, queries=4, count=3) == 1.0
    (sheet,) = axes.images
    assert sheet.get_array().shape == (4 * 34 - 2, 4 * 34 + 2, 3)


def test_pictures_of_a_run_are_drawn(tmp_path):
    images = shapes(concepts=4, train=80, test=20)
    recipe = Recipe("moco", encoder="micro", batch=16)
    for figure in (
        picture_of_run(recipe, images, build_method(recipe).encoder, HISTORY),
        picture_of_history(recipe, images.name, HISTORY),
    ):
        figure.savefig(tmp_path / "x.png")
        assert (tmp_path / "x.png").stat().st_size > 5_000
    titles = [axes.get_ylabel() for axes in figure.axes]
    assert titles == ["loss (nats)", "kNN accuracy", "relative to epoch 1"]


def recorded(queue: int, seed: int, knn: float) -> Record:
    history = [{**HISTORY[0], "knn": 0.9}, {**HISTORY[1], "knn": knn}]
    return Record(Recipe("moco", queue=queue, seed=seed), {}, {}, "cpu", "float32", history, [], [{}, {}])


def test_settings_are_sorted_and_seeds_told_apart():
    records = [recorded(1024, 0, 0.5), recorded(256, 1, 0.4), recorded(256, 0, 0.2)]
    values = by_setting(records, "queue")
    assert values == {256: [0.2, 0.4], 1024: [0.5]} and list(values) == [256, 1024]
    axes = Figure().subplots()
    draw_settings(axes, values, color="red", marker="o")
    line, *marks = axes.lines
    assert np.allclose(line.get_ydata(), [0.3, 0.5]) and [list(m.get_ydata()) for m in marks] == [[0.2, 0.4], [0.5]]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["256", "1,024"]


def test_the_table_says_mean_spread_and_how_many():
    records = [recorded(1024, 0, 0.5), recorded(256, 1, 0.4), recorded(256, 0, 0.2)]
    head, first, second = table_of_settings({"MoCo": by_setting(records, "queue"), "none": {}}, "queue").splitlines()
    assert head.split() == ["queue", "MoCo", "none"]
    assert first.split() == ["256", "0.300", "(0.200-0.400,", "n=2)", "-"]
    assert second.split() == ["1,024", "0.500", "(0.500-0.500,", "n=1)", "-"]
