"""A run that several processes share is the run of one: the same losses, with each kind of batch norm."""

import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import torch

from minilab.data import shapes
from minilab.distributed import average, rank, share_gradients, world_size
from minilab.processes import run_processes
from minilab.recipe import Recipe
from minilab.records import load_record
from minilab.syncbn import synchronise
from minilab.training import build_method, train

COMMON = {"encoder": "micro", "epochs": 2, "batch": 16, "queue": 40, "dim": 8, "precision": "float32"}
COMMON["learning_rate"] = 0.004  # at a larger one, rounding alone soon drives two runs apart
RECIPES = {
    "simclr, group norm": Recipe("simclr", norm="group", **COMMON),
    "moco, group norm": Recipe("moco", norm="group", momentum=0.9, **COMMON),
    "moco, symmetric, synchronised": Recipe("moco", symmetric=True, **COMMON),
    "simclr, four groups": Recipe("simclr", bn_groups=4, **COMMON),
    "moco, four groups, shuffled": Recipe("moco", bn_groups=4, **COMMON),
}
TOLERANCE = 1e-3  # in float32 a sum over processes rounds differently, and training lets a difference grow


def losses(values):
    torch.set_num_threads(1)
    images, recipe = shapes(concepts=4, train=100, test=40, seed=3), Recipe.from_dict(values)
    run = train(recipe, images, device="cpu", progress=False)
    state = run.method.state_dict()
    queue = state["queue"].numpy() if "queue" in state else None
    return run.history, (weights(run.method) - weights(build_method(recipe))).numpy(), queue


STEPS = {
    "simclr, synchronised": {"method": "simclr"},
    "simclr, synchronised, a norm at the end of the head": {"method": "simclr", "head_norm": True},
    "moco, synchronised": {"method": "moco"},
    "simclr, two groups": {"method": "simclr", "bn_groups": 2},
    "moco, two groups, shuffled": {"method": "moco", "bn_groups": 2},
}


def step(values, numbers):
    """Loss and gradient of one step in float64, averaged over the processes as training does."""
    torch.set_num_threads(1)
    recipe = Recipe.from_dict(values)
    method = build_method(recipe).double().train()
    shared = method
    if world_size() > 1:
        if recipe.bn_groups == 1:
            synchronise(method)
        shared = share_gradients(method)
    torch.manual_seed(0)  # of MoCo's shuffle
    views = torch.from_numpy(numbers).unflatten(0, (2, world_size(), -1))[:, rank()].flatten(0, 1)
    loss = shared(views)
    loss.backward()
    gradients = [parameter.grad.flatten() for parameter in method.parameters() if parameter.grad is not None]
    return float(average(loss.detach())), torch.cat(gradients).numpy()


@pytest.mark.parametrize("name", STEPS)
def test_a_step_of_several_processes_is_exactly_that_of_one(name):
    values = Recipe(encoder="micro", batch=8, queue=40, dim=8, **STEPS[name]).to_dict()
    numbers = torch.randn(16, 3, 16, 16, generator=torch.Generator().manual_seed(0), dtype=torch.float64).numpy()
    loss, gradient = step(values, numbers)
    for its_loss, its_gradient in run_processes(step, 2, values, numbers):
        assert its_loss == pytest.approx(loss, rel=1e-12)
        np.testing.assert_allclose(its_gradient, gradient, atol=1e-11 * np.abs(gradient).max())


def weights(method):
    """All that learns, as one vector."""
    return torch.cat([parameter.detach().double().flatten() for parameter in method.parameters()])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "world"), [*((name, 2) for name in RECIPES), ("moco, group norm", 4), ("simclr, four groups", 4)]
)
def test_several_processes_follow_the_curve_of_one(name, world):
    values = RECIPES[name].to_dict()
    history, moved, _ = losses(values)
    found = run_processes(losses, world, values, seconds=240)
    for other, its_own, queue in found:
        assert [entry["loss"] for entry in other] == pytest.approx([entry["loss"] for entry in history], rel=TOLERANCE)
        assert np.linalg.norm(its_own - moved) < 20 * TOLERANCE * np.linalg.norm(moved)
        if queue is not None:
            assert (queue == found[0][2]).all()
    assert found[0][0][-1]["pretext_accuracy"] == pytest.approx(history[-1]["pretext_accuracy"], abs=0.02)
    if "groups" not in name:  # with them, a process has running statistics of its own images only
        assert found[0][0][-1]["knn"] == pytest.approx(history[-1]["knn"], abs=0.051)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"batch": 15}, "batch is 15; allowed in 2 processes: a multiple of 2, 4 or more"),
        ({"batch": 2}, "batch is 2; allowed in 2 processes: a multiple of 2, 4 or more"),
        ({"batch": 15, "bn_groups": 3}, "batch is 15"),
        ({"batch": 18, "bn_groups": 3}, "bn_groups is 3; allowed in 2 processes: 1, over all of them, or a multiple"),
        ({"chunk": 8}, "chunk is 8; allowed in 2 processes: None"),
        ({"method": "dcl"}, "method is 'dcl'; allowed in 2 processes: simclr, moco"),
    ],
)
def test_what_cannot_be_shared_is_refused(changes, message):
    values = {"method": "simclr", **COMMON, **changes}
    for said in run_processes(refusal, 2, values):
        assert message in said


def refusal(values):
    images = shapes(concepts=4, train=100, test=40, seed=3)
    try:
        train(Recipe.from_dict(values), images, device="cpu", progress=False)
    except ValueError as error:
        return str(error)
    return "nothing was refused"


def torchrun(folder, *extra, restarts=0, epochs=3):
    """The command of a run in two processes, and where its record and checkpoint go."""
    record, checkpoint = folder / "run.json", folder / "run.pt"
    command = [
        sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--max-restarts", str(restarts),
        "--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0",
        "-m", "minilab", "train", "moco", "--data", "shapes", "--images", "512", "--encoder", "micro",
        "--epochs", str(epochs), "--batch", "32", "--queue", "64", "--precision", "float32", "--seed", "1",
        "--out", str(record), "--checkpoint", str(checkpoint), "--picture", str(folder / "run.png"), *extra,
    ]  # fmt: skip
    return command, record, checkpoint


def figures(record):
    return [[entry[name] for name in ("loss", "knn", "lag")] for entry in load_record(record).history]


@pytest.mark.fault
@pytest.mark.slow
def test_a_rank_killed_in_the_middle_ends_the_run_and_a_restart_goes_on_to_the_same_numbers(tmp_path):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    whole.mkdir()
    cut.mkdir()
    command, record, _ = torchrun(whole)
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    assert len(re.findall(r"^record: ", done.stdout, flags=re.MULTILINE)) == 1  # one of the two reports
    command, other, checkpoint = torchrun(cut, restarts=3)  # gloo may fail to meet again at once
    # Else a restarted rank asks the store of the round before, and meets the address of a dead one.
    env = {**os.environ, "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
    running = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    first = workers(running.pid, checkpoint)
    os.kill(first[1], signal.SIGKILL)
    killed = time.monotonic()
    while any(alive(process) for process in first):
        assert time.monotonic() - killed < 30, "the other rank outlived the one that was killed"
        time.sleep(0.05)
    _, errors = running.communicate(timeout=240)
    assert running.returncode == 0, errors
    assert figures(other) == figures(record)


def workers(launcher, checkpoint):
    """The two processes of the run, once it has saved its first epoch."""
    deadline = time.monotonic() + 120
    while not checkpoint.exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(launcher)], capture_output=True, text=True, check=True)
    processes = sorted(int(line) for line in found.stdout.split())
    assert len(processes) == 2
    return processes


def alive(process):
    found = subprocess.run(["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True, check=False)
    return bool(found.stdout.strip()) and not found.stdout.strip().startswith("Z")
