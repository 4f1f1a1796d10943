"""Executing a chapter: the same bytes twice, stale ones known, a fault told whole and nothing written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from minilab.textbook.execute import ChapterError, execute, is_stale, main
from minilab.textbook.sources import Chapter

SOURCE = r"""---
jupytext:
  text_representation:
    extension: .md
    format_name: myst
---

# A chapter

```{code-cell} ipython3
:tags: [hide-input]
import sys, time
import ipywidgets as widgets
print("one")
print("a progress bar", time.time(), file=sys.stderr)
print(object(), hash("text"), {"b", "a", "c"})
slider, box = widgets.IntSlider(), widgets.Stack([widgets.HTML("x"), widgets.HTML("y")], selected_index=0)
widgets.jslink((slider, "value"), (box, "selected_index"))
widgets.VBox([slider, box])
```
"""


def chapter_of(root: Path, code: str) -> Chapter:
    """A chapter of one cell in an empty repository."""
    chapter = Chapter(root, "basics/first")
    chapter.source.parent.mkdir(parents=True, exist_ok=True)
    chapter.source.write_text(f"# One\n\n```{{code-cell}} ipython3\n{code}\n```\n")
    return chapter


@pytest.mark.slow
def test_two_runs_give_the_same_bytes_and_hold_what_the_page_needs(tmp_path: Path) -> None:
    chapter = Chapter(tmp_path, "basics/first")
    chapter.source.parent.mkdir(parents=True)
    chapter.source.write_text(SOURCE)
    assert main(["--root", str(tmp_path), "--check"]) == 1
    assert not chapter.notebook.exists(), "--check must write nothing"

    execute(chapter)
    first = chapter.notebook.read_bytes()
    execute(chapter)
    assert chapter.notebook.read_bytes() == first
    assert not is_stale(chapter)
    assert main(["--root", str(tmp_path), "--check"]) == 0

    notebook = json.loads(first)
    outputs = notebook["cells"][1]["outputs"]
    assert [output.get("name") for output in outputs] == ["stdout", None]
    assert "at 0x0>" in "".join(outputs[0]["text"])
    state = notebook["metadata"]["widgets"]["application/vnd.jupyter.widget-state+json"]["state"]
    assert outputs[1]["data"]["application/vnd.jupyter.widget-view+json"]["model_id"] in state
    assert all(name.startswith("w0000") for name in state)
    folded = {"tags": ["hide-input"], "jupyter": {"source_hidden": True}, "cellView": "form"}
    assert notebook["cells"][1]["metadata"] == folded
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    assert "version" not in notebook["metadata"]["language_info"]

    chapter.source.write_text(SOURCE + "\nMore.\n")
    assert is_stale(chapter)


def test_a_failing_cell_is_told_whole_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chapter = chapter_of(tmp_path, "total = 1\ntotal / 0")
    assert main(["--root", str(tmp_path)]) == 1
    told = capsys.readouterr().err
    assert str(chapter.source) in told
    assert "total / 0" in told
    assert "ZeroDivisionError" in told
    assert "\x1b[" not in told
    assert list(chapter.notebook.parent.iterdir()) == []


@pytest.mark.fault
def test_a_failure_keeps_the_notebook_that_was_there(tmp_path: Path) -> None:
    chapter = chapter_of(tmp_path, "raise SystemError('no')")
    chapter.notebook.parent.mkdir(parents=True)
    chapter.notebook.write_text("old")
    with pytest.raises(ChapterError, match="SystemError"):
        execute(chapter)
    assert chapter.notebook.read_text() == "old"


@pytest.mark.fault
def test_a_cell_that_takes_too_long_is_named(tmp_path: Path) -> None:
    chapter = chapter_of(tmp_path, "import time\ntime.sleep(60)")
    with pytest.raises(ChapterError, match=r"ran for more than 1 s:\n\nimport time\ntime\.sleep\(60\)"):
        execute(chapter, cell_timeout=1)
    assert not chapter.notebook.exists()


@pytest.mark.fault
def test_a_kernel_that_dies_is_named(tmp_path: Path) -> None:
    chapter = chapter_of(tmp_path, "import os\nos._exit(1)")
    with pytest.raises(ChapterError, match=r"ended the kernel.*\n\nimport os"):
        execute(chapter)


def test_a_cell_that_is_not_python_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chapter_of(tmp_path, "def (")
    assert main(["--root", str(tmp_path)]) == 1
    assert "first.md" in capsys.readouterr().err


def test_an_unknown_name_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chapter_of(tmp_path, "1")
    assert main(["--root", str(tmp_path), "second"]) == 1
    assert "'second'" in capsys.readouterr().err


def test_check_names_a_notebook_without_a_source(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "notebooks/basics").mkdir(parents=True)
    (tmp_path / "notebooks/basics/gone.ipynb").write_text("{}")
    assert main(["--root", str(tmp_path), "--check"]) == 1
    assert "gone.ipynb" in capsys.readouterr().out


def test_a_broken_notebook_counts_as_stale(tmp_path: Path) -> None:
    chapter = chapter_of(tmp_path, "1")
    chapter.notebook.parent.mkdir(parents=True)
    for text in ("", "[]", '{"metadata": {}}', '{"metadata": {"minilab": 3}}'):
        chapter.notebook.write_text(text)
        assert is_stale(chapter)
