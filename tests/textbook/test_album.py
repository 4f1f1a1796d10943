"""What the queue in motion says, and what stays where it cannot run."""

import pytest
import torch

from minilab.recipe import Recipe
from minilab.textbook.album import HERE, moved, still, widget
from minilab.training import build_method


def test_the_share_is_what_the_real_average_closes():
    moco = build_method(Recipe("moco", "micro", momentum=0.9, batch=8, queue=16)).train()
    with torch.no_grad():
        for weight in moco.query_weights:
            weight.add_(1.0)  # a gap of 1, which then stays
    start = moco.key_weights[0].clone()
    for steps in range(1, 5):
        moco.after_step()
        assert float((moco.key_weights[0] - start).mean()) == pytest.approx(moved(steps, 0.9), abs=1e-5)


def test_the_table_and_the_widget():
    html = still()
    assert "<pre>" in html and "23%" in html and "100%" in html  # 256 steps at 0.999 and at 0.9
    made = widget()
    assert "export default" in str(made._esm) and made.start["keys"] == 4096


def test_the_script_writes_text_and_never_markup():
    script = (HERE / "album.js").read_text()
    assert not any(word in script for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "eval(", "http"))
