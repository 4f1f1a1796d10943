/* The practice page: loads the cards and the history, and shows the drill, the mock interview or the progress. */

import { loadBank } from "./bank.js";
import { el, fill, say } from "./dom.js";
import { Drill } from "./drill.js";
import { Mock } from "./mock.js";
import { Progress } from "./progress.js";
import { Place, storageNamed, Store } from "./store.js";

const MODES = { drill: ["Drill", Drill], mock: ["Mock interview", Mock], progress: ["Progress", Progress] };

async function start() {
  const root = document.getElementById("practice-page");
  let bank;
  try {
    bank = await loadBank(new URL("bank.json", import.meta.url));
  } catch (fault) {
    fill(root, el("p", { role: "alert" }, `The practice page cannot start: ${fault.message}.`));
    return;
  }
  const place = new Place(storageNamed("sessionStorage"));
  try {
    new Page(root, bank, place);
  } catch (fault) {
    console.info("Beginning afresh: the place where you were could not be shown.", fault);
    place.value = {}; // left by another version of the page
    new Page(root, bank, place);
  }
}

class Page {
  constructor(root, bank, place) {
    this.store = new Store(storageNamed("localStorage"));
    this.place = place;
    this.host = el("div", { class: "p-host" });
    this.trouble = el("div", { class: "p-trouble" });
    const context = { bank, store: this.store, place: this.place, host: this.host, now: Date.now };
    this.views = Object.fromEntries(Object.entries(MODES).map(([name, [, View]]) => [name, new View(context)]));
    this.tabs = Object.entries(MODES).map(([name, [label]]) =>
      el("button", { type: "button", class: "p-tab", "data-mode": name, on: { click: () => this.#open(name, true) } }, label));
    fill(root, el("nav", { class: "p-tabs", "aria-label": "Ways to practise" }, this.tabs), this.trouble, this.host);
    this.store.addEventListener("change", () => {
      this.#complain();
      this.views[this.place.value.mode].refresh();
    });
    this.#open(Object.hasOwn(MODES, this.place.value.mode) ? this.place.value.mode : "drill", false);
    this.#complain();
  }

  #open(mode, move) {
    this.place.value.mode = mode;
    this.place.save();
    for (const tab of this.tabs) {
      if (tab.dataset.mode === mode) tab.setAttribute("aria-current", "page");
      else tab.removeAttribute("aria-current");
    }
    this.views[mode].show(move);
  }

  /** What went wrong with the storage, if anything did, above everything else. */
  #complain() {
    const text = [this.store.notice, this.store.trouble].filter(Boolean).join(" ");
    if (text === this.trouble.textContent) return;
    this.trouble.replaceChildren(text ? el("p", {}, text) : "");
    if (text) say(text);
  }
}

start();
