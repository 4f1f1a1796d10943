"""Fetch the scripts that the site carries, and write down what they are.

Run by ``make vendor``; needs Node's npm, which nothing else here does. Every file comes from one
exact version of a package; its hash goes into ``vendor/manifest.json``, which a test compares with
the files. One file is changed on the way, for the reason given beside it; the manifest then holds
the hash it came with too. To move to a newer version, change it here and run again.
"""

from __future__ import annotations

import fnmatch
import hashlib
import json
import shutil
import subprocess
import tarfile
import tempfile
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

VENDOR = Path(__file__).parent / "vendor"
FONTS = "es5/output/chtml/fonts/woff-v2/"
TEX = "es5/input/tex/extensions/"

# What a page may ask for and nothing else. `files` says where each goes: a folder if it ends with "/".
NPM_PACKAGES: list[dict[str, Any]] = [
    {
        "name": "mathjax",
        "version": "3.2.2",
        "licence": "Apache-2.0",
        "files": {
            "LICENSE": "licences/mathjax.txt",
            "es5/tex-chtml.js": "mathjax/tex-chtml.js",
            FONTS + "*.woff": "mathjax/output/chtml/fonts/woff-v2/",
            # Loaded by MathJax at the first \boldsymbol, \cancel or \color.
            TEX + "boldsymbol.js": "mathjax/input/tex/extensions/boldsymbol.js",
            TEX + "cancel.js": "mathjax/input/tex/extensions/cancel.js",
            TEX + "color.js": "mathjax/input/tex/extensions/color.js",
        },
    },
    {
        # Its licence is in the first lines of the file and, in full, in licences/requirejs.txt.
        "name": "requirejs",
        "version": "2.3.8",
        "licence": "MIT",
        "files": {"require.js": "require.js"},
    },
    {
        "name": "@jupyter-widgets/html-manager",
        "version": "1.0.15",
        "licence": "BSD-3-Clause",
        "files": {
            "dist/embed-amd.js": "embed-amd.js",
            "dist/embed.js.LICENSE.txt": "licences/embed-amd-parts.txt",
            "dist/*.woff2": "widget-fonts/",
        },
        # What is replaced in a file, by what: each text stands there once. The schema checker makes code out of text,
        # which only 'unsafe-eval' would allow (see policy.py); the states that it checks are this book's own.
        "changes": {
            "embed-amd.js": [
                ("gt=new(ht());gt.compile(At),gt.compile(pt);const mt=", "gt=0;const mt="),
                (
                    "k=new(w()),E=k.compile(y),$=k.compile(v);",
                    'k=0,E=e=>2===e.version_major&&"object"==typeof e.state,'
                    '$=e=>2===e.version_major&&"string"==typeof e.model_id;',
                ),
            ]
        },
    },
    {
        # The same project's licence text, which the package above lacks.
        "name": "@jupyter-widgets/schema",
        "version": "0.5.6",
        "licence": "BSD-3-Clause",
        "files": {"LICENSE": "licences/jupyter-widgets.txt"},
    },
    {
        # The licence of the three fonts under widget-fonts/, which html-manager took from here.
        "name": "@fortawesome/fontawesome-free",
        "version": "5.15.4",
        "licence": "OFL-1.1 (fonts)",
        "files": {"LICENSE.txt": "licences/font-awesome.txt"},
    },
    {
        # When a card comes back on the practice page; one ES module that imports nothing.
        "name": "ts-fsrs",
        "version": "5.4.2",
        "licence": "MIT",
        "files": {"LICENSE": "licences/ts-fsrs.txt", "dist/index.mjs": "ts-fsrs.js"},
    },
]
KEPT_BY_HAND = ["licences/requirejs.txt"]


def main() -> None:
    """Replace everything under vendor/ but what is kept by hand, and write the manifest."""
    if shutil.which("npm") is None:
        raise SystemExit("make vendor needs npm, which comes with Node.js: install it and run again.")
    kept = {name: (VENDOR / name).read_bytes() for name in KEPT_BY_HAND}
    with tempfile.TemporaryDirectory() as folder:
        fetched = [(package, _npm_files(package, Path(folder))) for package in NPM_PACKAGES]
    fetched.append(_anywidget())
    shutil.rmtree(VENDOR)
    for name, content in kept.items():
        _write(name, content)
    manifest = [_store(package, files) for package, files in fetched]
    by_hand = {name: _sha256(content) for name, content in kept.items()}
    text = json.dumps({"packages": manifest, "kept_by_hand": by_hand}, indent=1, sort_keys=True) + "\n"
    (VENDOR / "manifest.json").write_text(text, encoding="utf-8")
    size = sum(path.stat().st_size for path in VENDOR.rglob("*") if path.is_file())
    print(f"{len(manifest)} packages, {size / 1e6:.1f} MB in {VENDOR}")


def _npm_files(package: dict[str, Any], folder: Path) -> dict[str, bytes]:
    """{path under vendor/: content} for the files wanted of one npm package."""
    name = f"{package['name']}@{package['version']}"
    command = ["npm", "pack", "--silent", "--pack-destination", str(folder), name]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, bytes] = {}
    with tarfile.open(folder / done.stdout.split()[-1]) as archive:
        members = {member.name.partition("/")[2]: member for member in archive if member.isfile()}
        for pattern, target in package["files"].items():
            names = fnmatch.filter(members, pattern)
            if not names:
                raise SystemExit(f"{name} has no file {pattern}")
            for file in names:
                where = target + Path(file).name if target.endswith("/") else target
                reader = archive.extractfile(members[file])
                assert reader is not None
                found[where] = reader.read()
    return found


def _anywidget() -> tuple[dict[str, Any], dict[str, bytes]]:
    """The script and licence of anywidget, from the installed pip package."""
    package = distribution("anywidget")
    wanted = {"anywidget/nbextension/index.js": "anywidget.js", "licenses/LICENSE": "licences/anywidget.txt"}
    found = {}
    for file in package.files or []:
        for ending, target in wanted.items():
            if str(file).endswith(ending):
                found[target] = Path(str(file.locate())).read_bytes()
    if set(found) != set(wanted.values()):
        raise SystemExit(f"anywidget {package.version} lacks one of {', '.join(wanted)}")
    return {"name": "anywidget (PyPI)", "version": package.version, "licence": "MIT"}, found


def _store(package: dict[str, Any], files: dict[str, bytes]) -> dict[str, Any]:
    """Write one package's files, changed where it says so, and return its entry in the manifest."""
    entry = {key: package[key] for key in ("name", "version", "licence")}
    for name, changes in package.get("changes", {}).items():
        entry.setdefault("sha256_before_our_changes", {})[name] = _sha256(files[name])
        files[name] = _changed(name, files[name], changes)
    for name, content in files.items():
        _write(name, content)
    return {**entry, "sha256": {name: _sha256(content) for name, content in files.items()}}


def _changed(name: str, content: bytes, changes: list[tuple[str, str]]) -> bytes:
    """The file with each text replaced; ``SystemExit`` unless each stands in it once."""
    text = content.decode()
    for old, new in changes:
        if text.count(old) != 1:
            raise SystemExit(f"{name} holds {old!r} {text.count(old)} times, not once: look at the new version.")
        text = text.replace(old, new)
    return text.encode()


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _write(name: str, content: bytes) -> None:
    path = VENDOR / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


if __name__ == "__main__":
    main()
