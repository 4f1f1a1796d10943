"""Every chapter has the shape of a chapter, reads in Colab and JupyterLab, and matches its notebook."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jupytext
import pytest
import yaml

from minilab.textbook.cards import load_bank
from minilab.textbook.execute import is_stale
from minilab.textbook.sources import Chapter, find_chapters, orphans

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = find_chapters(ROOT)  # and the executed pages to look up, which have no quiz and no clock
PARTS = [
    "The question",
    "The answer",
    "The mechanism",
    "The experiment",
    "The trap",
    "Quiz",
    "Exercise",
    "Sources",
]
SECONDS = {"basics": {20}, "solid": {50}, "deep": {50, 90}}
MOST_LINES_SHOWN = 12  # of a code cell that is not folded

# What only the site would understand: directives, roles, targets, colon fences, definition lists.
SITE_ONLY = [
    re.compile(r"^\s*(```|~~~|:::)\s*\{", re.MULTILINE),
    re.compile(r"^:::", re.MULTILINE),
    re.compile(r"\{[a-z:-]+\}`"),
    re.compile(r"^\([\w-]+\)=", re.MULTILINE),
    re.compile(r"^: {2,}", re.MULTILINE),
    re.compile(r"\\\(|\\\["),  # $…$ and $$…$$ are what all three read
]
TAGS = re.compile(r"</?([a-z][a-z0-9]*)\b([^>]*)>")
PLAIN_TAGS = {"details", "summary", "span", "em", "strong", "sub", "sup", "br", "code"}

every_page = pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.name)
every_chapter = pytest.mark.parametrize(
    "chapter",
    [chapter for chapter in CHAPTERS if not chapter.name.startswith("lookup/")],
    ids=lambda chapter: chapter.name,
)


def cells(chapter: Chapter, kind: str) -> list[Any]:
    notebook = jupytext.reads(chapter.source.read_text(encoding="utf-8"), fmt="md:myst")
    return [cell for cell in notebook.cells if cell.cell_type == kind]


def prose(chapter: Chapter) -> str:
    return "\n\n".join(cell.source for cell in cells(chapter, "markdown"))


def parts(chapter: Chapter) -> dict[str, str]:
    """{heading: all of the source under it, code too}; what stands before the first under ''."""
    pieces = re.split(r"^## +(.+)$", chapter.source.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {"": pieces[0], **dict(zip(pieces[1::2], pieces[2::2], strict=True))}


def part(chapter: Chapter, name: str) -> str:
    return next(text for heading, text in parts(chapter).items() if heading.startswith(name))


def repository() -> dict[str, str]:
    config: dict[str, dict[str, str]] = yaml.safe_load((ROOT / "_config.yml").read_text())
    return config["repository"]


def test_there_are_chapters() -> None:
    assert CHAPTERS


@every_page
def test_notebook_matches_its_source(chapter: Chapter) -> None:
    assert not is_stale(chapter), "run `make notebooks`"


def test_every_notebook_has_a_source() -> None:
    assert orphans(ROOT) == []


@every_chapter
def test_eight_parts_in_order(chapter: Chapter) -> None:
    assert len(re.findall(r"^# ", prose(chapter), flags=re.MULTILINE)) == 1
    headings = [heading for heading in parts(chapter) if heading]
    assert len(headings) == len(PARTS)
    for heading, wanted in zip(headings, PARTS, strict=True):
        assert heading == wanted or heading.startswith(f"{wanted}: ")
        assert len(heading) <= 44, "a long heading makes a phone's page too wide"


@every_page
def test_no_note_to_the_author_is_left(chapter: Chapter) -> None:
    assert not re.findall(r"RESULTS-|TODO|FIXME|XXX", chapter.source.read_text(encoding="utf-8"))


@every_page
def test_top_names_run_time_and_colab(chapter: Chapter) -> None:
    top = parts(chapter)[""]
    assert re.search(r"\*\*Run time:\*\*.*\d+.*two CPU cores", top)
    where = repository()
    path = where["url"].removeprefix("https://github.com/")
    link = f"https://colab.research.google.com/github/{path}/blob/{where['branch']}/notebooks/{chapter.name}.ipynb"
    assert f"[Open in Colab]({link})" in top


@every_chapter
def test_question_is_one_quoted_line(chapter: Chapter) -> None:
    lines = [line for line in part(chapter, "The question").strip().splitlines() if line]
    assert len([line for line in lines if line.startswith("> ")]) == 1
    assert lines[0].startswith("> ")


@every_chapter
def test_answer_is_folded_behind_a_clock(chapter: Chapter) -> None:
    answer = part(chapter, "The answer")
    clock = re.search(r'<span class="clock" data-seconds="(\d+)"></span>', answer)
    fold = re.search(r'<details class="answer">\n<summary>.+</summary>\n\n(.*?)\n\n</details>', answer, re.DOTALL)
    assert clock
    assert fold
    assert clock.end() < fold.start(), "the clock stands before the folded answer"
    assert int(clock.group(1)) in SECONDS[chapter.name.partition("/")[0]]
    assert len(re.findall(r"^- ", fold.group(1), flags=re.MULTILINE)) >= 2, "the rubric's points are a list"


@every_chapter
def test_mechanism_has_a_formula(chapter: Chapter) -> None:
    assert "$$" in part(chapter, "The mechanism")


@every_chapter
def test_quiz_asks_three_to_five_cards(chapter: Chapter) -> None:
    call = re.search(r"\bquiz\(([^)]*)\)", part(chapter, "Quiz"))
    assert call
    asked = re.findall(r"[\"']([^\"']+)[\"']", call.group(1))
    assert 3 <= len(asked) <= 5
    assert set(asked) <= set(load_bank())


@every_chapter
def test_exercise_has_a_check_and_a_folded_solution(chapter: Chapter) -> None:
    exercise = part(chapter, "Exercise")
    assert re.search(r'<details class="answer">\n<summary>Solution</summary>\n\n', exercise)
    assert re.search(r"^(assert |check\()", exercise, flags=re.MULTILINE)


@every_page
def test_markdown_reads_everywhere(chapter: Chapter) -> None:
    text = prose(chapter)
    for pattern in SITE_ONLY:
        found = pattern.search(text)
        assert found is None, f"{found.group()!r} is understood by the site alone"
    for tag, attributes in TAGS.findall(re.sub(r"`[^`]*`|\$[^$]*\$", "", text)):
        assert tag in PLAIN_TAGS, f"<{tag}> is not plain Markdown"
        assert "style=" not in attributes
    assert text.count("<details") == text.count("</details>")
    assert not re.search(r"</summary>\n(?!\n)", text), "a blank line must follow </summary>"
    assert not re.search(r"!\[[^\]]*\]\(https?:", text), "a picture from another site"


@every_page
def test_code_cells_are_short(chapter: Chapter) -> None:
    for cell in cells(chapter, "code"):
        if "hide-input" not in cell.metadata.get("tags", []):
            assert len(cell.source.splitlines()) <= MOST_LINES_SHOWN, cell.source


@every_page
def test_first_cell_leaves_torch_and_numpy_alone(chapter: Chapter) -> None:
    code = "\n".join(cell.source for cell in cells(chapter, "code"))
    for line in re.findall(r".*\bpip3? install\b.*", code):
        # pip leaves what satisfies a requirement alone unless told otherwise, and minilab's are lower bounds.
        assert not re.search(r"torch|numpy|upgrade|-U\b|--force|--pre|--ignore", line.partition("git+")[0]), line
        assert f"git+{repository()['url']}" in line, line


def test_minilab_asks_for_lower_bounds_only() -> None:
    """An upper bound or a pin on torch or numpy would make Colab replace its own."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    wanted = re.findall(r'"([^"]+)"', text.partition("\ndependencies = [")[2].partition("]")[0])
    assert any(name.startswith("torch>=") for name in wanted)
    assert "numpy" in wanted
    assert not [name for name in wanted if re.search(r"[<~=!]=|<", name.replace(">=", ""))]


@every_chapter
def test_the_solution_passes_the_check(chapter: Chapter, capsys: pytest.CaptureFixture[str]) -> None:
    """What the reader is asked to write fails as it stands, and the folded solution passes."""
    exercise = [cell for cell in cells(chapter, "code") if cell.source in part(chapter, "Exercise")]
    solution = re.search(r"<summary>Solution</summary>.*?```python\n(.*?)```", part(chapter, "Exercise"), re.DOTALL)
    assert solution
    space: dict[str, object] = {}
    exec("from minilab.textbook import check", space)
    for cell in exercise:
        exec(cell.source, space)
    assert "cases are right. First to look at:" in capsys.readouterr().out
    exec(solution.group(1), space)
    exec(exercise[-1].source, space)
    assert re.search(r"All \d+ cases are right", capsys.readouterr().out)


@every_page
def test_outputs_are_clean_and_pictures_described(chapter: Chapter) -> None:
    notebook = json.loads(chapter.notebook.read_text(encoding="utf-8"))
    outputs = [output for cell in notebook["cells"] for output in cell.get("outputs", [])]
    assert not [output for output in outputs if output["output_type"] == "error"]
    assert not [output for output in outputs if output.get("name") == "stderr"]
    for output in outputs:
        data = output.get("data", {})
        assert not [kind for kind in data if kind.startswith("image/")], "show() gives a picture its alt text"
        html = "".join(data.get("text/html", ""))
        for svg in re.findall(r"<svg[^>]*>", html):
            assert re.search(r'role="img"', svg)
            assert re.search(r'aria-label="[^"]{20,}"', svg)


@every_page
def test_notebook_tells_colab_what_it_needs(chapter: Chapter) -> None:
    metadata = json.loads(chapter.notebook.read_text(encoding="utf-8"))["metadata"]
    assert metadata["kernelspec"]["name"] == "python3"
    assert metadata["accelerator"] == "GPU"
    assert "colab" in metadata


@every_page
def test_chapter_is_in_the_contents_and_on_the_first_page(chapter: Chapter) -> None:
    assert f"notebooks/{chapter.name}\n" in (ROOT / "_toc.yml").read_text()
    first = (ROOT / "book" / "index.md").read_text(encoding="utf-8")
    row = re.search(rf"^\|.*\(\.\./notebooks/{chapter.name}\.ipynb\).*$", first, flags=re.MULTILINE)
    assert row
    assert len(re.findall(r"\d+ min", row.group())) == 2, "minutes to read and to run"


def test_the_first_page_answers_in_three_lengths() -> None:
    first = (ROOT / "book" / "index.md").read_text(encoding="utf-8")
    found = re.findall(
        r'<span class="clock" data-seconds="(\d+)"></span>\n\n<details class="answer">\n<summary>[^<]*</summary>\n'
        r"(.*?)You have said it if you named(.*?)</details>",
        first,
        flags=re.DOTALL,
    )
    assert [int(seconds) for seconds, _, _ in found] == [20, 50, 120]
    for (_, words, points), (fewest, most) in zip(found, ((40, 55), (110, 135), (136, 300)), strict=True):
        assert fewest <= len(words.split()) <= most
        assert 4 <= len(re.findall(r"^- ", points, flags=re.MULTILINE)) <= 6
