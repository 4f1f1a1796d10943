"""The scripts that the site carries are those that the manifest says, and nothing else."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

VENDOR = Path(__file__).resolve().parents[2] / "book" / "site" / "vendor"
MANIFEST = json.loads((VENDOR / "manifest.json").read_text())


def listed() -> dict[str, str]:
    """{file: hash} over all packages, and what is kept by hand."""
    hashes = dict(MANIFEST["kept_by_hand"])
    for package in MANIFEST["packages"]:
        hashes |= package["sha256"]
    return hashes


def test_every_file_has_the_hash_in_the_manifest() -> None:
    there = {
        path.relative_to(VENDOR).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in VENDOR.rglob("*")
        if path.is_file() and path.name != "manifest.json"
    }
    assert there == listed()


def test_every_package_has_a_version_and_a_licence() -> None:
    for package in MANIFEST["packages"]:
        assert package["name"]
        assert package["version"][0].isdigit()
        assert package["licence"]
    assert sum(name.startswith("licences/") for name in listed()) >= 6


def test_nothing_names_a_place_to_download_from() -> None:
    assert "://" not in (VENDOR / "manifest.json").read_text()
    assert not list(VENDOR.parent.rglob("package-lock.json"))
