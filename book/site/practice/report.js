/* What a mock interview came to: points made, points missed, red flags, and what to read. */

import { readings } from "./card.js";
import { el, plural, words } from "./dom.js";

/** The report's nodes for a finished interview, `talk` as mock.js keeps it. Cards that left the bank are left out. */
export function report(bank, talk) {
  const asked = talk.asked.map((answer) => ({ ...answer, card: bank.get(answer.id) })).filter(({ card }) => card);
  if (!asked.length) return [el("p", {}, "Nothing was answered.")];
  const sum = (list) => asked.reduce((total, answer) => total + answer[list].length, 0);
  const made = sum("made");
  const deepest = Math.max(...asked.map(({ depth }) => depth));
  const seconds = Math.round(talk.total.seconds ?? 0);
  const numbers = [
    [`${made} of ${made + sum("missed")}`, "points made"],
    [sum("flags"), sum("flags") === 1 ? "red flag" : "red flags"],
    [asked.length, asked.length === 1 ? "question" : "questions"],
    [deepest, deepest === 1 ? "follow-up deep" : "follow-ups deep"],
    [`${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`, "minutes"],
  ];
  const figures = numbers.map(([number, name]) => el("div", {}, el("dt", {}, name), el("dd", {}, String(number))));
  return [el("dl", { class: "p-figures" }, figures), el("h3", {}, "What to read first"), ...toRead(asked),
    el("h3", {}, "Question by question"), el("ol", { class: "p-list" }, asked.map(question))];
}

function toRead(asked) {
  const faults = ({ missed, flags }) => missed.length + 2 * flags.length; // a red flag weighs more than a point left out
  const weak = asked.filter((answer) => faults(answer) && answer.card.chapter).sort((a, b) => faults(b) - faults(a));
  const chapters = [...new Map(weak.map(({ card }) => [card.chapter, card])).values()].slice(0, 3);
  if (!chapters.length) return [el("p", {}, "Nothing: no point was missed.")];
  return chapters.map((card) => readings(card, ""));
}

function question({ card, made, missed, flags, stuck, seconds }) {
  const points = (name, list, mark) => list.map((i) => card.rubric[i]).filter(Boolean)
    .map((text) => el("li", { class: `p-${name}` }, el("span", { "aria-hidden": "true" }, `${mark} `), el("span", { class: "p-unseen" }, `${name}: `), words(text)));
  const wrong = flags.map((i) => card.red_flags[i]).filter(Boolean)
    .map(({ text, why }) => el("li", { class: "p-flagged" }, el("strong", {}, "Red flag: "), words(text), " ", el("span", { class: "p-quiet" }, words(why))));
  const time = seconds ? `, ${Math.round(seconds)} s` : ""; // she may have left the clock alone
  const facts = `${made.length} of ${plural(made.length + missed.length, "point")}${time}${stuck ? ", stuck" : ""}`;
  return el("li", {}, el("p", {}, el("strong", {}, words(card.question)), el("br"), el("span", { class: "p-quiet" }, facts)),
    el("ul", { class: "p-points" }, points("made", made, "✓"), points("missed", missed, "○"), wrong));
}
