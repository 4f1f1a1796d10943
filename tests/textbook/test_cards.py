"""A wrong card file is refused with its name, the line, the field and what is allowed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from minilab.textbook.cards import Numeric, RedFlag, load_bank, load_file

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
  level: mid
  answer: {basics: Say this.}
  rubric: [one, two, three, four]
  red_flags:
    - text: never say
      why: it is wrong
  chapter: basics/negatives
"""
NUMBER = "  numeric: {value: 6.24, tolerance: 0.02, unit: nats, why: log 511}\n"


def test_a_good_card_is_read(tmp_path: Path) -> None:
    path = tmp_path / "topic.yml"
    path.write_text(GOOD)
    (card,) = load_file(path)
    assert (card.id, card.topic, card.tier, card.level) == ("topic-one", "topic", "basics", "mid")
    assert [choice.right for choice in card.choices] == [True, False, False]
    assert card.sources == ("key, section 2",)
    assert card.rubric == ("one", "two", "three", "four")
    assert card.answer == {"basics": "Say this."}
    assert card.red_flags == (RedFlag("never say", "it is wrong"),)
    assert card.chapter == "basics/negatives"
    assert (card.context, card.analogy, card.numeric, card.follow_ups, card.records) == (None, None, None, (), ())


def test_what_may_be_given_is_read(tmp_path: Path) -> None:
    path = tmp_path / "topic.yml"
    log = "  context: |2\n      epoch  loss\n          1  5.55\n\n    then nothing\n"
    path.write_text(GOOD + log + "  analogy: a room\n  records: [momentum]\n" + NUMBER)
    (card,) = load_file(path)
    assert card.context == "  epoch  loss\n      1  5.55\n\nthen nothing"
    assert card.analogy == "a room"
    assert card.records == ("momentum",)
    assert card.numeric == Numeric(6.24, 0.02, "nats", "log 511")


def test_a_number_can_stand_instead_of_choices(tmp_path: Path) -> None:
    path = tmp_path / "topic.yml"
    start, end = GOOD.index("  choices:"), GOOD.index("  sources:")
    without = GOOD[:start] + GOOD[end:]
    path.write_text(without + NUMBER)
    assert load_file(path)[0].choices == ()
    path.write_text(without)
    with pytest.raises(ValueError, match="field 'choices': is missing, and there is no numeric either"):
        load_file(path)


def test_line_breaks_in_a_text_are_folded(tmp_path: Path) -> None:
    path = tmp_path / "topic.yml"
    path.write_text(GOOD.replace("Which one?", "|\n    Which\n    one?"))
    assert load_file(path)[0].question == "Which one?"


def test_a_follow_up_is_the_id_of_another_card(tmp_path: Path) -> None:
    second = GOOD.replace("topic-one", "other-one")
    (tmp_path / "other.yml").write_text(second)
    (tmp_path / "topic.yml").write_text(GOOD + "  follow_ups: [other-one]\n")
    assert load_bank(tmp_path)["topic-one"].follow_ups == ("other-one",)
    for wrong in ("no-such", "topic-one"):
        (tmp_path / "topic.yml").write_text(GOOD + f"  follow_ups: [other-one, {wrong}]\n")
        with pytest.raises(ValueError, match=rf"topic\.yml:22: field 'follow_ups': '{wrong}' is not the id of another"):
            load_bank(tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "line", "field", "message"),
    [
        ("id: topic-one", "id: Topic One", 1, "id", "lower-case letters"),
        ("id: topic-one", "id: 3", 1, "id", "non-empty text"),
        ("tier: basics", "tier: easy", 2, "tier", "use one of basics, solid, deep"),
        ("  tier: basics\n", "", 1, "tier", "is missing"),
        ("Which one?", "''", 3, "question", "non-empty text"),
        ("Which one?", "[a]", 3, "question", "non-empty text"),
        ("question:", "qestion:", 3, "qestion", "is unknown; allowed are analogy, answer, chapter"),
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
        ("level: mid", "level: expert", 15, "level", "use one of junior, mid, senior, staff"),
        ("  level: mid\n", "", 1, "level", "is missing"),
        ("{basics: Say this.}", "{expert: x}", 16, "expert", "allowed are basics, deep, solid"),
        ("{basics: Say this.}", "words", 16, "answer", "must hold one of basics, solid, deep"),
        ("{basics: Say this.}", "{}", 16, "answer", "must hold one of basics, solid, deep"),
        ("[one, two, three, four]", "[one, two, three, '']", 17, "rubric", "non-empty texts only"),
        ("[one, two, three, four]", "[one, two, three]", 17, "rubric", "needs 4 to 6 points, got 3"),
        ("[one, two, three, four]", "[1a, 2a, 3a, 4a, 5a, 6a, 7a]", 17, "rubric", "needs 4 to 6 points, got 7"),
        ("      why: it is wrong\n", "", 19, "why", "is missing"),
        ("    - text: never say\n      why: it is wrong\n", "    - never say\n", 19, "", "must be a mapping"),
        ("\n    - text: never say\n      why: it is wrong\n", " []\n", 18, "red_flags", "a list of one or more"),
        ("chapter: basics/negatives", "chapter: ''", 21, "chapter", "non-empty text"),
        ("chapter: basics/negatives", "chapter: a\n  context: 3", 22, "context", "non-empty text"),
        ("chapter: basics/negatives", "chapter: a\n  follow_ups: x", 22, "follow_ups", "one or more texts"),
        ("chapter: basics/negatives", "chapter: a\n  records: []", 22, "records", "one or more texts"),
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
    start, end = GOOD.index("  choices:"), GOOD.index("  sources:")
    path.write_text(f"{GOOD[:start]}  choices: {choices}\n{GOOD[end:]}")
    with pytest.raises(ValueError, match=message):
        load_file(path)


@pytest.mark.parametrize(
    ("old", "new", "field", "message"),
    [
        ("value: 6.24", "value: six", "value", "must be a number, got 'six'"),
        ("value: 6.24", "value: true", "value", "must be a number, got True"),
        ("value: 6.24", "value: .nan", "value", "must be a number, got nan"),
        ("tolerance: 0.02", "tolerance: -1", "tolerance", "must be 0 or more, got -1"),
        ("unit: nats", "unit: 3", "unit", "non-empty text"),
        ("unit: nats, ", "", "unit", "is missing"),
        ("unit: nats", "unit: nats, digits: 2", "digits", "is unknown"),
    ],
)
def test_a_bad_number_is_named(tmp_path: Path, old: str, new: str, field: str, message: str) -> None:
    assert old in NUMBER
    path = tmp_path / "topic.yml"
    path.write_text(GOOD + NUMBER.replace(old, new))
    with pytest.raises(ValueError, match=rf":22: field '{field}': .*{message}"):
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
    with pytest.raises(ValueError, match=r"two\.yml:22: field 'id': 'topic-one' is used twice in this file"):
        load_file(tmp_path / "two.yml")
