"""A notebook is stale when its source, a file that it imports or data that it names has changed."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from minilab.textbook.sources import Chapter, find_chapters, fingerprint, imported_files, orphans

CARD = """\
- id: topic-one
  tier: basics
  question: Which?
  choices:
    - {text: a, right: true, why: because}
    - {text: b, right: false, why: nope}
    - {text: c, right: false, why: nope}
  sources: [key]
  level: mid
  answer: {basics: This one.}
  rubric: [a, b, c, d]
  red_flags: [{text: a, why: b}]
  chapter: basics/first
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A small repository: a chapter, a package whose modules import each other, a record, a card."""
    files = {
        "book/chapters/basics/first.md": "# First\n",
        "book/cards/topic.yml": CARD,
        "minilab/__init__.py": "",
        "minilab/losses.py": "import math\n",
        "minilab/moco.py": "from minilab.losses import loss\n",
        "minilab/lonely.py": "",
        "minilab/spectra/__init__.py": "from . import mixing\n",
        "minilab/spectra/mixing.py": "from ..losses import loss\n",
        "minilab/records/first-moco.json": "{}",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def files_of(root: Path, code: str) -> list[str]:
    return [path.relative_to(root / "minilab").as_posix() for path in imported_files(root, [ast.parse(code)])]


@pytest.mark.parametrize(
    ("code", "files"),
    [
        ("import numpy", []),
        ("from minilab import moco", ["__init__.py", "losses.py", "moco.py"]),
        ("import minilab.losses as l", ["__init__.py", "losses.py"]),
        ("from minilab.losses import loss", ["__init__.py", "losses.py"]),
        ("def f():\n    from minilab.moco import MoCo", ["__init__.py", "losses.py", "moco.py"]),
        ("import minilab.spectra", ["__init__.py", "losses.py", "spectra/__init__.py", "spectra/mixing.py"]),
    ],
)
def test_imports_are_followed(root: Path, code: str, files: list[str]) -> None:
    assert files_of(root, code) == files


CELLS = ["%matplotlib inline\nfrom minilab import moco\n!ls", 'named(f"first-{name}")\nquiz("topic-one")']


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ("book/chapters/basics/first.md", "source_sha256"),
        ("minilab/losses.py", "code_sha256"),
        ("minilab/records/first-moco.json", "data_sha256"),
        ("book/cards/topic.yml", "data_sha256"),
        ("minilab/lonely.py", None),
    ],
)
def test_a_change_shows_in_its_own_hash(root: Path, changed: str, field: str | None) -> None:
    chapter = Chapter(root, "basics/first")
    before = fingerprint(chapter, CELLS)
    path = root / changed
    path.write_text(path.read_text() + "\n")
    after = fingerprint(chapter, CELLS)
    assert [name for name in before if before[name] != after[name]] == ([field] if field else [])


def test_a_grid_stands_for_the_records_of_its_runs(root: Path) -> None:
    chapter, cells = Chapter(root, "basics/first"), ['of_grid("momentum")']
    before = fingerprint(chapter, cells)
    runs = root / "minilab/records/runs"
    runs.mkdir()
    (runs / "simclr-seed0.json").write_text("{}")  # of another grid
    assert fingerprint(chapter, cells) == before
    (runs / "moco-momentum0.9-seed1.json").write_text("{}")
    assert fingerprint(chapter, cells) != before


def test_data_that_no_text_names_is_left_out(root: Path) -> None:
    chapter = Chapter(root, "basics/first")
    cells = ['f"{name}"', 'print("first")']
    before = fingerprint(chapter, cells)
    (root / "minilab/records/first-moco.json").write_text("{ }")
    assert fingerprint(chapter, cells) == before


def test_line_endings_do_not_count(root: Path) -> None:
    chapter = Chapter(root, "basics/first")
    before = fingerprint(chapter, CELLS)
    for path in root.rglob("*.*"):
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert fingerprint(chapter, CELLS) == before


def test_chapters_are_found_by_either_name(root: Path) -> None:
    (root / "book/chapters/solid").mkdir()
    (root / "book/chapters/solid/second.md").write_text("# Second\n")
    assert [chapter.name for chapter in find_chapters(root)] == ["basics/first", "solid/second"]
    for name in ("second", "solid/second"):
        assert [chapter.name for chapter in find_chapters(root, [name])] == ["solid/second"]
    with pytest.raises(ValueError, match=r"no chapter is named 'third'.*basics/first, solid/second"):
        find_chapters(root, ["third"])


def test_a_notebook_without_a_source_is_an_orphan(root: Path) -> None:
    for name in ("first", "gone"):
        path = root / "notebooks/basics" / f"{name}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
    assert [path.name for path in orphans(root)] == ["gone.ipynb"]
