"""A wrong card file is refused with its name, the line, the field and what is allowed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from minilab.textbook.cards import load_bank, load_file

GOOD = """\
- id: topic-one
  tier: basics
  question: Which one?
  choices:
    - text: a
      right: true
      why: it is
    - text: b
      right: false
      why: it is not
    - text: c
      right: false
      why: nor this
  sources: ["key, section 2"]
"""


def test_a_good_card_is_read(tmp_path: Path) -> None:
    path = tmp_path / "topic.yml"
    path.write_text(GOOD + "  rubric: [first, second]\n  answer: {basics: Say this.}\n")
    (card,) = load_file(path)
    assert card.id == "topic-one"
    assert [choice.right for choice in card.choices] == [True, False, False]
    assert card.sources == ("key, section 2",)
    assert card.rubric == ("first", "second")
    assert card.answer == {"basics": "Say this."}
    assert card.red_flags == ()


def test_line_breaks_in_a_text_are_folded(tmp_path: Path) -> None:
    path = tmp_path / "topic.yml"
    path.write_text(GOOD.replace("Which one?", "|\n    Which\n    one?"))
    assert load_file(path)[0].question == "Which one?"


@pytest.mark.parametrize(
    ("old", "new", "line", "field", "message"),
    [
        ("id: topic-one", "id: Topic One", 1, "id", "lower-case letters"),
        ("id: topic-one", "id: 3", 1, "id", "non-empty text"),
        ("tier: basics", "tier: easy", 2, "tier", "use one of basics, solid, deep"),
        ("  tier: basics\n", "", 1, "tier", "is missing"),
        ("Which one?", "''", 3, "question", "non-empty text"),
        ("Which one?", "[a]", 3, "question", "non-empty text"),
        ("question:", "qestion:", 3, "qestion", "is unknown; allowed are answer, choices"),
        ("tier: basics", "tier: basics\n  tier: solid", 2, "tier", "is given twice"),
        ("right: true", "right: 1", 6, "right", "must be true or false"),
        ("right: true", "right: false", 5, "choices", "exactly one choice must be right, got 0"),
        ("text: b\n      right: false", "text: b\n      right: true", 5, "choices", "exactly one .* got 2"),
        ("why: it is not", "why: ' '", 10, "why", "non-empty text"),
        ("      why: it is not\n", "", 8, "why", "is missing"),
        ("text: b", "text: a", 5, "choices", "same text"),
        ("      why: nor this\n", "      why: nor this\n      note: x\n", 14, "note", "is unknown"),
        ('["key, section 2"]', "[]", 14, "sources", "one or more texts"),
        ('["key, section 2"]', "key", 14, "sources", "one or more texts"),
        ('["key, section 2"]', "[3]", 14, "sources", "non-empty texts only"),
        ('["key, section 2"]', "[key]\n  answer: {expert: x}", 15, "expert", "allowed are basics, solid"),
        ('["key, section 2"]', "[key]\n  answer: words", 15, "answer", "must hold one of basics, solid"),
        ('["key, section 2"]', "[key]\n  rubric: [a, '']", 15, "rubric", "non-empty texts only"),
    ],
)
def test_a_bad_field_is_named(tmp_path: Path, old: str, new: str, line: int, field: str, message: str) -> None:
    assert old in GOOD
    path = tmp_path / "topic.yml"
    path.write_text(GOOD.replace(old, new, 1))
    with pytest.raises(ValueError, match=rf"^{re.escape(str(path))}:{line}: field '{field}': .*{message}"):
        load_file(path)


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ("[]", "3 to 5 choices, got 0"),
        ("words", "3 to 5 choices, got 'words'"),
        ("[{text: a, right: true, why: b}, {text: c, right: false, why: d}]", "got 2"),
        ("[" + ", ".join(f"{{text: t{i}, right: false, why: w}}" for i in range(6)) + "]", "got 6"),
        ("[a, b, c]", "must be a mapping"),
    ],
)
def test_a_bad_list_of_choices_is_named(tmp_path: Path, choices: str, message: str) -> None:
    path = tmp_path / "topic.yml"
    path.write_text(f"- id: a\n  tier: deep\n  question: q\n  choices: {choices}\n  sources: [k]\n")
    with pytest.raises(ValueError, match=message):
        load_file(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must be a list of one or more cards"),
        ("id: a", "must be a list of one or more cards"),
        ("- [a", "not valid YAML"),
        ("- just words", "must be a mapping with the fields"),
        ("- !!python/object/apply:os.system [ls]", "not valid YAML"),
    ],
)
def test_a_bad_file_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "topic.yml"
    path.write_text(text)
    with pytest.raises(ValueError, match=rf"^{re.escape(str(path))}.*{message}"):
        load_file(path)


def test_an_id_is_used_once_in_a_file_and_in_the_bank(tmp_path: Path) -> None:
    (tmp_path / "one.yml").write_text(GOOD)
    (tmp_path / "two.yml").write_text(GOOD)
    with pytest.raises(ValueError, match=r"two\.yml: field 'id': 'topic-one' is used twice in the bank"):
        load_bank(tmp_path)
    (tmp_path / "two.yml").write_text(GOOD + GOOD)
    with pytest.raises(ValueError, match=r"two\.yml:15: field 'id': 'topic-one' is used twice in this file"):
        load_file(tmp_path / "two.yml")
