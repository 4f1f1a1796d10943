"""Figures that follow the reader's theme: matplotlib in, accessible inline SVG out."""

from __future__ import annotations

import hashlib
import io
import re
import xml.etree.ElementTree as ElementTree
from html import escape
from typing import TYPE_CHECKING

import matplotlib as mpl

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FONTS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', sans-serif"
BLACK = re.compile(r"(?<![0-9a-f])#0{3}(?:0{3})?(?![0-9a-f])", re.IGNORECASE)
FONT_SHORTHAND = re.compile(r"(font: [^;]*?\d(?:\.\d+)?px) [^;]*")
FONT_FAMILY = re.compile(r"font-family: [^;]*(?:; )?")
LENGTH = re.compile(r"\d{1,6}(\.\d+)?(pt)?")
REFERENCE = re.compile(r"url\(#([^)]+)\)")
SMALLEST = 0.72  # of its size; on a narrower screen a figure scrolls in its box, so its text stays readable


def show(fig: Figure, alt: str, caption: str) -> None:
    """Display ``fig`` as inline SVG with a caption, and close it.

    ``alt`` says what the picture holds, for a reader who cannot see it; ``caption`` is a
    sentence that says what to see. Raises ``ValueError`` if either is empty.
    """
    from IPython.display import HTML, display  # only a notebook needs IPython

    display(HTML(figure_html(fig, alt, caption)))


def figure_html(fig: Figure, alt: str, caption: str) -> str:
    """The HTML that ``show`` displays: the same bytes for the same figure and words."""
    for name, text in (("alt", alt), ("caption", caption)):
        if not isinstance(text, str) or not text.strip():
            raise ValueError(f"{name} must be a non-empty sentence about the figure, got {text!r}")
    svg = inline_svg(_draw(fig), " ".join(alt.split()))
    words = escape(" ".join(caption.split()), quote=False)
    return (
        '<figure class="figure-live" style="margin:1.5em 0">'
        f'<div class="figure-scroll" style="overflow-x:auto">{svg}</div>'
        f'<figcaption class="mathjax_process">{words}</figcaption></figure>'
    )


def _draw(fig: Figure) -> str:
    """``fig`` as an SVG document with clear backgrounds and raw image pixels; closes it."""
    from matplotlib import pyplot

    fig.patch.set_alpha(0)
    for axes in fig.axes:
        axes.patch.set_alpha(0)
        for image in axes.images:
            image.set_interpolation("none")
    buffer = io.StringIO()
    no_dates = {"Date": None, "Creator": None, "Format": None, "Type": None}
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "minilab"}):
        fig.savefig(buffer, format="svg", metadata=no_dates)
    pyplot.close(fig)
    return buffer.getvalue()


def inline_svg(document: str, alt: str) -> str:
    """An SVG document made fit to stand inside a page.

    Black becomes ``currentColor``; ids get a prefix from the picture's own hash, so that
    two figures on one page do not share them; the style rule for ``*`` that matplotlib
    writes, which would reach the whole page, becomes two inherited attributes.
    """
    try:
        root = ElementTree.fromstring(document)
    except ElementTree.ParseError as error:
        raise ValueError(f"document is no XML ({error}); allowed: an SVG document") from error
    for name in ("width", "height"):
        if not LENGTH.fullmatch(root.get(name, "")):
            raise ValueError(f"document has the {name} {root.get(name)!r}; allowed: a length such as 460.8pt")
    prefix = f"f{hashlib.sha256(document.encode()).hexdigest()[:10]}-"
    parents = {child: parent for parent in root.iter() for child in parent}
    for node in list(root.iter()):
        node.tag = _local(node.tag)
        if node.tag in ("metadata", "style"):
            parents[node].remove(node)
            continue
        node.attrib = {_local(name): value for name, value in node.attrib.items()}
        for name, value in node.attrib.items():
            node.attrib[name] = _theme_and_prefix(name, value, prefix)
        node.text, node.tail = _squeeze(node.text), _squeeze(node.tail)
    width = _css_pixels(root.attrib.pop("width"))
    del root.attrib["height"]
    root.attrib.update(
        {
            "role": "img",
            "aria-label": alt,
            "fill": "currentColor",
            "stroke-linejoin": "round",
            "stroke-linecap": "butt",
            "style": f"display:block;width:100%;min-width:{round(SMALLEST * width)}px;"
            f"max-width:{width}px;height:auto;font-family:{FONTS};font-variant-numeric:tabular-nums",
        }
    )
    return ElementTree.tostring(root, encoding="unicode")


def _local(name: str) -> str:
    """``{namespace}name`` or ``prefix:name`` without what stands before the name."""
    return name.rsplit("}", 1)[-1].rsplit(":", 1)[-1]


def _squeeze(text: str | None) -> str | None:
    """None for the white space between elements, which only fills the page."""
    return text if text and text.strip() else None


def _theme_and_prefix(name: str, value: str, prefix: str) -> str:
    """One attribute's value with the page's text colour, its fonts and unique ids."""
    if name == "id":
        return prefix + value
    if name == "href" and value.startswith("#"):
        return f"#{prefix}{value[1:]}"
    if name in ("style", "fill", "stroke"):
        value = BLACK.sub("currentColor", value)
        value = FONT_SHORTHAND.sub(rf"\1 {FONTS}", value)
        value = FONT_FAMILY.sub("", value)  # the root's family is inherited
    return REFERENCE.sub(rf"url(#{prefix}\1)", value)


def _css_pixels(length: str) -> int:
    """A length as matplotlib writes it ('460.8pt') in CSS pixels."""
    return round(float(length.removesuffix("pt")) * 96 / 72)
