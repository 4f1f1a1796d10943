"""Each preset does what it says, on three seeds, and what stays where no script runs has its figures."""

from __future__ import annotations

from dataclasses import asdict, replace
from itertools import pairwise

import pytest

from minilab.spectra.points import Points, Setting
from minilab.textbook.points import CHOICES, PRESETS, contents, course, outcome, script, still, widget

SEEDS = (0, 1, 2)


def settings(name: str) -> list[Setting]:
    return [replace(PRESETS[name][0], seed=seed) for seed in SEEDS]


def steps_to_spread(setting: Setting) -> int:
    """Steps until the spread passes a half."""
    run = Points(setting)
    while run.gauges()["spread"] < 0.5 and run.steps < 600:
        run.step()
    return run.steps


@pytest.mark.parametrize("setting", settings("Runaway queue"))
def test_the_runaway_queue_runs_away(setting: Setting) -> None:
    assert Points(setting).gauges()["spread"] > 0.4  # it starts spread out
    end = outcome(setting)
    assert end["spread"] < 0.1 and end["mean"] > 0.99
    assert end["loss"] < 0.75 * end["guess"]
    assert abs(end["turns"]) > 5
    late = course(setting)[-200:]
    ways = {each["turns"] > before["turns"] for before, each in pairwise(late)}
    assert len(ways) == 1  # it never turns back


@pytest.mark.parametrize("setting", settings("Runaway queue"))
def test_raising_m_in_mid_run_brings_the_points_back(setting: Setting) -> None:
    run = Points(setting)
    run.step(400)
    assert run.gauges()["spread"] < 0.15
    run.setting = replace(setting, momentum=0.99)
    run.step(400)
    late = []
    for _ in range(200):
        run.step()
        late.append(run.gauges()["spread"])
    assert sum(late) / len(late) > 0.6


@pytest.mark.parametrize("name", ["The same, m = 0.99", "The same, short queue"])
def test_one_change_heals_it(name: str) -> None:
    changed = {
        key for key, value in asdict(PRESETS[name][0]).items() if value != asdict(PRESETS["Runaway queue"][0])[key]
    }
    assert changed == {"momentum" if "m =" in name else "queue"}
    for setting in settings(name):
        end = outcome(setting)
        assert end["spread"] > 0.7 and end["loss"] < end["guess"], setting


@pytest.mark.parametrize("name", ["One negative", "SimCLR, 2 images a step", "SimCLR, 8 images a step"])
def test_almost_one_point_escapes(name: str) -> None:
    for setting in settings(name):
        assert Points(setting).gauges()["spread"] < 0.1, setting
        end = outcome(setting)
        assert end["spread"] > 0.75 and end["loss"] < 0.6 * end["guess"], setting


def test_seven_times_the_negatives_are_sooner_but_not_twice_as_soon() -> None:
    two, fourteen = (
        sum(steps_to_spread(setting) for setting in settings(f"SimCLR, {batch} images a step")) for batch in (2, 8)
    )
    assert PRESETS["SimCLR, 8 images a step"][0].negatives == 7 * PRESETS["SimCLR, 2 images a step"][0].negatives
    assert fourteen < two < 2 * fourteen


def test_every_choice_is_allowed_and_every_preset_can_be_chosen() -> None:
    for name, values in CHOICES.items():
        assert values == sorted(set(values))
        for value in values:
            Setting(**{name: value})
    for setting, _ in PRESETS.values():
        assert all(getattr(setting, name) in values for name, values in CHOICES.items()), setting


def test_what_stays_without_a_script() -> None:
    html = still()
    assert 'role="img"' in html and "<pre>" in html
    for name, (setting, _) in PRESETS.items():
        line = next(line for line in html.splitlines() if line.startswith(name))
        end = outcome(setting)
        assert line.split()[-5:] == [
            f"{end['spread']:.2f}",
            f"{end['mean']:.2f}",
            f"{end['turns']:+.1f}",
            f"{end['loss']:.2f}",
            f"{end['guess']:.2f}",
        ]
        assert len(line) <= 70


def test_the_widget_holds_its_script_and_its_presets() -> None:
    made = widget("One negative")
    assert "export default" in str(made._esm) and made.first == "One negative"
    assert made.presets == contents("One negative")["presets"] and made.choices == CHOICES
    with pytest.raises(ValueError, match="preset is 'mine'; allowed: Runaway queue, "):
        widget("mine")


def test_the_script_writes_text_and_never_markup_and_asks_nothing_of_other_sites() -> None:
    words = ("innerHTML", "outerHTML", "insertAdjacentHTML", "eval(", "fetch(", "import ", "https:")
    assert not any(word in script() for word in words)
