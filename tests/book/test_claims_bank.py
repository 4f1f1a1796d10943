"""The claims as a text: sources that are in the references, chapters that exist, and words short enough to read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from minilab.textbook.claims import VERDICTS, Claim, book_file, load_claims
from minilab.textbook.works import load_works

ROOT = Path(__file__).resolve().parents[2]
CLAIMS = load_claims()
FRAMEWORK = {f"deep/{name}" for name in ("directions", "time", "escape", "infinite-queue", "low-pass", "phases")}

every_claim = pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)


def test_the_file_is_read_from_the_sources() -> None:
    assert book_file("claims.yml") == ROOT / "book" / "claims.yml"


def test_sources_are_in_the_references() -> None:
    keys = set(re.findall(r"^@\w+\{([^,]+),", book_file("references.bib").read_text(), flags=re.MULTILINE))
    assert set(load_works(book_file("references.bib"))) == keys
    named = {source.partition(",")[0] for claim in CLAIMS for source in claim.sources}
    assert named <= keys


@every_claim
def test_its_chapter_exists(claim: Claim) -> None:
    assert claim.chapter in FRAMEWORK or (ROOT / "book" / "chapters" / f"{claim.chapter}.md").is_file()


@every_claim
def test_it_is_short_and_gives_its_reasons(claim: Claim) -> None:
    assert len(claim.claim) <= 140
    assert len(claim.why) <= 330
    assert len(re.findall(r"[.:;!?](?:\s|$)", claim.why)) >= 2, "what is right, and what is not"


def test_what_was_only_read_has_a_source_and_no_verdict_is_unused() -> None:
    assert all(claim.sources for claim in CLAIMS if not claim.effect and not claim.support)
    assert {claim.verdict for claim in CLAIMS} == set(VERDICTS)


def test_nothing_is_untestable_for_good() -> None:
    assert all(claim.testable for claim in CLAIMS if claim.verdict == "untestable")


def test_the_framework_leaves_five_places_empty() -> None:
    """Two cells of its table of eigenvalues and the conditions of its three regions."""
    assert [claim.id for claim in CLAIMS if re.search(r"\bempty\b", claim.claim)] == ["S32", "S33", "S47", "S48", "S49"]
