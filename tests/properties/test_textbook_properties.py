"""Cards, works and claims: texts come out whole and escaped on every page; bad input is named."""

from __future__ import annotations

import contextlib
import io
import json
import re
import string
import tempfile
from html import unescape
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import covers, exempt, few, many, refused, some

from minilab.textbook import (
    anki,
    bank,
    card_fields,
    cards,
    claims,
    claims_page,
    execute,
    figures,
    findings,
    maths,
    terminal,
    works,
)
from minilab.textbook import diagrams as drawings

# The package gives these names to functions, so the modules are reached by their path.
album, exercise, explorer, plane, planner, points, quiz, softmax, start, style = (
    import_module(f"minilab.textbook.{name}")
    for name in ("album", "exercise", "explorer", "plane", "planner", "points", "quiz", "softmax", "start", "style")
)
for shown in (
    album.album, album.widget, explorer.explore, explorer.widget, figures.show, plane.plane, plane.widget,
    planner.planner, planner.widget, points.points, points.widget, quiz.quiz, softmax.softmax_explorer, softmax.widget,
    claims.show_claims,
):  # fmt: skip
    exempt(shown, "displays what contents, still or html make, which are tested here; in a browser: tests/site")
for still in (
    album.still,
    points.still,
    points.picture,
    points.script,
    style.use_book_style,
    drawings.draw_room,
    drawings.draw_album,
):
    exempt(still, "takes no input but an empty axes: tests/textbook looks at what it draws")
for made in (execute.execute, execute.is_stale, execute.normalised, execute.wanted_fingerprint, execute.ChapterError):
    exempt(made, "runs a kernel or reads a finished notebook: tests/textbook/test_execute.py")
exempt(claims_page.page_html, "runs every check, half a minute: tests/textbook/test_claims_shown.py")
exempt(card_fields.read_list, "fuzzed, with load_file and load_claims, in test_readers_fuzz.py")
exempt(card_fields.Place, "made by read_list alone; its lines are checked in tests/textbook/test_cards.py")
exempt(claims.book_file, "finds the folder of the checkout; takes the name of a file of it")

HOSTILE = st.text(st.characters(codec="utf-8"), max_size=40) | st.sampled_from(
    ["<script>", "$a<b$", "a & b", '"', "$x"]
)
WORDS = st.text(st.sampled_from(string.ascii_letters + "<>&\"'$ é√"), min_size=1, max_size=30).filter(str.strip)
DECK = list(cards.load_bank().values())[::5]


def folder_of(files: dict[str, Any]) -> contextlib.AbstractContextManager[Path]:
    @contextlib.contextmanager
    def opened():
        with tempfile.TemporaryDirectory() as name:
            for file, text in files.items():
                path = Path(name) / file
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(text if isinstance(text, bytes) else text.encode())
            yield Path(name)

    return opened()


class Tags(HTMLParser):
    """The tags of a piece of HTML, and its text."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags, self.text = [], ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.text += data


@covers(maths.mathjax, maths.plain)
@many
@given(HOSTILE)
def test_formulas_are_delimited_and_everything_is_escaped(text):
    html = maths.mathjax(text)
    assert Tags(html).tags == [] and "<" not in html and ">" not in html
    assert unescape(html).replace("\\(", "$").replace("\\)", "$") == text.replace("\\(", "$").replace("\\)", "$")
    outside = re.sub(r"\$[^$]+\$", "", text)
    assert all(part in maths.plain(text) for part in re.split(r"\$[^$]+\$", text) if "$" not in outside)


@st.composite
def rows(draw: st.DrawFn, number: int) -> dict[str, Any]:
    """A card as a file has it, of any texts that a card may hold."""
    row = {
        "id": f"t-{number}",
        "tier": draw(st.sampled_from(cards.TIERS)),
        "level": draw(st.sampled_from(cards.LEVELS)),
    }
    row |= {"question": draw(WORDS), "answer": {draw(st.sampled_from(cards.TIERS)): draw(WORDS)}}
    row |= {
        "rubric": draw(st.lists(WORDS, min_size=4, max_size=6)),
        "red_flags": [{"text": draw(WORDS), "why": draw(WORDS)}],
    }
    texts = draw(st.lists(WORDS, min_size=3, max_size=5, unique_by=lambda text: " ".join(text.split())))
    row["choices"] = [{"text": text, "right": n == 1, "why": draw(WORDS)} for n, text in enumerate(texts)]
    if draw(st.booleans()):
        value = draw(st.floats(-1e9, 1e9))
        row["numeric"] = {"value": value, "tolerance": abs(value) / 100, "unit": draw(WORDS), "why": draw(WORDS)}
    if draw(st.booleans()):
        row["context"] = draw(WORDS)
    return row | {"sources": ["record:momentum"], "chapter": "basics/negatives"}


FIELDS = (card_fields.check_fields, card_fields.text, card_fields.texts, card_fields.lines, card_fields.one_of)
PLACE = (card_fields.Place.fields, card_fields.Place.items, card_fields.Place.field, card_fields.Place.fault)


@covers(*FIELDS, *PLACE, card_fields.number, cards.Choice, cards.RedFlag, cards.Numeric, cards.Card)
@covers(cards.load_file, cards.load_bank, cards.card_files, cards.bank_json, bank.as_json, bank.card_fields)
@covers(anki.note_fields, anki.tags, terminal.ask, terminal.verdict)
@some
@given(st.data(), st.integers(1, 3))
def test_cards_come_back_from_their_file_and_are_shown_everywhere(data, count):
    written = [data.draw(rows(number)) for number in range(count)]
    with folder_of({"t.yml": yaml.safe_dump(written, allow_unicode=True)}) as folder:
        read = cards.load_bank(folder)
        assert list(read.values()) == cards.load_file(folder / "t.yml") and cards.card_files(folder) == [
            folder / "t.yml"
        ]
        shown = json.loads(cards.bank_json(folder))["cards"]
    assert [card["id"] for card in shown] == list(read) == [row["id"] for row in written]
    for card, row, value in zip(read.values(), written, shown, strict=True):
        assert card.question == " ".join(row["question"].split()) == value["question"]
        assert [c.text for c in card.choices] == [" ".join(c["text"].split()) for c in row["choices"]]
        assert value["numeric"] == row.get("numeric") or value["numeric"]["value"] == row["numeric"]["value"]
        note = anki.note_fields(card, {})
        assert set(Tags("".join(note.values())).tags) <= {"p", "b", "i", "ul", "li", "pre"}
        assert anki.tags(card) == [f"tier::{row['tier']}", f"level::{row['level']}", "topic::t"]
        replies = iter([*(["1"] if card.numeric else [""]), "b"])
        with contextlib.redirect_stdout(io.StringIO()) as said:
            terminal.ask([card], lambda prompt, replies=replies: next(replies))
        assert "Right." in said.getvalue() and "1 of 1 asked" in said.getvalue()
        if card.numeric is None:
            refused(terminal.verdict, card, "1", named=card.id)
        else:
            assert terminal.verdict(card, str(card.numeric.value)).startswith("Right")
            assert terminal.verdict(card, "x").startswith("'x' is no number")


def test_a_quiz_that_cannot_be_asked_is_refused():
    for count in (0, -1, None, 1.5, True):
        refused(terminal.quiz, None, None, 0, count, named="count is")
    refused(terminal.quiz, "easy", None, 0, 1, named="tier is 'easy'")
    refused(terminal.list_cards, None, "no-topic", named="topic is 'no-topic'")


@covers(terminal.chosen, terminal.quiz)
@settings(few, max_examples=4)
@given(st.sampled_from([None, *cards.TIERS]), st.sampled_from([None, *{card.topic for card in DECK}]), HOSTILE)
def test_chosen_cards_are_those_of_tier_and_topic(tier, topic, other):
    try:
        found = terminal.chosen(tier, topic)
    except ValueError as error:
        assert "has no card of the tier" in str(error)
        return
    assert found and all(tier in (None, card.tier) and topic in (None, card.topic) for card in found)
    refused(terminal.chosen, other, None, named="tier is")
    if other not in {card.topic for card in cards.load_bank().values()}:
        refused(terminal.chosen, None, other, named="topic is")


@covers(quiz.quiz_html)
@few
@given(
    st.lists(st.sampled_from([card for card in DECK if card.choices]), min_size=1, max_size=3, unique_by=lambda c: c.id)
)
def test_a_quiz_has_each_option_once(asked):
    html = quiz.quiz_html(*[card.id for card in asked], prefix="q1")
    assert Tags(html).tags.count("input") == sum(len(card.choices) for card in asked)
    assert set(Tags(html).tags) <= {"div", "style", "fieldset", "legend", "input", "label", "p", "strong", "pre"}
    for card in asked:
        assert maths.mathjax(card.question) in html
    with pytest.raises(ValueError, match="quiz needs one or more different card ids"):
        quiz.quiz_html(asked[0].id, asked[0].id)
    with pytest.raises(ValueError, match="no card has the id"):
        quiz.quiz_html("no-such")
    for prefix in ("", "1", 'a"onclick=', "a b"):
        refused(quiz.quiz_html, asked[0].id, prefix=prefix, named="prefix is")


@covers(anki.write_deck)
def test_a_deck_is_whole_or_not_there(tmp_path):
    assert anki.write_deck(tmp_path / "deck.apkg", {card.id: card for card in DECK}) == len(DECK)
    assert (tmp_path / "deck.apkg").read_bytes().startswith(b"PK")
    (tmp_path / "folder").mkdir()
    refused(anki.write_deck, tmp_path / "folder", named="folder")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["deck.apkg", "folder"]


@covers(bank.sources_of, bank.chapter_title)
@some
@given(
    WORDS,
    st.lists(
        st.text(st.characters(codec="utf-8", exclude_characters="\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029")), max_size=4
    ),
)
def test_titles_and_sources_are_found_or_named(word, before):
    card = cards.Card("a-b", "basics", "?", (), ("key, section 2", "record:x"), {}, (), ())
    work = works.Work("He et al.", "T", "https://x", "MoCo")
    found = bank.sources_of(card, {"key": work})
    assert found[0] == {"text": "He et al., MoCo, section 2", "url": "https://x"} and found[1]["url"] is None
    assert bank.sources_of(card, {"key": works.Work("N", "T", "javascript:x")})[0]["url"] is None
    refused(bank.sources_of, card, {}, named="card a-b: source 'key'")
    text = "\n".join(line.replace("\n", " ").lstrip("#") for line in before)
    with folder_of({"deep/a.md": f"{text}\n# {word}\n# no\n", "deep/b.md": text}) as folder:
        assert bank.chapter_title("deep/a", folder) == word.strip()
        assert bank.chapter_title("deep/no-file", folder) == "No file"
        refused(bank.chapter_title, "deep/b", folder, named="b.md has no title")


NAME = st.text(string.ascii_letters, min_size=1, max_size=8)


@covers(works.Work, works.load_works)
@some
@given(st.lists(st.lists(NAME, min_size=1, max_size=4), min_size=1, max_size=3), st.integers(1900, 2100))
def test_works_come_back_from_their_file(authors, year):
    text = "".join(
        f"@article{{k{n},\n  author = {{{' and '.join(f'{name}, A.' for name in names)}}},\n  title = {{A {{B}}}},\n"
        f"  year = {{{year}}},\n}}\n"
        for n, names in enumerate(authors)
    )
    with folder_of({"r.bib": text, "bad.bib": text.replace("title", "titel"), "raw.bib": b"\xff\xfe"}) as folder:
        found = works.load_works(folder / "r.bib")
        assert [work.title for work in found.values()] == ["A B"] * len(authors) and next(iter(found)) == "k0"
        for work, names in zip(found.values(), authors, strict=True):
            assert (
                work.name.startswith(names[0])
                and work.name.endswith(f", {year}")
                and ("et al." in work.name) == (len(names) > 2)
            )
        refused(works.load_works, folder / "bad.bib", named="k0 has no title")
        refused(works.load_works, folder / "raw.bib", named="raw.bib")


CLAIMS = claims.load_claims()


@covers(claims.Claim, claims.Claim.source, claims.load_claims, claims_page.values)
@some
@given(st.sampled_from(CLAIMS), HOSTILE)
def test_a_claim_stands_on_each_axis(claim, other):
    for axis, allowed in claims_page.AXES.items():
        found = claims_page.values(claim, axis)
        assert found and set(found) <= set(allowed)
    assert (claim.source,) == claims_page.values(claim, "document")
    refused(claims_page.values, claim, other, named="axis is")
    if claim.sources:
        refused(claims_page._claim, claim, {}, dict.fromkeys(claim.effect, ""), named="source ")


@covers(findings.Finding, findings.mean, findings.seeds, findings.from_runs, findings.exactly, findings.runs)
@some
@given(st.lists(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=4), min_size=1, max_size=4))
def test_means_and_seeds_are_counted(values):
    assert findings.mean(iter(values[0])) == pytest.approx(sum(values[0]) / len(values[0]))
    counts = [len(found) for found in values]
    said = findings.seeds(values)
    assert said.startswith(str(min(counts))) and (" to " in said) == (min(counts) < max(counts))
    refused(findings.mean, [], named="values is []")
    refused(findings.seeds, [], named="values is []")
    assert findings.runs("queue") and refused(findings.runs, "no-such", named="grid is")
    before = dict(findings.CHECKS)
    findings.exactly("made")(lambda: findings.Finding("1", True))
    findings.from_runs("read")(lambda read: findings.Finding(str(len(read("x"))), False))
    made, read = findings.CHECKS.pop("made"), findings.CHECKS.pop("read")
    assert made(findings.runs).supported and read(lambda grid: [1, 2]).text == "2" and before == findings.CHECKS
