"""Points on a circle: a widget that trains `minilab.spectra.points` on the page, by SimCLR or MoCo, with no kernel."""

from __future__ import annotations

from dataclasses import asdict
from functools import lru_cache
from html import escape
from pathlib import Path
from typing import Any

from minilab.checks import one_of
from minilab.spectra.points import Points, Setting

HERE = Path(__file__).parent
STEPS, RECENT = 600, 200  # of a preset's run in the still table, and how many of its last steps are averaged
SMOOTH = 20  # steps that a point of the still figure stands for

# name: the setting, and what to see there
PRESETS: dict[str, tuple[Setting, str]] = {
    "Runaway queue": (
        Setting(queue=512, momentum=0.0),
        "The queue is 64 steps old and the key encoder follows at once. The points flee from where they were. "
        "Raise m to 0.99 while it plays: within a few hundred steps they come back.",
    ),
    "The same, m = 0.99": (
        Setting(queue=512, momentum=0.99),
        "Only m differs from the runaway queue. The key encoder moves slowly, so its old and new keys agree.",
    ),
    "The same, short queue": (
        Setting(queue=8, momentum=0.0),
        "Only K differs from the runaway queue: 8 keys, one step old. There is no old place to flee from.",
    ),
    "One negative": (
        Setting(queue=1, momentum=0.9, rate=0.03, width=0.03),
        "MoCo starts at almost one point and has a single old key. Slowly, the points spread all the same.",
    ),
    "SimCLR, 2 images a step": (
        Setting("simclr", batch=2, rate=0.03, width=0.03),
        "SimCLR starts at almost one point. Each anchor has two negatives: the views of one other image.",
    ),
    "SimCLR, 8 images a step": (
        Setting("simclr", rate=0.03, width=0.03),
        "The same start with 14 negatives an anchor. The points spread sooner, but not twice as soon.",
    ),
}
CHOICES: dict[str, list[float]] = {
    "batch": [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64],
    "queue": [1, 2, 4, 8, 16, 32, 64, 128, 256, 512],
    "momentum": [0, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 1],
    "temperature": [0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5, 1],
    "rate": [0, 0.003, 0.01, 0.03, 0.05, 0.1, 0.2, 0.5],
    "images": [2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64],
    "width": [0.01, 0.03, 0.1, 0.3, 1, 3],
    "seed": list(range(10)),
}


def points(preset: str = "Runaway queue") -> None:
    """Display the points, set to `preset`, and below them a folded table of all presets, which needs no script.

    Raises `ValueError` if there is no such preset.
    """
    from IPython.display import HTML, display  # only a notebook needs IPython

    display(widget(preset))
    display(HTML(still()))


def widget(preset: str = "Runaway queue") -> Any:
    """The widget alone: an `anywidget.AnyWidget`."""
    import anywidget
    import traitlets

    class OnCircle(anywidget.AnyWidget):  # type: ignore[misc]
        _esm = script()
        _css = HERE / "points.css"
        choices: Any = traitlets.Dict().tag(sync=True)
        presets: Any = traitlets.Dict().tag(sync=True)
        first: Any = traitlets.Unicode().tag(sync=True)

    return OnCircle(**contents(preset))


def script() -> str:
    """The widget's module: the training, then the page that shows it. A widget is one file, the sources are two."""
    return "\n".join((HERE / name).read_text(encoding="utf-8") for name in ("points_model.js", "points.js"))


def contents(preset: str) -> dict[str, Any]:
    """What the widget is given, as plain values: `choices, presets, first`; `ValueError` if there is no such preset."""
    one_of("preset", preset, tuple(PRESETS))
    presets = {name: {"setting": asdict(setting), "about": about} for name, (setting, about) in PRESETS.items()}
    return {"choices": CHOICES, "presets": presets, "first": preset}


@lru_cache
def course(setting: Setting) -> list[dict[str, float]]:
    """The gauges after each of 600 steps."""
    run, seen = Points(setting), []
    for _ in range(STEPS):
        run.step()
        seen.append(run.gauges())
    return seen


def outcome(setting: Setting) -> dict[str, float]:
    """Spread, mean length and loss of a run of 600 steps, each the mean of the last 200; guess; turns at the end."""
    seen = course(setting)[-RECENT:]
    means = {name: sum(gauges[name] for gauges in seen) / RECENT for name in ("spread", "mean", "loss")}
    return {**means, "guess": setting.guess, "turns": seen[-1]["turns"]}


def picture() -> str:
    """The runaway queue beside the same queue with a slow key encoder, as a figure in HTML."""
    from matplotlib import pyplot as plt

    from minilab.textbook.figures import figure_html
    from minilab.textbook.style import COLOURS

    figure, axes = plt.subplots(1, 2, figsize=(5.4, 2.6), sharey=True, layout="constrained")
    for axis, name in zip(axes, ("Runaway queue", "The same, m = 0.99"), strict=True):
        seen = course(PRESETS[name][0])
        axis.axhline(1, linestyle=":", color="black", linewidth=1)
        axis.plot(_smooth([each["loss"] / each["guess"] for each in seen]), color=COLOURS["moco"], label="loss / guess")
        axis.plot(_smooth([each["spread"] for each in seen]), "--", color="black", label="spread")
        axis.set(xlabel="step", title=name, ylim=(0, 1.5))
    axes[0].legend(loc="upper right")
    alt = "Loss over that of a guess, and spread, against the step, for two presets. The table has the end of each."
    caption = (
        f"The same queue of {PRESETS['Runaway queue'][0].queue} keys, each point the mean of {SMOOTH} steps. Left: the "
        "loss is below that of a guess (dotted) while the spread falls to almost 0. Right: it stays far from 0."
    )
    return figure_html(figure, alt, caption)


def _smooth(values: list[float]) -> list[float]:
    """The mean of each 20 neighbours."""
    return [sum(values[i : i + SMOOTH]) / SMOOTH for i in range(len(values) - SMOOTH + 1)]


def still() -> str:
    """What stays without a script, as HTML: the figure of two presets, and every preset's outcome as a folded table."""
    lines = [f"{'':24s}{'spread':>7s}{'|mean|':>8s}{'turns':>7s}{'loss':>7s}{'guess':>7s}"]
    for name, (setting, _) in PRESETS.items():
        end = outcome(setting)
        lines.append(
            f"{name:24s}{end['spread']:7.2f}{end['mean']:8.2f}{end['turns']:+7.1f}{end['loss']:7.2f}{end['guess']:7.2f}"
        )
    words = f"Each after {STEPS} steps; spread, mean and loss over the last {RECENT}."
    text = escape("\n".join([words, "", *lines, ""]))
    return f"{picture()}<details><summary>Every preset as a table</summary><pre>{text}</pre></details>"
