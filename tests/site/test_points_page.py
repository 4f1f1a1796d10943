"""Points on a circle, trained in the page: the same numbers as in Python, and controls that do what they say."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import script_alone
from playwright.sync_api import Browser, Page
from test_accessibility import grave_faults

from minilab.spectra.points import Points, Setting
from minilab.textbook.points import HERE, PRESETS, contents, outcome, script

pytestmark = pytest.mark.browser
MODEL = """async (given) => {
  const { default: widget } = await import("/whole.js");
  const el = document.body.appendChild(document.createElement("main"));
  const stop = widget.render({ model: { get: (name) => given[name] }, el });
  window.leave = () => { el.remove(); stop(); };
}"""
TRAIN = """async ([setting, steps, later]) => {
  const { create, train } = await import("/whole.js");
  const run = create(setting), seen = [];
  for (let step = 0; step < steps; step += 1) {
    if (step === steps / 2) run.setting = { ...setting, ...later };
    train(run);
    seen.push([run.loss, run.spread, Math.hypot(...run.mean), run.turns]);
  }
  const { weights, keyWeights, queue, oldest, images } = run;
  return { seen, weights, keyWeights, queue, oldest, images };
}"""
CASES = [
    Setting("moco"),
    Setting("moco", batch=3, queue=7, momentum=0.9, seed=1),  # the queue is no multiple of the batch
    Setting("moco", batch=8, queue=5, momentum=0.5, seed=2),  # it is shorter than the batch
    Setting("moco", batch=1, queue=1, momentum=0.99, temperature=0.05, seed=3),
    Setting("moco", batch=64, queue=512, momentum=0.0, temperature=1.0, seed=4),
    Setting("moco", batch=16, queue=64, momentum=1.0, images=2, seed=2**32 - 1),
    Setting("moco", batch=6, queue=32, momentum=0.3, width=0.01, images=64, rate=0.5, seed=5),
    Setting("simclr", batch=2, width=0.03, seed=6),
    Setting("simclr", batch=5, temperature=0.07, rate=0.02, seed=7),  # at 0.1 rounding grows 1e7-fold in 50 steps
    Setting("simclr", batch=24, images=3, rate=0.01, seed=8),
]


@contextmanager
def alone(browser: Browser, folder: Path) -> Iterator[Page]:
    (folder / "made").mkdir()
    whole = folder / "made" / "whole.js"
    whole.write_text(script())
    with script_alone(browser, folder, whole, HERE / "points.css") as page:
        yield page


@pytest.fixture()
def page(browser: Browser, tmp_path: Path) -> Iterator[Page]:
    """An empty page at a phone's width beside the script."""
    with alone(browser, tmp_path) as page:
        yield page


def values(page: Page) -> dict[str, str]:
    rows = page.locator(".points tbody tr").all()
    return {row.locator("th").inner_text().split(",")[0]: row.locator("td").inner_text() for row in rows}


def drawn(page: Page) -> str:
    """Where the points are, as the picture has them."""
    return page.locator(".points-circle .points-query").get_attribute("d") or ""


def stepped(run: Points, count: int) -> tuple[list[float], list[float]]:
    """Loss and spread after each of `count` steps."""
    seen = []
    for _ in range(count):
        run.step()
        seen.append(run.gauges())
    return [gauges["loss"] for gauges in seen], [gauges["spread"] for gauges in seen]


def click(page: Page, name: str, times: int = 1) -> None:
    for _ in range(times):
        page.get_by_role("button", name=name).click()


def test_fifty_steps_are_those_of_python(page: Page) -> None:
    presets = [setting for setting, _ in PRESETS.values()]
    later: dict[str, Any] = {"batch": 4, "momentum": 0.8, "temperature": 0.3, "rate": 0.05}
    for case in CASES + presets:
        found = page.evaluate(TRAIN, [asdict(case), 50, later])
        run, seen = Points(case), []
        for step in range(50):
            if step == 25:
                run.setting = replace(case, **later)
            run.step()
            gauges = run.gauges()
            seen.append([gauges["loss"], gauges["spread"], gauges["mean"], gauges["turns"]])
        close = 1e-6 if case in presets else 1e-9  # some presets are chaotic: rounding grows
        off = np.abs(np.array(found["seen"]) - seen)
        assert off.shape == (50, 4) and off[:25].max() < 1e-9 and off.max() < close, case
        assert np.abs(np.array(found["weights"]) - run.weights.ravel()).max() < close, case
        assert np.abs(np.array(found["keyWeights"]) - run.key_weights.ravel()).max() < close, case
        assert np.abs(np.array(found["queue"]) - run.queue).max() < close, case
        assert np.abs(np.array(found["images"]) - run.images).max() < 1e-12, case
        assert found["oldest"] == run.oldest, case


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_played_to_the_end_is_what_its_name_says(page: Page, name: str) -> None:
    page.evaluate(MODEL, contents(name))
    page.get_by_label("Steps a picture").select_option("20")
    click(page, "Play")
    page.get_by_role("button", name="Play").wait_for(timeout=60_000)
    end, there, guess = outcome(PRESETS[name][0]), values(page), PRESETS[name][0].guess
    assert there["step"] == "1,500"
    assert float(there["loss of a guess"]) == pytest.approx(guess, abs=5e-4)
    assert float(there["loss"]) < 0.95 * guess
    said = page.locator(".points-said").inner_text()
    if name == "Runaway queue":
        assert float(there["spread"]) < 0.15 and float(there["length of the points' mean"]) > 0.98
        assert abs(float(there["turns of that mean so far"])) > 2 * abs(end["turns"])
        assert said == "Runaway: the loss is below that of a guess, and the points lie together."
    else:
        assert float(there["spread"]) > 0.3
        assert "Runaway" not in said and "one point" not in said


def test_step_by_keyboard_and_start_again(page: Page) -> None:
    page.evaluate(MODEL, contents("Runaway queue"))
    start = drawn(page)
    assert values(page)["step"] == "0" and values(page)["loss"] == "none"
    assert page.locator(".points-said").inner_text() == "Not trained yet."
    page.get_by_role("button", name="One step").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Space")
    run = Points(PRESETS["Runaway queue"][0])
    losses, spreads = stepped(run, 2)
    there = values(page)
    assert there["step"] == "2" and there["loss"] == f"{np.mean(losses):.3f}"
    assert there["spread"] == f"{np.mean(spreads):.3f}"
    assert there["length of the points' mean"] == f"{run.gauges()['mean']:.3f}"
    assert "496 of 512 keys" in page.locator(".points-said").inner_text()
    assert drawn(page) != start
    click(page, "Start again")
    assert drawn(page) == start and values(page)["step"] == "0"
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_play_pause_and_a_control_moved_while_it_plays(page: Page) -> None:
    page.evaluate(MODEL, contents("Runaway queue"))
    assert page.get_by_role("button", name="Play").is_visible()  # it does not start by itself
    page.get_by_label("Steps a picture").select_option("1")
    click(page, "Play")
    page.wait_for_function("Number(document.querySelector('.points td').textContent) > 20")
    page.get_by_role("slider", name="Momentum coefficient").focus()
    page.keyboard.press("ArrowRight")
    going = int(values(page)["step"])
    assert going > 20  # m acts at once: the run goes on
    page.wait_for_function(f"Number(document.querySelector('.points td').textContent) > {going + 5}")
    click(page, "Pause")
    before = values(page)
    page.wait_for_timeout(400)
    assert values(page) == before and int(before["step"]) < 1500
    click(page, "Play")
    page.wait_for_function(f"Number(document.querySelector('.points td').textContent) > {before['step']}")
    page.get_by_role("slider", name="Keys in the queue").focus()
    page.keyboard.press("Home")  # a new queue begins a new run, which plays on
    page.wait_for_function("document.querySelector('.points-said').textContent.indexOf('512') < 0")
    assert int(values(page)["step"].replace(",", "")) < int(before["step"]) + 500
    page.evaluate("window.leave()")  # the clock stops with the view: the page must end with no error
    page.wait_for_timeout(200)


# label, key pressed, field
MOVES = [
    ("Images a step", "ArrowRight", {"batch": 12}),
    ("Keys in the queue", "ArrowLeft", {"queue": 256}),
    ("Momentum coefficient", "ArrowRight", {"momentum": 0.3}),
    ("Temperature", "ArrowLeft", {"temperature": 0.15}),
    ("Learning rate", "ArrowRight", {"rate": 0.2}),
    ("Images in all", "ArrowRight", {"images": 16}),
    ("Spread of W at the start", "ArrowLeft", {"width": 0.3}),
    ("Seed", "ArrowRight", {"seed": 1}),
]


@pytest.mark.parametrize("label, key, changed", MOVES)
def test_every_slider_changes_what_it_says(page: Page, label: str, key: str, changed: dict[str, Any]) -> None:
    page.evaluate(MODEL, contents("Runaway queue"))
    slider = page.get_by_role("slider", name=label)
    slider.focus()
    page.keyboard.press(key)
    assert slider.get_attribute("aria-valuetext") == str(next(iter(changed.values())))
    assert page.get_by_label("Show:").input_value() == ""
    run = Points(replace(PRESETS["Runaway queue"][0], **changed))
    assert values(page)["loss of a guess"] == f"{run.setting.guess:.3f}"
    click(page, "One step", 3)
    losses, spreads = stepped(run, 3)
    there, untouched = values(page), Points(PRESETS["Runaway queue"][0])
    untouched.step(3)
    assert there["loss"] == f"{np.mean(losses):.3f}"
    assert there["spread"] == f"{np.mean(spreads):.3f}"
    assert not np.allclose(run.weights, untouched.weights, atol=1e-6)  # so that the test can fail


def test_what_acts_at_once_and_what_begins_a_new_run(page: Page) -> None:
    page.evaluate(MODEL, contents("Runaway queue"))
    for label, key, changed in MOVES:
        click(page, "One step")
        before = int(values(page)["step"])
        page.get_by_role("slider", name=label).focus()
        page.keyboard.press(key)
        at_once = next(iter(changed)) in ("batch", "momentum", "temperature", "rate")
        assert int(values(page)["step"]) == (before if at_once else 0), label


def test_presets_and_the_method_set_the_sliders(page: Page) -> None:
    page.evaluate(MODEL, contents("One negative"))
    queue, momentum, batch = (
        page.get_by_role("slider", name=label) for label in ("Keys in", "Momentum", "Images a step")
    )
    assert queue.get_attribute("aria-valuetext") == "1" and values(page)["(1 - m) K / N"] == "0.0125"
    batch.focus()
    page.keyboard.press("Home")
    assert batch.get_attribute("aria-valuetext") == "1"
    page.get_by_label("Method").select_option("simclr")
    assert batch.get_attribute("aria-valuetext") == "2"  # one image a step leaves SimCLR without negatives
    page.keyboard.press("Home")
    batch.focus()
    page.keyboard.press("Home")
    assert batch.get_attribute("aria-valuetext") == "2"
    assert queue.is_disabled() and momentum.is_disabled() and values(page)["(1 - m) K / N"] == "no queue"
    assert values(page)["loss of a guess"] == f"{np.log(3):.3f}"
    assert page.locator(".points-circle .points-key").get_attribute("d") == ""
    for name, (setting, about) in PRESETS.items():
        page.get_by_label("Show:").select_option(name)
        assert page.locator(".points-about").inner_text() == about
        assert page.get_by_label("Method").input_value() == setting.method
        assert batch.get_attribute("aria-valuetext") == str(setting.batch)
        assert values(page)["loss of a guess"] == f"{setting.guess:.3f}"
        assert queue.is_disabled() == (setting.method == "simclr")


def test_the_picture_holds_every_point_and_every_key(page: Page) -> None:
    page.evaluate(MODEL, contents("The same, m = 0.99"))
    click(page, "One step", 2)
    assert drawn(page).count("M") == 12
    assert page.locator(".points-circle .points-key").get_attribute("d").count("l") == 24  # type: ignore[union-attr]
    old = page.locator(".points-circle .points-old").evaluate_all("paths => paths.map(path => path.getAttribute('d'))")
    assert sum(path.count("M") for path in old) == 512
    run = Points(PRESETS["The same, m = 0.99"][0])
    run.step(2)
    newest = run.queue[(run.oldest - 1) % 512]
    x, y = (float(number) for number in old[0].removeprefix("M").split("h")[0].split())
    assert abs(x - (160 + 106 * newest[0])) < 0.06 and abs(y - (160 - 106 * newest[1])) < 0.06


def test_with_reduced_motion_it_is_drawn_in_jumps(page: Page) -> None:
    page.emulate_media(reduced_motion="reduce")
    page.evaluate(MODEL, contents("Runaway queue"))
    assert values(page)["step"] == "0"
    page.evaluate(
        """() => {
          window.drawn = [];
          const step = () => Number(document.querySelector(".points td").textContent);
          const note = () => window.drawn.push([performance.now(), step()]);
          const point = document.querySelector(".points-circle .points-query");
          new MutationObserver(note).observe(point, { attributes: true });
        }"""
    )
    click(page, "Play")
    page.wait_for_function("new Set(window.drawn.map(([, step]) => step)).size >= 4")
    click(page, "Pause")
    first = {step: time for time, step in reversed(page.evaluate("window.drawn"))}
    assert all(step % 50 == 0 for step in first)
    times = sorted(first.values())
    assert all(after - before > 900 for before, after in pairwise(times))


@pytest.mark.parametrize("name", ["Runaway queue", "SimCLR, 2 images a step"])
@pytest.mark.parametrize("ink, paper", [("#1d2126", "#fdfdfb"), ("#e2e5e8", "#15191e")])
def test_axe_finds_nothing_grave(page: Page, name: str, ink: str, paper: str) -> None:
    page.add_style_tag(content=f"body {{ color: {ink}; background: {paper}; }}")
    page.evaluate(MODEL, contents(name))
    click(page, "One step", 3)
    assert grave_faults(page) == []
