"""The table is complete: the tests that it names exist, and what is marked as a fault is in it."""

import re
import subprocess
import sys
from pathlib import Path

import fault_table
import pytest
from fault_table import FAULTS, Fault, shows, table

ROOT = Path(__file__).resolve().parents[2]
ASKED = {
    "kill-training", "kill-checkpoint", "kill-record", "kill-download", "kill-notebook", "disk-checkpoint",
    "disk-record", "disk-picture", "disk-download", "disk-bank", "disk-deck", "disk-notebook", "read-only",
    "bad-checkpoint", "bad-record", "bad-card", "bad-claims", "bad-data", "same-file", "nan", "memory", "kill-ray",
}  # fmt: skip


@pytest.fixture(scope="module")
def marked():
    """Every test with the mark, as pytest names it."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", "fault", "-p", "no:cacheprovider"]
    files = sorted({test.partition("::")[0] for fault in FAULTS for test in fault.tests})
    others = {str(p.relative_to(ROOT)) for p in (ROOT / "tests").rglob("test_*.py") if "mark.fault" in p.read_text()}
    others.discard("tests/faults/test_fault_table.py")
    assert others <= set(files), f"not in the table: {others - set(files)}"
    done = subprocess.run([*command, *files], cwd=ROOT, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    return [line for line in done.stdout.splitlines() if "::" in line]


def test_every_fault_that_was_asked_for_has_a_row():
    ids = [fault.id for fault in FAULTS]
    assert len(ids) == len(set(ids)) and set(ids) >= ASKED
    assert all(fault.tests and fault.broken and fault.holds for fault in FAULTS)


def test_each_row_names_tests_that_exist_and_are_marked(marked):
    for fault in FAULTS:
        for test in fault.tests:
            assert any(shows(Fault("", "", "", (test,)), node) for node in marked), f"{fault.id}: {test}"


def test_each_marked_test_is_in_the_table(marked):
    instruments = {"tests/faults/test_full_disk.py::test_the_tests_really_limit_files"}
    lone = [node for node in marked if not any(shows(fault, node) for fault in FAULTS)]
    assert set(lone) == instruments


def test_a_red_test_or_a_missing_one_is_told():
    green = {test: ("passed", 2) for fault in FAULTS for test in fault.tests}
    lines, right = table(green)
    assert right and lines[-1].endswith("nothing lost")
    assert f"{len(FAULTS)} of {len(FAULTS)} faults tried, {2 * len(green):,} inputs" in lines[-1]
    first = FAULTS[0].tests[0]
    lines, right = table({**green, first: ("failed", 1)})
    assert not right and lines[1].startswith("RED") and "nothing lost" not in lines[-1]
    lines, right = table({test: outcome for test, outcome in green.items() if test != first})
    assert not right and lines[1].startswith("none") and f"{len(FAULTS) - 1} of" in lines[-1]


def test_make_faults_runs_them():
    makefile = (ROOT / "Makefile").read_text()
    assert re.search(r"^faults: .*## .*\n\t.*-m pytest .*-m fault$", makefile, flags=re.MULTILINE)
    assert fault_table.__doc__ and "make faults" in fault_table.__doc__
