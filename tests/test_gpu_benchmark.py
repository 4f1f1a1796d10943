"""The benchmark of a GPU runs through every part at its smallest size, on whatever there is."""

import importlib.util
import json
import math
import sys
import time
from pathlib import Path

import pytest
import torch

FILE = Path(__file__).parents[1] / "benchmarks" / "gpu.py"
METHODS = ["simclr", "moco"]


@pytest.fixture(scope="module")
def gpu():
    spec = importlib.util.spec_from_file_location("gpu_benchmark", FILE)
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "gpu_benchmark", module)  # its dataclass asks for it
        spec.loader.exec_module(module)
        patch.setattr(module.bench, "ROUNDS", 3)
        yield module


@pytest.fixture(scope="module")
def figures(gpu, tmp_path_factory):
    path = tmp_path_factory.mktemp("gpu") / "gpu.json"
    gpu.main(["--size", "smallest", "--minutes", "30", "--json", str(path)])  # so many minutes cut nothing off
    assert [file.name for file in path.parent.iterdir()] == ["gpu.json"]  # nothing half-written beside it
    return json.loads(path.read_text())


def is_speed(value):
    return isinstance(value, float) and math.isfinite(value) and 0 < value < 1e7


def test_it_says_where_it_ran(figures):
    fields = "device torch precision size minutes speed variants memory time_to_knn seconds"
    assert list(figures) == fields.split()
    gpu = torch.cuda.is_available()
    assert figures["device"] == (torch.cuda.get_device_name() if gpu else "cpu")
    assert figures["torch"] == torch.__version__ and figures["size"] == "smallest" and figures["minutes"] == 30
    assert figures["precision"] in (("bfloat16", "float16") if gpu else ("float32",))
    assert 0 < figures["seconds"] < 600


def test_speed_is_a_fraction_of_the_limit(figures):
    assert list(figures["speed"]) == METHODS
    for row in figures["speed"].values():
        assert is_speed(row["images_per_second"]) and is_speed(row["limit_images_per_second"])
        assert row["fraction_of_limit"] == pytest.approx(row["images_per_second"] / row["limit_images_per_second"])
        assert row["precision"] == figures["precision"]


def test_every_variant_took_its_turns(figures):
    assert list(figures["variants"]) == METHODS
    for row in figures["variants"].values():
        rates = row["images_per_second"]
        assert set(rates) == {"eager", "autotuned", "compiled", "float32"} and all(map(is_speed, rates.values()))
        assert row["ratio"] == pytest.approx(rates["compiled"] / rates["eager"])
        assert row["failed"] is None and row["first_step_seconds"] > 0 and row["backend"] == "aot_eager"


def test_memory_grows_with_the_batch_and_is_near_what_is_counted(gpu, figures):
    size, memory = gpu.SIZES["smallest"], figures["memory"]
    assert list(memory["simclr by batch"]) == [str(n) for n in size.batches]
    assert list(memory["moco by queue"]) == [str(k) for k in size.queues]
    small, large = (memory["simclr by batch"][str(n)] for n in size.batches)
    assert isinstance(small["measured"], int) and small["measured"] < large["measured"]
    if not torch.cuda.is_available():  # there a library takes what it likes
        for row in (small, large):
            assert row["measured"] == pytest.approx(row["predicted"], rel=0.15)
        short, long = (memory["moco by queue"][str(k)]["measured"] for k in size.queues)
        assert long - short >= 4 * 128 * (size.queues[1] - size.queues[0])  # at least the queue itself


def test_time_to_knn_says_how_far_it_came(figures):
    found = figures["time_to_knn"]
    assert found["data"].startswith("Shapes") and [name for name in found if name != "data"] == METHODS
    for method in METHODS:
        row = found[method]
        assert len(row["knn"]) == len(row["wall_seconds"]) == len(row["training_seconds"]) >= 1
        assert all(0 <= value <= 1 for value in row["knn"])
        assert row["reached"] == (row["knn"][-1] >= row["target"]) and not row["compiled"]
        assert 0 < row["training_seconds"][-1] < row["wall_seconds"][-1]
        assert row["recipe"]["method"] == method and row["recipe"]["precision"] == figures["precision"]


def test_a_target_out_of_reach_ends_with_the_time(gpu):
    images = gpu.shapes(concepts=2, train=64, test=16)
    recipe = gpu.SIZES["smallest"].recipe("simclr", encoder="micro", epochs=50)
    row = gpu.time_to_knn(recipe, images, target=1.1, deadline=time.perf_counter(), compile=False)
    assert not row["reached"] and len(row["knn"]) == 1
    assert "kNN 1.10 not reached" in gpu.knn_line("simclr", row)


def test_a_compiler_that_fails_leaves_the_rest(gpu, monkeypatch):
    monkeypatch.setitem(gpu.SIZES, "broken", gpu.Size("micro", "tiny", 16, 32, (), (), 0.2, "no such backend"))
    row = gpu.variants(gpu.SIZES["broken"], "simclr", 0.0)
    assert row["ratio"] is None and "no such backend" in row["failed"]
    assert set(row["images_per_second"]) == {"eager", "autotuned", "float32"}
    assert "failed" in gpu.show_variants("simclr", row)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--minutes", "0"], "minutes is 0.0; allowed: above 0"),
        (["--size", "huge"], "invalid choice: 'huge'"),
        ([], "torch sees no GPU; allowed here: smallest"),
    ],
)
def test_wrong_arguments_are_refused(gpu, capsys, monkeypatch, arguments, says):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SystemExit) as stopped:
        gpu.main(arguments)
    assert stopped.value.code == 2 and says in capsys.readouterr().err
