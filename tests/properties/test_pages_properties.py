"""Exercises, figures, widgets and what chapters rest on: tables hold the numbers; bad input is named."""

from __future__ import annotations

import base64
import contextlib
import io
import json
import math
import re
from html import unescape
from html.parser import HTMLParser
from importlib import import_module
from typing import Any

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from strategies import covers, few, many, no_number, no_whole, refused, some

from minilab.memory import NETWORKS, Budget
from minilab.records import of_grid
from minilab.spectra.phases import runaway_rate
from minilab.spectra.repulsion import contrast
from minilab.textbook import (
    figures,
    ink,
)

# The package gives these names to functions, so the modules are reached by their path.
album, exercise, explorer, plane, planner, points, quiz, softmax, start, style = (
    import_module(f"minilab.textbook.{name}")
    for name in ("album", "exercise", "explorer", "plane", "planner", "points", "quiz", "softmax", "start", "style")
)
HOSTILE = st.text(st.characters(codec="utf-8"), max_size=40) | st.sampled_from(
    ["<script>", "$a<b$", "a & b", '"', "$x"]
)
RUNS = sorted(of_grid("queue"), key=lambda record: (record.recipe.queue, record.recipe.seed))


class Tags(HTMLParser):
    """The tags of a piece of HTML, and its text."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags, self.text = [], ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.text += data


@covers(exercise.check)
@many
@given(
    st.lists(st.tuples(st.integers() | st.floats() | st.text(), st.integers() | st.floats() | st.text()), max_size=4)
)
def test_an_exercise_is_right_where_all_its_cases_are(pairs):
    cases = [((given_,), expected) for given_, expected in pairs]
    if not cases:
        refused(exercise.check, lambda x: x, cases, named="cases is empty")
        return

    def same(given_: Any, expected: Any) -> bool:
        try:
            return given_ == expected or abs(float(given_) - float(expected)) <= 1e-6 * max(abs(given_), abs(expected))
        except (TypeError, ValueError, OverflowError):
            return False

    plain = all(isinstance(x, str) == isinstance(y, str) for x, y in pairs)
    assume(plain and not any(x in (math.inf, -math.inf) for pair in pairs for x in pair if isinstance(x, float)))
    with contextlib.redirect_stdout(io.StringIO()) as said:
        found = exercise.check(lambda x: x, cases)
    assert found == all(same(*pair) for pair in pairs)
    assert ("First to look at" in said.getvalue()) == (not found)


ANSWERS = [10**400, torch.ones(3), None, ..., [1], "x", math.nan, KeyError, 10**5000]


@pytest.mark.parametrize("answer", ANSWERS, ids=range(len(ANSWERS)))
def test_whatever_a_readers_function_does_is_an_answer(answer):
    class Function:  # without a name of its own
        def __call__(self, _: Any) -> Any:
            if answer is KeyError:
                raise KeyError("x")
            return answer

    with contextlib.redirect_stdout(io.StringIO()) as said:
        assert exercise.check(Function(), [((1,), 1.5)]) is False
    assert "0 of 1 cases are right" in said.getvalue()


@covers(ink.ink_on)
@many
@given(st.lists(st.floats(0, 1), min_size=3, max_size=4))
def test_ink_can_be_read(colour):
    def luminance(parts: list[float]) -> float:
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    found = ink.ink_on(colour)
    of_ink = [int(found[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    low, high = sorted([luminance(colour[:3]), luminance(of_ink)])
    assert (high + 0.05) / (low + 0.05) >= 4.5
    for wrong in ([], [0.5, 0.5], [0, 0, 1.1], [-0.1, 0, 0], [math.nan, 0, 0]):
        refused(ink.ink_on, wrong, named="colour is")


@covers(album.moved, start.start)
@some
@given(st.floats(0, 1), st.integers(0, 500), no_number(0.0, 1.0), no_whole(0), no_number(0.0, low_too=True))
def test_small_helpers_are_right_or_name_the_argument(momentum, steps, bad, no_count, no_minutes):
    gap = 1.0
    for _ in range(steps):
        gap *= momentum
    assert album.moved(steps, momentum) == pytest.approx(1 - gap, abs=1e-9)
    refused(album.moved, 3, bad, named="momentum is")
    refused(album.moved, no_count, 0.5, named="steps is")
    refused(start.start, no_minutes, named="minutes is")


SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="72pt" height="36pt"><g id="a" style="fill: #000000">{}</g></svg>'


@covers(figures.figure_html, figures.inline_svg)
@some
@given(HOSTILE, st.text(st.sampled_from("<>&\"'ab"), max_size=20))
def test_an_svg_is_made_fit_for_a_page_or_refused(alt, inside):
    html = figures.inline_svg(SVG.format(""), alt)
    assert "fill: currentColor" in html and "width:100%" in html and Tags(html).tags == ["svg", "g"]
    try:
        assert set(Tags(figures.inline_svg(SVG.format(inside), "x")).tags) <= {
            "svg",
            "g",
            "a",
            "b",
            "ab",
            "ba",
            "aa",
            "bb",
        }
    except ValueError as error:
        assert "document is no XML" in str(error) and "allowed" in str(error)
    for wrong in (SVG.replace("72pt", "wide"), SVG.replace(' width="72pt"', ""), SVG.replace("36pt", "")):
        refused(figures.inline_svg, wrong, "x", named="document has the")
    for words in ("", " ", None, 3):
        with pytest.raises(ValueError, match="must be a non-empty sentence"):
            figures.figure_html(None, words, "x")


COSINES = st.lists(st.floats(-1, 1), min_size=1, max_size=20)


@covers(softmax.encode, softmax.decode, softmax.contents, softmax.still)
@some
@given(st.floats(-1, 1), COSINES, st.floats(0.01, 1), no_number(0.01, 1.0))
def test_cosines_come_back_to_half_a_step(positive, negatives, temperature, bad):
    plus, minus = softmax.decode(softmax.encode(positive, negatives))
    assert [plus, *minus] == pytest.approx([positive, *negatives], abs=0.5 / softmax.STEPS + 1e-12)
    assert softmax.contents(positive, negatives, temperature)["temperature"] == temperature
    text = unescape(softmax.still(positive, negatives, temperature))
    assert f"{contrast(plus, minus, 0.5).loss:.2f}" in text and f"K = {len(negatives)} negatives" in text
    refused(softmax.contents, positive, negatives, bad, named="temperature is")
    refused(softmax.still, positive, negatives, bad, named="temperature is")
    refused(softmax.encode, 1.5, negatives, named="positive holds 1.5")
    refused(softmax.encode, positive, [], named="negatives has")
    refused(softmax.encode, positive, [0.5] * 5000, named="negatives has 5000")


@many
@given(st.text(max_size=12) | st.binary(max_size=9).map(lambda raw: base64.b64encode(raw).decode()))
def test_what_is_no_list_of_cosines_is_refused(text):
    try:
        plus, minus = softmax.decode(text)
    except ValueError as error:
        assert "text " in str(error) and "allowed" in str(error)
        return
    assert softmax.encode(max(-1, min(1, plus)), [max(-1, min(1, x)) for x in minus])


@covers(explorer.contents, explorer.check, explorer.still)
@settings(few, max_examples=5)
@given(st.permutations(RUNS))
def test_the_explorer_has_the_records_in_order_whatever_their_order(records):
    found = explorer.contents(records, "queue", "K")
    assert [(run["setting"], run["seed"]) for run in found["runs"]] == [
        (f"{record.recipe.queue:,}", record.recipe.seed) for record in RUNS
    ]
    assert json.dumps(found) == json.dumps(explorer.contents(RUNS, "queue", "K"))
    refused(explorer.contents, records, "quue", "K", named="field is 'quue'")
    refused(explorer.still, records, "quue", "K", named="field is 'quue'")
    refused(explorer.contents, records, "chunk", "K", named="chunk is None")
    refused(explorer.contents, records, "dim", "K", named="the records have the settings")
    refused(explorer.contents, records, "queue", "K", ("256", "3"), named="first names '3'")
    refused(explorer.contents, [], "queue", "K", named="the records have")


PLANE = of_grid("phases")


@covers(plane.contents, plane.axes, plane.still)
@settings(few, max_examples=4)
@given(
    st.floats(0.01, 1),
    no_number(0.0, 1.0, low_too=True),
    st.sampled_from([(), (1,), (0.123, 16), (1.0, 17), (1, 2, 3)]),
)
def test_the_plane_has_every_record_and_the_predicted_rates(drive, bad, first):
    leaks, ages = plane.axes()
    found = plane.contents(PLANE, drive)
    assert found["drive"] in found["drives"] and len(found["cells"]) <= len(PLANE) and found["leaks"] == leaks
    assert f"{runaway_rate(leaks[0], ages[-1], drive):.4f}" in plane.still(PLANE, drive)
    refused(plane.contents, PLANE, bad, named="drive is")
    refused(plane.still, PLANE, bad, named="drive is")
    refused(plane.contents, PLANE, drive, first, named="first is")
    refused(plane.contents, [], drive, named="records is []")
    refused(plane.contents, RUNS, drive, named="records holds")


@covers(planner.still)
@few
@given(
    st.sampled_from(list(NETWORKS)), st.integers(1, 64), st.integers(1, 60), st.integers(2, 4096), st.integers(1, 10**5)
)
def test_the_planners_table_adds_up(network, devices, gigabytes, batch, queue):
    try:
        budget = Budget(
            network, size=96, devices=devices, gigabytes=gigabytes, half=True, batch=batch * devices, queue=queue
        )
    except ValueError as error:
        assert "allowed" in str(error)
        return
    lines = unescape(planner.still(budget)).splitlines()
    numbers = [[float(x) for x in line[20:].split()] for line in lines if re.fullmatch(r".{20}( +[\d.]+){2}", line)]
    total = next(
        row
        for row, line in zip(numbers, [x for x in lines if re.fullmatch(r".{20}( +[\d.]+){2}", x)], strict=True)
        if line.startswith("in all")
    )
    parts = numbers[: numbers.index(total)]
    assert [sum(column) for column in zip(*parts, strict=True)] == pytest.approx(total, abs=0.05)


@covers(points.contents, points.course, points.outcome)
@some
@given(st.sampled_from(list(points.PRESETS)), HOSTILE)
def test_presets_are_found_or_named(preset, other):
    assert points.contents(preset)["first"] == preset
    refused(points.contents, other, named="preset is")
    refused(points.contents, None, named="preset is None")
    if preset == "One negative":
        setting = points.PRESETS[preset][0]
        seen, end = points.course(setting), points.outcome(setting)
        assert len(seen) == points.STEPS and end["turns"] == seen[-1]["turns"]
        assert end["loss"] == pytest.approx(sum(gauges["loss"] for gauges in seen[-200:]) / 200)
