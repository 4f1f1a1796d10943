"""The practice page served alone: the page's own lines of book/practice.md, its modules, and a small bank of cards."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from conftest import ROOT, Visit, serving, watch
from playwright.sync_api import Browser, Page

SITE_SOURCES = ROOT / "book" / "site"
KEY = "contrastive-minilab.practice"
NOON = 1_790_000_000_000 - 1_790_000_000_000 % 86_400_000 + 12 * 3_600_000  # 12:00 UTC on some day of 2026
DAY = 86_400_000
HOSTILE = '<img src=x onerror="window.ran=1"><script>window.ran=1</script> & "quoted" \''


def card(name: str, **fields: Any) -> dict[str, Any]:
    """A card of the bank with everything filled in, some of it other than the default."""
    default = {
        "id": name,
        "topic": "memory",
        "tier": "basics",
        "level": "junior",
        "question": f"What is {name}?",
        "context": None,
        "answer": {"basics": f"In short, {name} is so."},
        "rubric": [f"{name}: the first point", "the second point", "the third point"],
        "red_flags": [{"text": f"{name} is magic", "why": "Nothing is."}],
        "analogy": None,
        "follow_ups": [],
        "choices": [],
        "numeric": None,
        "sources": [{"text": "A paper, section 1", "url": "https://arxiv.org/abs/1911.05722"}],
        "chapter": "solid/queue",
        "chapter_title": "The queue",
        "records": [],
    }
    return default | fields


CHOICES = [
    {"text": "The batch", "right": False, "why": "The batch is not kept."},
    {"text": "The last keys", "right": True, "why": "Keys of the last steps, oldest out first."},
    {"text": "All images", "right": False, "why": "That would be a memory bank."},
]
BANK = [
    card("queue-what", choices=CHOICES, follow_ups=["queue-age"], records=["momentum"]),
    card(
        "queue-age",
        tier="solid",
        level="mid",
        question="How old is the oldest key with $K = 4096$ and $N = 256$?",
        answer={"basics": "Sixteen steps.", "solid": "It is $K/N = 16$ steps old.\n\nThat is little."},
        numeric={"value": 16, "tolerance": 0.5, "unit": "steps", "why": "4096 / 256."},
        follow_ups=["queue-drift", "queue-size"],
        analogy="A conveyor belt of sixteen plates.",
    ),
    card("queue-drift", tier="deep", level="senior", answer={"deep": "The encoder moves on."}),
    card("queue-size", tier="solid", level="senior", answer={"solid": "By memory."}),
    card(
        "log-read",
        tier="solid",
        topic="debugging",
        level="senior",
        question="What is wrong here?",
        context="epoch  loss   std\n    1  6.931  0.000\n    2  6.931  0.000   a line wider than a narrow phone",
        answer={"solid": "It has collapsed."},
        chapter="deep/batch-norm",
        chapter_title="Batch norm",
    ),
    card(
        "hostile-one",
        topic="debugging",
        question=f"Hostile {HOSTILE} question",
        context=HOSTILE,
        answer={"basics": HOSTILE},
        rubric=[HOSTILE],
        red_flags=[{"text": HOSTILE, "why": HOSTILE}],
        analogy=HOSTILE,
        choices=[{"text": HOSTILE, "right": i == 0, "why": HOSTILE} for i in range(3)],
        sources=[{"text": HOSTILE, "url": "javascript:window.ran=1"}],
        chapter="deep/batch-norm",
        chapter_title=HOSTILE,
        records=[HOSTILE],
    ),
    card("momentum-why", topic="momentum", chapter="solid/key-encoder", chapter_title="The key encoder"),
    card("momentum-zero", topic="momentum", tier="deep", answer={"deep": "It copies."}, chapter="solid/key-encoder"),
]
BANK[-1]["chapter_title"] = "The key encoder"

PAGE = """<!doctype html><html lang="en" data-theme="{theme}"><head><meta charset="utf-8"><title>Practice</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,"><link rel="stylesheet" href="../_static/css/book.css">
<style>*, ::before, ::after {{ box-sizing: border-box }} body {{ margin: 0; padding: 0 16px; background: var(--page);
color: var(--ink); font-family: var(--pst-font-family-base) }} a {{ color: var(--link) }}</style>
<script>window.MathJax = {{"options": {{"processHtmlClass": "mathjax_process"}}}}</script>
<script defer src="../_static/vendor/mathjax/tex-chtml.js"></script></head>
<body><main class="bd-main"><div class="bd-content"><div class="bd-article-container" style="margin: auto">
<article class="bd-article mathjax_ignore"><section id="practice"><h1>Practice</h1>
{mount}
<section id="elsewhere"><h2>Elsewhere</h2><p>The deck.</p></section></section></article>
</div></div></main></body></html>"""


def mount() -> str:
    """The HTML that book/practice.md puts on its page, before its second heading."""
    text = (ROOT / "book" / "practice.md").read_text(encoding="utf-8")
    return text[text.index("<link") : text.index("\n## ")]


def bank_text(cards: list[dict[str, Any]]) -> str:
    return json.dumps({"version": 1, "cards": cards})


def write_bank(folder: Path, cards: list[dict[str, Any]]) -> None:
    (folder / "_static" / "practice" / "bank.json").write_text(bank_text(cards), encoding="utf-8")


def lay_out(folder: Path, cards: list[dict[str, Any]]) -> None:
    """The files of the page under `folder`, as the built site has them; one page for each theme."""
    shutil.copytree(SITE_SOURCES, folder / "_static", ignore=shutil.ignore_patterns("vendor", "vendor.py"))
    (folder / "_static" / "vendor").symlink_to(SITE_SOURCES / "vendor")
    write_bank(folder, cards)
    (folder / "book").mkdir()
    for theme in ("light", "dark"):
        name = "practice.html" if theme == "light" else "practice-dark.html"
        (folder / "book" / name).write_text(PAGE.format(theme=theme, mount=mount()), encoding="utf-8")


@contextmanager
def practice(browser: Browser, folder: Path, cards: list[dict[str, Any]] = BANK, **options: Any) -> Iterator[Visit]:
    """A visit to the practice page whose clock stands at NOON until a test moves it; it must end clean."""
    if not (folder / "_static").exists():
        lay_out(folder, cards)
    theme = options.pop("theme", "light")
    before = options.pop("init_script", None)
    options = {"viewport": {"width": 390, "height": 800}, "timezone_id": "UTC", "accept_downloads": True} | options
    context = browser.new_context(**options)
    if before:
        context.add_init_script(before)
    visit = watch(context)
    visit.page.clock.set_fixed_time(NOON / 1000)
    with serving(folder) as url:
        visit.page.goto(f"{url}/book/practice{'-dark' if theme == 'dark' else ''}.html")
        ready(visit.page)
        yield visit
        assert visit.page.evaluate("window.ran") is None, "text of a card or of a file ran as a script"
        visit.assert_clean()
        context.close()


def ready(page: Page) -> None:
    """Wait until the page is drawn, its formulas too."""
    page.wait_for_selector("#practice-page nav")
    assert page.locator("main section > h1").count() == 1, "the page took the place of its own title"
    page.wait_for_function("window.MathJax && MathJax.startup && MathJax.startup.promise")
    page.evaluate("async () => { await MathJax.startup.promise; await new Promise(setTimeout) }")


def second_tab(visit: Visit) -> Visit:
    """The same page in another tab of the same browser."""
    other = watch(visit.page.context)
    other.page.clock.set_fixed_time(NOON / 1000 + 1)
    other.page.goto(visit.page.url)
    ready(other.page)
    return other


def press(page: Page, name: str) -> None:
    """Press the button whose name starts so."""
    page.get_by_role("button", name=re.compile("^" + re.escape(name))).click()


def stored(page: Page) -> dict[str, Any]:
    """What the page has stored, {} if nothing."""
    return json.loads(page.evaluate(f"localStorage.getItem('{KEY}')") or "{}")


def reviews(page: Page) -> dict[str, list[list[int]]]:
    return stored(page).get("reviews", {})


def history(**logs: list[tuple[float, int]]) -> str:
    """A stored state: for each card (its hyphens as underscores) the reviews as (days from NOON, grade)."""
    named = {
        name.replace("_", "-"): [[int(NOON + days * DAY), grade] for days, grade in log] for name, log in logs.items()
    }
    return json.dumps(
        {
            "format": "contrastive-minilab-practice",
            "version": 1,
            "era": "testera",
            "fourButtons": False,
            "reviews": named,
        }
    )


def put(text: str, key: str = KEY) -> str:
    """A script that stores `text` before the page first runs in a tab."""
    return (
        f"if (!sessionStorage.getItem('put')) {{ localStorage.setItem({json.dumps(key)}, {json.dumps(text)});"
        "sessionStorage.setItem('put', 'yes'); }"
    )


def question(page: Page) -> str:
    return page.locator("#p-question").inner_text()


def answer_card(page: Page, points: int = 3, grade: str | None = None) -> None:
    """Reveal the card on the screen, tick so many points, and give the proposed grade, or `grade`."""
    press(page, "Show the answer")
    boxes = page.locator(".p-marks:not(.p-flags) input")
    for i in range(min(points, boxes.count())):
        boxes.nth(i).check()
    page.locator(f".p-grade:has-text('{grade}')" if grade else ".p-grade.p-main").click()


PAST = history(queue_what=[(-9, 3), (-2, 1)], queue_age=[(-90, 3)], momentum_why=[(-1, 3)])


def interview(page: Page, start: str = "queue-what") -> None:
    """Begin a mock interview with this card."""
    press(page, "Mock interview")
    page.get_by_label("Begin with").select_option(start)
    press(page, "Start the interview")


def export(page: Page) -> str:
    """The text of the file that the button gives."""
    press(page, "Progress")
    with page.expect_download() as download:
        press(page, "Export")
    assert download.value.suggested_filename.startswith("contrastive-practice-20")
    return Path(download.value.path()).read_text(encoding="utf-8")


def reset_everything(page: Page) -> None:
    press(page, "Progress")
    press(page, "Reset everything")
    press(page, "Forget them")


def changed(**fields: Any) -> str:
    """PAST with these fields put in."""
    return json.dumps(json.loads(PAST) | fields)
