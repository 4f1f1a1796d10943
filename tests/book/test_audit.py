"""`make audit` says clean only when every package was asked about and nothing was found."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import audit
import pytest

KNOWN = {"name": "a", "version": "1", "vulns": []}
FAULT = {"id": "PYSEC-1", "aliases": ["CVE-2"], "fix_versions": ["2"], "description": ""}
FAULTY = {"name": "b", "version": "1", "vulns": [FAULT]}
SKIPPED = {"name": "c", "skip_reason": "not found"}


@pytest.mark.parametrize(
    "answer, accepted, code",
    [
        ([KNOWN], [], audit.CLEAN),
        ([KNOWN, FAULTY], [], audit.FOUND),
        ([FAULTY, SKIPPED], [], audit.FOUND),
        ([FAULTY], [{"id": "CVE-2", "package": "b", "why": "Not reached here."}], audit.CLEAN),
        ([FAULTY], [{"id": "CVE-3", "package": "b", "why": "Another one."}], audit.FOUND),
        ([KNOWN, SKIPPED], [], audit.UNKNOWN),
        ([], [], audit.UNKNOWN),
        (None, [], audit.UNKNOWN),
    ],
)
def test_what_an_answer_means(answer: list[dict[str, Any]] | None, accepted: list[dict[str, str]], code: int) -> None:
    assert audit.judge("pypi", answer, accepted) == code


def test_the_advisory_and_its_cure_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    audit.judge("pypi", [FAULTY, SKIPPED], [])
    printed = capsys.readouterr().out
    assert "b 1, PYSEC-1 = CVE-2: OPEN, fixed in 2" in printed
    assert "has nothing on 1 packages: c" in printed


def program(folder: Path, body: str) -> Path:
    """An executable in the place of pip-audit."""
    path = folder / "pip-audit"
    path.write_text(f"#!{sys.executable}\nimport sys\n{body}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def test_a_service_that_cannot_be_reached_is_no_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tool = program(tmp_path, "sys.exit('ConnectionError: no such host')")
    assert audit.ask("osv", tool) is None
    assert "no answer from osv: ConnectionError: no such host" in capsys.readouterr().out


def test_every_pin_is_asked_about(tmp_path: Path) -> None:
    tool = program(tmp_path, "import json; print(json.dumps({'dependencies': sys.argv[1:]}))")
    asked = audit.ask("pypi", tool)
    assert asked is not None
    for file in audit.PINS:
        assert file.is_file() and str(file) in asked  # type: ignore[comparison-overlap]


@pytest.mark.parametrize(
    "answers, code",
    [
        ({"pypi": [KNOWN]}, audit.CLEAN),
        ({"pypi": None, "osv": [KNOWN]}, audit.CLEAN),
        ({"pypi": [SKIPPED], "osv": None}, audit.UNKNOWN),
        ({"pypi": [SKIPPED, FAULTY], "osv": [KNOWN]}, audit.FOUND),
        ({"pypi": None, "osv": [FAULTY]}, audit.FOUND),
    ],
)
def test_the_second_service_is_asked_where_the_first_does_not_know(
    monkeypatch: pytest.MonkeyPatch, answers: dict[str, Any], code: int
) -> None:
    monkeypatch.setattr(audit, "prepare", lambda: None)
    monkeypatch.setattr(audit, "ask", lambda service: answers[service])
    assert audit.check_advisories() == code


def test_the_same_package_has_the_same_pin_in_both_files() -> None:
    lines = [
        {line.split("#")[0].strip() for line in file.read_text(encoding="utf-8").splitlines() if "==" in line}
        for file in audit.PINS
    ]
    names = [{line.split("==")[0].lower() for line in pins} for pins in lines]
    for line in lines[1]:
        if line.split("==")[0].lower() in names[0] & names[1] and "tomli=" not in line:
            assert line in lines[0], line
