"""The licence that each installed package and each vendored script names, held against tests/licences.yml."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from email.message import Message
from fnmatch import fnmatch
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
RULES = ROOT / "tests" / "licences.yml"
MANIFEST = ROOT / "book" / "site" / "vendor" / "manifest.json"
NOT_STATED = "not stated"


def rules() -> dict[str, Any]:
    """tests/licences.yml."""
    return yaml.safe_load(RULES.read_text(encoding="utf-8"))


def licence(metadata: Message, spelled: dict[str, str]) -> str:
    """What a package says of itself, in SPDX names where they are known; NOT_STATED if it says nothing.

    The newest field wins: License-Expression, then the first line of License if it is a name (some put the
    whole text there), then the classifiers. Source: Core metadata specifications, packaging.python.org.
    """
    if metadata["License-Expression"]:
        return str(metadata["License-Expression"])
    first = (metadata["License"] or "").strip().partition("\n")[0].strip()
    named = spelled.get(first, first)
    if re.fullmatch(r"[\w.+-]+( (AND|OR|WITH) [\w.+-]+)*", named) and named != "UNKNOWN":
        return named
    found = [text.split(" :: ")[-1] for text in metadata.get_all("Classifier", []) if text.startswith("License ::")]
    return " AND ".join(spelled.get(text, text) for text in found) or NOT_STATED


def parts(expression: str) -> set[str]:
    """The licences in an expression; one of several to choose from counts as asked for too."""
    return set(re.split(r" (?:AND|OR) ", re.sub(r"[()]", "", expression)))


def installed(spelled: dict[str, str]) -> dict[str, str]:
    """{package: licence} of all that is installed beside this Python."""
    return {found.metadata["Name"]: licence(found.metadata, spelled) for found in distributions()}


def vendored() -> dict[str, str]:
    """{package: licence} of the scripts and fonts that the site carries."""
    return {entry["name"]: entry["licence"] for entry in json.loads(MANIFEST.read_text())["packages"]}


def findings(packages: dict[str, str], known: dict[str, Any]) -> list[str]:
    """What is wrong: a package whose licence is neither allowed nor explained, or no longer what was explained."""
    return [fault for name, said in packages.items() if (fault := _fault(name, said, known))]


def _fault(name: str, said: str, known: dict[str, Any]) -> str | None:
    """What is wrong with one package, if anything."""
    if parts(said) <= set(known["allowed"]):
        return None
    entries = [entry for entry in known["unusual"] if fnmatch(name.lower(), entry["name"].lower())]
    if not entries:
        return f"{name}: {said}, which is not allowed: leave it out, or give the reason why it is fine in {RULES.name}"
    wanted = entries[0]["licence"]
    if wanted not in ("any", said):
        return f"{name}: {said}, where {RULES.name} gives a reason for {wanted}: think it over"
    return None


def grouped(packages: dict[str, str]) -> dict[str, list[str]]:
    """{licence: its packages}, most packages first."""
    groups: dict[str, list[str]] = {}
    for name, said in sorted(packages.items(), key=lambda item: item[0].lower()):
        groups.setdefault(said, []).append(name)
    return dict(sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])))


def reasons(packages: Iterable[str], known: dict[str, Any]) -> dict[str, str]:
    """{package: why it is fine} for those with an entry under `unusual`."""
    return {
        name: entry["why"] for name in packages for entry in known["unusual"] if fnmatch(name.lower(), entry["name"])
    }
