"""The optimisers of the two papers, and their learning-rate schedule."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from minilab import checks
from minilab.recipe import Recipe


def schedule(step: float, steps: int, warmup: float) -> float:
    """Factor on the peak learning rate after `step` of `steps` updates.

    Linear from 0 to 1 over the first `warmup` updates, then a half cosine: exactly 1 at
    `warmup`, exactly 0 at `steps`. All three in updates, not epochs.
    """
    for name, value in (("step", step), ("steps", steps), ("warmup", warmup)):
        checks.number(name, value, -checks.MOST)
    if not 0 <= warmup <= steps or not 0 <= step <= steps:
        raise ValueError(f"step is {step} and warmup is {warmup}; allowed: both from 0 to steps ({steps})")
    if step < warmup:
        return step / warmup
    if steps == warmup:
        return 1.0
    return 0.5 * (1 + math.cos(math.pi * (step - warmup) / (steps - warmup)))


def build_optimizer(method: nn.Module, recipe: Recipe) -> Optimizer:
    """SGD with momentum 0.9, or LARS around it, over the parameters that take gradients."""
    checks.kind("method", method, nn.Module, "a torch.nn.Module")
    checks.kind("recipe", recipe, Recipe, "a Recipe")
    parameters = [p for p in method.parameters() if p.requires_grad]
    if not parameters:
        raise ValueError("method has no parameters that take gradients; allowed: one or more")
    if recipe.optimizer == "sgd":
        return torch.optim.SGD(parameters, lr=0.0, momentum=0.9, weight_decay=recipe.weight_decay)
    # Biases and norm layers are vectors: SimCLR's appendix leaves them out of decay and adaptation.
    matrices = {"params": [p for p in parameters if p.ndim > 1], "weight_decay": recipe.weight_decay, "adapt": True}
    vectors = {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0, "adapt": False}
    return LARS([matrices, vectors])


class LARS(Optimizer):
    """Layer-wise adaptive rate scaling (You et al., arXiv 1708.03888), with momentum.

    Each layer's step is scaled by trust * |weights| / |gradient|: large batches allow
    large learning rates only if no layer is moved by more than a share of its size.
    """

    def __init__(self, parameters: Iterable[dict], momentum: float = 0.9, trust: float = 0.001) -> None:
        checks.number("momentum", momentum, 0, 1)
        checks.number("trust", trust, 0, open_low=True)
        usual = {"lr": 0.0, "momentum": momentum, "trust": trust, "weight_decay": 0.0, "adapt": True}
        super().__init__(parameters, usual)

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """One update. `closure` is not supported, as nothing here re-evaluates the loss."""
        if closure is not None:
            checks.refuse("closure", closure, "None")
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update(parameter, group)

    def _update(self, parameter: Tensor, group: dict) -> None:
        direction = parameter.grad.add(parameter, alpha=group["weight_decay"])  # type: ignore[union-attr]
        if group["adapt"]:
            size, pull = parameter.norm(), direction.norm()
            ratio = group["trust"] * size / pull
            direction = direction * torch.where((size > 0) & (pull > 0), ratio, 1.0)
        state = self.state[parameter]
        if "velocity" not in state:
            state["velocity"] = torch.zeros_like(parameter)
        velocity = state["velocity"].mul_(group["momentum"]).add_(direction)
        parameter.sub_(group["lr"] * velocity)
