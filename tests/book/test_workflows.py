"""The workflows run pinned actions with the least rights, for a limited time, on nothing that a stranger wrote."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
FILES = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / ".github" / "workflows").iterdir()}
# A commit, and the version that it was when it was chosen.
PIN = re.compile(r"^[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$")
USES = re.compile(r"^\s*(?:- )?uses:\s*(.*?)\s*$", re.MULTILINE)
READ = {"contents": "read"}
# The one job that may write, and only to the site.
WRITES = {("pages.yml", "publish"): {"pages": "write", "id-token": "write"}}
TRIGGERS = {"push", "pull_request", "schedule", "workflow_dispatch"}
LONGEST = 90  # minutes


def faults(name: str, text: str) -> list[str]:
    """What a workflow does that it must not."""
    workflow = yaml.safe_load(text)
    found = [f"not pinned: {used}" for used in USES.findall(text) if not PIN.match(used)]
    found += [f"trigger: {trigger}" for trigger in set(workflow[True]) - TRIGGERS]  # YAML reads `on` as true
    found += [f"holds {word}" for word in ("secrets.", "github.event", "github.head_ref") if word in text]
    if workflow.get("permissions") not in (READ, {}):
        found.append(f"permissions: {workflow.get('permissions')}")
    for job, body in workflow["jobs"].items():
        found += [f"{job}: {fault}" for fault in job_faults(body, WRITES.get((name, job), READ))]
    return found


def job_faults(job: dict[str, Any], rights: dict[str, str]) -> list[str]:
    """What a job does that it must not, if these are the rights that it may have."""
    found = []
    if job.get("permissions", READ) != rights:
        found.append(f"permissions: {job.get('permissions')}")
    if not 0 < job.get("timeout-minutes", 0) <= LONGEST:
        found.append(f"timeout-minutes: {job.get('timeout-minutes')}")
    if "secrets" in job or "uses" in job:
        found.append("calls another workflow")
    if rights != READ and any("run" in step for step in job["steps"]):
        found.append("runs a command although it may write")
    return found + [fault for step in job["steps"] for fault in step_faults(step)]


def step_faults(step: dict[str, Any]) -> list[str]:
    """What a step does that it must not."""
    found = []
    if "${{" in step.get("run", ""):  # a value would become a part of the command: env carries it safely
        found.append(f"a value within a command: {step['run']}")
    if step.get("uses", "").startswith("actions/checkout@"):
        kept = step.get("with", {}).get("persist-credentials", True)
        found += ["the checkout keeps its token"] if kept is not False else []
    return found


@pytest.mark.parametrize("name", FILES)
def test_a_workflow_does_nothing_that_it_must_not(name: str) -> None:
    assert faults(name, FILES[name]) == []


def test_an_action_has_one_pin_in_all_workflows() -> None:
    pins: dict[str, set[str]] = {}
    for text in FILES.values():
        for used in USES.findall(text):
            pins.setdefault(used.partition("@")[0], set()).add(used)
    assert {action: found for action, found in pins.items() if len(found) > 1} == {}
    assert set(pins) >= {"actions/checkout", "actions/setup-python", "actions/deploy-pages"}


def test_the_workflows_are_those_that_the_site_and_the_tests_need() -> None:
    assert set(FILES) == {"audit.yml", "ci.yml", "colab.yml", "pages.yml"}


def test_what_a_workflow_makes_is_a_target() -> None:
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    asked = [target for text in FILES.values() for target in re.findall(r"run: make (\w+)", text)]
    assert set(asked) == {"audit", "book", "colab"}
    assert set(asked) <= set(targets)


def test_colab_tries_the_versions_that_the_command_knows() -> None:
    matrix = yaml.safe_load(FILES["colab.yml"])["jobs"]["notebooks"]["strategy"]["matrix"]["widgets"]
    source = (ROOT / "tests" / "colab.py").read_text(encoding="utf-8")
    assert f"WIDGETS = {tuple(matrix)!r}".replace("'", '"') in source


# {what is broken: (the text to replace in pages.yml, with what, the fault)}
BROKEN = {
    "a tag": ("checkout@de0fac2e4500dabe0009e67214ff5f5447ce83dd # v6.0.2", "checkout@v6", "not pinned"),
    "a short hash": ("de0fac2e4500dabe0009e67214ff5f5447ce83dd", "de0fac2", "not pinned"),
    "no version": (" # v5.0.0", "", "not pinned"),
    "a trigger with rights": ("workflow_dispatch:", "pull_request_target:", "trigger: pull_request_target"),
    "more rights for all": ("contents: read", "contents: write", "permissions: {'contents': 'write'}"),
    "no word on rights": ("permissions:\n  contents: read\n", "", "permissions: None"),
    "more rights for one": ("pages: write\n", "pages: write\n      contents: write\n", "publish: permissions"),
    "no end": ("    timeout-minutes: 20\n", "", "build: timeout-minutes: None"),
    "a late end": ("timeout-minutes: 20", "timeout-minutes: 360", "build: timeout-minutes: 360"),
    "a kept token": ("persist-credentials: false", "fetch-depth: 1", "build: the checkout keeps its token"),
    "a stranger's title": ("make book", 'echo "${{ github.event.head_commit.message }}"', "holds github.event"),
    "a value in a command": ("make book", "make ${{ matrix.target }}", "build: a value within a command"),
    "a secret": ("make book", "make book  # ${{ secrets.TOKEN }}", "holds secrets."),
    "a command that may write": ("- id: publish", "- run: make\n      - id: publish", "publish: runs a command"),
}


@pytest.mark.parametrize("old, new, wanted", BROKEN.values(), ids=BROKEN)
def test_what_is_broken_is_found(old: str, new: str, wanted: str) -> None:
    assert old in FILES["pages.yml"]
    found = faults("pages.yml", FILES["pages.yml"].replace(old, new, 1))
    assert any(fault.startswith(wanted) for fault in found), found
