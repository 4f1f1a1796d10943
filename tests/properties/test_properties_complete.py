"""Every public function, class and method with arguments of minilab has a property test, or a reason for none."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import strategies

import minilab

for file in sorted(Path(__file__).parent.glob("test_*_properties.py")):
    importlib.import_module(file.stem)  # the same modules that pytest collects: their decorators fill the register


def modules() -> Iterator[ModuleType]:
    for info in pkgutil.walk_packages(minilab.__path__, "minilab."):
        if not info.name.endswith("__main__"):
            yield importlib.import_module(info.name)


def takes_arguments(function: Any) -> bool:
    """Whether there is anything to get wrong in a call."""
    return any(name not in ("self", "cls", "ctx") for name in inspect.signature(function).parameters)


def public(module: ModuleType) -> Iterator[Any]:
    """What the module itself defines: functions, classes, and of these the methods that take arguments."""
    for name, member in vars(module).items():
        if name.startswith("_") or getattr(member, "__module__", None) != module.__name__:
            continue
        if inspect.isclass(member):
            yield member
            for method_name, method in vars(member).items():
                function = getattr(method, "__func__", method)  # of a classmethod or a staticmethod
                if not method_name.startswith("_") and inspect.isfunction(function) and takes_arguments(function):
                    yield function
        elif callable(member) and hasattr(member, "__qualname__") and takes_arguments(member):
            yield member


NAMES = {strategies.name_of(subject) for module in modules() for subject in public(module)}


def test_everything_public_has_a_property_test_or_a_reason() -> None:
    assert len(NAMES) > 300
    missing = sorted(NAMES - strategies.COVERED - set(strategies.EXEMPT))
    assert not missing, "no property test covers " + ", ".join(missing)


def test_nothing_is_both_covered_and_exempt_and_nothing_is_named_that_is_gone() -> None:
    both = sorted(strategies.COVERED & set(strategies.EXEMPT))
    assert not both, f"covered and exempt: {both}"
    defined = {strategies.name_of(thing) for module in modules() for thing in vars(module).values() if callable(thing)}
    gone = sorted(set(strategies.EXEMPT) - NAMES - defined)
    assert not gone, f"exempt, but not there: {gone}"


def test_what_has_no_test_is_found() -> None:
    """The instrument itself: a module of a function without a test, a private one, and a class with a method."""
    text = "def f(x): ...\ndef _g(x): ...\ndef h(): ...\nclass C:\n    def m(self, x): ...\n    def n(self): ...\n"
    module = ModuleType("minilab.made_up")
    exec(text, vars(module))
    assert {strategies.name_of(subject) for subject in public(module)} == {
        "minilab.made_up.f", "minilab.made_up.C", "minilab.made_up.C.m"
    }  # fmt: skip
