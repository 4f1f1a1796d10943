"""What the property tests share: which functions they cover, how many examples they try, and how input goes wrong.

A test says what it covers: `@covers(losses.nt_xent, moco.MoCo.push)` on top of its other decorators. What has no
property test says why in its test file: `exempt(pictures.draw_loss, "a figure; see test_pictures.py")`.
test_properties_complete.py imports every test file of this folder and fails with the names of what is left.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

COVERED: set[str] = set()  # "minilab.losses.nt_xent", "minilab.moco.MoCo.push": of all test files imported so far
EXEMPT: dict[str, str] = {}  # the same kind of name: why it has no property test


def name_of(subject: Any) -> str:
    """The full name of a function, a class or a method; a property goes by the name of its getter."""
    subject = subject.fget if isinstance(subject, property) else subject
    subject = getattr(subject, "__wrapped__", subject)  # lru_cache and contextmanager wrap what they decorate
    return f"{subject.__module__}.{getattr(subject, '__qualname__', type(subject).__qualname__)}"


def covers(*subjects: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorator of a test: these functions, classes (their constructor) and methods have a property test in it."""
    COVERED.update(map(name_of, subjects))
    return lambda test: test


def exempt(subject: Any, reason: str) -> None:
    """Say why a function, class or method has no property test: at least a few words."""
    assert len(reason.split()) >= 3, f"no reason for {name_of(subject)}"
    EXEMPT[name_of(subject)] = reason


def _tries(count: int) -> settings:
    # The same examples in every run, kept nowhere; a busy machine is no failure.
    return settings(
        max_examples=count, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )


many, some, few = _tries(200), _tries(50), _tries(15)  # decorators: for cheap tests, for usual ones, for slow ones


def refused(call: Callable[..., Any], /, *args: Any, named: str, shown: Any = None, **kwargs: Any) -> str:
    """Assert that the call raises a plain `ValueError` which names the field, the value and what is allowed."""
    with pytest.raises(ValueError) as caught:
        call(*args, **kwargs)
    message = str(caught.value)
    assert type(caught.value) is ValueError, f"{type(caught.value).__name__}: {message}"
    assert named in message, f"{named!r} is not in: {message}"
    assert "allowed" in message, f"what is allowed is not in: {message}"
    assert shown is None or str(shown) in message, f"{shown!r} is not in: {message}"
    return message


NO_NUMBERS = ["1", "", None, [1], (1,), {}, b"1", 1j]  # of a type that is no number


def no_whole(low: float, high: float = math.inf) -> st.SearchStrategy[Any]:
    """What is no whole number from low to high: outside it, or of another type (True and 2.0 too)."""
    wrong = st.sampled_from([*NO_NUMBERS, True, False, low + 0.5, float(low), math.nan, math.inf, -math.inf])
    outside = [st.integers(max_value=math.ceil(low) - 1)] + ([st.integers(high + 1)] if high < math.inf else [])
    return st.one_of(wrong, *outside)


def no_number(low: float, high: float = math.inf, *, low_too: bool = False) -> st.SearchStrategy[Any]:
    """What is no finite number from low to high: `low_too` says that low itself is refused."""
    wrong = st.sampled_from([*NO_NUMBERS, True, math.nan, math.inf, -math.inf, *([low] if low_too else [])])
    outside = [st.floats(max_value=low, exclude_max=True, allow_infinity=False)] if low > -math.inf else []
    if high < math.inf:
        outside.append(st.floats(min_value=high, exclude_min=True, allow_infinity=False))
    return st.one_of(wrong, *outside)


NO_TENSORS = [None, 1, 1.5, "x", b"", [1.0], (1.0,), {}, np.ones((4, 4)), object()]


def one(*values: Any) -> st.SearchStrategy[Any]:
    """One of these values; not drawn by hypothesis's own `sampled_from`, which shows tensors at length."""
    return st.integers(0, len(values) - 1).map(values.__getitem__)


def no_matrix(rows: int = 1, dim: int | None = None) -> st.SearchStrategy[Any]:
    """What is no floating-point tensor (N, dim), N >= rows; `dim` None: any."""
    d = dim or 4
    few = [torch.ones(rows - 1, d)] if rows else []
    other = [torch.ones(8, d + 1), torch.ones(8, d, dtype=torch.float64)[:, 1:]] if dim else []
    whole = [torch.ones(8, d, dtype=kind) for kind in (torch.int64, torch.bool, torch.uint8, torch.complex64)]
    return one(*NO_TENSORS, torch.ones(()), torch.ones(d), torch.ones(2, 4, d), torch.ones(8, 0), *few, *other, *whole)


def no_labels(rows: int) -> st.SearchStrategy[Any]:
    """What is no int64 tensor (rows,)."""
    shapes = [(), (rows - 1,), (rows + 1,), (rows, 1), (1, rows), (0,)]
    tensors = [torch.zeros(shape, dtype=torch.int64) for shape in shapes]
    others = [torch.zeros(rows, dtype=kind) for kind in (torch.float32, torch.int32, torch.bool, torch.uint8)]
    return one(*NO_TENSORS, *tensors, *others)


def no_images(*, channels: tuple[int, ...] = (1, 3), floats: bool = False) -> st.SearchStrategy[Any]:
    """What are no images (N, C, H, W): wrong in shape or type."""
    shapes = [(), (3,), (3, 8, 8), (1, 4, 3, 8, 8), (2, 0, 8, 8), (2, 2, 8, 8), (2, 4, 8, 8), (8, 8, 3)]
    wrong = [torch.zeros(shape) for shape in shapes] + ([torch.zeros(2, 1, 8, 8)] if 1 not in channels else [])
    kinds = [torch.int64, torch.bool, torch.complex64] + ([torch.uint8] if floats else [])
    return one(*NO_TENSORS, *wrong, *[torch.zeros(2, channels[-1], 8, 8, dtype=kind) for kind in kinds])


def other_than(*kinds: type) -> st.SearchStrategy[Any]:
    """A value of none of these types."""
    values = [*NO_TENSORS, True, torch.ones(2), {"a": 1}, [], (), int, len]
    return one(*[value for value in values if not isinstance(value, kinds)])


def no_text(*allowed: str) -> st.SearchStrategy[Any]:
    """What is none of these strings: other strings, and other types, some of which cannot be hashed."""
    return st.one_of(st.text(max_size=20).filter(lambda text: text not in allowed), other_than(str), st.integers())


NO_TEMPERATURE = no_number(1e-6, 100)


@dataclass(frozen=True)
class Door:
    """What a function takes (`good`: made anew for each call), and wrong values by the argument that they stand for.

    The error names that argument, or what `named` says in its place.
    """

    call: Callable[..., Any]
    good: Callable[[], dict[str, Any]]
    bad: dict[str, st.SearchStrategy[Any]]
    named: dict[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Door({getattr(self.call, '__qualname__', self.call)})"


def refusals(*doors: Door) -> Callable[..., None]:
    """A test: each door, with all arguments good but one, refuses that one and names it."""
    cases = [(door, argument) for door in doors for argument in door.bad]
    ids = [f"{getattr(door.call, '__qualname__', door.call)}-{argument}" for door, argument in cases]

    @pytest.mark.parametrize("door, argument", cases, ids=ids)
    @settings(_tries(20))
    @given(data=st.data())
    def test(door: Door, argument: str, data: st.DataObject) -> None:
        wrong = data.draw(door.bad[argument])
        refused(door.call, **{**door.good(), argument: wrong}, named=door.named.get(argument, argument))

    return test
