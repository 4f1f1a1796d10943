/* One card: the question, the clock, and what the reader marks after she has said her answer. */

import { capital, chapterLink, lengthsOf, LENGTHS, spoken, topicName } from "./bank.js";
import { Clock } from "./clock.js";
import { button, el, focus, paragraphs, typeset, words } from "./dom.js";
import { item, itemResult } from "./item.js";
import { AGAIN, GOOD } from "./schedule.js";

const PARTS_OF_POINTS = 2 / 3; // said, from which Good is proposed

/** What the marks of a card come to: {made, missed, flags, right, grade}; grade is Again, Good, or null for no proposal. */
export function tally(card, kept) {
  const made = (kept.points ?? []).filter((i) => i < card.rubric.length);
  const flags = (kept.flags ?? []).filter((i) => i < card.red_flags.length);
  const missed = card.rubric.map((_, i) => i).filter((i) => !made.includes(i));
  const right = itemResult(card, kept);
  let grade = made.length >= card.rubric.length * PARTS_OF_POINTS ? GOOD : AGAIN;
  if (!card.rubric.length || (!made.length && right !== null)) grade = right === null ? null : right ? GOOD : AGAIN;
  if (flags.length || right === false) grade = AGAIN;
  return { made, missed, flags, right, grade };
}

/** Shows a card in `host`. `kept` holds all that a reload must bring back, `save` stores it; `ending(host, marks)` draws
    what follows the marks, each time they change; `reveals` are buttons beside “Show the answer”: [label, run];
    `byChoice` says whether the card's own question is offered. */
export class CardView {
  constructor({ host, card, kept, save, turn = 0, label, ending, reveals = [], byChoice = true }) {
    Object.assign(this, { host, card, kept, save, turn, ending });
    kept.length = card.answer[kept.length] ? kept.length : lengthsOf(card).first;
    this.clock = new Clock(kept, LENGTHS[kept.length], "Clock for saying the answer aloud", save);
    this.title = el("h2", { class: "p-question", id: "p-question", tabIndex: -1 }, words(card.question));
    this.asking = el("div", { class: "p-asking" }, this.#lengths(), this.clock.element);
    this.#reveals(reveals);
    this.back = el("div", { class: "p-back" });
    const context = card.context === null ? null : el("pre", { class: "p-context", tabIndex: 0, role: "region", "aria-label": "What is shown to you" }, card.context);
    const front = [el("p", { class: "p-meta" }, label), this.title, context, this.asking, byChoice ? this.#byChoice() : null];
    host.append(el("article", { class: "p-card", "aria-labelledby": "p-question" }, front, this.back));
    if (kept.revealed) this.#reveal(false);
  }

  #lengths() {
    const { names } = lengthsOf(this.card);
    const pick = (name) => {
      this.kept.length = name;
      this.clock.setTarget(LENGTHS[name]);
      this.save();
    };
    if (names.length < 2) return el("p", { class: "p-hint" }, `Say your answer aloud, in about ${spoken(LENGTHS[this.kept.length])}.`);
    const radios = names.map((name) => {
      const id = `p-length-${name}`;
      const input = el("input", { type: "radio", name: "p-length", id, checked: name === this.kept.length, on: { change: () => pick(name) } });
      return el("span", { class: "p-length" }, input, el("label", { for: id }, spoken(LENGTHS[name])));
    });
    return el("fieldset", { class: "p-lengths" }, el("legend", {}, "Say your answer aloud, in about"), radios);
  }

  #reveals(others) {
    const show = button("Show the answer", () => this.#reveal(true), "p-main");
    const more = others.map(([label, run]) => button(label, () => (run(), this.#reveal(true))));
    this.front = el("p", { class: "p-row p-reveal" }, show, more);
    this.asking.append(this.front);
  }

  #byChoice() {
    const parts = item(this.card, this.kept, this.turn, () => (this.save(), this.#end()));
    if (!parts) return null;
    const how = this.card.choices.length ? "Cannot speak now? Answer by choice" : "Check yourself with a number";
    return el("details", { class: "p-fold", open: itemResult(this.card, this.kept) !== null }, el("summary", {}, how), parts);
  }

  #reveal(move) {
    this.clock.pause();
    this.kept.revealed = true;
    this.save();
    this.asking.hidden = true;
    const answer = el("h3", { id: "p-answer" }, `An answer in ${spoken(LENGTHS[this.kept.length])}`);
    this.after = el("div", { class: "p-after" });
    this.back.replaceChildren(answer, ...this.#answers(), ...this.#marks(), this.after);
    this.#end();
    typeset(this.back);
    if (move) focus(answer);
  }

  #answers() {
    const { card, kept } = this;
    const others = lengthsOf(card).names.filter((name) => name !== kept.length);
    const longer = others.map((name) =>
      el("details", { class: "p-fold" }, el("summary", {}, `The same in ${spoken(LENGTHS[name])}`), paragraphs(card.answer[name])));
    const analogy = card.analogy === null ? null : el("p", { class: "p-analogy" }, el("strong", {}, "A picture. "), words(card.analogy));
    return [...paragraphs(card.answer[kept.length] ?? ""), ...longer, analogy].filter(Boolean);
  }

  #marks() {
    const { card } = this;
    const points = card.rubric.map((text, i) => this.#tick("points", i, text));
    const flags = card.red_flags.map(({ text, why }, i) => this.#tick("flags", i, text, why));
    return [
      points.length ? el("fieldset", { class: "p-marks" }, el("legend", {}, "Tick what you said"), points) : null,
      flags.length ? el("fieldset", { class: "p-marks p-flags" }, el("legend", {}, "And, honestly, did you say one of these?"), flags) : null,
      this.#where(),
    ].filter(Boolean);
  }

  #tick(list, index, text, why = "") {
    const id = `p-${list}-${index}`;
    const change = (event) => {
      const rest = (this.kept[list] ?? []).filter((i) => i !== index);
      this.kept[list] = event.target.checked ? [...rest, index].sort((a, b) => a - b) : rest;
      this.save();
      this.#end();
    };
    const checked = (this.kept[list] ?? []).includes(index);
    const input = el("input", { type: "checkbox", id, checked, on: { change } });
    if (!why) return el("div", { class: "p-tick" }, input, el("label", { for: id }, words(text)));
    input.setAttribute("aria-describedby", `${id}-why`);
    return el("div", { class: "p-tick" }, input, el("label", { for: id }, words(text)), el("p", { class: "p-why", id: `${id}-why` }, words(why)));
  }

  #where() {
    const sources = this.card.sources.map(({ text, url }) => el("li", {}, source(text, url)));
    const list = sources.length ? el("details", { class: "p-fold" }, el("summary", {}, "Sources"), el("ul", {}, sources)) : null;
    return el("div", { class: "p-where" }, readings(this.card), list);
  }

  #end() {
    if (!this.kept.revealed) return;
    const marks = tally(this.card, this.kept);
    this.back.classList.toggle("p-missed", marks.grade === AGAIN);
    this.ending(this.after, marks);
  }
}

/** Links to where the card is explained and measured, as one paragraph; null if the card names no chapter. */
export function readings(card, lead = "Where it is explained and measured: ") {
  if (!card.chapter) return null;
  const link = (part, text) => el("a", { href: chapterLink(card, part) }, text);
  const links = [link("the-mechanism", "the mechanism"), ", ", link("the-experiment", "the experiment"), ", ", link("the-trap", "the trap")];
  const runs = card.records.length ? ` Recorded runs: ${card.records.join(", ")}.` : "";
  return el("p", { class: "p-read" }, lead, el("em", {}, card.chapter_title), ": ", links, ".", runs);
}

/** “Solid · Memory · for a senior” */
export const labelOf = (card) => [capital(card.tier), topicName(card.topic), LEVELS[card.level]].filter(Boolean).join(" · ");
const LEVELS = { junior: "asked of juniors", mid: "asked at mid level", senior: "asked of seniors", staff: "asked of staff" };

function source(text, url) {
  return url && /^https?:\/\//.test(url) ? el("a", { href: url, rel: "noopener" }, text) : words(text);
}
