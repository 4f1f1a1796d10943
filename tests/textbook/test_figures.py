"""Figures: described, in the reader's colours, alone on their page, the same bytes each time."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.figure import Figure

from minilab.textbook import figures
from minilab.textbook.figures import figure_html, show
from minilab.textbook.style import LINES, use_book_style


@pytest.fixture(autouse=True)
def book_style() -> Iterator[None]:
    with mpl.rc_context():
        mpl.use("agg")
        use_book_style()
        yield


def drawn(height: float = 1.0) -> Figure:
    """A figure with a line, a legend, a clipped fill, an image and words that need escaping."""
    fig, (left, right) = pyplot.subplots(1, 2)
    left.plot([0, 1], [0, height], label="A & <B>", **LINES["simclr"])
    left.fill_between([0, 1], [0, height], color="black", alpha=0.1)
    left.set_xlabel("$K$ negatives")
    left.legend()
    right.imshow(np.arange(12, dtype=np.uint8).reshape(2, 2, 3))
    return fig


def parsed(html: str) -> ElementTree.Element:
    return ElementTree.fromstring(html)  # it is well-formed XML as well


@pytest.mark.parametrize(("alt", "caption", "name"), [("", "c", "alt"), (" \n", "c", "alt"), ("a", "", "caption")])
def test_words_are_required(alt: str, caption: str, name: str) -> None:
    with pytest.raises(ValueError, match=f"^{name} must be a non-empty sentence"):
        figure_html(drawn(), alt, caption)


def test_words_are_escaped() -> None:
    root = parsed(figure_html(drawn(), 'a "b" <c> & d', "see <script>alert(1)</script> & go"))
    svg = root.find("div/svg")
    caption = root.find("figcaption")
    assert svg is not None
    assert caption is not None
    assert svg.get("role") == "img"
    assert svg.get("aria-label") == 'a "b" <c> & d'
    assert caption.text == "see <script>alert(1)</script> & go"
    assert len(caption) == 0
    assert root.tag == "figure"
    assert root.get("class") == "figure-live"


def test_black_follows_the_theme_and_the_ground_is_clear() -> None:
    html = figure_html(drawn(), "alt", "caption")
    assert not re.search(r"#000000|#000\b", html)
    assert not re.search(r"#ffffff|#fff\b", html)
    assert "currentColor" in html
    assert 'fill="currentColor"' in html
    assert LINES["simclr"]["color"] in html


def test_nothing_reaches_the_rest_of_the_page() -> None:
    html = figure_html(drawn(), "alt", "caption")
    assert "<style" not in html
    assert "<metadata" not in html
    assert "xmlns" not in html


def test_text_stays_text_in_the_readers_font() -> None:
    html = figure_html(drawn(), "alt", "caption")
    assert "A &amp; &lt;B&gt;" in html
    assert html.count("DejaVu Sans") == 1  # once, in the list of the root


def test_image_pixels_stay_sharp() -> None:
    assert "image-rendering" in figure_html(drawn(), "alt", "caption")


def test_ids_are_unique_and_every_reference_leads_to_one() -> None:
    html = figure_html(drawn(), "alt", "one") + figure_html(drawn(2.0), "alt", "two")
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert len(set(ids)) == len(ids)
    references = re.findall(r'url\(#([^)]+)\)|href="#([^"]+)"', html)
    assert references
    assert {a or b for a, b in references} <= set(ids)


def test_the_same_figure_gives_the_same_bytes() -> None:
    assert figure_html(drawn(), "alt", "caption") == figure_html(drawn(), "alt", "caption")


def test_the_figure_is_closed() -> None:
    before = pyplot.get_fignums()
    figure_html(drawn(), "alt", "caption")
    assert pyplot.get_fignums() == before


def test_a_wide_figure_scrolls_and_a_narrow_one_keeps_its_size() -> None:
    for inches, least in ((8.0, round(figures.SMALLEST * 768)), (2.0, round(figures.SMALLEST * 192))):
        html = figure_html(pyplot.figure(figsize=(inches, 1)), "alt", "caption")
        assert f"min-width:{least}px;max-width:{round(inches * 96)}px" in html
        assert "overflow-x:auto" in html


def test_show_displays_html(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = []
    monkeypatch.setattr("IPython.display.display", shown.append)
    show(drawn(), "alt", "caption")
    assert shown[0].data == figure_html(drawn(), "alt", "caption")


def test_a_figure_made_without_the_book_style_is_fit_for_the_page_too() -> None:
    with mpl.rc_context():
        mpl.rcdefaults()
        html = figure_html(drawn(), "alt", "caption")
    svg = parsed(html).find("div/svg")
    assert svg is not None
    grounds = [node for node in svg.iter("path") if "#ffffff" in node.get("style", "")]
    assert all("opacity: 0" in node.get("style", "") for node in grounds[:3])
