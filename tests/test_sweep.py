"""Sweeps: a record for each run, nothing done twice, and nothing lost however they end."""

import json
import os
import signal
import subprocess
import sys
import time
import types
from pathlib import Path

import pytest

from minilab import cli, sweep, training
from minilab.grids import Cell, grid
from minilab.recipe import Recipe
from minilab.records import load_record

CLOCKS = ("seconds", "images_per_second")
WORKERS = min(2, sweep.cores())  # everywhere the same: with other threads the last bits of a sum may differ


def cell(seed: int = 0, **changes) -> Cell:
    settings = {"encoder": "micro", "epochs": 3, "batch": 16, "queue": 40, "precision": "float32", **changes}
    return Cell(Recipe("moco", seed=seed, **settings), "shapes", images=128, concepts=4)


def measured(path: Path) -> dict:
    """A record without what a clock says."""
    values = json.loads(path.read_text())
    for entry in values["history"]:
        for name in CLOCKS:
            entry.pop(name)
    return values


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory) -> Path:
    """The folder of a sweep of three runs with nothing in its way."""
    folder = tmp_path_factory.mktemp("unbroken")
    assert sweep.sweep([cell(0), cell(1), cell(2)], folder, WORKERS) == {}
    return folder


def test_each_run_leaves_a_record_and_nothing_else(unbroken):
    assert {path.name for path in unbroken.iterdir()} == {f"{cell(s).name}.json" for s in range(3)}
    assert all(sweep.is_complete(cell(seed), unbroken) for seed in range(3))
    record = load_record(unbroken / f"{cell(1).name}.json")
    assert record.recipe == cell(1).recipe and record.data["name"] == "Shapes (4 concepts)"
    assert all({"loss_std", "lag", "key_cosine"} <= set(entry) for entry in record.history)


def test_a_broken_record_or_one_of_another_recipe_is_not_complete(unbroken, tmp_path):
    text = (unbroken / f"{cell(0).name}.json").read_text()
    place = tmp_path / f"{cell(0).name}.json"
    for wrong in (text[:-50], text.replace('"momentum": 0.99', '"momentum": 0.9'), text.replace("128", "127")):
        assert wrong != text
        place.write_text(wrong)
        assert not sweep.is_complete(cell(0), tmp_path)
    place.write_text(text)
    assert sweep.is_complete(cell(0), tmp_path) and not sweep.is_complete(cell(1), tmp_path)


LONG = """
from pathlib import Path
from minilab import sweep
import sys; sys.path.insert(0, {here!r})
from test_sweep import cell
if __name__ == "__main__":
    sweep.sweep([cell(0), cell(1), cell(2)], Path({folder!r}), {workers})
"""


def children(pid: int) -> list[int]:
    """Processes whose parent is `pid`."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if int(fields[1]) == pid and fields[0] != "Z":
                found.append(int(entry.name))
    return found


@pytest.mark.fault
@pytest.mark.skipif(not Path("/proc").exists(), reason="finds the workers in /proc")
def test_killed_in_the_middle_it_goes_on_to_the_same_records(unbroken, tmp_path):
    folder = tmp_path / "records"
    script = tmp_path / "long.py"
    script.write_text(LONG.format(here=str(Path(__file__).parent), folder=str(folder), workers=WORKERS))
    process = subprocess.Popen([sys.executable, str(script)], stderr=subprocess.DEVNULL)
    checkpoint = folder / f".{cell(2).name}.pt"
    deadline = time.monotonic() + 120
    while not checkpoint.exists():  # a run is recorded, so the third was started, and has finished an epoch
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.005)
    workers = children(process.pid)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    while any(Path(f"/proc/{pid}").exists() for pid in workers):  # none goes on by itself
        assert time.monotonic() < deadline
        time.sleep(0.05)
    cells = [cell(seed) for seed in range(3)]
    done = {path: path.stat().st_mtime_ns for path in folder.glob("*.json")}
    missing = [one for one in cells if not sweep.is_complete(one, folder)]
    assert workers and done and cell(2) in missing and len(done) + len(missing) == 3
    assert sweep.sweep(missing, folder, WORKERS) == {}
    assert all(path.stat().st_mtime_ns == then for path, then in done.items()) and not checkpoint.exists()
    for one in cells:
        assert measured(folder / f"{one.name}.json") == measured(unbroken / f"{one.name}.json")


@pytest.mark.fault
@pytest.mark.skipif(not Path("/proc").exists(), reason="finds the workers in /proc")
def test_a_worker_that_is_killed_is_started_again(unbroken, tmp_path):
    import threading

    killed = []

    def kill_one() -> None:
        deadline = time.monotonic() + 60
        while not killed and time.monotonic() < deadline:
            if (tmp_path / f".{cell(0).name}.pt").exists():
                for pid in children(os.getpid()):
                    command = Path(f"/proc/{pid}/cmdline").read_bytes()
                    if b"spawn_main" in command:
                        os.kill(pid, signal.SIGKILL)
                        killed.append(pid)
            time.sleep(0.005)

    thread = threading.Thread(target=kill_one)
    thread.start()
    assert sweep.sweep([cell(0)], tmp_path, WORKERS) == {}
    thread.join()
    name = f"{cell(0).name}.json"
    assert killed and measured(tmp_path / name) == measured(unbroken / name)


def test_an_error_in_one_run_is_told_and_the_others_go_on(tmp_path, capsys):
    wrong = Cell(Recipe("simclr", encoder="micro", batch=512, precision="float32"), "shapes", images=64, concepts=2)
    troubles = sweep.sweep([wrong, cell(0)], tmp_path, workers=1)
    assert (
        list(troubles) == [wrong.name] and "batch is 512; allowed: at most the number of images" in troubles[wrong.name]
    )
    assert sweep.is_complete(cell(0), tmp_path) and f"{wrong.name} failed: ValueError" in capsys.readouterr().err


@pytest.mark.fault
def test_two_sweeps_do_not_share_a_folder(tmp_path):
    with sweep.locked(tmp_path), pytest.raises(OSError, match="another sweep is at work in"):
        sweep.sweep([cell(0)], tmp_path, workers=1)


@pytest.mark.parametrize("workers", [0, -1, 10_000])
def test_workers_are_from_one_to_the_cores(tmp_path, workers):
    with pytest.raises(ValueError, match=rf"workers is {workers}; allowed: 1 to \d+, the number of cores"):
        sweep.sweep([cell(0)], tmp_path, workers=workers)


def test_the_command_lists_and_refuses(tmp_path, capsys, unbroken):
    assert cli.main(["sweep", "--list", "--out", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "momentum        0 of 18  moco-momentum0.0-seed0, " in out and "and 15 more" in out
    assert cli.main(["sweep", "--out", str(tmp_path)]) == 2
    assert "no grid is named; allowed: all, momentum" in capsys.readouterr().err
    assert cli.main(["sweep", "momentun", "--out", str(tmp_path)]) == 2
    assert "grid is 'momentun'; allowed: momentum, " in capsys.readouterr().err


def test_the_command_trains_what_is_missing_and_then_nothing(tmp_path, capsys):
    assert cli.main(["sweep", "smoke", "--out", str(tmp_path), "--workers", "1"]) == 0
    assert "4 runs to train" in capsys.readouterr().err
    assert {path.stem for path in tmp_path.glob("*.json")} == {cell.name for cell in grid("smoke").cells}
    assert cli.main(["sweep", "smoke", "--out", str(tmp_path)]) == 0
    assert "0 runs to train" in capsys.readouterr().err


class DyingOnce(Cell):
    """A cell whose first worker is killed in the middle of its training; `MINILAB_DIED` names a file that says so."""

    def open(self):
        died = Path(os.environ["MINILAB_DIED"])
        step = training.Trainer.take_step

        def take_step(trainer, chosen):
            if trainer.step == 12 and not died.exists():  # of 24
                died.write_text(str(os.getpid()))
                os.kill(os.getpid(), signal.SIGKILL)
            return step(trainer, chosen)

        training.Trainer.take_step = take_step
        return super().open()


# A cluster that is there already, as on other machines; then one that the command starts for itself beside it.
ON_RAY = """
import sys; sys.path.insert(0, {here!r})
from pathlib import Path
import ray
from ray.cluster_utils import Cluster
from minilab import cli, sweep
from test_sweep import DyingOnce, cell
cells = [cell(0), DyingOnce(**vars(cell(1))), cell(2)]
sweep.pending = lambda names, folder: cells
folder = Path({folder!r})
# without what watches it, which takes longer to start than the runs do
alone = {{"include_dashboard": False, "include_log_monitor": False, "no_monitor": True}}
cluster = Cluster(initialize_head=True, head_node_args={{"num_cpus": 2, **alone}})
init, used = ray.init, []
ray.init = lambda **options: used.append(init(**options).address_info["gcs_address"])
assert cli.main(["sweep", "smoke", "--ray", cluster.address, "--out", str(folder / "there")]) == 0
assert cli.main(["sweep", "smoke", "--ray", "--out", str(folder / "here"), "--workers", "{workers}"]) == 0
assert used[0] == cluster.address != used[1], used
cluster.shutdown()
print("done")
"""


@pytest.mark.slow
@pytest.mark.fault
def test_ray_redoes_the_run_of_a_killed_worker_to_the_same_records(unbroken, tmp_path):
    """On a cluster at an address, and on one of this machine alone."""
    here, folder, died = str(Path(__file__).parent), tmp_path / "records", tmp_path / "died"
    script = ON_RAY.format(here=here, folder=str(folder), workers=WORKERS)
    environment = {**os.environ, "PYTHONPATH": here, "RAY_USAGE_STATS_ENABLED": "0", "MINILAB_DIED": str(died)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0 and "done" in done.stdout, done.stderr[-3000:]
    assert died.exists() and not Path(f"/proc/{died.read_text()}").exists()
    one_thread = unbroken
    if sweep.threads_of(WORKERS) > 1:  # a worker of a cluster has one; with more the last bits of a sum may differ
        one_thread = tmp_path / "one thread"
        assert sweep.sweep([cell(0), cell(1), cell(2)], one_thread, sweep.cores()) == {}
    for seed in range(3):
        name = f"{cell(seed).name}.json"
        assert measured(folder / "there" / name) == measured(one_thread / name)
        assert measured(folder / "here" / name) == measured(unbroken / name)


@pytest.mark.fault
@pytest.mark.parametrize("given", [[], ["10.0.0.1:6379"]])
def test_a_cluster_that_does_not_answer_is_named(given, tmp_path, monkeypatch, capsys):
    asked = []

    def init(**options):
        asked.append(options["address"])
        raise Exception("The current node timed out during startup.")

    monkeypatch.setitem(sys.modules, "ray", types.SimpleNamespace(init=init))
    assert cli.main(["sweep", "smoke", "--ray", *given, "--out", str(tmp_path)]) == 2
    assert asked == (given or ["local"])
    assert f"no Ray cluster at {asked[0]}: The current node timed out" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_without_ray_the_command_says_what_to_install(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "ray", None)
    assert cli.main(["sweep", "smoke", "--ray", "--out", str(tmp_path)]) == 2
    assert "ray is not installed; allowed: `pip install 'minilab[ray]'`" in capsys.readouterr().err
