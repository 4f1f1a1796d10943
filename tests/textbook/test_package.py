"""What pip installs is whole: every package, the records, and what lives in book: cards, claims, references."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
USE = """
import minilab
from minilab.textbook.cards import card_files, load_bank
from minilab.textbook.claims import book_file, load_claims
from minilab.textbook.works import load_works
print(minilab.__file__)
print(*[path.name for path in card_files()])
print(len(load_bank()))
print(len(load_claims()), len(load_works(book_file("references.bib"))))
"""


def run(*command: str, folder: Path, path: str = "") -> str:
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_an_installed_copy_holds_all_that_the_sources_do(tmp_path: Path) -> None:
    source, installed = tmp_path / "source", tmp_path / "installed"
    leave = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "minilab", source / "minilab", ignore=leave)
    shutil.copytree(ROOT / "book" / "cards", source / "book" / "cards")
    for name in ("claims.yml", "references.bib"):
        shutil.copy(ROOT / "book" / name, source / "book")
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE", "LICENSE-TEXT"):
        shutil.copy(ROOT / name, source)
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation")
    run(*pip, "--target", str(installed), str(source), folder=tmp_path)

    there = {path.relative_to(installed / "minilab") for path in (installed / "minilab").rglob("*")}
    for path in (ROOT / "minilab").rglob("*"):
        if path.suffix in (".py", ".json"):
            assert path.relative_to(ROOT / "minilab") in there

    said = run(sys.executable, "-c", USE, folder=tmp_path, path=str(installed)).splitlines()
    assert Path(said[0]).is_relative_to(installed)
    assert said[1].split() == [path.name for path in sorted((ROOT / "book" / "cards").glob("*.yml"))]
    assert int(said[2]) >= 3
    claims, works = map(int, said[3].split())
    assert claims == (ROOT / "book" / "claims.yml").read_text().count("- id: ") and works >= 20
