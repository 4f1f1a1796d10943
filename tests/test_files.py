"""Nothing half-written is ever found under a file's name."""

import os
import signal
import subprocess
import sys
import time

import pytest

from minilab.files import check_writable, written_aside


def test_the_file_appears_when_the_block_ends(tmp_path):
    path = tmp_path / "deep" / "file.bin"
    with written_aside(path) as file:
        file.write(b"one")
        assert not path.exists()
    assert path.read_bytes() == b"one"
    assert [p.name for p in path.parent.iterdir()] == ["file.bin"]


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "file.bin"
    path.write_bytes(b"old")
    with pytest.raises(RuntimeError), written_aside(path) as file:
        file.write(b"half")
        raise RuntimeError
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["file.bin"]


@pytest.mark.fault
def test_a_kill_while_writing_leaves_the_old_file(tmp_path):
    path = tmp_path / "file.bin"
    path.write_bytes(b"old")
    script = (
        "import sys, time; from minilab.files import written_aside\n"
        "with written_aside(sys.argv[1]) as file:\n"
        "    file.write(b'half'); file.flush(); print('ready', flush=True); time.sleep(60)"
    )
    process = subprocess.Popen([sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    time.sleep(0.05)
    assert path.read_bytes() == b"old"


def test_new_files_have_the_usual_permissions(tmp_path):
    path, usual = tmp_path / "ours", tmp_path / "usual"
    with written_aside(path) as file:
        file.write(b"x")
    usual.write_bytes(b"x")
    assert path.stat().st_mode == usual.stat().st_mode


def test_unwritable_places_are_named_before_any_work(tmp_path):
    check_writable(tmp_path / "new" / "run.json")
    (tmp_path / "plain").write_text("a file")
    with pytest.raises(ValueError, match=r"plain/run.json cannot be written .*; allowed: a file in a folder that can"):
        check_writable(tmp_path / "plain" / "run.json")
    with pytest.raises(ValueError, match="is a folder; allowed: the name of a file"):
        check_writable(tmp_path)


@pytest.mark.fault
@pytest.mark.skipif(not os.path.exists("/proc/version"), reason="needs a folder that even root cannot write to")
def test_a_read_only_folder_is_named():
    with pytest.raises(ValueError, match="/proc/run.json cannot be written"):
        check_writable("/proc/run.json")
