"""The softmax explorer gets a few kB of true cosines, and what remains without scripts says the same."""

import json
import math
import re

import pytest
import torch

from minilab.spectra.repulsion import contrast
from minilab.textbook.softmax import HERE, MOST, STEPS, TEMPERATURES, contents, decode, encode, still, widget


def some(count: int, seed: int = 0) -> torch.Tensor:
    return torch.rand(count, generator=torch.Generator().manual_seed(seed)) * 1.6 - 0.8


def test_cosines_come_back_to_the_last_bit_that_is_kept():
    positive, negatives = decode(encode(torch.tensor(0.7), some(50)))
    assert positive == pytest.approx(0.7, abs=0.51 / STEPS)
    assert negatives == pytest.approx(some(50).tolist(), abs=0.51 / STEPS)
    assert decode(encode(-1.0, [1.0, 0.0])) == (-1.0, [1.0, 0.0])


def test_the_page_carries_less_than_twelve_kilobytes():
    assert len(json.dumps(contents(0.5, some(MOST)))) < 12_000


def test_the_widget_has_the_cosines_and_the_temperatures():
    made = widget(0.6, some(10), temperature=0.33)
    assert made.cosines == encode(0.6, some(10)) and made.temperature == 0.33
    assert made.temperatures == sorted([*TEMPERATURES, 0.33])
    assert "export default" in str(made._esm) and ".softmax" in str(made._css)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ((0.5, some(MOST + 1)), "negatives has 4097 values; allowed: 1 to 4096"),
        ((0.5, []), "negatives has the shape"),
        ((1.5, [0.1]), "positive holds 1.5; allowed: cosines"),
        (("0.5", [0.1]), r"positive is \['0.5'\]; allowed: cosines"),
        ((0.5, [[0.1, 0.2]]), "negatives has the shape"),
        ((0.5, [0.1], 0.001), "temperature is 0.001; allowed: from 0.01 to 1"),
        ((0.5, [0.1], math.nan), "temperature is nan; allowed: from 0.01 to 1"),
    ],
)
def test_what_cannot_be_shown_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        contents(*arguments)


def test_the_table_has_the_figures_of_the_library():
    html = still(0.6, some(300), temperature=0.2)
    plus, minus = decode(encode(0.6, some(300)))
    rows = [line.split() for line in re.sub("<[^>]*>", "\n", html).splitlines()]
    found = {row[0]: [float(cell) for cell in row[1:]] for row in rows if len(row) == 6 and row[1][0].isdigit()}
    assert set(found) == {"0.05", "0.1", "0.2", "0.5", "1", "16", "256", "300"}  # K = 1 took the place of tau = 1
    for name, (tau, size) in {"0.05": (0.05, 300), "0.2": (0.2, 300), "16": (0.2, 16), "300": (0.2, 300)}.items():
        right = contrast(plus, minus[:size], tau)
        assert found[name] == pytest.approx(
            [right.entropy, right.effective, right.positive, right.pull, right.loss], abs=0.051
        )


def test_the_script_writes_text_and_never_markup():
    script = (HERE / "softmax.js").read_text()
    assert not any(word in script for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "eval("))
    assert "http" not in script.replace("http://www.w3.org/2000/svg", "")
