"""Every licence is allowed or explained, and the check that says so notices what it must."""

from __future__ import annotations

import re
from email.message import Message
from fnmatch import fnmatch
from typing import Any

import licences
import pytest

RULES = licences.rules()
PINNED = re.compile(r"^([\w.-]+)==", re.MULTILINE)


def said(classifiers: tuple[str, ...] = (), **fields: str) -> str:
    """The licence read from a package's metadata with these fields."""
    metadata = Message()
    for name, value in fields.items():
        metadata[name.replace("_", "-")] = value
    for classifier in classifiers:
        metadata["Classifier"] = classifier
    return licences.licence(metadata, RULES["spelled"])


def test_what_is_installed_is_allowed_or_explained() -> None:
    installed = licences.installed(RULES["spelled"])
    assert len(installed) > 100, "the packages of requirements.txt are not installed"
    assert licences.findings(installed, RULES) == []


def test_what_the_site_carries_is_allowed_or_explained() -> None:
    assert len(licences.vendored()) >= 7
    assert licences.findings(licences.vendored(), RULES) == []


@pytest.mark.parametrize(
    "packages, wanted",
    [
        ({"a": "GPL-3.0-only"}, "a: GPL-3.0-only, which is not allowed"),
        ({"a": "MIT AND AGPL-3.0-only"}, "a: MIT AND AGPL-3.0-only, which is not allowed"),
        ({"a": "MIT OR (GPL-2.0-only)"}, "a: MIT OR (GPL-2.0-only), which is not allowed"),
        ({"a": licences.NOT_STATED}, "a: not stated, which is not allowed"),
        ({"a": ""}, "a: , which is not allowed"),
        ({"frozendict": "GPL-3.0-only"}, "frozendict: GPL-3.0-only, where licences.yml gives a reason for LGPL-3.0"),
    ],
)
def test_what_is_neither_is_found(packages: dict[str, str], wanted: str) -> None:
    (found,) = licences.findings(packages, RULES)
    assert found.startswith(wanted)


def test_what_is_allowed_or_explained_is_not_found() -> None:
    packages = {"a": "MIT", "b": "Apache-2.0 OR (BSD-2-Clause AND ISC)", "nvidia-cudnn-cu13": "Other", "tqdm": "MIT"}
    assert licences.findings(packages, RULES) == []


@pytest.mark.parametrize(
    "metadata, wanted",
    [
        ({"License_Expression": "MIT AND PSF-2.0", "License": "GPL"}, "MIT AND PSF-2.0"),
        ({"License": "MIT License\nCopyright (c)\nmore"}, "MIT"),
        ({"License": "MPL-2.0 AND MIT"}, "MPL-2.0 AND MIT"),
        ({"License": "Copyright (c) A. Uthor", "classifiers": ("License :: OSI Approved :: BSD License",)}, "BSD"),
        ({"License": "UNKNOWN", "classifiers": ("License :: OSI Approved :: ISC License (ISCL)",)}, "ISC"),
        ({"classifiers": ("License :: Public Domain", "Topic :: Text", "License :: X")}, "Public Domain AND X"),
        ({"License": "UNKNOWN"}, licences.NOT_STATED),
        ({}, licences.NOT_STATED),
    ],
)
def test_the_field_that_says_most_is_read(metadata: dict[str, Any], wanted: str) -> None:
    assert said(**metadata) == wanted


@pytest.mark.parametrize("entry", RULES["unusual"], ids=lambda entry: entry["name"])
def test_each_exception_has_a_reason_and_something_that_needs_it(entry: dict[str, str]) -> None:
    pinned = PINNED.findall((licences.ROOT / "requirements.txt").read_text(encoding="utf-8"))
    there = [name.lower() for name in (*pinned, *licences.vendored(), "minilab", "cuda-bindings", "nvidia-cudnn-cu13")]
    assert any(fnmatch(name, entry["name"].lower()) for name in there), "nothing is called so any more"
    assert len(entry["why"].split()) >= 8
    assert not licences.parts(entry["licence"]) <= set(RULES["allowed"]), "allowed without it"


def test_the_listing_names_each_package_once() -> None:
    packages = {"b": "MIT", "A": "MIT", "c": "ISC"}
    assert licences.grouped(packages) == {"MIT": ["A", "b"], "ISC": ["c"]}
    assert list(licences.reasons(["NVIDIA-x", "torch", "numpy"], RULES)) == ["NVIDIA-x", "torch"]
