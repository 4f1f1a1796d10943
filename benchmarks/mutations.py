"""Spoilt inputs for the readers: a valid value or text, changed in one or a few places, by a seeded generator.

Three kinds: `structure` changes a tree of lists, tables and plain values; `yaml_text` and `json_text` write such a tree
with what only a text can hold (anchors, tags, keys given twice, NaN); `raw` flips, cuts and inserts bytes.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator
from typing import Any

import yaml

SCRIPT = "</script><script>window.ran=1</script><img src=x onerror=window.ran=1>\"'&"
WORDS = (
    "", " ", "\n", "0", "null", "true", "é", "ﷺ", "\u202e", "\u0000", "\u001b[2J", "\ud800", "\ufeff", SCRIPT,
    "javascript:alert(1)", "../../../etc/passwd", "__proto__", "constructor", "toString", "basics", "moco", "S1",
    "$x", "$$", "$\\href{javascript:alert(1)}{x}$", "a" * 5000, "9" * 5000, "{}", "[]", "%s%n", "${7*7}", "NaN",
)  # fmt: skip
NUMBERS = (
    0, -1, 1, 2, 2**31, 2**53 + 1, 2**63, -(2**64), 10**30, 10**400, 0.1, -0.0, 1e-320, 1e308, float("nan"),
    float("inf"), -float("inf"), 1.5, 5001, 1_790_000_000_000,
)  # fmt: skip
PLAIN = (None, True, False, [], {}, [[]], [None], {"a": 1}, {"__proto__": {"polluted": 1}}, {"constructor": {}})
NAMES = (
    "__proto__",
    "constructor",
    "id",
    "method",
    "why",
    "text",
    "reviews",
    "",
    "a b",
    SCRIPT,
    "<<",
    "=",
    "é",
    "extra",
)
DEEP = (30, 300, 3000, 30_000)
Path = tuple[Any, ...]


def junk(dice: random.Random) -> Any:
    """A value that most fields do not expect."""
    kind = dice.randrange(4)
    if kind == 3:
        deep: Any = "deep"
        for _ in range(dice.choice((3, 30, 90))):
            deep = [deep] if dice.random() < 0.5 else {"a": deep}
        return deep
    return copy.deepcopy(dice.choice((WORDS, NUMBERS, PLAIN)[kind]))


def places(value: Any, here: Path = ()) -> Iterator[Path]:
    """The path of every value in a tree, but for the root."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inside in pairs:
        yield (*here, name)
        yield from places(inside, (*here, name))


def structure(dice: random.Random, value: Any) -> Any:
    """A copy of a tree with one to three of its places deleted, doubled, renamed, swapped or given another kind."""
    changed = copy.deepcopy(value)
    for _ in range(dice.choice((1, 1, 1, 2, 3))):
        every = list(places(changed))
        if not every:
            return junk(dice)
        *above, last = dice.choice(every)
        parent = changed
        for name in above:
            parent = parent[name]
        dice.choice(CHANGES)(dice, parent, last)
    return changed if dice.random() < 0.98 else junk(dice)


def _delete(dice: random.Random, parent: Any, place: Any) -> None:
    del parent[place]


def _replace(dice: random.Random, parent: Any, place: Any) -> None:
    parent[place] = junk(dice)


def _double(dice: random.Random, parent: Any, place: Any) -> None:
    """The same once more: many times in a list, under another name in a table."""
    again = copy.deepcopy(parent[place])
    if isinstance(parent, list):
        parent[place:place] = [again] * dice.choice((1, 2, 50))
    else:
        parent[dice.choice(NAMES)] = again


def _rename(dice: random.Random, parent: Any, place: Any) -> None:
    if isinstance(parent, list):
        dice.shuffle(parent)
    else:
        parent[dice.choice((*NAMES, f"{place} ", str(place).upper()))] = parent.pop(place)


def _retype(dice: random.Random, parent: Any, place: Any) -> None:
    """The same value as another kind: a number as a text, a text as a list, a list as a table."""
    found = parent[place]
    if isinstance(found, bool | int | float):
        parent[place] = dice.choice((str(found), [found], not found, found * 1.0 if abs(found) < 1e300 else found))
    elif isinstance(found, str):
        parent[place] = dice.choice(([found], {found: found}, len(found), list(found[:20])))
    elif isinstance(found, list):
        parent[place] = dice.choice((dict(enumerate(map(str, found))), str(found), found[0] if found else None))
    else:
        parent[place] = [found]


def _edge(dice: random.Random, parent: Any, place: Any) -> None:
    """A text or a number just beside what it was."""
    found = parent[place]
    if isinstance(found, str):
        cut = dice.randrange(len(found) + 1)
        parent[place] = found[:cut] + dice.choice(WORDS) + found[cut:]
    elif isinstance(found, bool) or not isinstance(found, int | float):
        parent[place] = junk(dice)
    else:
        parent[place] = dice.choice((-found, found + 1, found - 1, found * 1000, dice.choice(NUMBERS)))


CHANGES: tuple[Callable[[random.Random, Any, Any], None], ...] = (_delete, _replace, _double, _rename, _retype, _edge)


def json_text(dice: random.Random, value: Any) -> bytes:
    """A changed tree as JSON, sometimes with a key twice, deep nesting, or in another encoding."""
    text = json.dumps(structure(dice, value), ensure_ascii=dice.random() < 0.5)
    kind = dice.randrange(20)
    if kind == 0:
        depth = dice.choice(DEEP)
        text = text.replace(dice.choice(text.split(",")), "[" * depth + "]" * dice.choice((0, depth)), 1)
    elif kind == 1 and text.startswith("{"):
        text = "{" + dice.choice(text[1:-1].split(", ")) + ", " + text[1:]
    elif kind == 2:
        text = text.replace(":", dice.choice((": Infinity,", ": -", ": 1e999, ", ": 0x1, ", ":: ")), 1)
    return _encoded(dice, text)


# Each list holds nine times the one before: 13 of them print as 2.5 million million texts.
BOMB = (
    "[&a0 [x, x, x, x, x, x, x, x, x]" + "".join(f", &a{n + 1} [{', '.join([f'*a{n}'] * 9)}]" for n in range(12)) + "]"
)
TAGS = (
    "!!python/object/apply:os.system ['touch ran']", "!!python/name:os.system", "!!python/object/new:os.system [x]",
    "!!python/object:minilab.recipe.Recipe {}", "!!int ''", "!!int abc", "!!float abc", "!!bool maybe", "!!null [a]",
    "!!timestamp abc", "!!binary é", "!!binary aGk=", "!!set {a, b}", "!!omap [a: 1]", "!!str {=: id}", "!own x",
    "!!str [a]", "! x", "!<tag:yaml.org,2002:int> x",
)  # fmt: skip
SCALARS = (
    BOMB, "*a", "&a [*a]", "&a x", "{<<: {id: x}}", "2001-99-99", "2001-01-01", "0x_", "0b_", "1:2:3", "0o7", "._",
    ".nan", ".inf", "-.inf", "1" * 5000, "0x" + "f" * 5000, "~", "=", "<<", "? [a]", "'", '"', "|", ">", "%YAML 9.9",
    "---", "...", '"\\e[2J"', '"\\0"', '"\\ud800"', '"\\x07"', "{a: 1, a: 2}", "[[]", "{a: b", "yes", "1e5", "0.1_",
    "- - -", "@", "`",
)  # fmt: skip


def yaml_text(dice: random.Random, value: Any) -> bytes:
    """A changed tree as YAML, sometimes with an alias bomb, tags, anchors, a key twice, or deep nesting."""
    text = as_yaml(structure(dice, value))
    kind = dice.randrange(10)
    if kind == 0:
        text = dice.choice((f"- {BOMB}\n", f"- id: {BOMB}\n")) + text
    elif kind == 1:
        text = _deeper(dice, text)
    elif kind < 6:
        lines = text.split("\n")
        place = dice.randrange(len(lines))
        head, colon, _ = lines[place].partition(":")
        new = dice.choice((*TAGS, *SCALARS))
        lines[place] = f"{head}{colon} {new}" if colon and kind < 5 else f"{head}? {new}\n: x"
        text = "\n".join(lines[:place] + lines[place : place + 1] * dice.choice((1, 1, 2)) + lines[place + 1 :])
    return _encoded(dice, text)


def as_yaml(value: Any) -> str:
    """A tree as YAML."""
    return yaml.dump(value, allow_unicode=True, sort_keys=False, Dumper=_PlainDumper)


class _PlainDumper(yaml.SafeDumper):
    """Writes a value that stands in two places twice, without an alias."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _deeper(dice: random.Random, text: str) -> str:
    depth = dice.choice(DEEP)
    few = min(depth, 3000)  # these cost the square of their number in spaces
    nest = dice.choice(
        ("[" * depth + "]" * depth, "[" * depth, "{a: " * depth + "}" * depth, "- " * few, "? " * few),
    )
    return f"{text}\n- {nest}\n" if dice.random() < 0.5 else f"- id: {nest}\n{text}"


def _encoded(dice: random.Random, text: str) -> bytes:
    """Mostly UTF-8; a lone surrogate, which UTF-8 has no bytes for, goes in as its own three."""
    coding = dice.choice(("utf-8",) * 20 + ("utf-16", "utf-32", "latin-1", "utf-8-sig", "utf-7"))
    return text.encode(coding, "surrogatepass" if coding.startswith("utf") and coding != "utf-7" else "replace")


def raw(dice: random.Random, data: bytes) -> bytes:
    """Bytes with one to four places flipped, cut out, doubled or filled with others; or cut off."""
    found = bytearray(data)
    for _ in range(dice.randint(1, 4)):
        start = dice.randrange(len(found) + 1)
        end = min(len(found), start + dice.choice((1, 1, 2, 8, 64, 512)))
        kind = dice.randrange(5)
        if kind == 0 and start < len(found):
            found[start] ^= 1 << dice.randrange(8)
        elif kind == 1:
            del found[start:end]
        elif kind == 2:
            found[start:start] = dice.randbytes(end - start)
        elif kind == 3:
            found[start:start] = found[start:end]
        elif kind == 4 and dice.random() < 0.3:
            del found[start:]
    return bytes(found)
