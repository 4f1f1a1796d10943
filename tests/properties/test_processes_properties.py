"""Processes and collectives: two real processes on random rows, one process alone, and what is refused by name."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import (
    NO_TENSORS,
    Door,
    covers,
    exempt,
    many,
    no_number,
    no_whole,
    one,
    other_than,
    refusals,
    some,
)
from torch import Tensor, nn

from minilab import distributed, processes, syncbn, transfer
from minilab.losses import nt_xent

WORLD, EXAMPLES = 2, 25


def example(number: int, rank: int) -> Tensor:
    """Rows (2n, dim) of one rank, of a shape that the number decides."""
    shape = np.random.default_rng(number).integers(1, 5, 2)
    dice = torch.Generator().manual_seed(100 * number + rank)
    return torch.randn(2 * int(shape[0]), int(shape[1]), generator=dice, dtype=torch.float64)


def in_a_process() -> list[list[Any]]:
    """Of each example what the collectives give this rank, as arrays."""
    found, rank = [], distributed.rank()
    norm = nn.Linear(1, 1).double()
    nn.init.constant_(norm.weight, 1.0 + rank)
    shared = distributed.share_gradients(norm)
    for number in range(EXAMPLES):
        mine = example(number, rank)
        leaf = mine.clone().requires_grad_()
        gathered = distributed.gather(leaf)
        (gathered * (1 + rank) * torch.arange(len(gathered))[:, None]).sum().backward()
        loss = mine.clone().requires_grad_()
        value = distributed.nt_xent_gathered(loss, 0.5) if len(gathered) >= 4 else torch.zeros(())
        norm.zero_grad()
        shared(mine[:1, :1]).sum().backward()
        weights, bias = torch.full((mine.shape[1],), 2.0).double(), torch.ones(mine.shape[1]).double()
        y, mean, _ = syncbn.NormaliseTogether.apply(mine, weights, bias, 1e-5)
        results = [
            gathered.detach(), leaf.grad, distributed.own(gathered.detach()), distributed.total(mine),
            distributed.average(mine), value.detach(), norm.weight.grad, y, mean,
        ]  # fmt: skip
        with distributed.apart():
            results.append(distributed.gather(mine))
        found.append([np.array(result) for result in results] + [distributed.agree({"rank": rank, "example": number})])
    return found


@covers(
    processes.run_processes, distributed.gather, distributed.GatherWithGradient, distributed.GatherWithGradient.forward,
    distributed.GatherWithGradient.backward, distributed.own, distributed.total, distributed.average, distributed.agree,
    distributed.nt_xent_gathered, distributed.share_gradients, syncbn.NormaliseTogether, distributed.apart,
    syncbn.NormaliseTogether.forward, syncbn.NormaliseTogether.backward,
)  # fmt: skip
def test_two_processes_hold_what_one_would() -> None:
    ranks = processes.run_processes(in_a_process, WORLD, seconds=120)
    for number in range(EXAMPLES):
        parts = [example(number, rank) for rank in range(WORLD)]
        everyone, rows = torch.cat(parts), len(parts[0])
        whole = torch.cat([part.unflatten(0, (2, -1)) for part in parts], dim=1).flatten(0, 1)
        losses = []
        for rank, results in enumerate(ranks):
            gathered, gradient, own, total, average, loss, shared, y, mean, alone, agreed = results[number]
            assert np.array_equal(gathered, everyone) and np.array_equal(own, parts[rank])
            assert np.allclose(total, sum(parts)) and np.allclose(average, sum(parts) / WORLD)
            places = torch.arange(rank * rows, (rank + 1) * rows)[:, None].expand_as(parts[rank])
            assert np.allclose(gradient, 3 * places)  # from both ranks: 1 + 2
            expected = 2 * (everyone - everyone.mean(0)) / (everyone.var(0, correction=0) + 1e-5).sqrt() + 1
            assert np.allclose(mean, everyone.mean(0)) and np.allclose(y, expected[rank * rows : (rank + 1) * rows])
            assert np.allclose(shared, np.mean([float(part[0, 0]) for part in parts]))
            assert np.array_equal(alone, parts[rank]) and agreed == {"rank": 0, "example": number}
            losses.append(float(loss))
        assert math.isclose(np.mean(losses), float(nt_xent(whole, 0.5)), rel_tol=1e-9)


@covers(distributed.gather, distributed.own, distributed.total, distributed.average, distributed.agree)
@many
@given(st.integers(0, 6), st.integers(0, 4), st.integers(0, 2**31))
def test_alone_every_collective_is_the_rows_themselves(rows: int, dim: int, seed: int) -> None:
    values = torch.randn(rows, dim, generator=torch.Generator().manual_seed(seed))
    for collective in (distributed.gather, distributed.own, distributed.total, distributed.average, distributed.agree):
        assert torch.equal(collective(values), values)


@covers(distributed.join_torchrun)
@some
@given(st.floats(1, 1000))
def test_without_torchrun_nothing_is_joined(seconds: float) -> None:
    assert distributed.join_torchrun(seconds) is None


@covers(syncbn.synchronise, syncbn.SynchronisedBatchNorm1d, syncbn.SynchronisedBatchNorm2d)
@some
@given(st.integers(2, 6), st.integers(1, 5), st.sampled_from([True, False]))
def test_a_synchronised_norm_alone_is_the_norm(rows: int, channels: int, affine: bool) -> None:
    flat, image = nn.BatchNorm1d(channels, affine=affine), nn.BatchNorm2d(channels, affine=affine)
    x, pixels = torch.randn(rows, channels), torch.randn(rows, channels, 2, 3)
    expected = flat(x), image(pixels)
    module = nn.ModuleList([flat, image])
    names = list(module.state_dict())
    syncbn.synchronise(module)
    assert isinstance(flat, syncbn.SynchronisedBatchNorm1d) and isinstance(image, syncbn.SynchronisedBatchNorm2d)
    assert list(module.state_dict()) == names
    assert torch.equal(flat(x), expected[0]) and torch.equal(image(pixels), expected[1])


@covers(transfer.send)
@some
@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from([torch.int64, torch.float32, torch.bool])), max_size=5))
def test_what_is_sent_arrives(parts: list[tuple[int, torch.dtype]]) -> None:
    tensors = [torch.arange(2 * count).view(count, 2).to(kind) for count, kind in parts]
    assert all(map(torch.equal, transfer.send(tensors, torch.device("cpu")), tensors))


exempt(processes.WorkerError, "an error without arguments of its own; test_processes.py raises it in each way")
exempt(processes.join_group, "joins real processes, as run_processes does above; wrong arguments are refused below")


# --- refusals

NO_ROWS = one(*NO_TENSORS, torch.ones(()))
SECONDS = {"seconds": no_number(0, 10**6, low_too=True)}


def nested() -> Any:
    return lambda: None


test_refusals = refusals(
    Door(processes.run_processes, lambda: {"work": in_a_process, "world": 1},
         {**SECONDS, "world": no_whole(1, 4096), "work": one(None, 1, "x", nested())}),
    Door(processes.join_group, lambda: {"rank": 0, "world": 1, "meet": Path("meet"), "seconds": 1.0},
         {**SECONDS, "rank": no_whole(0, 0), "world": no_whole(1), "meet": one(None, 1, "meet")}),
    Door(distributed.join_torchrun, dict, SECONDS),
    Door(distributed.share_gradients, dict, {"module": other_than(nn.Module)}),
    Door(lambda group: distributed.share_gradients(group), dict, {"group": one(nn.Linear(1, 1))}),
    Door(distributed.own, dict, {"rows": NO_ROWS}),
    Door(distributed.gather, dict, {"rows": NO_ROWS}),
    Door(distributed.total, dict, {"values": one(*NO_TENSORS)}),
    Door(distributed.average, dict, {"values": one(*NO_TENSORS)}),
    Door(syncbn.synchronise, dict, {"module": other_than(nn.Module)}),
)  # fmt: skip
