"""Run the notebooks as Colab would: `python tests/colab.py [--widgets VERSION ...] [NAME ...]`.

A fresh environment holds only what Colab has: torch, numpy, matplotlib, tqdm, pyyaml, ipython and ipywidgets.
Each notebook's own first cell installs minilab there, from a wheel of this checkout in place of its address.
Said at the end: how long each took, and whether a version that was there before has changed.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import nbformat
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

ROOT = Path(__file__).resolve().parents[1]
HERE = ROOT / "_build" / "colab"
PYTHON = HERE / "bin" / "python"
WIDGETS = ("7.7.1", "8.1.7")
THERE = ("numpy", "matplotlib", "tqdm", "pyyaml", "ipython", "ipykernel")
INSTALL = re.compile(r"git\+https://\S+")


def pip(*arguments: str) -> str:
    """What pip of Colab's environment prints."""
    command = [PYTHON, "-m", "pip", "--disable-pip-version-check", *arguments]
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout


def versions() -> dict[str, str]:
    """Name to version of all that is installed, minilab and what only it needs included."""
    return dict(line.split("==") for line in pip("freeze").splitlines() if "==" in line)


def prepare() -> Path:
    """Make the environment where it is missing, and a wheel of minilab; returns the wheel."""
    torch = next(line for line in (ROOT / "requirements.txt").read_text().splitlines() if line.startswith("torch=="))
    if not (HERE / "ready").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", HERE], check=True)
        pip("install", "--quiet", torch.split("#")[0].strip(), *THERE)
        (HERE / "ready").touch()
    for old in HERE.glob("minilab-*.whl"):
        old.unlink()
    pip("wheel", "--quiet", "--no-deps", "--wheel-dir", str(HERE), str(ROOT))
    return next(HERE.glob("minilab-*.whl"))


class ColabKernel(AsyncKernelManager):
    """A kernel of Colab's environment, which no kernel specification knows."""

    def format_kernel_cmd(self, extra_arguments: list[str] | None = None) -> list[str]:
        """The command that starts it."""
        return [str(PYTHON), "-m", "ipykernel_launcher", "-f", self.connection_file]


def run(notebook: Path, wheel: Path) -> float:
    """Execute a notebook from its first cell, in an empty folder; returns the seconds without the installation."""
    pip("uninstall", "--quiet", "--yes", "minilab")
    cells = nbformat.read(notebook, as_version=4)
    first = next(cell for cell in cells.cells if cell.cell_type == "code")
    first.source, found = INSTALL.subn(str(wheel), first.source)
    assert found == 1, f"{notebook} has no install line"
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(cells, timeout=600, km=ColabKernel(), resources={"metadata": {"path": folder}})
        clock: list[float] = []
        client.on_cell_executed = lambda **_: clock.append(time.monotonic())
        client.execute(env={**os.environ, "PYTHONNOUSERSITE": "1"})
    return clock[-1] - clock[0]


def main() -> int:
    """Run what is asked for; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="such as solid/queue (default: all)")
    parser.add_argument("--widgets", nargs="+", default=WIDGETS, help="versions of ipywidgets (default: %(default)s)")
    options = parser.parse_args()
    every = {f"{path.parent.name}/{path.stem}": path for path in sorted((ROOT / "notebooks").glob("*/*.ipynb"))}
    unknown = set(options.names) - set(every)
    if unknown or not every:
        parser.error(f"no such notebook: {', '.join(sorted(unknown))}; there are {', '.join(every)}")
    chosen = {name: path for name, path in every.items() if name in (options.names or every)}
    wheel, failed = prepare(), 0
    for version in options.widgets:
        pip("uninstall", "--quiet", "--yes", "minilab", "anywidget", "jupyterlab-widgets", "widgetsnbextension")
        pip("install", "--quiet", f"ipywidgets=={version}")
        before = versions()
        for name, notebook in chosen.items():
            try:
                print(f"ipywidgets {version}, {name}: {run(notebook, wheel):.0f} s", flush=True)
            except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
                failed += 1
                print(f"ipywidgets {version}, {name} FAILED\n{error}", flush=True)
            after = versions()
            changed = {name: after.get(name) for name in before if after.get(name) != before[name]}
            if changed:
                failed += 1
                print(f"ipywidgets {version}, {name} CHANGED {changed}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
