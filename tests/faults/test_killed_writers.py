"""`kill -9` while a file is written, and while a chapter is executed: the old file is whole, and nothing is left."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import writers

from minilab import cli

pytestmark = [pytest.mark.fault, pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")]


@pytest.mark.parametrize("kind", writers.WRITERS)
def test_a_writer_killed_at_any_moment_leaves_a_whole_file(kind, tmp_path, monkeypatch, record_property):
    path, writer = writers.prepare(tmp_path, monkeypatch)[kind], writers.WRITERS[kind]
    writer.write(path)
    old, stale = path.read_bytes(), b"an older one"
    for moment in writers.MOMENTS:
        content = stale if kind in ("bank", "deck", "notebook", "picture") else old  # the others read it first
        path.write_bytes(content)
        writers.killed(lambda: writer.write(path), moment, len(old) // 2)
        if moment == writers.MOMENTS[-1]:
            assert path.read_bytes() != stale
            writer.read(path)
        else:
            assert path.read_bytes() == content, moment
    left = writers.parts(tmp_path)
    assert len(left) == 3  # under names of their own, until somebody writes again
    for name in left:
        (part,) = tmp_path.rglob(name)
        os.utime(part, (0, 0))
    writer.write(path)
    assert writers.parts(tmp_path) == []
    writer.read(path)
    record_property("inputs", len(writers.MOMENTS))


def test_a_file_that_is_being_written_is_not_taken_for_a_leftover(tmp_path):
    """Its lock says that somebody is at work, however old it looks."""
    from minilab.files import written_aside

    path = tmp_path / "run.json"
    with written_aside(path) as first:
        first.write(b"first")
        first.flush()
        (part,) = tmp_path.iterdir()
        os.utime(part, (0, 0))
        with written_aside(path) as second:
            second.write(b"second")
        assert part.exists() and path.read_bytes() == b"second"
    assert path.read_bytes() == b"first" and list(tmp_path.iterdir()) == [path]


def test_a_run_killed_while_it_saves_goes_on_from_the_save_before(tmp_path, monkeypatch, record_property):
    """The whole way: the checkpoint of a killed save is trained on, and gives the record of an unbroken run."""
    paths = writers.prepare(tmp_path, monkeypatch)
    whole = paths["record"].read_bytes()
    for moment in writers.MOMENTS[:-1]:
        writers.killed(lambda: writers.WRITERS["checkpoint"].write(paths["checkpoint"]), moment, 50_000)
    assert cli.main([*writers.TRAIN, "--checkpoint", "run.pt", "--out", "again.json", "--picture", "x.png"]) == 0
    from minilab.records import load_record

    def without_clocks(record):
        return [{k: v for k, v in e.items() if k not in ("seconds", "images_per_second")} for e in record.history]

    paths["record"].write_bytes(whole)
    assert without_clocks(load_record("again.json")) == without_clocks(load_record("run.json"))
    record_property("inputs", len(writers.MOMENTS) - 1)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").exists(), reason="looks for the kernel in /proc")
def test_a_killed_execution_keeps_the_old_notebook_and_leaves_no_kernel(tmp_path):
    source, notebook = tmp_path / "book/chapters/basics/first.md", tmp_path / "notebooks/basics/first.ipynb"
    for path in (source, notebook):
        path.parent.mkdir(parents=True)
    started = tmp_path / "started"
    cell = f"import os, pathlib, time\npathlib.Path({str(started)!r}).write_text(str(os.getpid()))\ntime.sleep(600)"
    source.write_text(f"# One\n\n```{{code-cell}} ipython3\n{cell}\n```\n")
    notebook.write_text("the old one")
    command = [sys.executable, "-m", "minilab.textbook.execute", "--root", str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 200
    while not (started.exists() and started.read_text()):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    kernel = Path(f"/proc/{started.read_text()}/stat")
    while kernel.exists() and kernel.read_text().rsplit(")", 1)[1].split()[0] != "Z":
        assert time.monotonic() < deadline, "the kernel goes on without the process that started it"
        time.sleep(0.1)
    assert notebook.read_text() == "the old one"
    assert list(notebook.parent.iterdir()) == [notebook]
