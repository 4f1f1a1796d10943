"""The budget planner: a widget that runs the arithmetic of `minilab.memory` on the page, with no kernel."""

from __future__ import annotations

from dataclasses import asdict
from html import escape
from pathlib import Path
from typing import Any

from minilab.memory import NETWORKS, Budget, device_bytes, largest_batch, recommend

HERE = Path(__file__).parent
# The interview's case: eight accelerators, ImageNet-sized images.
START = Budget("resnet50", size=224, devices=8, gigabytes=24, half=False, batch=256, queue=65_536)


def planner(budget: Budget = START) -> None:
    """Display the planner, set to `budget`, and below it that budget's figures, which need no script."""
    from IPython.display import HTML, display  # only a notebook needs IPython

    display(widget(budget))
    display(HTML(still(budget)))


def widget(budget: Budget = START) -> Any:
    """The widget alone: an `anywidget.AnyWidget`."""
    import anywidget
    import traitlets

    class Planner(anywidget.AnyWidget):  # type: ignore[misc]
        _esm = HERE / "planner.js"
        _css = HERE / "planner.css"
        networks: Any = traitlets.Dict().tag(sync=True)
        budget: Any = traitlets.Dict().tag(sync=True)

    return Planner(networks={name: asdict(network) for name, network in NETWORKS.items()}, budget=asdict(budget))


def still(budget: Budget) -> str:
    """The figures of one budget as HTML: a folded table, and the recommendation."""
    lines = [f"{'GB on each device':20s}{'SimCLR':>10s}{'MoCo':>10s}"]
    parts = {method: device_bytes(budget, method) for method in ("simclr", "moco")}
    for kind in parts["moco"]:
        lines.append(f"{kind:20s}" + "".join(f"{parts[method][kind] / 1e9:10.2f}" for method in parts))
    lines.append(f"{'in all':20s}" + "".join(f"{sum(kinds.values()) / 1e9:10.2f}" for kinds in parts.values()))
    lines.append(f"{'most images that fit':20s}" + "".join(f"{largest_batch(budget, method):10,}" for method in parts))
    choice, reasons = recommend(budget)
    words = (
        f"{budget.network}, {budget.size} x {budget.size}, {budget.devices} accelerators of {budget.gigabytes:g} GB, "
        f"{budget.batch:,} images a step, {budget.queue:,} keys"
    )
    text = "\n".join([words, "", *lines, "", f"start with: {choice}", *reasons])
    return f"<details><summary>One budget as a table</summary><pre>{escape(text)}</pre></details>"
