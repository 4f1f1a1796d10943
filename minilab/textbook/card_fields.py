"""Reading one field of a card file, with an error that names the file, the line and the field."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the same safe loader, ten times as fast where it is


class Place:
    """Where a value stands in its file, so that an error can name the line."""

    def __init__(self, path: Path, node: yaml.Node) -> None:
        self.path, self.node = path, node

    def fault(self, field: str, message: str) -> ValueError:
        """The error to raise: it names the file, the line of ``field`` (or of this value), and the field."""
        node = self.field(field).node
        return ValueError(f"{self.path}:{node.start_mark.line + 1}: field {field!r}: {message}")

    def field(self, name: str) -> Place:
        """The place of one field's value, or this place if there is no such field."""
        for key, value in self.fields():
            if key == name:
                return Place(self.path, value)
        return self

    def fields(self) -> Iterator[tuple[Any, yaml.Node]]:
        """The names and the values' nodes of a mapping; nothing for any other value."""
        if isinstance(self.node, yaml.MappingNode):
            for key, value in self.node.value:
                yield key.value, value

    def items(self) -> list[Place]:
        """The places of a list's items; none for any other value."""
        return [Place(self.path, node) for node in self.node.value] if isinstance(self.node, yaml.SequenceNode) else []


def read_list(path: Path) -> list[tuple[Any, Place]]:
    """The values of a YAML file that holds a list, each with its place; ``ValueError`` if it holds no list."""
    loader = LOADER(path.read_text(encoding="utf-8"))
    try:
        root = loader.get_single_node()
        values = loader.construct_document(root) if root is not None else None
    except yaml.YAMLError as fault:
        raise ValueError(f"{path}: not valid YAML: {fault}") from fault
    finally:
        loader.dispose()
    if not isinstance(values, list) or not values:
        raise ValueError(f"{path}:1: the file must be a list of one or more cards")
    return list(zip(values, Place(path, root).items(), strict=True))


def check_fields(value: Any, place: Place, allowed: set[str], needed: tuple[str, ...]) -> None:
    """``value`` is a mapping with every field in ``needed``, none twice, none unknown; else ``ValueError``."""
    if not isinstance(value, dict):
        raise place.fault("", f"must be a mapping with the fields {', '.join(sorted(allowed))}, got {value!r}")
    seen: set[Any] = set()
    for name, _ in place.fields():
        if name not in allowed:
            raise place.fault(str(name), f"is unknown; allowed are {', '.join(sorted(allowed))}")
        if name in seen:
            raise place.fault(str(name), "is given twice; keep one")
        seen.add(name)
    for name in needed:
        if name not in value:
            raise place.fault(name, "is missing")


def text(value: dict[str, Any], name: str, place: Place) -> str:
    """A field that must be a non-empty text, with its line breaks folded into spaces."""
    return " ".join(lines(value, name, place).split())


def lines(value: dict[str, Any], name: str, place: Place) -> str:
    """A field that must be a non-empty text, with its line breaks kept: a log, a table, code."""
    found = value[name]
    if not isinstance(found, str) or not found.strip():
        raise place.fault(name, f"must be a non-empty text, got {found!r}")
    return found.strip("\n").rstrip()


def texts(value: dict[str, Any], name: str, place: Place) -> tuple[str, ...]:
    """A field that must be a non-empty list of non-empty texts."""
    found = value[name]
    if not isinstance(found, list) or not found:
        raise place.fault(name, f"must be a list of one or more texts, got {found!r}")
    for item in found:
        if not isinstance(item, str) or not item.strip():
            raise place.fault(name, f"must hold non-empty texts only, got {item!r}")
    return tuple(" ".join(item.split()) for item in found)


def one_of(value: dict[str, Any], name: str, place: Place, allowed: tuple[str, ...]) -> str:
    """A field that must be one of the words in ``allowed``."""
    if value[name] not in allowed:
        raise place.fault(name, f"{value[name]!r} is not allowed; use one of {', '.join(allowed)}")
    return str(value[name])


def number(value: dict[str, Any], name: str, place: Place) -> float:
    """A field that must be a finite number."""
    found = value[name]
    if isinstance(found, bool) or not isinstance(found, int | float) or not abs(found) < float("inf"):
        raise place.fault(name, f"must be a number, got {found!r}")
    return found
