"""Reading one field of a card file, with an error that names the file, the line and the field."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from minilab.checks import shown

LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the same safe loader, ten times as fast where it is
DEEPEST = 20  # lists and tables inside each other; a card has four


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

    def fields(self) -> Iterator[tuple[str, yaml.Node]]:
        """The names and the values' nodes of a mapping; nothing for any other value."""
        if isinstance(self.node, yaml.MappingNode):
            for key, value in self.node.value:
                yield str(key.value), value

    def items(self) -> list[Place]:
        """The places of a list's items; none for any other value."""
        return [Place(self.path, node) for node in self.node.value] if isinstance(self.node, yaml.SequenceNode) else []


def read_list(path: Path) -> list[tuple[Any, Place]]:
    """The values of a YAML file that holds a list, each with its place; ``ValueError`` if it holds no list.

    Anchors, aliases and tags are refused, and so is deep nesting: a few lines of them can stand for a value that no
    machine can print, or for a call.
    """
    try:
        content = path.read_text(encoding="utf-8")
        _check_events(content, path)
        root, values = _construct(content)
    except (yaml.YAMLError, UnicodeDecodeError) as fault:
        raise ValueError(f"{path}: not valid YAML: {fault}") from fault
    if not isinstance(values, list) or not values:
        raise ValueError(f"{path}:1: the file must be a list of one or more cards")
    return list(zip(values, Place(path, root).items(), strict=True))


def _construct(content: str) -> tuple[Any, Any]:
    """The one document's node and value."""
    loader = LOADER(content)
    try:
        root = loader.get_single_node()
        return root, None if root is None else loader.construct_document(root)
    except ValueError as fault:  # a date, or a number, that cannot be
        raise yaml.YAMLError(str(fault)) from fault
    finally:
        loader.dispose()


def _check_events(content: str, path: Path) -> None:
    """Raise ``ValueError`` with the line of an anchor, alias or tag, or of nesting deeper than ``DEEPEST``."""
    depth = 0
    event: Any
    for event in yaml.parse(content, Loader=LOADER):
        line = f"{path}:{event.start_mark.line + 1}: not valid YAML here"
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise ValueError(f"{line}: anchors and aliases are not allowed; write the value out")
        if getattr(event, "tag", None) is not None:
            raise ValueError(f"{line}: the tag {event.tag!r} is not allowed; write the value without a tag")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise ValueError(f"{line}: nested deeper than {DEEPEST}; allowed are lists and tables of a few levels")


def check_fields(value: Any, place: Place, allowed: set[str], needed: tuple[str, ...]) -> None:
    """``value`` is a mapping with every field in ``needed``, none twice, none unknown; else ``ValueError``."""
    if not isinstance(value, dict):
        raise place.fault("", f"must be a mapping with the fields {', '.join(sorted(allowed))}, got {shown(value)}")
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
        raise place.fault(name, f"must be a non-empty text, got {shown(found)}")
    _check_signs(found, name, place)
    return found.strip("\n").rstrip()


def _check_signs(found: str, name: str, place: Place) -> None:
    """Raise ``ValueError`` for a control character, which a terminal would obey and no page can show."""
    for sign in found:
        if (sign < " " and sign not in "\n\t") or "\x7f" <= sign <= "\x9f" or "\ud800" <= sign <= "\udfff":
            raise place.fault(name, f"must be a text without control characters, got {shown(sign)}")


def texts(value: dict[str, Any], name: str, place: Place) -> tuple[str, ...]:
    """A field that must be a non-empty list of non-empty texts."""
    found = value[name]
    if not isinstance(found, list) or not found:
        raise place.fault(name, f"must be a list of one or more texts, got {shown(found)}")
    for item in found:
        if not isinstance(item, str) or not item.strip():
            raise place.fault(name, f"must hold non-empty texts only, got {shown(item)}")
        _check_signs(item, name, place)
    return tuple(" ".join(item.split()) for item in found)


def one_of(value: dict[str, Any], name: str, place: Place, allowed: tuple[str, ...]) -> str:
    """A field that must be one of the words in ``allowed``."""
    if value[name] not in allowed:
        raise place.fault(name, f"{shown(value[name])} is not allowed; use one of {', '.join(allowed)}")
    return str(value[name])


def number(value: dict[str, Any], name: str, place: Place) -> float:
    """A field that must be a finite number."""
    found = value[name]
    if isinstance(found, bool) or not isinstance(found, int | float) or not abs(found) <= sys.float_info.max:
        raise place.fault(name, f"must be a number, got {shown(found)}")
    return found
