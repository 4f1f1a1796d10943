/* The drill: due cards first, then new ones; what was missed comes again a few cards later. */

import { capital, TIERS, topicName } from "./bank.js";
import { CardView, labelOf, readings, tally } from "./card.js";
import { button, confirmed, el, fill, focus, plural, say, typeset, words } from "./dom.js";
import { AGAIN, EASY, GOOD, GRADES, HARD, inDays, intervalAfter, isDue, replay } from "./schedule.js";

const CARDS_BETWEEN = 5; // before a missed card comes again

/** The cards of the drill, {due, fresh}, after the filters; the longest overdue first. */
export function waiting(bank, store, { tier = "", topic = "" }, now) {
  const wanted = bank.cards.filter((card) => (!tier || card.tier === tier) && (!topic || card.topic === topic));
  const memories = new Map(wanted.map((card) => [card, replay(store.log(card.id))]));
  const due = wanted.filter((card) => isDue(memories.get(card), now));
  due.sort((a, b) => memories.get(a).due - memories.get(b).due);
  return { due, fresh: wanted.filter((card) => memories.get(card) === null) };
}

export class Drill {
  constructor({ bank, store, place, host, now }) {
    Object.assign(this, { bank, store, place, host, now });
    this.kept = place.value.drill ??= {};
  }

  show(move = false) {
    const { sitting } = this.kept;
    if (sitting?.ended) this.#summary(move);
    else if (sitting && this.bank.get(sitting.id)) this.#card(move);
    else if (sitting) this.#next(move); // its card has left the bank
    else this.#start(move);
  }

  /** Called when another tab has changed the state: only the counts on the first screen depend on it. */
  refresh() {
    if (!this.kept.sitting) this.update?.();
  }

  #start(move) {
    const title = el("h2", {}, "Drill");
    const count = el("p", { class: "p-count" });
    const begin = button("Start the drill", () => this.#begin(), "p-main");
    const update = (this.update = (speak = false) => {
      const { due, fresh } = waiting(this.bank, this.store, this.kept, this.now());
      count.textContent = `${due.length} due, ${fresh.length} new.`;
      begin.hidden = !due.length && !fresh.length;
      if (begin.hidden) count.textContent = "Nothing is due and nothing is new here. Come back tomorrow, or try a mock interview.";
      if (speak) say(count.textContent);
    });
    const filters = el("p", { class: "p-row" },
      this.#filter("tier", "Tier", TIERS.map((tier) => [tier, capital(tier)]), update),
      this.#filter("topic", "Topic", this.bank.topics.map((topic) => [topic, topicName(topic)]), update));
    const how = "Say each answer aloud, then look at ours and tick what you said. Your marks decide when a card comes back.";
    fill(this.host, title, el("p", {}, how), filters, count, el("p", { class: "p-row" }, begin));
    update();
    if (move) focus(title);
  }

  #filter(field, label, options, update) {
    const all = el("option", { value: "" }, "All");
    const choices = options.map(([value, text]) => el("option", { value }, text));
    const change = (event) => {
      this.kept[field] = event.target.value;
      this.place.save();
      update(true);
    };
    const select = el("select", { id: `p-${field}`, on: { change } }, all, choices);
    select.value = options.some(([value]) => value === this.kept[field]) ? this.kept[field] : "";
    this.kept[field] = select.value;
    return el("span", { class: "p-field" }, el("label", { for: `p-${field}` }, label), select);
  }

  #begin() {
    this.kept.sitting = { done: 0, good: 0, again: [], missed: [], id: null, kept: {} };
    this.#next(true);
  }

  #next(move) {
    const { sitting } = this.kept;
    const { due, fresh } = waiting(this.bank, this.store, this.kept, this.now());
    const again = sitting.again.filter(({ id }) => this.bank.get(id));
    const ripe = again.find(({ at }) => at <= sitting.done) ?? (due.length || fresh.length ? null : again[0]);
    sitting.id = ripe?.id ?? due[0]?.id ?? fresh[0]?.id ?? null;
    sitting.kept = {};
    sitting.ended = sitting.id === null;
    this.place.save();
    this.show(move);
  }

  #card(move) {
    const { sitting } = this.kept;
    const card = this.bank.get(sitting.id);
    const log = this.store.log(card.id);
    const { due } = waiting(this.bank, this.store, this.kept, this.now());
    const missed = sitting.again.some(({ id }) => id === card.id);
    const state = missed ? "missed before" : log.length ? "due" : "new";
    const stop = button("Stop for now", () => this.#stop());
    const bar = el("p", { class: "p-bar" }, el("span", {}, `${sitting.done} answered, ${due.length} still due`), stop);
    fill(this.host, bar);
    const view = new CardView({
      host: this.host, card, kept: sitting.kept, save: () => this.place.save(), turn: log.length,
      label: `${labelOf(card)} · ${state}`, ending: (host, marks) => this.#grades(host, card, marks),
    });
    typeset(this.host);
    if (move) focus(view.title);
    if (sitting.clock && !sitting.kept.revealed && !sitting.kept.seconds) view.clock.run(); // it ran on the card before
    this.view = view;
  }

  #grades(host, card, marks) {
    const text = tallyWords(card, marks);
    if (host.hasChildNodes()) say(text);
    const log = this.store.log(card.id);
    const names = this.store.state.fourButtons ? [AGAIN, HARD, GOOD, EASY] : [AGAIN, GOOD];
    const buttons = names.map((grade) => {
      const back = inDays(intervalAfter(log, grade, this.now()));
      const label = [el("strong", {}, GRADES[grade]), el("small", {}, ` ${back}${grade === marks.grade ? ", proposed" : ""}`)];
      return el("button", { type: "button", class: `p-button p-grade ${grade === marks.grade ? "p-main" : ""}`, on: { click: () => this.#grade(card, grade) } }, label);
    });
    const open = host.querySelector("details")?.open ?? false;
    host.replaceChildren(el("p", { class: "p-tally" }, text), el("p", { class: "p-row" }, buttons), this.#explain(open, () => this.#again(host, card)));
  }

  #again(host, card) {
    this.#grades(host, card, tally(card, this.kept.sitting.kept));
    focus(host.querySelector("#p-four"));
  }

  #explain(open, redraw) {
    const change = (event) => {
      this.store.setFourButtons(event.target.checked);
      redraw();
    };
    const box = el("input", { type: "checkbox", id: "p-four", checked: this.store.state.fourButtons, on: { change } });
    return el("details", { class: "p-fold", open }, el("summary", {}, "What the buttons mean"),
      el("p", {}, el("strong", {}, "Again"), ": you could not say it. The card comes again in this sitting, and soon after. ",
        el("strong", {}, "Good"), ": you said what matters. These two are enough."),
      el("p", {}, el("strong", {}, "Hard"), ": you said it, but with great effort. It is not for a forgotten answer: that is Again. ",
        el("strong", {}, "Easy"), ": at once, and you would be bored to see it soon."),
      el("div", { class: "p-tick" }, box, el("label", { for: "p-four" }, "Show Hard and Easy too")));
  }

  #grade(card, grade) {
    const { sitting } = this.kept;
    this.store.review(card.id, grade);
    sitting.done += 1;
    sitting.clock = sitting.kept.seconds > 0;
    sitting.again = sitting.again.filter(({ id }) => id !== card.id);
    if (grade === AGAIN) {
      sitting.again.push({ id: card.id, at: sitting.done + CARDS_BETWEEN });
      if (!sitting.missed.includes(card.id)) sitting.missed.push(card.id);
    } else sitting.good += 1;
    this.#next(true);
  }

  async #stop() {
    const marked = this.kept.sitting.kept.revealed;
    if (marked && !(await confirmed("This card has no grade yet. Stop all the same?", "Stop", "Go on"))) return;
    this.view?.clock.pause();
    this.kept.sitting.ended = true;
    this.place.save();
    this.show(true);
  }

  #summary(move) {
    const { sitting } = this.kept;
    const title = el("h2", {}, "This sitting");
    const missed = sitting.missed.map((id) => this.bank.get(id)).filter(Boolean);
    const list = missed.map((card) => el("li", {}, el("p", {}, words(card.question)), readings(card)));
    const end = () => {
      this.kept.sitting = null;
      this.place.save();
      this.show(true);
    };
    const text = sitting.done ? `${plural(sitting.done, "answer")}, of which ${sitting.good} good.` : "Nothing was answered.";
    fill(this.host, title, el("p", { class: "p-count" }, text),
      missed.length ? el("h3", {}, "What you missed, and where to read") : null,
      missed.length ? el("ul", { class: "p-list" }, list) : null,
      el("p", { class: "p-row" }, button("Back to the drill", end, "p-main")));
    if (move) focus(title);
  }
}

/** What the marks come to, in words. */
export function tallyWords(card, marks) {
  const points = card.rubric.length ? `${marks.made.length} of ${plural(card.rubric.length, "point")}` : "No points to tick";
  const flags = marks.flags.length ? `, ${plural(marks.flags.length, "red flag")}` : "";
  const item = marks.right === null ? "" : marks.right ? ", the question right" : ", the question wrong";
  const proposal = marks.grade === null ? " How was it?" : ` Proposed: ${GRADES[marks.grade]}.`;
  return `${points}${flags}${item}.${proposal}`;
}
