"""Processes that are started together: results by rank, and none left behind whatever happens to one."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch.distributed as dist

from minilab.processes import WorkerError, run_processes


def number_and(text):
    return dist.get_rank(), dist.get_world_size(), text


def fails_on_one():
    if dist.get_rank() == 1:
        raise RuntimeError("the second rank has had enough")
    dist.barrier()  # waits for one that never comes


def dies_on_one():
    if dist.get_rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    dist.barrier()


def hangs_on_one():
    if dist.get_rank() == 1:
        time.sleep(600)


def notes_itself_and_sleeps(folder):
    Path(folder, str(os.getpid())).touch()
    time.sleep(600)


def test_results_come_by_rank():
    assert run_processes(number_and, 2, "hello") == [(0, 2, "hello"), (1, 2, "hello")]


@pytest.mark.parametrize("world", [0, -1, 1.5])
def test_a_wrong_number_of_processes_is_refused(world):
    with pytest.raises(ValueError, match="world is .*allowed"):
        run_processes(number_and, world, "")


def test_a_failure_comes_with_its_traceback_and_does_not_wait_for_the_others():
    start = time.monotonic()
    with pytest.raises(WorkerError, match="(?s)rank 1: Traceback.*fails_on_one.*the second rank has had enough"):
        run_processes(fails_on_one, 2, seconds=100)
    assert time.monotonic() - start < 50


def test_a_killed_process_is_named():
    start = time.monotonic()
    with pytest.raises(WorkerError, match="rank 1: ended with exit code -9"):
        run_processes(dies_on_one, 2, seconds=100)
    assert time.monotonic() - start < 50


def test_a_process_that_hangs_is_shown_where_it_hangs():
    with pytest.raises(WorkerError, match="(?s)no result from rank 0, 1 after 15 seconds.*hangs_on_one"):
        run_processes(hangs_on_one, 2, seconds=15)


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_when_the_parent_is_interrupted_or_killed(tmp_path, sent):
    (tmp_path / "pids").mkdir()
    (tmp_path / "script.py").write_text(
        "import signal, sys\nsys.path.insert(0, sys.argv[1])\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a shell's background jobs ignore it
        "from test_processes import notes_itself_and_sleeps, run_processes\n"
        "if __name__ == '__main__':\n    run_processes(notes_itself_and_sleeps, 2, sys.argv[2], seconds=100)\n"
    )
    script, here = tmp_path / "script.py", Path(__file__).parent
    parent = subprocess.Popen(
        [sys.executable, script, here, tmp_path / "pids"], stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        pids = wait_for(lambda: len(os.listdir(tmp_path / "pids")) == 2 and os.listdir(tmp_path / "pids"))
        parent.send_signal(sent)
        assert parent.wait(20) != 0
        wait_for(lambda: not any(alive(pid) for pid in pids))
    finally:
        parent.kill()


def wait_for(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)
    return value


def alive(pid):
    try:
        state = Path("/proc", pid, "stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"
