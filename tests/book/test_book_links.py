"""Links in the sources: between pages they lead to files; to arXiv they are in the references."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("book/*.md"), *ROOT.glob("book/chapters/*/*.md"), *ROOT.glob("*.md")])
LINK = re.compile(r"(?<!\!)\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)  # where f[0](x) is no link
ARXIV = re.compile(r"(\d{4}\.\d{4,5})")


def arxiv_ids_in_references() -> set[str]:
    return set(ARXIV.findall((ROOT / "book" / "references.bib").read_text(encoding="utf-8")))


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_links_between_pages_lead_to_files(path: Path) -> None:
    # A chapter's links are read from the notebook that is made of it.
    chapter = path.is_relative_to(ROOT / "book" / "chapters")
    folder = ROOT / "notebooks" / path.parent.name if chapter else path.parent
    for link in LINK.findall(CODE.sub("", path.read_text(encoding="utf-8"))):
        if "://" not in link and not link.startswith(("#", "mailto:")):
            assert (folder / link.partition("#")[0]).is_file(), f"{path.name}: {link}"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_arxiv_links_are_in_the_references(path: Path) -> None:
    named = set(re.findall(r"arxiv\.org/(?:abs|pdf)/(\d{4}\.\d{4,5})", path.read_text(encoding="utf-8")))
    assert named <= arxiv_ids_in_references()


def test_glossary_is_sorted_and_long_enough() -> None:
    text = (ROOT / "book" / "glossary.md").read_text(encoding="utf-8")
    body = text.partition("```{glossary}\n")[2].partition("```")[0]
    terms = re.findall(r"^(\S.*)$", body, flags=re.MULTILINE)
    assert len(terms) >= 25
    assert [term.lower() for term in terms] == sorted(term.lower() for term in terms)
