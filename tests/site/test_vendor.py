"""The scripts that the site carries are those that the manifest says, and nothing else."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import sys
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
VENDOR = ROOT / "book" / "site" / "vendor"
MANIFEST = json.loads((VENDOR / "manifest.json").read_text())
PACKAGES = {package["name"]: package for package in MANIFEST["packages"]}
# Where each package's licence stands, and words that only such a licence has.
LICENCES = {
    "@fortawesome/fontawesome-free": ("font-awesome.txt", "SIL OFL 1.1"),
    "@jupyter-widgets/html-manager": ("jupyter-widgets.txt", "Redistribution and use in source and binary forms"),
    "@jupyter-widgets/schema": ("jupyter-widgets.txt", "Redistribution and use in source and binary forms"),
    "anywidget (PyPI)": ("anywidget.txt", "Permission is hereby granted, free of charge"),
    "mathjax": ("mathjax.txt", "Apache License"),
    "requirejs": ("requirejs.txt", "Permission is hereby granted, free of charge"),
    "ts-fsrs": ("ts-fsrs.txt", "Permission is hereby granted, free of charge"),
}


@pytest.fixture(scope="module")
def tool() -> Any:
    """book/site/vendor.py, which stands in no package."""
    sys.path.insert(0, str(VENDOR.parent))
    try:
        import vendor
    finally:
        sys.path.pop(0)
    return vendor


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def listed() -> dict[str, str]:
    """{file: hash} over all packages, and what is kept by hand."""
    parts = [MANIFEST["kept_by_hand"], *(package["sha256"] for package in MANIFEST["packages"])]
    hashes = {name: digest for part in parts for name, digest in part.items()}
    assert len(hashes) == sum(map(len, parts)), "a file is listed twice"
    return hashes


def there(folder: Path) -> dict[str, str]:
    """{file: hash} of what a folder holds, less the manifest itself."""
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if not path.is_dir()}
    del files["manifest.json"]
    return {name: sha256(path.read_bytes()) for name, path in files.items()}


def test_every_file_has_the_hash_in_the_manifest() -> None:
    assert there(VENDOR) == listed()
    assert len(listed()) > 30


@pytest.mark.parametrize("name, content", [("require.js", b"//"), ("more.js", b""), ("mathjax/manifest.json", b"{}")])
def test_a_changed_file_and_one_too_many_are_noticed(tmp_path: Path, name: str, content: bytes) -> None:
    folder = tmp_path / "vendor"
    shutil.copytree(VENDOR, folder)
    assert there(folder) == listed()
    with (folder / name).open("ab") as file:
        file.write(content)
    assert there(folder) != listed()
    (folder / name).unlink()
    assert (there(folder) == listed()) is (name not in listed()), "a missing file is not noticed"


def test_every_package_has_a_version_and_its_licence_beside_it() -> None:
    assert set(LICENCES) == set(PACKAGES)
    for name, (file, words) in LICENCES.items():
        assert PACKAGES[name]["version"][0].isdigit()
        assert PACKAGES[name]["licence"]
        assert f"licences/{file}" in listed()
        assert words in (VENDOR / "licences" / file).read_text(encoding="utf-8")


def test_no_licence_belongs_to_nothing() -> None:
    parts = "embed-amd-parts.txt"  # of the libraries that are within embed-amd.js
    assert {path.name for path in (VENDOR / "licences").iterdir()} == {file for file, _ in LICENCES.values()} | {parts}


def test_the_manifest_is_what_the_tool_would_write(tool: Any) -> None:
    """Every package and version that vendor.py names, and only files that it asks for."""
    for package in tool.NPM_PACKAGES:
        entry = PACKAGES[package["name"]]
        assert (entry["version"], entry["licence"]) == (package["version"], package["licence"])
        targets = [target + "*" if target.endswith("/") else target for target in package["files"].values()]
        for target in targets:
            assert [name for name in entry["sha256"] if fnmatch(name, target)], f"{package['name']} lacks {target}"
        for name in entry["sha256"]:
            assert any(fnmatch(name, target) for target in targets), f"vendor.py does not ask for {name}"
    assert set(PACKAGES) == {package["name"] for package in tool.NPM_PACKAGES} | {"anywidget (PyPI)"}
    assert set(MANIFEST["kept_by_hand"]) == set(tool.KEPT_BY_HAND)


def test_anywidget_is_the_version_that_writes_the_widgets() -> None:
    pinned = re.findall(r"^anywidget==(\S+)", (ROOT / "requirements.txt").read_text(), re.MULTILINE)
    assert [PACKAGES["anywidget (PyPI)"]["version"]] == pinned


def test_our_changes_undone_give_the_file_as_it_came(tool: Any) -> None:
    changed = {name: package for package in tool.NPM_PACKAGES for name in package.get("changes", {})}
    assert set(changed) == {"embed-amd.js"}
    for name, package in changed.items():
        text = (VENDOR / name).read_bytes().decode()
        for old, new in package["changes"][name]:
            assert text.count(new) == 1 and old not in text
            text = text.replace(new, old)
        assert sha256(text.encode()) == PACKAGES[package["name"]]["sha256_before_our_changes"][name]


def test_a_change_that_fits_no_longer_is_refused(tool: Any) -> None:
    assert tool._changed("a.js", b"one two", [("two", "2")]) == b"one 2"
    for text in (b"one", b"two two"):
        with pytest.raises(SystemExit, match=r"a\.js holds 'two' [02] times, not once"):
            tool._changed("a.js", text, [("two", "2")])


def test_nothing_names_a_place_to_download_from() -> None:
    assert "://" not in (VENDOR / "manifest.json").read_text()
    assert not list(VENDOR.parent.rglob("package-lock.json"))
