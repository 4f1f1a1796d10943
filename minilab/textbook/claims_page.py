"""The claims as a page of plain HTML and CSS: counts, filters and a folded block for each claim, with no script.

A filter is a group of radio buttons; the style sheet hides the claims that do not fit the chosen ones. So it works with
no kernel, no network and no script, by keyboard too; a browser too old for ``:has`` shows every claim.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from pathlib import Path

from minilab.checks import one_of
from minilab.textbook.claims import METHODS, TIERS, VERDICTS, Claim, book_file
from minilab.textbook.findings import CHECKS, runs
from minilab.textbook.works import Work, load_works

STYLE = Path(__file__).with_name("claims.css")
SIGNS = {
    "right": "✓", "partly": "◐", "imprecise": "≈", "wrong": "✗", "contradictory": "⇄", "untestable": "?", "blank": "□",
}  # fmt: skip
MEANING = {
    "right": "holds as it is said",
    "partly": "holds in part, or under a condition that is not said",
    "imprecise": "means something right and says it wrongly",
    "wrong": "does not hold",
    "contradictory": "the document says the opposite elsewhere",
    "untestable": "no measurement could decide it as it is said",
    "blank": "the document leaves the place empty",
}
DOCUMENTS = {"framework": "the framework", "card": "the interview card"}
NAMES = {"simclr": "SimCLR", "moco": "MoCo", "any": "contrastive learning", **DOCUMENTS}
AXES = {"verdict": VERDICTS, "tier": TIERS, "method": METHODS, "document": tuple(DOCUMENTS)}


def values(claim: Claim, axis: str) -> tuple[str, ...]:
    """The values of a claim on one axis of the filters; `ValueError` if there is no such axis."""
    one_of("axis", axis, tuple(AXES))
    found = {"verdict": (claim.verdict,), "tier": (claim.tier,), "method": claim.methods, "document": (claim.source,)}
    return found[axis]


def page_html(claims: list[Claim]) -> str:
    """The page's HTML, all text escaped. Runs every check that a claim names: under half a minute on two cores.

    The form's method "dialog" outside of a dialog does nothing, so that the Enter key does not load the page again.
    """
    works = load_works(book_file("references.bib"))
    found = {name: CHECKS[name](runs).text for claim in claims for name in claim.effect}
    rows = "".join(_claim(claim, works, found) for claim in claims)
    style = STYLE.read_text(encoding="utf-8") + _rules()
    filters = "".join(_filter(axis, claims) for axis in AXES)
    return (
        f'<div class="claims"><style>{style}</style>{_counts(claims)}'
        f'<form class="claims-filters" method="dialog" aria-label="Filters">{filters}'
        f'<button type="reset">Show all</button></form>'
        f'<ul class="claims-list">{rows}</ul>'
        f'<p class="claims-shown"> of {len(claims)} claims shown</p></div>'
    )


def _rules() -> str:
    """For each radio button a rule that hides the claims without its value."""
    return "".join(
        f'.claims:has([name="claims-{axis}"][value="{value}"]:checked) .claim:not([data-{axis}~="{value}"])'
        "{display:none}\n"
        for axis, allowed in AXES.items()
        for value in allowed
    )


def _counts(claims: list[Claim]) -> str:
    """How many claims there are of each verdict, in each document."""
    head = "".join(f'<th scope="col">{word}</th>' for word in ("Verdict", "Framework", "Card", "Both"))
    rows = "".join(
        _row(verdict, [c for c in claims if c.verdict == verdict], _verdict(verdict)) for verdict in VERDICTS
    )
    return (
        f'<table class="claims-counts"><caption>How the claims came out</caption><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}{_row('all', claims, 'In all')}</tbody></table>"
    )


def _row(verdict: str, claims: list[Claim], title: str) -> str:
    numbers = [sum(claim.source == document for claim in claims) for document in DOCUMENTS]
    cells = "".join(f"<td>{number}</td>" for number in (*numbers, len(claims)))
    meaning = f"<small>{escape(MEANING[verdict])}</small>" if verdict in MEANING else ""
    return f'<tr data-count="{verdict}"><th scope="row">{title}{meaning}</th>{cells}</tr>'


def _filter(axis: str, claims: list[Claim]) -> str:
    """One group of radio buttons; the first shows all."""
    counts = {value: sum(value in values(claim, axis) for claim in claims) for value in AXES[axis]}
    options = [_option(axis, "", "all", len(claims), checked=True)]
    options += [_option(axis, value, NAMES.get(value, value), count) for value, count in counts.items() if count]
    return f"<fieldset><legend>{axis.capitalize()}</legend>{''.join(options)}</fieldset>"


def _option(axis: str, value: str, name: str, count: int, checked: bool = False) -> str:
    return (
        f'<label><input type="radio" name="claims-{axis}" value="{value}"{" checked" if checked else ""}> '
        f"{escape(name)} <small>{count}</small></label>"
    )


def _claim(claim: Claim, works: dict[str, Work], found: dict[str, str]) -> str:
    """One claim, folded: what it says and the verdict outside, the reasons inside."""
    data = "".join(f' data-{axis}="{" ".join(values(claim, axis))}"' for axis in AXES)
    parts = [f"<p>{escape(claim.why)}</p>"]
    parts += [f"<p><strong>Testable if:</strong> {escape(claim.testable)}</p>"] if claim.testable else []
    if claim.effect:
        sizes = "".join(f"<li>{escape(found[name])} <code>{name}</code></li>" for name in claim.effect)
        parts.append(f"<p><strong>Size of the effect</strong></p><ul>{sizes}</ul>")
    parts.append(f'<p class="claim-about">{_about(claim, works)}</p>')
    return (
        f'<li class="claim" id="{claim.id}"{data}><details><summary><span class="claim-id">{claim.id}</span> '
        f'<span class="claim-verdict">{_verdict(claim.verdict)}</span> <span class="claim-text">{escape(claim.claim)}'
        f"</span></summary>{''.join(parts)}</details></li>"
    )


def _verdict(verdict: str) -> str:
    return f'<span aria-hidden="true">{SIGNS[verdict]}</span> {verdict}'


def _about(claim: Claim, works: dict[str, Work]) -> str:
    """Where it is said more, who says it, and which tests stand behind it."""
    methods = ", ".join(NAMES[method] for method in claim.methods)
    parts = [
        f'Chapter: <a href="../{claim.chapter}.html">{claim.chapter}</a>',
        f"Tier: {claim.tier}, on {methods}",
    ]
    parts += [f"Source: {_source(source, works)}" for source in claim.sources]
    if claim.support:
        parts.append(f"Tests: {_listed(claim.support)}")
    return "<br>".join(parts)


def _source(source: str, works: dict[str, Work]) -> str:
    """A work's name and title, with a link, then the place in it."""
    key, _, place = source.partition(",")
    if key not in works:
        raise ValueError(f"source {key!r} is not in the references; allowed: its keys")
    work = works[key]
    title = f'<a href="{escape(work.url)}">{escape(work.title)}</a>' if work.url else escape(work.title)
    return f"{escape(work.name)}, {title}{escape(',' + place) if place else ''}"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"<code>{escape(name)}</code>" for name in names)
