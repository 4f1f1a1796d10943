/* What has been answered so far, what falls due, and taking the history away or bringing it back. */

import { capital, TIERS } from "./bank.js";
import { dataPart } from "./data.js";
import { el, fill, focus, plural } from "./dom.js";
import { AGAIN, FIRM_DAYS, forecast, isDue, replay } from "./schedule.js";

export class Progress {
  constructor({ bank, store, host, now }) {
    Object.assign(this, { bank, store, host, now });
  }

  show(move = false) {
    const title = el("h2", {}, "Progress");
    this.tables = el("div", {});
    this.#draw();
    fill(this.host, title, this.tables, ...dataPart(this.bank, this.store));
    if (move) focus(title);
  }

  refresh() {
    this.#draw();
  }

  #draw() {
    const memories = new Map(this.bank.cards.map((card) => [card, replay(this.store.log(card.id))]));
    this.tables.replaceChildren(this.#sums(memories), ...this.#forecast([...memories.values()]),
      el("h3", {}, "By tier"), this.#table("Tier", TIERS.map((tier) => [capital(tier), this.bank.cards.filter((card) => card.tier === tier)]), memories),
      el("h3", {}, "By chapter"), this.#table("Chapter", this.bank.chapters.map(({ title, cards }) => [title, cards]), memories),
      el("p", { class: "p-quiet" }, `A card is firm once it comes back no sooner than in ${FIRM_DAYS} days.`));
  }

  #sums(memories) {
    const logs = this.bank.cards.map((card) => this.store.log(card.id));
    const later = logs.flatMap((log) => log.slice(1));
    const kept = later.filter(([, grade]) => grade !== AGAIN).length;
    const asked = logs.filter((log) => log.length).length;
    const gone = Object.keys(this.store.state.reviews).filter((id) => !this.bank.get(id)).length;
    const recalled = later.length ? ` Of ${plural(later.length, "repeated answer")}, ${kept} (${Math.round((100 * kept) / later.length)} %) were good.` : "";
    const old = gone ? ` ${plural(gone, "card")} of your history ${gone === 1 ? "is" : "are"} no longer in the book; the history is kept.` : "";
    return el("p", { class: "p-count" }, `${asked} of ${plural(memories.size, "card")} answered at least once.${recalled}${old}`);
  }

  #table(name, rows, memories) {
    const heads = [name, "Cards", "Asked", "Due", "Firm"];
    const cells = ([label, cards]) => {
      const known = cards.map((card) => memories.get(card)).filter(Boolean);
      const due = known.filter((memory) => isDue(memory, this.now())).length;
      const firm = known.filter((memory) => memory.interval >= FIRM_DAYS).length;
      return el("tr", {}, el("th", { scope: "row" }, label), [cards.length, known.length, due, firm].map((count) => el("td", {}, String(count))));
    };
    const head = el("thead", {}, el("tr", {}, heads.map((text) => el("th", { scope: "col" }, text))));
    return el("table", { class: "p-table" }, head, el("tbody", {}, rows.filter(([, cards]) => cards.length).map(cells)));
  }

  #forecast(memories) {
    const days = forecast(memories, this.now(), 30);
    const sum = (count) => days.slice(0, count).reduce((a, b) => a + b, 0);
    const most = Math.max(1, ...days);
    const bars = days.map((count) => el("span", { class: count ? "p-day" : "p-day p-none", style: `height: ${count ? 8 + (92 * count) / most : 2}%` }));
    const text = `Today ${days[0]}, in the next 7 days ${sum(7)}, in the next 30 days ${sum(30)}.`;
    return [el("h3", {}, "What falls due"), el("div", { class: "p-forecast", "aria-hidden": "true" }, bars),
      el("p", { class: "p-axis", "aria-hidden": "true" }, el("span", {}, "today"), el("span", {}, "in 30 days")), el("p", {}, text)];
  }
}
