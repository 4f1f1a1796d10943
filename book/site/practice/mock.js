/* The mock interview: a question, then what an interviewer would ask next, deeper until you are stuck. Ten minutes. */

import { capital, TIERS } from "./bank.js";
import { CardView, labelOf, tally } from "./card.js";
import { Clock } from "./clock.js";
import { button, confirmed, el, fill, focus, plain, plural, typeset } from "./dom.js";
import { tallyWords } from "./drill.js";
import { report } from "./report.js";
import { AGAIN } from "./schedule.js";

const SECONDS = 600;

export class Mock {
  constructor({ bank, store, place, host }) {
    Object.assign(this, { bank, store, place, host });
    this.kept = place.value.mock ??= {};
  }

  show(move = false) {
    const { talk } = this.kept;
    if (!talk) this.#start(move);
    else if (talk.ended) this.#report(move);
    else if (this.bank.get(talk.id)) this.#card(move);
    else this.#between(move);
  }

  refresh() {}

  #start(move) {
    const title = el("h2", {}, "Mock interview");
    const starts = this.bank.starts();
    if (!starts.length) return fill(this.host, title, el("p", {}, "No card leads to another one: there is nothing to go deeper into."));
    const how = "The interviewer asks, you answer aloud, mark what you said, and the next question goes deeper. When you are stuck, say so: " +
      "everyone is, at some depth. After ten minutes you get a report. Each answer counts as a review, as in the drill.";
    fill(this.host, title, el("p", {}, how), this.#choice(starts, "Start the interview", (id) => this.#begin(id)));
    return move && focus(title);
  }

  #choice(starts, label, run) {
    const any = el("option", { value: "" }, "Any question");
    const groups = TIERS.map((tier) => [tier, starts.filter((card) => card.tier === tier)]).filter(([, cards]) => cards.length);
    const options = groups.map(([tier, cards]) =>
      el("optgroup", { label: capital(tier) }, cards.map((card) => el("option", { value: card.id }, plain(card.question)))));
    const select = el("select", { id: "p-begin" }, any, options);
    const random = () => starts[Math.floor(Math.random() * starts.length)].id;
    return el("div", { class: "p-form" }, el("p", { class: "p-field" }, el("label", { for: "p-begin" }, "Begin with"), select),
      el("p", { class: "p-row" }, button(label, () => run(select.value || random()), "p-main")));
  }

  #begin(id) {
    this.kept.talk = { asked: [], total: {} };
    this.#ask(id, [id]);
  }

  #ask(id, path) {
    Object.assign(this.kept.talk, { id, path, kept: {} });
    this.place.save();
    this.show(true);
  }

  #bar() {
    const { talk } = this.kept;
    this.clock?.pause();
    this.clock = new Clock(talk.total, SECONDS, "Clock of the interview", () => this.place.save());
    this.clock.again.remove();
    const end = button("End the interview", () => this.#end());
    return el("p", { class: "p-bar" }, this.clock.element, end);
  }

  #card(move) {
    const { talk } = this.kept;
    const card = this.bank.get(talk.id);
    const depth = talk.path.length - 1;
    fill(this.host, this.#bar());
    const view = new CardView({
      host: this.host, card, kept: talk.kept, save: () => this.place.save(), byChoice: false,
      label: `${depth ? `Follow-up, ${plural(depth, "step")} deep` : "The first question of a chain"} · ${labelOf(card)}`,
      reveals: [["I am stuck", () => (talk.kept.stuck = true)]],
      ending: (host, marks) => this.#ending(host, card, marks),
    });
    typeset(this.host);
    this.clock.run();
    if (move) focus(view.title);
  }

  #ending(host, card, marks) {
    const { talk } = this.kept;
    const next = this.#deeper();
    const over = this.clock.seconds >= SECONDS;
    const stuck = talk.kept.stuck || marks.grade === AGAIN;
    const text = tallyWords(card, marks).replace(/ (Proposed|How).*/, "");
    const deeper = () => this.#done(card, () => this.#ask(next.id, next.path));
    const finish = () => this.#done(card, () => this.#finish());
    const stop = () => this.#done(card, () => this.#ask(null, []), true);
    const buttons = [];
    if (over || !next) buttons.push(button(over ? "Ten minutes are over: the report" : "That was the deepest question: go on", over ? finish : stop, "p-main"));
    else buttons.push(button("Go deeper", deeper, stuck ? "" : "p-main"), button("I was stuck: leave this chain", stop, stuck ? "p-main" : ""));
    host.replaceChildren(el("p", { class: "p-tally", role: "status" }, text), el("p", { class: "p-row" }, buttons));
  }

  /** The next question that goes deeper, {id, path}; back up the chain where a branch has ended; null at its end. */
  #deeper() {
    const { talk } = this.kept;
    const asked = new Set([...talk.asked.map(({ id }) => id), talk.id]);
    for (let path = talk.path; path.length; path = path.slice(0, -1)) {
      const card = this.bank.get(path.at(-1));
      const next = card && this.bank.followUps(card).find(({ id }) => !asked.has(id));
      if (next) return { id: next.id, path: [...path, next.id] };
    }
    return null;
  }

  #done(card, then) {
    const { talk } = this.kept;
    const { made, missed, flags, grade } = tally(card, talk.kept);
    this.store.review(card.id, grade ?? AGAIN);
    talk.asked.push({ id: card.id, depth: talk.path.length - 1, stuck: Boolean(talk.kept.stuck), seconds: talk.kept.seconds, made, missed, flags });
    then();
  }

  #between(move) {
    const { talk } = this.kept;
    const asked = new Set(talk.asked.map(({ id }) => id));
    const starts = this.bank.starts().filter(({ id }) => !asked.has(id));
    const title = el("h2", {}, "The interviewer moves on");
    const text = starts.length ? "There is time for another chain, or read the report now." : "No other chain is left.";
    const another = starts.length ? this.#choice(starts, "Another chain", (id) => this.#ask(id, [id])) : null;
    const end = button("See the report", () => this.#finish(), starts.length ? "" : "p-main");
    fill(this.host, this.#bar(), title, el("p", {}, text), another, el("p", { class: "p-row" }, end));
    this.clock.run();
    if (move) focus(title);
  }

  async #end() {
    const { talk } = this.kept;
    const card = this.bank.get(talk.id);
    if (card && talk.kept.revealed) return this.#done(card, () => this.#finish());
    if (card && !(await confirmed("The question on the screen is not answered yet. End all the same?", "End", "Go on"))) return null;
    return this.#finish();
  }

  #finish() {
    this.clock?.pause();
    Object.assign(this.kept.talk, { ended: true, id: null });
    this.place.save();
    this.show(true);
  }

  #report(move) {
    const again = button("Another interview", () => {
      this.kept.talk = null;
      this.place.save();
      this.show(true);
    }, "p-main");
    const title = el("h2", {}, "Report");
    fill(this.host, title, ...report(this.bank, this.kept.talk), el("p", { class: "p-row" }, again));
    if (move) focus(title);
  }
}
