"""Two runs that write the same file: the second is refused while the first is at work; a killed one holds nothing."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
import writers

from minilab import cli
from minilab.checkpoints import load_checkpoint
from minilab.files import one_writer, written_aside
from minilab.recipe import Recipe

pytestmark = [pytest.mark.fault, pytest.mark.skipif(sys.platform == "win32", reason="no such lock there")]

FIRST = """
import sys, time
sys.path.insert(0, {here!r})
import writers
from minilab import cli, training
cli.open_images = lambda name: writers.images()
step = training.Trainer.take_step
def slow(self, chosen):
    if self.step == 6:
        print("inside", flush=True)
        time.sleep(600)
    return step(self, chosen)
training.Trainer.take_step = slow
cli.main([*writers.TRAIN, "--out", "run.json", "--checkpoint", "run.pt", "--picture", "first.png"])
"""


def test_a_second_run_is_refused_and_a_killed_first_one_is_gone_on_from(tmp_path, monkeypatch, capsys, record_property):
    whole = json.loads(writers._record())["history"]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cli, "open_images", lambda name: writers.images())
    script = FIRST.format(here=os.path.dirname(os.path.abspath(__file__)))
    first = subprocess.Popen([sys.executable, "-W", "ignore", "-c", script], stdout=subprocess.PIPE, text=True)
    try:
        assert first.stdout.readline() == "inside\n"
        for number, named in enumerate(("run.json", "run.pt")):
            flag = ("--out", "--checkpoint")[number]
            before = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
            assert cli.main([*writers.TRAIN, flag, named, "--picture", "second.png"]) == 2
            error = capsys.readouterr().err
            assert f"another process is at work on {named}; allowed: one at a time" in error
            assert {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before
        assert first.poll() is None
    finally:
        os.kill(first.pid, signal.SIGKILL)
        first.wait()
        first.stdout.close()
    assert load_checkpoint(tmp_path / "run.pt", writers.RECIPE, writers.images().fingerprint)["step"] == 4
    assert cli.main([*writers.TRAIN, "--out", "run.json", "--checkpoint", "run.pt"]) == 0
    again = json.loads((tmp_path / "run.json").read_text())["history"]
    assert [entry["loss"] for entry in again] == [entry["loss"] for entry in whole]
    assert writers.parts(tmp_path) == []
    record_property("inputs", 3)


def test_never_two_are_inside_one_lock(tmp_path, record_property):
    """Many that come and go at once, each removing the lock file as it leaves: never two inside."""
    inside, most, entered, refused = [0], [0], [0], [0]
    guard = threading.Lock()

    def come_and_go() -> None:
        for _ in range(60):
            try:
                with one_writer(tmp_path / "run.json"):
                    with guard:
                        inside[0] += 1
                        entered[0] += 1
                        most[0] = max(most[0], inside[0])
                    time.sleep(0.0002)
                    with guard:
                        inside[0] -= 1
            except OSError:
                refused[0] += 1

    threads = [threading.Thread(target=come_and_go) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most[0] == 1 and entered[0] + refused[0] == 360 and refused[0] > 0
    assert list(tmp_path.iterdir()) == []
    record_property("inputs", 360)


def test_writers_that_ask_nobody_still_leave_one_whole_file(tmp_path, record_property):
    """`save_record` without a lock: whoever is last has the name, and no reader ever sees a mixture."""
    path = tmp_path / "run.json"
    contents = [bytes([65 + number]) * 200_000 for number in range(4)]
    done = threading.Event()
    seen = set()

    def write(content: bytes) -> None:
        for _ in range(10):
            with written_aside(path) as file:
                file.write(content)

    def look() -> None:
        while not done.is_set():
            if path.exists():
                seen.add(path.read_bytes())

    threads = [threading.Thread(target=write, args=(content,)) for content in contents]
    reader = threading.Thread(target=look)
    for thread in (reader, *threads):
        thread.start()
    for thread in threads:
        thread.join()
    done.set()
    reader.join()
    assert seen <= set(contents) and path.read_bytes() in contents
    assert list(tmp_path.iterdir()) == [path]
    record_property("inputs", 40)


def test_the_same_checkpoint_twice_in_one_process_is_refused_too(tmp_path):
    from minilab.training import train

    path, recipe = tmp_path / "run.pt", Recipe("simclr", encoder="micro", epochs=1, batch=16, precision="float32")

    def again(run) -> None:
        with pytest.raises(OSError, match="another process is at work on .*run.pt"):
            train(recipe, writers.images(), checkpoint=path, progress=False)

    train(recipe, writers.images(), checkpoint=path, progress=False, on_epoch=again)
    assert [p.name for p in tmp_path.iterdir()] == ["run.pt"]
