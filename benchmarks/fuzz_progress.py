"""Spoilt files for the practice page's progress: imported, and found in the browser's storage.

`texts` makes the inputs, `try_all` gives them to the page's own modules in one call, `blank_page` is a page for it.
"""

from __future__ import annotations

import base64
import functools
import http.server
import json
import random
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(Path(__file__).parent))
import mutations  # noqa: E402 - it lies beside this file, which a test loads by its path

NOON = 1_790_000_000_000
DAY = 86_400_000
OWN = {
    "format": "contrastive-minilab-practice",
    "version": 1,
    "era": "a1b2",
    "fourButtons": False,
    "reviews": {"queue-what": [[NOON - 9 * DAY, 3], [NOON - 2 * DAY, 1]], "queue-age": [[NOON - 90 * DAY, 3]]},
}
TRY_ALL = """async ({ inputs, own, noon, limit }) => {
  const at = (name) => import(new URL(`/practice/${name}.js`, location.href).href);
  const { Unreadable, Newer, countReviews, read, write } = await at("state");
  const [{ Store, KEY }, { replay, isDue, forecast }] = [await at("store"), await at("schedule")];
  class Memory extends Map {
    constructor(text) { super(text === null ? [] : [[KEY, text]]); }
    getItem(name) { return this.get(name) ?? null; }
    setItem(name, text) { this.set(name, text); }
    removeItem(name) { this.delete(name); }
  }
  const must = (right, what) => { if (!right) throw new Error(what); };
  const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
  let spent = 0; // ms, by the page's own modules
  const timed = (work) => {
    const began = performance.now();
    try { return work(); } finally { spent += performance.now() - began; }
  };
  const open = (memory) => timed(() => new Store(memory, () => noon));
  const ids = (log) => new Set(log.map(([time]) => time));
  const usable = (memory, notice) => { // an answer can be given, and is there after a reload
    const store = open(memory);
    must(Boolean(store.notice || store.trouble) === notice, `notice: ${store.notice}${store.trouble}`);
    const count = store.log("queue-what").length;
    store.review("queue-what", 3);
    must(store.log("queue-what").length === Math.min(count + 1, 5000), "an answer was not added");
    const again = open(memory);
    if (store.storage) must(same(again.state, store.state) && !again.notice, "a reload lost something");
    const memories = Object.values(store.state.reviews).map(replay);
    for (const each of memories) must(Number.isFinite(each.interval + each.due + each.stability), "no number of days");
    must(forecast(memories, noon, 30).every(Number.isInteger) && typeof isDue(memories[0], noon) === "boolean", "due");
  };
  const imported = (text) => {
    const memory = new Memory(own), store = open(memory), before = write(store.state);
    let added;
    try {
      added = timed(() => store.imported(text));
    } catch (fault) {
      must(fault instanceof Unreadable && fault.message, `${fault}`);
      must(write(store.state) === before && memory.get(KEY) === own && memory.size === 1, "a refusal changed it");
      return false;
    }
    const plain = Object.entries(JSON.parse(text).reviews), mine = JSON.parse(own).reviews;
    for (const [id, log] of [...plain, ...Object.entries(mine)]) {
      const there = ids(store.log(id));
      must(log.every(([time]) => there.has(time)), "a review was lost");
    }
    const known = (id) => ids(Object.hasOwn(mine, id) ? mine[id] : []);
    const fresh = plain.reduce((sum, [id, log]) => sum + [...ids(log)].filter((t) => !known(id).has(t)).length, 0);
    must(added === fresh, `added ${added}, not ${fresh}`);
    must(store.imported(text) === 0, "the second import added something");
    must(same(read(store.exported()), store.state), "the export is not the state");
    usable(memory, false);
    return true;
  };
  const stored = (text) => {
    const memory = new Memory(text);
    let whole = true, newer = false;
    try { read(text); } catch (fault) { [whole, newer] = [text.length > 2_000_000, fault instanceof Newer]; }
    usable(memory, !whole);
    if (newer) must(memory.get(KEY) === text, "a newer state was changed");
    else if (!whole) must([...memory.values()].includes(text), "what could not be read was thrown away");
  };
  const found = { accepted: 0, refused: 0, slowest: 0, faults: [] };
  for (const [index, bytes] of inputs.entries()) {
    const text = await new Blob([Uint8Array.from(atob(bytes), (sign) => sign.charCodeAt(0))]).text();
    spent = 0;
    try {
      found[imported(text) ? "accepted" : "refused"] += 1;
      stored(text);
      must({}.polluted === undefined && window.ran === undefined, "a prototype was changed, or code was run");
      must(spent < 1000 * limit, `took ${Math.round(spent)} ms`);
    } catch (fault) {
      found.faults.push([index, `${fault}`]);
    }
    found.slowest = Math.max(found.slowest, spent);
  }
  return found;
}"""


def limits() -> list[bytes]:
    """Valid files that fill what may be filled: a card's log, and the size of a file."""
    full = [[NOON - 400 * DAY + n, 1 + n % 4] for n in range(5000)]
    cards = {f"card-{n}": [[NOON - DAY * d, 3] for d in range(1, 90)] for n in range(1205)}
    names = ({"queue-what": full}, {"queue-what": full[:4998]}, {"queue-what": full[:4997]}, {"other": full}, cards)
    twice = {"queue-what": [[NOON, 3], [NOON, 4], [NOON - 9 * DAY, 1]]}
    return [json.dumps({**OWN, "reviews": reviews}, separators=(",", ":")).encode() for reviews in (*names, twice)]


def texts(count: int, seed: int) -> list[bytes]:
    """Files: the valid one, those at the limits, then spoilt ones; the same seed gives the same."""
    dice = random.Random(seed)
    whole = json.dumps(OWN).encode()
    found = [whole, *limits()]
    while len(found) < count:
        found.append(mutations.json_text(dice, OWN) if len(found) % 5 else mutations.raw(dice, whole))
    return found[:count]


def try_all(page: Any, files: list[bytes], limit: float) -> dict[str, Any]:
    """`accepted`, `refused`, `slowest` in ms and `faults` ([number, text]) of these files on a page of the site."""
    inputs = [base64.b64encode(data).decode() for data in files]
    return page.evaluate(
        TRY_ALL, {"inputs": inputs, "own": json.dumps(OWN, separators=(",", ":")), "noon": NOON, "limit": limit}
    )


@contextmanager
def blank_page() -> Iterator[Any]:
    """An empty page in a browser of this machine, beside the modules of the practice page."""
    sys.path.insert(0, str(ROOT / "tests" / "site"))
    from browser import find_or_install
    from playwright.sync_api import sync_playwright

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

    handler = functools.partial(Quiet, directory=str(ROOT / "book" / "site"))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_or_install(), args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page()
        page.goto(f"http://127.0.0.1:{server.server_port}/js/")
        yield page
        browser.close()
    server.shutdown()
    server.server_close()
