"""What a chapter rests on, and the command that executes it: any code and any bytes; bad input is named."""

from __future__ import annotations

import ast
import contextlib
import io
import string
import tempfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import covers, some

from minilab.textbook import (
    execute,
)
from minilab.textbook import sources as rests_on

# The package gives these names to functions, so the modules are reached by their path.
album, exercise, explorer, plane, planner, points, quiz, softmax, start, style = (
    import_module(f"minilab.textbook.{name}")
    for name in ("album", "exercise", "explorer", "plane", "planner", "points", "quiz", "softmax", "start", "style")
)
NAME = st.text(string.ascii_letters, min_size=1, max_size=8)


def folder_of(files: dict[str, Any]) -> contextlib.AbstractContextManager[Path]:
    @contextlib.contextmanager
    def opened():
        with tempfile.TemporaryDirectory() as name:
            for file, text in files.items():
                path = Path(name) / file
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(text if isinstance(text, bytes) else text.encode())
            yield Path(name)

    return opened()


CODE = st.sampled_from(
    ["x = 1", "import minilab", "from minilab import losses", "%matplotlib inline", "!ls", "def f(): pass"]
)
S = rests_on.Chapter


@covers(S, S.source, S.notebook, rests_on.find_chapters, rests_on.fingerprint, rests_on.imported_files)
@covers(rests_on.orphans, rests_on.stored_fingerprint, execute.read_source, execute.main)
@some
@given(st.lists(CODE, max_size=4), NAME, st.binary(max_size=30))
def test_a_chapter_is_known_by_what_it_rests_on(cells, name, noise):
    files = {
        "minilab/__init__.py": "", "minilab/losses.py": "from minilab import views", "minilab/views.py": "",
        "book/chapters/deep/a.md": "# A", "notebooks/deep/old.ipynb": noise, "notebooks/deep/raw.ipynb": "[" * 50_000,
    }  # fmt: skip
    with folder_of({**files, "book/chapters/deep/bad.md": b"\xff\xfe"}) as root:
        chapter, bad = rests_on.find_chapters(root)
        assert chapter.source.is_file() and not chapter.notebook.exists()
        marks = rests_on.fingerprint(chapter, cells)
        assert marks == rests_on.fingerprint(chapter, cells)
        found = {
            p.name for p in rests_on.imported_files(root, [ast.parse("\n".join(c for c in cells if c[0] not in "%!"))])
        }
        wanted = {"__init__.py"} if any("minilab" in c for c in cells) else set()
        assert found == wanted | ({"losses.py", "views.py"} if "from minilab import losses" in cells else set())
        chapter.source.write_text("# B")
        assert marks["source_sha256"] != rests_on.fingerprint(chapter, cells)["source_sha256"]
        if name not in ("a", "bad"):
            with pytest.raises(ValueError, match="no chapter is named"):
                rests_on.find_chapters(root, [name])
        assert {path.name for path in rests_on.orphans(root)} == {"old.ipynb", "raw.ipynb"}
        for notebook in ("old", "raw"):
            assert rests_on.stored_fingerprint(root / f"notebooks/deep/{notebook}.ipynb") == {}
        with pytest.raises(execute.ChapterError, match=r"bad\.md: .*allowed: UTF-8"):
            execute.read_source(bad)
        assert execute.read_source(chapter).cells[0].source == "# B"
        with contextlib.redirect_stderr(io.StringIO()) as said, contextlib.redirect_stdout(io.StringIO()):
            assert execute.main(["--check", "--root", str(root)]) == 1
        assert "bad.md" in said.getvalue() and "Traceback" not in said.getvalue()


def test_code_that_is_nested_too_deeply_is_no_crash(tmp_path):
    chapter = rests_on.Chapter(tmp_path, "deep/a")
    chapter.source.parent.mkdir(parents=True)
    chapter.source.write_text("# A")
    check: Callable[[str], Any] = lambda code: rests_on.fingerprint(chapter, [code])  # noqa: E731
    for code in ("(" * 5000, "x = 1\0", "-" * 50_000 + "1"):
        with pytest.raises((SyntaxError, ValueError)):
            check(code)
