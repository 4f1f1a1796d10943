"""The claims of the two documents that the book answers: `book/claims.yml`, read and checked here, and shown as a page.

The file is a list of claims, each in our own words::

    - id: S17                       # S of the framework, Q of the interview card; its number there
      claim: …
      verdict: wrong                # right, partly, imprecise, wrong, contradictory, untestable or blank
      tier: solid                   # basics, solid or deep: how far into the subject
      methods: [simclr]             # simclr, moco, or any where it is said of contrastive learning
      why: …                        # what is right and what is not, in two to four short sentences
      effect: [entropy-ceiling]     # optional: names of checks; what they find is shown as the size of the effect
      support: ["tests/test_losses.py::test_identical_features_give_log_of_the_candidates"]   # optional: tests
      sources: ["chen2020simclr, table 5"]    # optional: a key of book/references.bib, then the place
      testable: …                   # what would make it testable; needed where the verdict is untestable
      chapter: deep/directions      # where the book says more

A verdict stands on what `effect`, `support` and `sources` name, so one of them is needed. Checks are functions in
`claim_runs`, `claim_phases` and `claim_sums`; each says whether it still supports the verdict, and a test asks them.
Every fault is a ``ValueError`` that names the file, the line, the field and what is allowed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from minilab.checks import shown
from minilab.textbook import claim_phases, claim_runs, claim_sums
from minilab.textbook.card_fields import Place, check_fields, one_of, read_list, text, texts
from minilab.textbook.findings import CHECKS

assert claim_phases and claim_runs and claim_sums  # importing them registers their checks

VERDICTS = ("right", "partly", "imprecise", "wrong", "contradictory", "untestable", "blank")
SOURCES = {"S": "framework", "Q": "card"}
TIERS = ("basics", "solid", "deep")
METHODS = ("simclr", "moco", "any")
ID = re.compile(r"[SQ][1-9][0-9]?[a-c]?")
TEST = re.compile(r"tests/[a-z_/]+\.py::test_\w+")
CHAPTER = re.compile(r"(basics|solid|deep|lookup)/[a-z0-9-]{1,60}")
NEEDED = ("id", "claim", "verdict", "tier", "methods", "why", "chapter")
OPTIONAL = ("effect", "support", "sources", "testable")


@dataclass(frozen=True)
class Claim:
    """One claim, the verdict on it, and what the verdict stands on."""

    id: str
    claim: str
    verdict: str
    tier: str
    methods: tuple[str, ...]
    why: str
    chapter: str
    effect: tuple[str, ...]
    support: tuple[str, ...]
    sources: tuple[str, ...]
    testable: str

    @property
    def source(self) -> str:
        """The document that makes the claim: "framework" or "card"."""
        return SOURCES[self.id[0]]


def book_file(name: str) -> Path:
    """A file of `book/`: of the checkout, else of the installed package, where setup.py puts it."""
    here = Path(__file__).resolve()
    checkout, installed = here.parents[2] / "book", here.parent / "book_data"
    return (checkout if (checkout / "cards").is_dir() else installed) / name


def load_claims(path: Path | None = None) -> list[Claim]:
    """The claims of ``path``, else of the book, in the file's order; ``ValueError`` with file, line and field."""
    rows = read_list(path or book_file("claims.yml"))
    claims: dict[str, Claim] = {}
    for value, place in rows:
        claim = _claim(value, place)
        if claim.id in claims:
            raise place.fault("id", f"{claim.id!r} is used twice; keep one")
        claims[claim.id] = claim
    return list(claims.values())


def _claim(value: Any, place: Place) -> Claim:
    """One checked claim."""
    check_fields(value, place, {*NEEDED, *OPTIONAL}, NEEDED)
    listed = {name: texts(value, name, place) if name in value else () for name in ("effect", "support", "sources")}
    if not any(listed.values()):
        raise place.fault("effect", "is missing: a verdict needs effect, support or sources to stand on")
    _check_names(listed, place)
    verdict = one_of(value, "verdict", place, VERDICTS)
    if verdict == "untestable" and "testable" not in value:
        raise place.fault("testable", "is missing: a claim that is untestable needs what would make it testable")
    return Claim(
        id=_matching(value, "id", place, ID, "S or Q, a number, and a, b or c where one sentence makes several claims"),
        claim=text(value, "claim", place),
        verdict=verdict,
        tier=one_of(value, "tier", place, TIERS),
        methods=_methods(value, place),
        why=text(value, "why", place),
        chapter=_matching(value, "chapter", place, CHAPTER, "a tier, a slash and a name, such as deep/sharding"),
        testable=text(value, "testable", place) if "testable" in value else "",
        **listed,
    )


def _matching(value: dict[str, Any], name: str, place: Place, pattern: re.Pattern[str], allowed: str) -> str:
    found = text(value, name, place)
    if not pattern.fullmatch(found):
        raise place.fault(name, f"{shown(found)} is not allowed; use {allowed}")
    return found


def _methods(value: dict[str, Any], place: Place) -> tuple[str, ...]:
    found = texts(value, "methods", place)
    for method in found:
        if method not in METHODS:
            raise place.fault("methods", f"{shown(method)} is not allowed; use one or more of {', '.join(METHODS)}")
    return found


def _check_names(listed: dict[str, tuple[str, ...]], place: Place) -> None:
    for name in listed["effect"]:
        if name not in CHECKS:
            raise place.fault("effect", f"no check is called {shown(name)}; there are {', '.join(sorted(CHECKS))}")
    for name in listed["support"]:
        if not TEST.fullmatch(name):
            raise place.fault("support", f"{shown(name)} is no test; use tests/a_path.py::test_name")


def show_claims() -> None:
    """Display every claim, with what its checks find in the records now, as a page to filter. Needs no kernel later."""
    from IPython.display import HTML, display  # only a notebook needs IPython

    from minilab.textbook.claims_page import page_html  # which imports this module

    display(HTML(page_html(load_claims())))
