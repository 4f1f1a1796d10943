"""The explorer gets plain values, says what it cannot show, and leaves a summary that needs no script."""

import json
from dataclasses import replace

import pytest
import torch

from minilab.probes import encode_points
from minilab.recipe import Recipe
from minilab.records import Record
from minilab.textbook.explorer import contents, still, widget


def record(method: str = "moco", seed: int = 0, knn: float = 0.3, **changes) -> Record:
    history = [
        {"epoch": n, "loss": 7.0 - n, "loss_reference": 8.3, "knn": knn + n / 100, "spread": 0.5, "effective_rank": 9.0,
         "loss_std": 0.1, "embedding_cosine": 0.1, "alignment": 1.0}
        for n in (1, 2)
    ]  # fmt: skip
    points = {"points": encode_points(torch.tensor([[0.1, -0.2], [0.3, 0.4], [0.0, 0.0]]))}
    curve = {**points, "age": [1, 4], "consistency": [1.0, 0.9]} if method == "moco" else points
    data = {"name": "CIFAR-10 (JPEG copy)"}
    return Record(Recipe(method, seed=seed, **changes), data, {}, "cpu", "float32", history, [3, 0, 9], [curve, curve])


def test_runs_are_sorted_and_hold_what_is_shown():
    records = [record(queue=1024), record(queue=256, seed=1), record(queue=256)]
    found = contents(records, "queue", "length of the queue")
    assert [(run["setting"], run["seed"]) for run in found["runs"]] == [("256", 0), ("256", 1), ("1,024", 0)]
    assert found["first"] == ["256", "1,024"] and found["title"] == "length of the queue"
    assert found["classes"][3] == "cat" and found["labels"] == [3, 0, 9]
    assert "alignment" not in found["runs"][0]["history"][0]  # not drawn, so not sent
    json.dumps(found, allow_nan=False)


def test_two_methods_are_named():
    records = [record(batch=64), record("simclr", batch=64), record("simclr", batch=256)]
    settings = [run["setting"] for run in contents(records, "batch", "batch")["runs"]]
    assert settings == ["SimCLR, 64", "SimCLR, 256", "MoCo, 64"]


def test_concepts_of_shapes_have_numbers():
    records = [replace(record(momentum=m), data={"name": "Shapes (10 concepts)"}) for m in (0.9, 0.99)]
    assert contents(records, "momentum", "m")["classes"][-1] == "concept 9"


@pytest.mark.parametrize(
    "records, first, message",
    [
        ([record()], None, r"the records have the settings \['0.99'\] of momentum; allowed: two or more"),
        ([record(), record(momentum=0.5)], ("0.5", "0.7"), "first names '0.7'; allowed: 0.5, 0.99"),
        ([record(), replace(record(momentum=0.5), labels=[1, 2, 3])], None, "the records map different images"),
    ],
)
def test_what_cannot_be_shown_is_refused(records, first, message):
    with pytest.raises(ValueError, match=message):
        contents(records, "momentum", "m", first)


def test_the_widget_has_a_script_a_style_and_the_runs():
    made = widget([record(), record(momentum=0.5)], "momentum", "momentum coefficient m", ("0.5", "0.99"))
    assert "export default" in str(made._esm) and ".explorer" in str(made._css)
    assert [run["setting"] for run in made.runs] == ["0.5", "0.99"] and made.first == ["0.5", "0.99"]


def test_the_script_writes_text_and_never_markup():
    from minilab.textbook import explorer

    script = (explorer.HERE / "explorer.js").read_text()
    assert not any(
        word in script for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(")
    )
    assert "http" not in script.replace("http://www.w3.org/2000/svg", "")


def test_the_summary_is_a_figure_and_a_table():
    html = still([record(knn=0.2), record(knn=0.4, seed=1), record(momentum=0.5)], "momentum", "momentum <m>")
    assert (
        html.count("<svg") == 1 and 'aria-label="kNN accuracy after the last epoch against momentum &lt;m&gt;' in html
    )
    assert "0.320 (0.220-0.420, n=2)" in html and "<m>" not in html
