"""What a chapter rests on: its source, the minilab files it imports, the data it names.

A hash of each goes into the executed notebook, so that a stale notebook is known without
running it.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from minilab.grids import GRIDS, grid

CHAPTERS, NOTEBOOKS = Path("book/chapters"), Path("notebooks")
CARDS, RECORDS = Path("book/cards"), Path("minilab/records")
# A page that shows the claims names no record: its checks read them all.
CLAIMS, SHOWN_BY = (Path("book/claims.yml"), Path("book/references.bib")), Path("minilab/textbook/claims.py")


@dataclass(frozen=True)
class Chapter:
    """One chapter: its text source and the notebook made from it, both under ``root``."""

    root: Path
    name: str  # "basics/negatives"

    @property
    def source(self) -> Path:
        """The text that people edit."""
        return self.root / CHAPTERS / f"{self.name}.md"

    @property
    def notebook(self) -> Path:
        """What is executed from it."""
        return self.root / NOTEBOOKS / f"{self.name}.ipynb"


def find_chapters(root: Path, names: Iterable[str] = ()) -> list[Chapter]:
    """The chapters under ``root``: all, or those named as ``negatives`` or ``basics/negatives``.

    Raises ``ValueError`` for a name that no chapter has, naming those that there are.
    """
    paths = sorted((root / CHAPTERS).glob("*/*.md"))
    chapters = [Chapter(root, f"{path.parent.name}/{path.stem}") for path in paths]
    wanted = list(names)
    if not wanted:
        return chapters
    for name in wanted:
        if not any(_is_named(chapter, name) for chapter in chapters):
            known = ", ".join(chapter.name for chapter in chapters) or "none"
            raise ValueError(f"no chapter is named {name!r} under {root / CHAPTERS}; there are: {known}")
    return [chapter for chapter in chapters if any(_is_named(chapter, name) for name in wanted)]


def _is_named(chapter: Chapter, name: str) -> bool:
    return name in (chapter.name, chapter.name.partition("/")[2])


def fingerprint(chapter: Chapter, cells: Iterable[str]) -> dict[str, str]:
    """The hashes that a notebook carries; ``cells`` are the sources of its code cells."""
    trees = [_parsed(cell) for cell in cells]
    code = imported_files(chapter.root, trees)
    return {
        "source_sha256": _hash(chapter.root, [chapter.source]),
        "code_sha256": _hash(chapter.root, code),
        "data_sha256": _hash(chapter.root, sorted({*_named_data(chapter.root, trees), *_claims(chapter.root, code)})),
    }


def _parsed(cell: str) -> ast.Module:
    """A cell's code; what is no Python raises `SyntaxError`, or `ValueError` where it has null bytes."""
    try:
        return ast.parse(_without_magics(cell))
    except (MemoryError, RecursionError) as fault:  # Python's parser on code nested too deeply
        raise ValueError("a cell's code is nested too deeply; allowed: code that Python reads") from fault


def _without_magics(cell: str) -> str:
    """A cell as plain Python: lines for IPython alone become ``pass``."""
    lines = []
    for line in cell.splitlines():
        bare = line.lstrip()
        lines.append(line[: len(line) - len(bare)] + "pass" if bare[:1] in ("%", "!") else line)
    return "\n".join(lines)


def imported_files(root: Path, trees: Iterable[ast.Module]) -> list[Path]:
    """Every file of minilab that the given code imports, directly or through another, sorted."""
    found: set[Path] = set()
    waiting = [name for tree in trees for name in _imports(tree, package=())]
    while waiting:
        for path in _module_files(root, waiting.pop()):
            if path in found:
                continue
            found.add(path)
            relative = path.relative_to(root).with_suffix("")
            package = relative.parts[:-1]
            waiting += _imports(ast.parse(path.read_text(encoding="utf-8")), package)
    return sorted(found)


def _imports(tree: ast.AST, package: tuple[str, ...]) -> list[tuple[str, ...]]:
    """The dotted names that code in ``package`` imports: ``from a import b`` gives a.b."""
    names: list[tuple[str, ...]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [tuple(alias.name.split(".")) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = base + tuple(node.module.split(".") if node.module else ())
            names += [(*module, alias.name) for alias in node.names]
    return [name for name in names if name[:1] == ("minilab",)]


def _module_files(root: Path, name: tuple[str, ...]) -> list[Path]:
    """The files that importing a dotted name runs: its packages' ``__init__`` and the module.

    The last part may be a name inside a module, which is then not a file of its own.
    """
    files = []
    for length in range(1, len(name) + 1):
        place = root.joinpath(*name[:length])
        files += [file for file in (place / "__init__.py", place.with_suffix(".py")) if file.is_file()]
    return files


def _named_data(root: Path, trees: Iterable[ast.Module]) -> list[Path]:
    """The card files and records that a text in the code names, by card id, file name or grid.

    An f-string names whatever it could become: f"first-{name}" names first-moco.
    """
    patterns = [pattern for tree in trees for node in ast.walk(tree) if (pattern := _pattern(node))]
    wanted = re.compile("|".join(patterns) or "(?!)")
    stems = {cell.name for name in GRIDS if wanted.fullmatch(name) for cell in grid(name).cells}
    paths = (root / RECORDS).glob("**/*.json")
    records = [path for path in paths if wanted.fullmatch(path.stem) or path.stem in stems]
    cards = [path for path in (root / CARDS).glob("*.yml") if any(map(wanted.fullmatch, _card_ids(path)))]
    return sorted(records + cards)


def _claims(root: Path, code: list[Path]) -> list[Path]:
    """What the claims rest on, if the code shows them."""
    if root / SHOWN_BY not in code:
        return []
    files = (*CLAIMS, SHOWN_BY.with_suffix(".css"))
    return [*(root / path for path in files), *(root / RECORDS).glob("**/*.json")]


def _pattern(node: ast.AST) -> str:
    """A regular expression for the texts that a literal can be; empty if it is no literal text."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return re.escape(node.value.removesuffix(".json"))
    if isinstance(node, ast.JoinedStr):
        parts = [_pattern(part) or ".*" for part in node.values]
        return "" if set(parts) <= {".*"} else "".join(parts)
    return ""


def _card_ids(path: Path) -> set[str]:
    """The ids of the cards of one file."""
    from minilab.textbook.cards import load_file

    return {card.id for card in load_file(path)}


def _hash(root: Path, paths: Iterable[Path]) -> str:
    """One hash over the names and contents of files, whatever their line endings."""
    digest = hashlib.sha256()
    for path in paths:
        digest.update(path.relative_to(root).as_posix().encode() + b"\0")
        digest.update(path.read_bytes().replace(b"\r\n", b"\n") + b"\0")
    return digest.hexdigest()


def orphans(root: Path) -> list[Path]:
    """Notebooks that no chapter source stands behind."""
    made = {chapter.notebook for chapter in find_chapters(root)}
    return sorted(set((root / NOTEBOOKS).glob("*/*.ipynb")) - made)


def stored_fingerprint(notebook: Path) -> dict[str, Any]:
    """The hashes that an executed notebook carries; empty if it has none or is not there."""
    if not notebook.is_file():
        return {}
    try:
        found = json.loads(notebook.read_text(encoding="utf-8"))["metadata"]["minilab"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
