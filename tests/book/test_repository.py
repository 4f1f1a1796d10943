"""The address of the repository stands in _config.yml; every other place says the same."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
WRITTEN = [
    *ROOT.glob("*.md"),
    *ROOT.glob("*.cff"),
    *ROOT.glob("*.toml"),
    *ROOT.glob(".github/workflows/*.yml"),
    *ROOT.glob("book/*.md"),
    *ROOT.glob("book/chapters/*/*.md"),
    *ROOT.glob("notebooks/*/*.ipynb"),
    *ROOT.glob("minilab/**/*.py"),
]
# {owner}/{name} in an address of this repository or of Colab's view of it.
ADDRESS = re.compile(
    r"(?:https?://|git@)(?:www\.)?(?:github\.com[/:]|colab\.research\.google\.com/github/)([\w.-]+/[\w.-]*\w)"
)


def config_address() -> str:
    url: str = yaml.safe_load((ROOT / "_config.yml").read_text())["repository"]["url"]
    return url


def is_ours(name: str) -> bool:
    """Whether an address is meant to be this repository: its owner or its name says so."""
    return "contrastive-minilab" in name


def test_every_address_is_the_one_in_the_configuration() -> None:
    wanted = config_address().removeprefix("https://github.com/")
    for path in WRITTEN:
        for name in ADDRESS.findall(path.read_text(encoding="utf-8")):
            if is_ours(name) or path.suffix in (".toml", ".cff"):
                assert name.removesuffix(".git") == wanted, f"{path.relative_to(ROOT)} names {name}"


def test_the_places_that_need_the_address_have_it() -> None:
    for name in ("pyproject.toml", "CITATION.cff", "README.md"):
        assert config_address() in (ROOT / name).read_text(encoding="utf-8"), name
    for notebook in ROOT.glob("notebooks/*/*.ipynb"):
        assert f"git+{config_address()}" in notebook.read_text(encoding="utf-8"), notebook.name


def test_no_place_to_download_packages_from_is_written_down() -> None:
    for name in ("requirements.txt", "pyproject.toml", "Makefile", "setup.py", ".ci/run"):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert not re.search(r"index-url|find-links|registry", text), name


def test_workflows_ask_for_no_more_than_they_need() -> None:
    for path in ROOT.glob(".github/workflows/*.yml"):
        workflow = yaml.safe_load(path.read_text())
        assert workflow["permissions"] == {"contents": "read"}, path.name
        for job in workflow["jobs"].values():
            for step in job["steps"]:
                assert re.search(r"@(v\d+|[0-9a-f]{40})$", step.get("uses", "@v0")), step
