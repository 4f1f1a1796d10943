"""A step asks the device nothing: proved on a stand-in for a GPU, which computes on the CPU and notes who waits.

The stand-in is a tensor that says it is on "cuda:0" and holds its numbers in a CPU tensor, so the trainer runs as on a
GPU, to the numbers that it gives on the CPU. What it cannot show is what a library does inside a call, and speed.
It needs a process of its own: torch is told there that it has a GPU.
"""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from contextlib import contextmanager

import pytest
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter, tree_map_only

CUDA, CPU = torch.device("cuda", 0), torch.device("cpu")
waits: list[str] = []  # operations in which a GPU would have made the CPU wait


class OnDevice(torch.Tensor):
    """A tensor "on the GPU", whose numbers are in `kept`."""

    @staticmethod
    def __new__(cls, kept: Tensor) -> OnDevice:
        shell = torch.empty_strided(kept.size(), kept.stride(), dtype=kept.dtype, device="meta")
        tensor = torch.Tensor._make_subclass(cls, shell)
        tensor.kept = kept
        return tensor

    def __init__(self, kept: Tensor) -> None:
        pass

    device = property(lambda self: CUDA)
    is_cuda = property(lambda self: True)

    @classmethod
    def __torch_dispatch__(cls, operation, types, args=(), kwargs=None):
        return compute(operation, args, kwargs or {})


class Noting(TorchDispatchMode):
    """Every operation goes through `compute`, those on the CPU too."""

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        return compute(operation, args, kwargs or {})


def compute(operation, args, kwargs):
    """The operation on the numbers; the result is on the device if its inputs are, or if it is asked for there."""
    given = [value for value in tree_iter((args, kwargs)) if isinstance(value, Tensor)]
    here = [tensor for tensor in given if isinstance(tensor, OnDevice)]
    asked = kwargs.get("device")
    there = bool(here) if asked is None else torch.device(asked).type != "cpu"
    note(operation, args, kwargs, given, here, there)
    if asked is not None:
        kwargs = {**kwargs, "device": CPU}
    if "pin_memory" in kwargs:
        kwargs = {**kwargs, "pin_memory": False}
    inside = {id(tensor.kept): tensor for tensor in here}  # in place: the result is one of the inputs
    plain_args, plain_kwargs = tree_map_only(OnDevice, lambda tensor: tensor.kept, (args, kwargs))
    result = operation(*plain_args, **plain_kwargs)
    if not there:
        return result
    return tree_map_only(
        Tensor, lambda tensor: inside[id(tensor)] if id(tensor) in inside else OnDevice(tensor), result
    )


def note(operation, args, kwargs, given, here, there) -> None:
    """Put the operation on `waits` if a GPU would wait for it; raise if a GPU would refuse it."""
    name = operation._schema.name.removeprefix("aten::")
    hosts = [tensor for tensor in given if not isinstance(tensor, OnDevice)]
    if name == "copy_":
        there = isinstance(args[0], OnDevice)
        here, hosts = ([args[1]], []) if isinstance(args[1], OnDevice) else ([], [args[1]])
    if name in ("_to_copy", "copy_"):
        blocking = not kwargs.get("non_blocking", len(args) > 2 and args[2])
        if here and not there:
            waits.append(f"{name} to the CPU")
        elif there and not here and (blocking or not getattr(hosts[0], "pinned", False)):
            waits.append(f"{name} to the device")
        return
    if not here:
        return
    assert not any(tensor.ndim for tensor in hosts), f"{name} mixes tensors of the CPU and of the device"
    tags = {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape}
    if name in ("index", "index_put", "index_put_"):  # by numbers nothing has to be counted, by a mask it does
        waiting = any(isinstance(index, Tensor) and index.dtype == torch.bool for index in args[1])
    else:
        waiting = bool(tags & set(operation.tags))
    if waiting:
        waits.append(name)


class Calls(TorchFunctionMode):
    """What torch does above its operations: autocast of the layers, and tensors made from Python's numbers."""

    dtype: torch.dtype | None = None

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if self.dtype is not None and function in (torch.conv2d, torch.nn.functional.linear):
            args = tree_map_only(Tensor, lambda tensor: tensor.to(self.dtype), args)
        kwargs = kwargs or {}
        if function is Tensor.tolist and isinstance(args[0], OnDevice):
            return args[0].cpu().tolist()
        if function in (torch.tensor, torch.as_tensor) and kwargs.get("device") is not None:
            device = kwargs.pop("device")
            return function(*args, **kwargs).to(device)  # made on the CPU, and copied
        return function(*args, **kwargs)


@contextmanager
def pretending():
    """Torch believes that it has a GPU."""
    calls = Calls()

    class Autocast:
        def __init__(self, device, dtype=None, enabled=True):
            assert device == "cuda"
            self.dtype = dtype if enabled else None

        def __enter__(self):
            self.before, calls.dtype = calls.dtype, self.dtype

        def __exit__(self, *_):
            calls.dtype = self.before

    def pin_memory(tensor):
        copy = tensor.clone()
        copy.pinned = True
        return copy

    torch.cuda._lazy_init = lambda: None
    torch.cuda.amp.common.amp_definitely_not_available = lambda: False
    torch.cuda.get_rng_state = lambda device: torch.get_rng_state()
    torch.cuda.set_rng_state = lambda state, device: None
    torch.Tensor.pin_memory = pin_memory
    torch.autocast = Autocast
    torch.is_autocast_enabled = lambda device=None: calls.dtype is not None
    torch.__future__.set_swap_module_params_on_conversion(True)  # .to() keeps each parameter the same object
    with calls, Noting():
        yield


RUNS = {
    "simclr float32": {"method": "simclr"},
    "simclr bfloat16": {"method": "simclr", "precision": "bfloat16"},
    "simclr float16": {"method": "simclr", "precision": "float16"},
    "simclr in chunks": {"method": "simclr", "chunk": 12, "precision": "bfloat16"},
    "simclr in naive chunks": {"method": "simclr", "chunk": 16, "accumulation": "naive", "precision": "float16"},
    "simclr in groups": {"method": "simclr", "bn_groups": 4},
    "simclr with LARS": {"method": "simclr", "optimizer": "lars", "precision": "float16"},
    "moco float32": {"method": "moco"},
    "moco bfloat16": {"method": "moco", "precision": "bfloat16"},
    "moco float16": {"method": "moco", "precision": "float16"},
    "moco in chunks": {"method": "moco", "chunk": 12},
    "moco shuffled": {"method": "moco", "bn_groups": 4, "symmetric": True, "precision": "bfloat16"},
    "moco not shuffled": {"method": "moco", "bn_groups": 4, "shuffle": False},
    "moco, a queue in parts": {"method": "moco", "queue": 5000},
    "oracle": {"method": "oracle"},
    "simsiam": {"method": "simsiam", "head_norm": True},
    "sigmoid": {"method": "sigmoid"},
    "dcl": {"method": "dcl"},
}
STEPS = 2


def losses_of(changes, device):
    """The losses of a few steps, and what waited in them and in a look at them afterwards."""
    from tqdm import tqdm

    from minilab import Recipe
    from minilab.data import shapes
    from minilab.training import Trainer

    recipe = Recipe(**{"encoder": "micro", "batch": 32, "queue": 40, "precision": "float32", "dim": 16, **changes})
    trainer = Trainer(recipe, shapes(concepts=2, train=64, test=8), device, checkpoint=None)
    trainer.run.method.train()
    order = trainer._order(0)
    waits.clear()
    for step in range(STEPS):
        trainer.losses[step % len(trainer.losses)] = trainer.take_step(order[step % len(order)])
        if step == 0:
            first = trainer.losses[0].clone()
    stepping = list(waits)
    trainer._look(1, tqdm(disable=True))
    looking = list(waits[len(stepping) :])
    return [float(first), *trainer.losses.tolist()], stepping, looking


def caught():
    """What a step with each of these would add to `waits`."""
    values = torch.arange(6.0).to(CUDA)
    small = torch.ones(6)
    found = {}
    for name, work in {
        "item": lambda: values.sum().item(),
        "bool": lambda: bool((values > 1).any()),
        "nonzero": lambda: values.nonzero(),
        "a mask": lambda: values[values > 1],
        "setting by a mask": lambda: values.__setitem__(values > 1, values[2:] + 1),
        "masked_select": lambda: values.masked_select(values > 1),
        "unique": lambda: values.unique(),
        "cpu": lambda: values.cpu(),
        "a blocking copy": lambda: small.pin_memory().to(CUDA),
        "a copy from memory that is not pinned": lambda: small.to(CUDA, non_blocking=True),
        "copy_": lambda: values.copy_(small),
        "a tensor made on the host": lambda: torch.tensor([1.0, 2.0], device=CUDA),
        "equal": lambda: torch.equal(values, values + 1),
        "tolist": lambda: values.tolist(),
    }.items():
        waits.clear()
        work()
        found[name] = list(waits)
    waits.clear()
    small.pin_memory().to(CUDA, non_blocking=True)
    values.index_select(0, torch.arange(2, device=CUDA)).mul_(2).sum()
    values[torch.arange(2, device=CUDA)]
    return found, list(waits)


def main() -> None:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    report = {"cpu": {name: losses_of(changes, CPU)[0] for name, changes in RUNS.items()}, "runs": {}}
    with pretending():
        report["caught"] = caught()
        for name, changes in RUNS.items():
            print(name, file=sys.stderr)
            report["runs"][name] = losses_of(changes, CUDA)
    print(json.dumps(report))


@pytest.fixture(scope="module")
def report():
    done = subprocess.run([sys.executable, __file__], capture_output=True, text=True, timeout=290)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def test_the_stand_in_notes_whatever_waits(report):
    found, clean = report["caught"]
    assert {name: bool(waited) for name, waited in found.items()} == dict.fromkeys(found, True)
    assert clean == []


@pytest.mark.parametrize("name", RUNS)
def test_no_step_waits_for_the_device(report, name):
    _, stepping, looking = report["runs"][name]
    assert stepping == []
    assert "_local_scalar_dense" in looking  # the stand-in was there: a look does wait


@pytest.mark.parametrize("name", RUNS)
def test_a_run_on_the_device_is_that_on_the_cpu(report, name):
    """In half precision nearly: autocast casts a weight once for all its uses, `Calls` once for each."""
    rounding = 1e-5 if RUNS[name].get("precision", "float32") == "float32" else 2e-3
    assert report["runs"][name][0] == pytest.approx(report["cpu"][name], rel=rounding)


if __name__ == "__main__":
    main()
