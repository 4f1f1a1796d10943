"""The planner's widget gets what it needs, and what remains without scripts says the same."""

import json
from dataclasses import replace

import pytest

from minilab.memory import NETWORKS, recommend
from minilab.textbook.planner import HERE, START, still, widget


def test_the_widget_has_the_networks_and_the_budget():
    made = widget()
    assert set(made.networks) == set(NETWORKS) and made.budget["batch"] == 256
    json.dumps([made.networks, made.budget], allow_nan=False)
    assert "export default" in str(made._esm) and ".planner" in str(made._css)


def test_the_script_writes_text_and_never_markup():
    script = (HERE / "planner.js").read_text()
    assert not any(word in script for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "eval(", "http"))


@pytest.mark.parametrize(
    "changes, choice, words",
    [
        ({}, "simclr", "SimCLR fits at 256 images a step: 510 fresh negatives"),
        ({"batch": 64}, "moco", "SimCLR fits at 64 images a step, but has only 126 negatives."),
        ({"batch": 1536}, "moco", "SimCLR does not fit at 1,536 images a step; 936 is the most."),
        ({"batch": 100_000}, "neither", "Neither fits at 100,000 images a step."),
    ],
)
def test_recommendations_say_why(changes, choice, words):
    budget = replace(START, **changes)
    found, reasons = recommend(budget)
    assert found == choice and words in reasons[0] and len(reasons) == 3
    assert f"start with: {choice}" in still(budget) and "<pre>" in still(budget)
