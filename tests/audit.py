"""Audit what the book is built with: `python tests/audit.py [--licences]`.

It lists what is installed by licence, and the site's scripts, and ends badly on one that tests/licences.yml
neither allows nor explains. Then pip-audit asks PyPI's vulnerability service, or else OSV's, about every
package that requirements.txt and tests/audit-requirements.txt pin; --licences leaves that out.

Exit code 0: nothing was found. 1: something was. 2: nothing was found, but not every package could be asked
about, so that the answer is unknown and not "clean".
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from licences import ROOT, findings, grouped, installed, reasons, rules, vendored

HERE = ROOT / "_build" / "audit"
TOOL = HERE / "bin" / "pip-audit"
PINS = [ROOT / "requirements.txt", ROOT / "tests" / "audit-requirements.txt"]
SERVICES = ("pypi", "osv")
CLEAN, FOUND, UNKNOWN = 0, 1, 2


def check_licences() -> int:
    """Print the listing and what is wrong; returns the exit code."""
    known = rules()
    faults = []
    for title, packages in (
        ("Installed", installed(known["spelled"])),
        ("Carried by the site", vendored()),
    ):
        print(f"{title}: {len(packages)} packages")
        for licence, names in grouped(packages).items():
            print(f"  {licence}: {', '.join(names)}")
        for name, why in reasons(packages, known).items():
            print(f"  * {name}: {why}")
        faults += findings(packages, known)
    print("\n".join(f"LICENCE: {fault}" for fault in faults) or "Licences: each is allowed or explained.")
    return FOUND if faults else CLEAN


def prepare() -> None:
    """Install pip-audit into an environment of its own, unless the pinned one is there."""
    stamp = HERE / "pins.txt"
    pins = PINS[1].read_text(encoding="utf-8")
    if TOOL.exists() and stamp.exists() and stamp.read_text(encoding="utf-8") == pins:
        return
    subprocess.run([sys.executable, "-m", "venv", "--clear", HERE], check=True)
    command = [HERE / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*command, "--no-deps", "-r", PINS[1]], check=True)
    stamp.write_text(pins, encoding="utf-8")


def ask(service: str, tool: str | Path = TOOL) -> list[dict[str, Any]] | None:
    """What a service says of each pinned package, as pip-audit's JSON has it; None if it cannot be reached."""
    files = [text for path in PINS for text in ("-r", str(path))]
    options = ["--no-deps", "--disable-pip", "--format", "json", "--progress-spinner", "off"]
    done = subprocess.run([tool, *files, *options, "-s", service], capture_output=True, text=True, check=False)
    try:
        return json.loads(done.stdout)["dependencies"]
    except (json.JSONDecodeError, KeyError):
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        print(f"pip-audit had no answer from {service}: {lines[-1][:300]}")
        return None


def judge(service: str, answer: list[dict[str, Any]] | None, accepted: list[dict[str, str]]) -> int:
    """Print what an answer means; returns the exit code. No package, or one not asked about, is not clean.

    pip-audit itself ends with 0 and "No known vulnerabilities found" where the service knew no package at all.
    """
    packages = answer or []
    still_open = [line for line in _advisories(packages, accepted) if ": OPEN, " in line]
    skipped = [package["name"] for package in packages if "skip_reason" in package]
    print(f"{service}: {len(packages) - len(skipped)} packages looked up, {len(still_open)} open advisories.")
    if skipped:
        more = " and others" if len(skipped) > 8 else ""
        print(f"UNKNOWN: {service} has nothing on {len(skipped)} packages: {', '.join(skipped[:8])}{more}.")
    if still_open:
        return FOUND
    return UNKNOWN if skipped or not packages else CLEAN


def _advisories(packages: list[dict[str, Any]], accepted: list[dict[str, str]]) -> list[str]:
    """A printed line for each advisory: why it is accepted, or that it is open."""
    fine = {entry["id"]: entry["why"] for entry in accepted}
    lines = []
    for package in packages:
        for fault in package.get("vulns", []):
            names = [fault["id"], *fault.get("aliases", [])]
            why = next((f"accepted: {fine[name]}" for name in names if name in fine), "")
            fixed = ", ".join(fault.get("fix_versions", [])) or "no version yet"
            text = why or f"OPEN, fixed in {fixed}: move the pin, or give the reason why it is fine here"
            lines.append(f"  {package['name']} {package['version']}, {' = '.join(names)}: {text}")
    for line in lines:
        print(line)
    return lines


def check_advisories() -> int:
    """Ask one service after the other until one has an answer for all, or names a fault."""
    prepare()
    accepted = rules()["accepted_advisories"]
    codes = []
    for service in SERVICES:
        codes.append(judge(service, ask(service), accepted))
        if codes[-1] == CLEAN:
            break
    if CLEAN not in codes and FOUND not in codes:
        print("This is no clean audit: run it again where pypi.org or api.osv.dev can be reached.")
    return FOUND if FOUND in codes else codes[-1]


def main() -> int:
    """Both parts; the worse answer counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--licences", action="store_true", help="only the licences: needs no network")
    options = parser.parse_args()
    codes = [check_licences()]
    if not options.licences:
        codes.append(check_advisories())
    return FOUND if FOUND in codes else max(codes)


if __name__ == "__main__":
    sys.exit(main())
