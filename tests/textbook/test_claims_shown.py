"""The page of claims as HTML: whole, escaped, labelled, counted; and stale when what it rests on changes."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

import pytest

from minilab.textbook import claims_page
from minilab.textbook.claims import Claim, load_claims
from minilab.textbook.claims_page import AXES, page_html
from minilab.textbook.findings import CHECKS, Finding
from minilab.textbook.sources import Chapter, fingerprint
from minilab.textbook.works import Work, load_works

CLAIMS = load_claims()
NASTY = Claim(
    "S1", "<script>x</script>", "untestable", "deep", ("any",), "a < b & c", "deep/phases", ("chance-loss",),
    ("tests/a/test_b.py::test_c",), ("oord2018cpc, <i>",), "<b>if</b>",
)  # fmt: skip


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checks that take no time; others ask the real ones."""
    monkeypatch.setattr(claims_page, "CHECKS", {name: lambda read: Finding("1 < 2", True) for name in CHECKS})


def parsed(html: str) -> ElementTree.Element:
    """The HTML read as XML, its void elements closed and its style left out."""
    html = re.sub(r"<style>.*?</style>", "", html, flags=re.DOTALL)
    return ElementTree.fromstring(re.sub(r"<input([^>]*?)( checked)?>", r"<input\1/>", html).replace("<br>", "<br/>"))


def test_it_is_well_formed_and_no_id_is_there_twice() -> None:
    root = parsed(page_html(CLAIMS))
    ids = [node.get("id") for node in root.iter() if node.get("id")]
    assert ids == [claim.id for claim in CLAIMS]
    assert all(label.find("input") is not None for label in root.iter("label"))


def test_everything_is_escaped() -> None:
    html = page_html([NASTY])
    assert "<script" not in html and "<b>" not in html and "<i>" not in html
    for text in ("&lt;script&gt;", "a &lt; b &amp; c", "&lt;b&gt;if", "1 &lt; 2", ", &lt;i&gt;"):
        assert text in html


def test_every_claim_is_a_block_with_its_reasons() -> None:
    html = page_html(CLAIMS)
    assert [f'id="{claim.id}"' in html for claim in CLAIMS] == [True] * len(CLAIMS)
    assert html.count("<details>") == len(CLAIMS)
    assert html.count("<strong>Testable if:</strong>") == sum(bool(claim.testable) for claim in CLAIMS)
    assert f" of {len(CLAIMS)} claims shown" in html
    assert not re.search(r"<script|onclick|src=", html)


def test_the_counts_add_up() -> None:
    html = page_html(CLAIMS)
    counted = Counter(claim.verdict for claim in CLAIMS)
    rows = re.findall(r'<tr data-count="(\w+)">.*?<td>(\d+)</td><td>(\d+)</td><td>(\d+)</td>', html)
    found = {verdict: tuple(map(int, numbers)) for verdict, *numbers in rows}
    assert found.pop("all") == (54, 38, 92)
    assert {verdict: total for verdict, (_, _, total) in found.items()} == counted
    assert all(first + second == total for first, second, total in found.values())


@pytest.mark.parametrize("axis", AXES)
def test_each_filter_hides_what_does_not_fit(axis: str) -> None:
    html = page_html(CLAIMS)
    for value in AXES[axis]:
        count = sum(value in claims_page.values(claim, axis) for claim in CLAIMS)
        label = rf'name="claims-{axis}" value="{value}"> [\w ]+ <small>{count}</small></label>'
        assert re.search(label, html), f"{axis} {value}"
        assert f'[value="{value}"]:checked) .claim:not([data-{axis}~="{value}"]){{display:none}}' in html


def test_a_link_leads_to_the_chapter_and_to_the_work() -> None:
    html = page_html([NASTY])
    assert '<a href="../deep/phases.html">deep/phases</a>' in html
    work = '<a href="https://arxiv.org/abs/1807.03748">Representation Learning with Contrastive Predictive Coding</a>'
    assert f"van den Oord et al., 2018, {work}, &lt;i&gt;" in html


def test_the_notebook_is_stale_when_a_claim_or_a_record_changes(tmp_path: Path) -> None:
    files = {
        "book/chapters/lookup/claims.md": "# Claims\n",
        "book/claims.yml": "a",
        "book/references.bib": "a",
        "minilab/__init__.py": "",
        "minilab/textbook/__init__.py": "",
        "minilab/textbook/claims.py": "",
        "minilab/textbook/claims.css": "",
        "minilab/records/runs/moco-seed0.json": "{}",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    chapter = Chapter(tmp_path, "lookup/claims")
    shows, other = ["from minilab.textbook.claims import show_claims"], ["import minilab.textbook"]
    for name in ("book/claims.yml", "book/references.bib", "minilab/records/runs/moco-seed0.json"):
        before = fingerprint(chapter, shows), fingerprint(chapter, other)
        (tmp_path / name).write_text("changed")
        after = fingerprint(chapter, shows), fingerprint(chapter, other)
        assert before[0]["data_sha256"] != after[0]["data_sha256"] and before[1] == after[1], name


def test_works_have_short_names_and_plain_titles(tmp_path: Path) -> None:
    path = tmp_path / "references.bib"
    path.write_text(
        "@misc{one,\n  author = {Chen, Xinlei and He, Kaiming},\n  title = {On {X}},\n  year = {2021},\n  url = {https://a}\n}\n\n"
        "@misc{two,\n  author = {{A group}},\n  title = {{B}}\n}\n"
    )
    works = load_works(path)
    assert works == {"one": Work("Chen and He, 2021", "On X", "https://a"), "two": Work("A group", "B", "")}
    path.write_text("@misc{one,\n  title = {T}\n}\n")
    with pytest.raises(ValueError, match="one has no author"):
        load_works(path)
