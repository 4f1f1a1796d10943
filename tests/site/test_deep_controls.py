"""The deep tier's controls on the book's own pages: real cosines, the recorded plane, and a queue that runs away."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from conftest import Visit
from test_controls import pages_with, widgets

from minilab.records import of_grid
from minilab.spectra.repulsion import contrast
from minilab.textbook.softmax import decode

pytestmark = pytest.mark.browser


@pages_with("cosines")
def test_the_softmax_is_that_of_the_chapters_own_cosines(open_page: Callable[..., Visit], name: str) -> None:
    box = open_page(name).page.get_by_role("group", name="Softmax of one query")
    box.wait_for()
    positive, negatives = decode(widgets(name, "cosines")[0]["cosines"])
    assert len(negatives) > 100 and len(set(negatives)) > 100  # not a few values, repeated
    box.get_by_label("Temperature").press("End")  # 1
    for key, size in (("Home", 1), ("End", len(negatives))):
        box.get_by_label("Negatives K").press(key)
        shown = box.locator(".softmax-values").get_by_role("row", name="loss, nats").locator("td").first.inner_text()
        assert float(shown) == pytest.approx(contrast(positive, negatives[:size], 1.0).loss, rel=6e-3)


@pages_with("leaks")
def test_the_plane_has_the_recorded_runs(open_page: Callable[..., Visit], name: str) -> None:
    box = open_page(name).page.get_by_role("group", name="Momentum and queue age")
    box.wait_for()
    for norm, words in ((False, "without"), (True, "with")):
        box.get_by_label("Final batch norm").select_option(words)
        runs = [record for record in of_grid("phases") if record.recipe.head_norm is norm]
        assert len(runs) == box.locator(".plane-grid button:not(.plane-missing)").count()
        for record in runs:
            leak, age = round(1 - record.recipe.momentum, 6), record.recipe.queue // record.recipe.batch
            label = f"γ = {leak:g} (m = {record.recipe.momentum:g}), T = {age}: kNN accuracy {record.last('knn'):.3f}"
            assert box.get_by_role("button", name=label).count() == 1, label


@pages_with("presets")
def test_a_queue_runs_away_on_the_page_and_a_slow_key_encoder_saves_it(
    open_page: Callable[..., Visit], name: str
) -> None:
    page = open_page(name).page
    box = page.get_by_role("group", name="Points on a circle")
    box.wait_for()
    box.get_by_label("Show:").select_option("Runaway queue")
    box.get_by_label("Steps a picture").select_option("20")
    box.get_by_role("button", name="Play").click()
    box.get_by_text("Runaway: the loss is below that of a guess").wait_for(timeout=60_000)
    slow = box.get_by_role("slider", name="Momentum coefficient")
    slow.press("End")
    while slow.get_attribute("aria-valuetext") != "0.99":
        slow.press("ArrowLeft")
    box.get_by_text("Runaway: the loss is below that of a guess").wait_for(state="detached", timeout=60_000)
