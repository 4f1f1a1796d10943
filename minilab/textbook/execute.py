"""Chapter sources into executed notebooks, one way: ``python -m minilab.textbook.execute``.

``book/chapters/<tier>/<name>.md`` (a MyST text notebook) becomes
``notebooks/<tier>/<name>.ipynb`` with its outputs and the state of its widgets. The same
source, code and machine give the same bytes. ``--check`` names what is stale and writes nothing.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from pathlib import Path
from typing import Any

import jupytext
import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

from minilab.files import written_aside
from minilab.textbook.sources import Chapter, find_chapters, fingerprint, orphans, stored_fingerprint

CELL_TIMEOUT = 600  # seconds
WIDGET_STATE = "application/vnd.jupyter.widget-state+json"
ANSI = re.compile(r"\x1b\[[0-9;]*m")
HEX_ID = re.compile(r"(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])")
ADDRESS = re.compile(r" at 0x[0-9a-f]+>")
# Fixed, so that a notebook does not change with the machine that executes it; Colab reads the last two.
METADATA: dict[str, Any] = {
    "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
    "language_info": {
        "name": "python",
        "file_extension": ".py",
        "mimetype": "text/x-python",
        "nbconvert_exporter": "python",
        "pygments_lexer": "ipython3",
    },
    "accelerator": "GPU",
    "colab": {"gpuType": "T4", "provenance": [], "toc_visible": True},
}

# The site folds the code of a cell by its tag; JupyterLab and Colab each by its own mark.
FOLDED = {"jupyter": {"source_hidden": True}, "cellView": "form"}


class ChapterError(Exception):
    """A chapter could not be executed; the text says where and why."""


def read_source(chapter: Chapter) -> NotebookNode:
    """The chapter's source as a notebook without outputs, with stable cell ids and folded cells marked.

    Raises ``ChapterError`` if the file is no text in UTF-8, ``OSError`` if it cannot be read.
    """
    try:
        text = chapter.source.read_text(encoding="utf-8")
    except UnicodeDecodeError as fault:
        raise ChapterError(f"{chapter.source}: {fault}; allowed: UTF-8") from fault
    notebook = jupytext.reads(text, fmt="md:myst")
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"c{number:03d}"
        if "hide-input" in cell.metadata.get("tags", []):
            cell.metadata.update(FOLDED)
    return notebook


def wanted_fingerprint(chapter: Chapter, notebook: NotebookNode) -> dict[str, str]:
    """The hashes that the notebook made now would carry; ``ChapterError`` if a cell is not Python."""
    try:
        return fingerprint(chapter, [cell.source for cell in notebook.cells if cell.cell_type == "code"])
    except (SyntaxError, ValueError) as fault:
        raise ChapterError(f"{chapter.source}: {fault}") from fault


def is_stale(chapter: Chapter) -> bool:
    """Whether the notebook is missing or made from another source, other code or other data."""
    return stored_fingerprint(chapter.notebook) != wanted_fingerprint(chapter, read_source(chapter))


def execute(chapter: Chapter, cell_timeout: int = CELL_TIMEOUT) -> None:
    """Execute one chapter and write its notebook; on a fault raise ``ChapterError``, write nothing.

    ``OSError`` naming the notebook if it cannot be written.
    """
    notebook = read_source(chapter)
    hashes = wanted_fingerprint(chapter, notebook)
    chapter.notebook.parent.mkdir(parents=True, exist_ok=True)
    begun: list[NotebookNode] = []
    client = NotebookClient(
        notebook,
        timeout=cell_timeout,
        kernel_name="python3",
        store_widget_state=True,
        record_timing=False,
        coalesce_streams=True,
        extra_arguments=["--IPKernelApp.log_level=ERROR"],
        on_cell_start=lambda cell, cell_index: begun.append(cell),
        resources={"metadata": {"path": str(chapter.notebook.parent)}},  # as in Jupyter and Colab
    )
    try:
        client.execute(env={**os.environ, "PYTHONHASHSEED": "0"})
    except CellTimeoutError as fault:
        raise ChapterError(_told(chapter, begun[-1], f"ran for more than {cell_timeout} s")) from fault
    except DeadKernelError as fault:
        raise ChapterError(_told(chapter, begun[-1], "ended the kernel: out of memory?")) from fault
    except CellExecutionError as fault:
        raise ChapterError(_told(chapter, begun[-1], "failed", fault.traceback)) from fault
    text = normalised(notebook, hashes)
    with written_aside(chapter.notebook) as file:
        file.write(text.encode())


def _told(chapter: Chapter, cell: NotebookNode, what: str, traceback: str = "") -> str:
    """A fault in words: the chapter, what happened, the cell's source, and the traceback."""
    if not traceback:
        return f"{chapter.source}: this cell {what}:\n\n{cell.source}"
    return f"{chapter.source}: a cell {what}.\n{ANSI.sub('', traceback).rstrip()}"


def normalised(notebook: NotebookNode, hashes: dict[str, str]) -> str:
    """An executed notebook as text, without what differs between two runs on one machine."""
    widgets = notebook.metadata.get("widgets")
    notebook.metadata = nbformat.from_dict({**METADATA, "minilab": hashes})
    if widgets:
        notebook.metadata["widgets"] = widgets
    for cell in notebook.cells:
        if cell.cell_type == "code":  # the error stream holds progress bars and timings
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    text = nbformat.writes(notebook)
    state = (widgets or {}).get(WIDGET_STATE, {}).get("state", {})  # in the order of creation
    ids = {name: f"w{number:031d}" for number, name in enumerate(state)}
    text = HEX_ID.sub(lambda match: ids.get(match.group(), match.group()), text)
    renamed = nbformat.reads(ADDRESS.sub(" at 0x0>", text), as_version=4)
    nbformat.validate(renamed)
    return nbformat.writes(renamed) + "\n"  # written again: the keys are sorted by their new names


def main(arguments: list[str] | None = None) -> int:
    """The command; returns the exit status: 1 if a chapter is at fault, 2 if a file cannot be read or written."""
    options = _parser().parse_args(arguments)
    root = options.root.resolve()
    try:
        chapters = find_chapters(root, options.names)
        stale = [chapter for chapter in chapters if options.force or is_stale(chapter)]
        lone = [] if options.names else orphans(root)
        if options.check:
            return _report(stale, lone)
        for chapter in stale:
            _execute_aloud(chapter, options.timeout)
    except (ChapterError, ValueError) as fault:
        print(fault, file=sys.stderr)
        return 1
    except OSError as fault:
        print(fault, file=sys.stderr)
        return 2
    if not stale:
        print(f"All {len(chapters)} notebooks are up to date.")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m minilab.textbook.execute", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="negatives or basics/negatives; none: all")
    parser.add_argument("--check", action="store_true", help="only name what is stale; exit 1 if anything is")
    parser.add_argument("--force", action="store_true", help="execute what is up to date as well")
    parser.add_argument("--timeout", type=int, default=CELL_TIMEOUT, help="seconds a cell may run")
    parser.add_argument("--root", type=Path, default=Path(), help="the repository (default: this folder)")
    return parser


def _report(stale: list[Chapter], lone: list[Path]) -> int:
    """Name every notebook that does not match its source; 1 if there is one."""
    for chapter in stale:
        print(f"stale: {chapter.notebook} does not match {chapter.source} or what it uses")
    for notebook in lone:
        print(f"no source: {notebook}")
    if stale:
        print("Run `make notebooks`.")
    return 1 if stale or lone else 0


def _execute_aloud(chapter: Chapter, cell_timeout: int) -> None:
    print(f"{chapter.name} … ", end="", flush=True)
    began = time.perf_counter()
    execute(chapter, cell_timeout)
    print(f"{time.perf_counter() - began:.0f} s", flush=True)


if __name__ == "__main__":
    sys.exit(main())
