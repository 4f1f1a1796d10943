"""The works in `book/references.bib`, as far as a page needs them: a short name, a title and an address."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ENTRY = re.compile(r"^@\w+\{([^,\s]+),(.*?)^\}", re.MULTILINE | re.DOTALL)
FIELD = re.compile(r"^\s*(\w+)\s*=\s*\{(.*)\},?\s*$", re.MULTILINE)


@dataclass(frozen=True)
class Work:
    """One entry: "He et al., 2020", without the year if it has none; its title; its address; what its method is called.

    The last two are empty if the entry does not say so: its fields are `url` and `shorttitle`.
    """

    name: str
    title: str
    url: str
    short: str = ""


def load_works(path: Path) -> dict[str, Work]:
    """The works of a BibTeX file, by key; each field stands on one line of its own.

    Raises `ValueError` naming the key if an entry has no author or no title.
    """
    works = {}
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: {error}; allowed: UTF-8") from error
    for key, body in ENTRY.findall(text):
        fields = dict(FIELD.findall(body))
        for name in ("author", "title"):
            if name not in fields:
                raise ValueError(f"{path}: {key} has no {name}; allowed: entries with author and title")
        year = f", {fields['year']}" if "year" in fields else ""
        title = re.sub("[{}]", "", fields["title"])  # braces keep capitals in BibTeX
        name = _authors(fields["author"]) + year
        works[key] = Work(name, title, fields.get("url", ""), fields.get("shorttitle", ""))
    return works


def _authors(names: str) -> str:
    """One or two family names, or the first and "et al."; a name in braces is one word."""
    each = [name.partition(",")[0].strip("{} ") for name in names.split(" and ")]
    return each[0] if len(each) == 1 else f"{each[0]} and {each[1]}" if len(each) == 2 else f"{each[0]} et al."
